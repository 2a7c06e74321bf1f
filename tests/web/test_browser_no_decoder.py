"""The page of a run without a decoder in a real browser: no sliders, the reason, and all the rest."""

from collections.abc import Iterator

import pytest
from browsing import chromium, served
from playwright.sync_api import expect

from unweave.cli import main

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of a store with one run of PCL."""
    store = tmp_path_factory.mktemp("encoders") / "runs"
    small = ["--network", "mlp", "--network.encoder-widths", "8", "--latents", "3", "--steps", "10", "--quiet"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNWEAVE_DATA", str(tmp_path_factory.getbasetemp() / "data"))
        assert main(["train", "micro", "--objective", "pcl", *small, "--folder", str(store / "pcl")]) == 0
    with served(store) as address:
        yield address


def test_no_sliders_but_their_reason(place: str) -> None:
    troubles: list[str] = []
    with chromium() as browser:
        page = browser.new_page(base_url=place)
        page.set_default_timeout(60_000)
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.goto("/run/pcl")
        expect(page.locator("p.notice")).to_contain_text("pcl trains an encoder alone", timeout=60_000)
        expect(page.locator("#traversals")).to_have_count(0)
        expect(page.locator(".tile.active")).to_contain_text("precise for every example.")
        expect(page.locator(".short")).not_to_contain_text("decoded")
        expect(page.locator(".short")).not_to_contain_text("nats of information")
        page.locator("#diagnosis").scroll_into_view_if_needed()
        expect(page.locator("#diagnosis .findings")).to_contain_text("without a decoder", timeout=60_000)
    assert troubles == []
