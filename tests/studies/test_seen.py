"""A store that is looked at again and again sees what others write, and reads nothing twice."""

from pathlib import Path

import pytest

from unweave.runs.folder import DamagedFile, RunFolder
from unweave.studies.seen import SeenStore
from unweave.studies.store import Store

NAME = "micro-beta_vae-0123456789ab"


def test_what_somebody_writes_is_seen(tmp_path: Path) -> None:
    seen, other = SeenStore(tmp_path).prepare().folder(NAME), Store(tmp_path).folder(NAME)
    assert not seen.has("told.json")
    other.write_json("told.json", {"first": 1})
    assert seen.read_json("told.json") == {"first": 1}
    other.write_json("told.json", {"first": 2})
    assert seen.read_json("told.json") == {"first": 2}
    other.remove("told.json")
    assert seen.names() == []
    with pytest.raises(FileNotFoundError):
        seen.read_json("told.json")


def test_what_has_not_changed_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = SeenStore(tmp_path).prepare()
    store.folder(NAME).write_json("told.json", {"first": 1})
    read: list[str] = []
    whole = RunFolder._content_or_none

    def counted(self: RunFolder, name: str) -> bytes | None:
        read.append(name)
        return whole(self, name)

    store.folder(NAME).read_json("told.json")
    monkeypatch.setattr(RunFolder, "_content_or_none", counted)
    assert store.folder(NAME).read_json("told.json") == {"first": 1}
    assert store.folder(NAME).has("told.json")
    assert read == []


def test_damage_is_found_where_a_file_is_new(tmp_path: Path) -> None:
    Store(tmp_path).prepare().folder(NAME).write_json("told.json", {"first": 1})
    (tmp_path / NAME / "told.json").write_text("{}")
    with pytest.raises(DamagedFile):
        SeenStore(tmp_path).folder(NAME).read_json("told.json")
