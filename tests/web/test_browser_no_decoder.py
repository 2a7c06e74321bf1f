"""The page of a run without a decoder in a real browser: no sliders, the reason, and all the rest."""

import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect, sync_playwright

from unweave.cli import main
from unweave.web.app import create_app
from unweave.web.serve import listen

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of a store with one run of PCL."""
    import uvicorn

    store = tmp_path_factory.mktemp("encoders") / "runs"
    small = ["--network", "mlp", "--network.encoder-widths", "8", "--latents", "3", "--steps", "10", "--quiet"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNWEAVE_DATA", str(tmp_path_factory.getbasetemp() / "data"))
        assert main(["train", "micro", "--objective", "pcl", *small, "--folder", str(store / "pcl")]) == 0
    listening = listen("127.0.0.1", 0)
    told = uvicorn.Config(create_app(Path(store)), log_level="error", ws="none", timeout_graceful_shutdown=1)
    server = uvicorn.Server(told)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    server.should_exit = True
    thread.join(timeout=10)
    listening.close()


def test_no_sliders_but_their_reason(place: str) -> None:
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("no chromium on this machine: the page was not tested in a browser")
    troubles: list[str] = []
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=path, args=["--no-sandbox", "--no-first-run"])
        page = browser.new_page(base_url=place)
        page.set_default_timeout(60_000)
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.goto("/run/pcl")
        expect(page.locator("p.notice")).to_contain_text("pcl trains an encoder alone", timeout=60_000)
        expect(page.locator("#traversals")).to_have_count(0)
        page.locator("#diagnosis").scroll_into_view_if_needed()
        expect(page.locator("#diagnosis .findings")).to_contain_text("without a decoder", timeout=60_000)
        browser.close()
    assert troubles == []
