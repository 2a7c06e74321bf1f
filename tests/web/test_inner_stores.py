"""Stores inside the opened one: their runs, studies and searches are found and go by their path."""

import json
import shutil
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from unweave.web.app import create_app
from unweave.web.catalogue import Catalogue
from unweave.web.store import NotHere, ReadOnlyStore


@pytest.fixture
def outer(made: Path, tmp_path: Path) -> Path:
    """A folder with one run, a store two folders down, a folder of pictures, and a link to a store elsewhere."""
    place = tmp_path / "outer"
    shutil.copytree(made / "one", place / "one")
    inner = place / "mine" / "betas"
    for name in ("two", "unfinished"):
        shutil.copytree(made / name, inner / name)
    shutil.copytree(made / ".unweave" / "studies", inner / ".unweave" / "studies")
    (place / "pictures").mkdir()
    (place / "pictures" / "a.png").write_bytes(b"")
    (place / "elsewhere").symlink_to(made)
    return place


def test_inner_stores_are_found_and_links_are_not_followed(outer: Path) -> None:
    assert [store.place for store in ReadOnlyStore(outer).stores()] == ["", "mine/betas"]
    assert ReadOnlyStore(outer).run("mine:betas:two") == outer / "mine" / "betas" / "two"
    for name in (
        "elsewhere:one",
        "mine:..:one",
        "mine:betas",
        "mine::two",
        "mine:betas:/",
        ":one",
        "one:",
        "mine:\0:x",
    ):
        with pytest.raises(NotHere, match="there is no run"):
            ReadOnlyStore(outer).run(name)


def test_a_folder_whose_own_name_has_the_sign_is_itself(made: Path, tmp_path: Path) -> None:
    shutil.copytree(made / "one", tmp_path / "a:b")
    assert ReadOnlyStore(tmp_path).run("a:b") == tmp_path / "a:b"


def test_rows_of_inner_stores_carry_their_path(outer: Path) -> None:
    catalogue = Catalogue(ReadOnlyStore(outer))
    catalogue.refresh()
    rows = catalogue.rows()
    assert set(rows) == {"one", "mine:betas:two", "mine:betas:unfinished"}
    assert rows["mine:betas:two"]["id"] == "mine:betas:two"
    assert rows["mine:betas:two"]["store"] == "mine/betas"
    assert "store" not in rows["one"]
    version = catalogue.version
    catalogue.refresh()
    assert catalogue.version == version
    shutil.rmtree(outer / "mine")
    catalogue.refresh()
    assert set(catalogue.rows()) == {"one"}


def test_damaged_weights_of_an_inner_run_are_noticed(outer: Path) -> None:
    weights = outer / "mine" / "betas" / "two" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\0")
    catalogue = Catalogue(ReadOnlyStore(outer))
    catalogue.refresh()
    assert catalogue.rows()["mine:betas:two"]["state"] == "damaged"


def test_studies_and_searches_of_inner_stores_are_answered(outer: Path, search_name: str) -> None:
    with TestClient(create_app(outer), base_url="http://127.0.0.1") as client:
        told = client.get("/api/store").json()
        assert {"name": "mine:betas:pair", "title": "Two seeds", "place": "mine/betas"} in told["studies"]
        assert told["searches"] == [f"mine:betas:{search_name}"]
        study = client.get("/api/studies/mine:betas:pair").json()
        assert study["ids"] == ["mine:betas:one", "mine:betas:two"]
        assert study["place"] == "mine/betas"
        assert client.get(f"/api/searches/mine:betas:{search_name}").json()["visits"] == []
        assert client.get("/api/runs/mine:betas:two").json()["path"] == str(outer / "mine" / "betas" / "two")
        assert client.get("/api/runs/mine:betas:two/latents").json()["latents"]
        assert client.get("/api/studies/mine:pair").status_code == 404


def test_a_damaged_record_of_an_inner_store_is_said(outer: Path) -> None:
    record = outer / "mine" / "betas" / ".unweave" / "studies" / "pair.json"
    record.write_text(json.dumps({"name": "pair"})[:-3])
    with TestClient(create_app(outer), base_url="http://127.0.0.1") as client:
        titles = [one["title"] for one in client.get("/api/store").json()["studies"]]
    assert "mine:betas:pair (its record is damaged)" in titles
