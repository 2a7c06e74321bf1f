"""A run on a table in the explorer: sliders move columns, in their own units, and nothing asks for pictures."""

import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from fastapi.testclient import TestClient

import unweave as uw
from unweave.web.app import create_app
from unweave.web.serve import listen

HERE = "http://127.0.0.1"
VALUES = np.random.default_rng(0).normal(size=(200, 1)) * [1.0, 300.0] + [5.0, 2000.0]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("rows")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNWEAVE_DATA", str(tmp_path_factory.getbasetemp() / "data"))
        frame = pl.DataFrame(VALUES, schema=["<b>height</b>", "weight"])
        small = {"network": uw.MLP((8,), (8,)), "latents": 2, "plan": uw.Plan("cpu", 1), "quiet": True}
        adam = uw.Adam(learning_rate=1e-2)
        uw.train(frame, place / "runs" / "rows", steps=60, optimiser=adam, **small)  # type: ignore[arg-type]
        uw.train("synth_lin", place / "runs" / "points", steps=2, likelihood="squared_error", **small)  # type: ignore[arg-type]
    return place / "runs"


def test_columns_rows_and_decoded_rows(store: Path) -> None:
    with TestClient(create_app(store), base_url=HERE) as client:
        told = client.get("/api/runs/rows").json()
        assert told["is_image"] is False
        assert [one["name"] for one in told["columns"]] == ["<b>height</b>", "weight"]
        assert told["columns"][1]["mean"] == pytest.approx(VALUES[:, 1].mean())
        shown = client.get("/api/runs/rows/examples/rows?rows=3&rows=0").json()["rows"]
        assert np.allclose(shown, VALUES[[3, 0]], rtol=1e-5)
        decoded = client.post("/api/runs/rows/decode/rows", json={"codes": [[0.0, 0.0], [1.0, -1.0]]}).json()["rows"]
        assert np.allclose(decoded, uw.load(store / "rows").decode([[0.0, 0.0], [1.0, -1.0]]).numpy())
        assert client.post("/api/runs/rows/decode", json={"codes": [[0.0, 0.0]]}).status_code == 409
        assert client.get("/api/runs/rows/latents").status_code == 200
        refused = client.get("/api/runs/points/examples/rows")
        assert (refused.status_code, "not rows of a table" in refused.json()["detail"]) == (409, True)
        assert client.get("/api/runs/points").json()["columns"] == []


@pytest.fixture
def place(store: Path) -> Iterator[str]:
    """A server of the store."""
    import uvicorn

    listening = listen("127.0.0.1", 0)
    told = uvicorn.Config(create_app(store), log_level="error", ws="none", timeout_graceful_shutdown=1)
    server = uvicorn.Server(told)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    yield f"{HERE}:{listening.getsockname()[1]}"
    server.should_exit = True
    thread.join(timeout=10)
    listening.close()


@pytest.mark.browser
def test_sliders_move_the_columns(place: str) -> None:
    from playwright.sync_api import expect, sync_playwright

    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("no chromium on this machine: the page was not tested in a browser")
    troubles: list[str] = []
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=path, args=["--no-sandbox", "--no-first-run"])
        page = browser.new_page(base_url=place)
        page.set_default_timeout(60_000)
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.goto("/run/rows")
        weight = page.locator("#steer tbody tr").nth(1).locator("td").nth(1)
        expect(weight).not_to_have_text("–")
        expect(page.locator("#steer tbody tr").first).to_contain_text("<b>height</b>")
        expect(page.locator("canvas")).to_have_count(0)
        before = weight.inner_text()
        page.locator("#steer input[type=range]").first.fill("2.5")
        expect(weight).not_to_have_text(before)
        page.locator("#traversals").scroll_into_view_if_needed()
        expect(page.locator("#traversals figure")).to_have_count(2)
        browser.close()
    assert troubles == []
