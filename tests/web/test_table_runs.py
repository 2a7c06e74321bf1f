"""A run on a table in the explorer: sliders move columns, in their own units, and nothing asks for pictures."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from fastapi.testclient import TestClient

import unweave as uw
from unweave.runs.folder import RunFolder
from unweave.web.app import create_app

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
        late = pl.DataFrame({"when": VALUES[:, 0] / 1000 + 1.7e9, "x": VALUES[:, 1]})
        uw.train(late, place / "runs" / "late", steps=60, optimiser=adam, **small)  # type: ignore[arg-type]
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
    from browsing import served

    with served(store) as address:
        yield address


@pytest.mark.browser
def test_sliders_move_the_columns(place: str) -> None:
    from browsing import chromium
    from playwright.sync_api import expect

    troubles: list[str] = []
    with chromium() as browser:
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
    assert troubles == []


def test_code_that_is_not_trusted_is_asked_for_in_the_explorers_words(store: Path, tmp_path: Path) -> None:
    shutil.copytree(store / "rows", tmp_path / "runs" / "mine")
    files = RunFolder(tmp_path / "runs" / "mine")
    plain = files.read_json("config.json")
    files.write_json("config.json", plain | {"objective": {"name": "elsewhere:Mine"}})
    with TestClient(create_app(tmp_path / "runs"), base_url=HERE) as client:
        told = client.get("/api/runs/mine").json()["message"]
        assert told.endswith("if you trust that code, start the explorer again with --trust elsewhere.")
        assert client.get("/api/compare?left=mine&right=mine").json()["detail"] == told[0].lower() + told[1:-1]


@pytest.mark.browser
def test_values_far_from_zero_are_told_apart(place: str) -> None:
    """Times in seconds, for example: 1,700,000,000.005 and .006 are no 1.7e9 both, and lines stay in their box."""
    from browsing import chromium
    from playwright.sync_api import expect

    with chromium() as browser:
        page = browser.new_page(base_url=place)
        page.set_default_timeout(60_000)
        page.goto("/run/late")
        when = page.locator("#steer tbody tr").first.locator("td")
        expect(when.nth(1)).to_contain_text("1,700,000,000.00")
        expect(when.nth(3)).to_contain_text("1,700,000,000.00")
        page.locator("#traversals").scroll_into_view_if_needed()
        expect(page.locator("#traversals figure")).to_have_count(2)
        chart = page.locator("#traversals figure svg").first
        ticks = chart.locator("text.tick.y").all_text_contents()
        assert len(ticks) == len({*ticks}) > 1
        assert all(tick.startswith("1,700,000,000.0") for tick in ticks)
        heights = [
            float(point.split(",")[1])
            for line in chart.locator("polyline").all()
            for point in (line.get_attribute("points") or "").split()
        ]
        grid = [float(line.get_attribute("y1") or 0) for line in chart.locator("line.grid").all()]
        assert min(grid) - 0.2 <= min(heights) < max(heights) <= max(grid) + 0.2
