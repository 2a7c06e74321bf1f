"""Names that come from a list, a lease, a record, a config or a request lead nowhere but inside."""

import json
import os
from dataclasses import asdict
from pathlib import Path

import pytest

from unweave.data.images import Images
from unweave.pages.study import write_study_page
from unweave.runs.fleets import members_of
from unweave.runs.folder import RunFolder
from unweave.sealed import sealed
from unweave.studies.executors.on_slurm import _options
from unweave.studies.leases import Holders
from unweave.studies.pack import pack_from
from unweave.studies.record import Record, names, read_progress, read_record, write_record
from unweave.studies.store import Store
from unweave.studies.sweep import sweep
from unweave.training.checkpoint import history_so_far, to_bytes
from unweave.training.experiment import experiment_from
from unweave.web.catalogue import Catalogue
from unweave.web.searches import search_answer
from unweave.web.store import NotHere, ReadOnlyStore, read_inside

BAD = ["../x", "../../secret", "/etc/passwd", "a\\b", "a\0b", "..", ".", "", "a/../../b", "a//b", "a\nb"]


@pytest.mark.parametrize("name", BAD)
def test_a_run_folder(name: str, tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.write("config.json", "{}")
    for ask in (
        lambda: folder.write(name, "x"),
        lambda: folder.list_file(name),
        lambda: folder.remove(name),
    ):
        with pytest.raises(ValueError, match="no plain name"):
            ask()
    with pytest.raises((FileNotFoundError, ValueError)):
        folder.read(name)


@pytest.mark.parametrize("name", BAD)
def test_a_store(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="a run is named by its id"):
        Store(tmp_path).folder(name)
    (tmp_path / ".unweave" / "reports").mkdir(parents=True)
    (tmp_path / "secret").write_text("{}")
    seen = ReadOnlyStore(tmp_path)
    assert seen.own_file("reports", name) is None
    assert name in ("", ".") or seen.own_folder("reports", name) is None
    assert read_inside(tmp_path / ".unweave", name) is None
    with pytest.raises(NotHere):
        seen.run(name)


@pytest.mark.parametrize("name", BAD)
def test_members_of_a_fleet(name: str, tmp_path: Path) -> None:
    home = RunFolder(tmp_path / "fleet-0123456789ab")
    home.write_json("fleet.json", [name])
    with pytest.raises(ValueError, match="should list folders beside it"):
        members_of(home)


@pytest.mark.parametrize("name", BAD)
def test_records_of_studies(name: str, tmp_path: Path) -> None:
    store = Store(tmp_path / "store").prepare()
    with pytest.raises(ValueError, match="the name of a study becomes a file's"):
        write_record(store.home, Record(name))
    write_record(store.home, Record("own", experiments=(name,)))
    with pytest.raises(ValueError, match=r"a run is named by its id|nothing to report"):
        write_study_page(store, read_record(store.home))
    (store.home / "studies" / "own.json").write_text(sealed(asdict(Record(name))))
    with pytest.raises(ValueError, match="name and title should be those of the study"):
        read_record(store.home)
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


@pytest.mark.parametrize(
    "content",
    ["[]", "3", '{"experiments": [1], "measures": [], "command": []}', "{", "\x00", '{"experiments": 3}'],
)
def test_malformed_records(content: str, tmp_path: Path) -> None:
    store = Store(tmp_path).prepare()
    (store.home / "studies").mkdir()
    (store.home / "studies" / "own.json").write_text(content)
    assert names(store.home) == ["own"]
    with pytest.raises(ValueError, match="the record of the study own is damaged"):
        read_record(store.home)
    assert read_progress(store.home, "own") == {}


@pytest.mark.parametrize("token", ["../../../victim.json", "..", "", "a\\b", "{absolute}"])
def test_a_lease_that_points_elsewhere_deletes_nothing(token: str, tmp_path: Path) -> None:
    victim = tmp_path / "victim.json"
    victim.write_text('{"place": "elsewhere"}')
    home = tmp_path / "store" / ".unweave"
    (home / "holders").mkdir(parents=True)
    (home / "claims").mkdir()
    os.symlink(token.format(absolute=victim) or "x", home / "claims" / "run~1")
    holders = Holders(home, patience=-1.0)
    for _ in range(3):
        assert not holders.running()
    sweep(Store(tmp_path / "store"))
    assert victim.exists()


def test_a_checkpoint_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "outside").write_bytes(to_bytes({}, {"unweave": "{}"}))
    folder = RunFolder(tmp_path / "run")
    folder.write("checkpoints/step-000000001.safetensors", (tmp_path / "outside").read_bytes())
    (folder.path / "checkpoints/step-000000001.safetensors").unlink()
    os.symlink(tmp_path / "outside", folder.path / "checkpoints/step-000000001.safetensors")
    assert history_so_far(folder)[0] == 0


@pytest.mark.parametrize("method", ["../../../secret", "/etc/passwd", "..", "a\0b"])
def test_a_search_reads_its_own_report_only(method: str, tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_text('{"findings": ["secret"]}')
    store = Store(tmp_path / "store").prepare()
    write_record(store.home, Record("own", options={"search": {"method": method}}))
    (store.home / "reports" / "own").mkdir(parents=True)
    shelf = ReadOnlyStore(store.root)
    assert search_answer(shelf, Catalogue(shelf), "own").findings == []


@pytest.mark.parametrize("digest", BAD[:6])
def test_the_digest_of_images_is_no_path(digest: str) -> None:
    with pytest.raises(ValueError, match=r"config\.world\.digest may hold the letters"):
        experiment_from({"world": {"name": "images", "path": "x", "digest": digest}})
    assert Images(digest="0f").digest == "0f"


def test_the_file_that_is_carried_is_named_plainly(tmp_path: Path) -> None:
    plain = {"experiments": [], "measures": [], "trains": True, "trusts": []}
    for name in ("../x", "/x", "a\\b", "a\0b"):
        with pytest.raises(ValueError, match="no plain name"):
            pack_from(json.dumps(plain | {"files": {name: ""}}), tmp_path)


def test_options_of_slurm_are_one_line() -> None:
    with pytest.raises(ValueError, match="NAME=VALUE"):
        _options("partition=gpu\nrm x")
