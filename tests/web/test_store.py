"""No name leads out of the store, however it is written."""

import os
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from unweave.web.app import create_app
from unweave.web.searches import search_names
from unweave.web.store import NotHere, ReadOnlyStore, read_inside

NAMES = (
    "..",
    ".",
    "",
    "/",
    "../runs/one",
    "one/../two",
    "/etc",
    "one/",
    "one\\..\\two",
    ".unweave",
    "one\0",
    "x" * 300,
    "…",
    "~",
    "dimension-micro~..",
    "dimension-micro~../../one",
    "dimension-micro~",
    "~one",
    "nowhere~one",
)


@pytest.mark.parametrize("name", NAMES)
def test_no_name_is_a_path(made: Path, name: str) -> None:
    with pytest.raises(NotHere, match="there is no run"):
        ReadOnlyStore(made).run(name)


@pytest.mark.parametrize("name", ["..%2f..", "%2e%2e", "..%5c..", "%00", "one%2f..%2ftwo", "%2fetc%2fpasswd", "%c0%ae"])
def test_encoded_dots_are_not_found(made: Path, name: str) -> None:
    with TestClient(create_app(made), base_url="http://127.0.0.1") as client:
        for address in (f"runs/{name}", f"runs/{name}/latents", f"searches/{name}", f"studies/{name}"):
            assert client.get(f"/api/{address}").status_code == 404
        assert client.post(f"/api/runs/{name}/decode", json={"codes": [[0.0]]}).status_code == 404
        assert client.get("/api/compare", params={"left": "one", "right": "../one"}).status_code == 404


def test_links_are_not_followed(store: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    os.rename(store / "two", outside)
    (store / "two").symlink_to(outside)
    secret = tmp_path / "secret.json"
    secret.write_text('{"title": "secret"}')
    (store / "one" / "report.html").symlink_to(secret)
    (store / ".unweave" / "studies" / "leak.json").symlink_to(secret)
    visible = ReadOnlyStore(store)
    assert "two" not in visible.names()
    with pytest.raises(NotHere, match="no run 'two'"):
        visible.run("two")
    with pytest.raises(NotHere, match=r"holds a link, 'report\.html'"):
        visible.run("one")
    assert visible.own_file("studies", "leak.json") is None
    with TestClient(create_app(store), base_url="http://127.0.0.1") as client:
        assert "secret" not in client.get("/api/store").text
        assert client.get("/api/studies/leak").status_code == 404
        for address in ("one", "two", "one/history", "one/latents", "two/scores"):
            assert client.get(f"/api/runs/{address}").status_code == 404


def test_a_linked_folder_of_the_stores_own_files_is_not_entered(store: Path, tmp_path: Path) -> None:
    os.rename(store / ".unweave", tmp_path / "elsewhere")
    (store / ".unweave").symlink_to(tmp_path / "elsewhere")
    assert ReadOnlyStore(store).own_names("studies") == []
    assert ReadOnlyStore(store).own_file("studies", "pair.json") is None


def test_only_plain_files_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert read_inside(tmp_path, "pipe") is None
    assert read_inside(tmp_path.parent, tmp_path.name) is None
    assert read_inside(tmp_path, "none") is None
    (tmp_path / "plain").write_bytes(b"yes")
    assert read_inside(tmp_path, "plain") == b"yes"


def test_what_a_store_holds(made: Path, tmp_path: Path, search_name: str, searched: list[str]) -> None:
    visible = ReadOnlyStore(made)
    assert visible.ids() == sorted(["ae", "failed", "flat", "one", "two", "unfinished", *searched])
    assert search_names(visible) == [search_name]
    assert len(searched) > 1
    assert visible.run(searched[0]) == made.resolve() / searched[0]
    assert ReadOnlyStore(tmp_path / "nowhere").ids() == []
