"""The table of runs: read once, then only what changed."""

import fcntl
import hashlib
import json
import shutil
import time
from pathlib import Path

import numpy as np
import pytest

from unweave.runs.folder import RunFolder
from unweave.sealed import sealed, unsealed
from unweave.studies.store import Store
from unweave.web import catalogue as catalogue_module
from unweave.web.catalogue import Catalogue, Changes, read_row
from unweave.web.columns import to_json, to_table
from unweave.web.searches import search_answer
from unweave.web.store import ReadOnlyStore


def test_rows_agree_with_the_table_of_studies(store: Path, searched: list[str]) -> None:
    catalogue = Catalogue(ReadOnlyStore(store))
    catalogue.refresh()
    rows = catalogue.rows()
    table = {row["id"]: row for row in Store(store).table().to_dicts()}
    assert set(rows) == set(table) == {"ae", "failed", "flat", "one", "two", "unfinished", *searched}
    for name, row in rows.items():
        for key in ("state", "seed", "latents", "world.name", "objective.name", "objective.beta", "scores.mean.mig"):
            known = table[name].get(key)
            assert row.get(key) == (pytest.approx(known, rel=1e-4) if isinstance(known, float) else known), key
    assert rows["one"]["latents.active"] + rows["one"]["latents.mixed"] + rows["one"]["latents.passive"] == 4


def test_a_warm_start_gives_the_same_rows(store: Path) -> None:
    cold = Catalogue(ReadOnlyStore(store))
    cold.refresh()
    Store(store).table()
    assert (store / ".unweave" / "index.parquet").exists()
    before = (store / ".unweave" / "index.parquet").stat().st_mtime_ns
    (store / "one" / "config.json").chmod(0o000)  # the index is enough, the folder is not opened
    warm = Catalogue(ReadOnlyStore(store))
    warm.refresh()
    for name in ("one", "two", "flat"):
        for key, value in warm.rows()[name].items():
            assert cold.rows()[name].get(key) == (pytest.approx(value) if isinstance(value, float) else value), key
    assert (store / ".unweave" / "index.parquet").stat().st_mtime_ns == before


def test_only_changes_are_sent(store: Path) -> None:
    catalogue = Catalogue(ReadOnlyStore(store))
    assert not catalogue.since(0).complete
    catalogue.refresh()
    first = catalogue.since(0)
    assert first.whole
    assert first.complete
    catalogue.refresh()
    nothing = catalogue.since(first.version)
    assert (nothing.whole, nothing.rows, nothing.gone, nothing.version) == (False, {}, [], first.version)
    alike = {"asked": {"samples": 150, "interventions": "table"}, "mean": {"scores": {"mig": {"value": 0.25}}}}
    RunFolder(store / "two").write_json("scores.json", alike)
    shutil.rmtree(store / "ae")
    catalogue.refresh()
    news = catalogue.since(first.version)
    assert list(news.rows) == ["two"]
    assert news.rows["two"]["scores.mean.mig"] == 0.25
    assert news.gone == ["ae"]
    assert catalogue.since(first.version - 10**6).whole  # a version of an earlier server
    assert catalogue.since(news.version + 1).whole


def test_a_running_run_says_so(store: Path) -> None:
    catalogue = Catalogue(ReadOnlyStore(store))
    with (store / "unfinished" / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        catalogue.refresh()
        assert catalogue.rows()["unfinished"]["state"] == "running"
    catalogue.refresh()
    assert catalogue.rows()["unfinished"]["state"] == "unfinished"


def test_damaged_folders_are_rows_too(store: Path) -> None:
    (store / "one" / "config.json").write_text("{torn")
    (store / "two" / "config.json").write_text("[]")
    (store / "ae" / "SHA256SUMS").write_bytes(b"\xff\xfe nonsense")
    (store / "flat" / "SHA256SUMS").unlink()
    (store / "empty").mkdir()
    states = {name: read_row(store / name) for name in ("one", "two", "ae", "flat", "empty")}
    assert states["one"]["state"] == states["two"]["state"] == "damaged"
    assert states["ae"]["state"] == "damaged"
    assert "SHA256SUMS is damaged" in states["ae"]["failure"]
    assert states["flat"]["state"] == "unfinished"
    assert states["empty"] is None
    Catalogue(ReadOnlyStore(store)).refresh()


def test_the_watching_thread_sees_new_runs_and_ends(store: Path) -> None:
    catalogue = Catalogue(ReadOnlyStore(store))
    catalogue.start(to_json)
    try:
        _until(lambda: catalogue.complete)
        shutil.copytree(store / "one", store / "three")
        _until(lambda: "three" in catalogue.rows())
    finally:
        catalogue.stop()
    assert catalogue._thread is not None
    assert not catalogue._thread.is_alive()


BAD = {
    "deep": {"config.json": "[" * 100_000},
    "deeper": {"config.json": '{"a":' * 3000 + "1" + "}" * 3000},
    "half": {"config.json": '{"seed": "\\ud800", "\\udfff": 1}'},
    "huge": {"config.json": '{"seed": ' + "9" * 5000 + "}"},
    "scored": {"config.json": "{}", "scores.json": '{"mean": {"scores": [1]}}'},
}
LISTED = {"square": "checkpoints/step-².safetensors", "long": f"checkpoints/step-{'9' * 5000}.safetensors"}


def test_bad_folders_are_rows_with_a_reason_and_later_runs_appear(store: Path) -> None:
    for name, content in BAD.items():
        for file, text in content.items():
            RunFolder(store / name).write(file, text)
    for name, line in (LISTED | {"leads out": "measures/../../one/scores.json"}).items():
        (store / name).mkdir()
        (store / name / "config.json").write_text("{}")
        config = f"{hashlib.sha256(b'{}').hexdigest()}  config.json\n"
        (store / name / "SHA256SUMS").write_text(f"{config}{'0' * 64}  {line}\n")
    catalogue = Catalogue(ReadOnlyStore(store))
    catalogue.start(to_json)
    try:
        _until(lambda: catalogue.complete)
        shutil.copytree(store / "one", store / "later")
        _until(lambda: "later" in catalogue.rows())
        rows = catalogue.rows()
    finally:
        catalogue.stop()
    for name in (*BAD, "long", "leads out"):
        assert rows[name]["state"] == "damaged", name
        assert rows[name]["failure"]
    assert (rows["square"]["state"], rows["square"]["step"]) == ("unfinished", None)
    assert json.loads(to_json(catalogue.since(0)))["n_rows"] == len(rows)


def test_one_folder_that_cannot_be_looked_at_at_all_is_a_row(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = catalogue_module.read_row
    monkeypatch.setattr(
        catalogue_module, "read_row", lambda path, *rest: 1 / (path.name != "two") and real(path, *rest)
    )
    catalogue = Catalogue(ReadOnlyStore(store))
    catalogue.refresh()
    assert catalogue.rows()["two"] == {"id": "two", "state": "damaged", "failure": "division by zero"}
    assert catalogue.rows()["one"]["state"] == "done"
    version = catalogue.version
    catalogue.refresh()
    assert catalogue.version == version


def test_the_table_checks_what_it_reads(store: Path) -> None:
    (store / "one" / "scores.json").write_text('{"mean": {"scores": {"mig": {"value": 1.0}}}}')
    row = read_row(store / "one")
    assert row is not None
    assert row["state"] == "damaged"
    assert "scores.json is damaged" in row["failure"]
    assert "scores.mean.mig" not in row


def test_a_member_is_as_far_as_its_fleet(store: Path) -> None:
    home = RunFolder(store / "fleet-0123456789ab")
    home.write_json("fleet.json", ["unfinished"])
    catalogue = Catalogue(ReadOnlyStore(store))
    catalogue.refresh()
    assert catalogue.rows()["unfinished"]["step"] is None
    RunFolder(store / "unfinished").write_json("member.json", {"fleet": home.path.name, "place": 0})
    home.write("checkpoints/step-000000030.safetensors", b"state")
    with home.locked():
        catalogue.refresh()
        row = catalogue.rows()["unfinished"]
        assert (row["state"], row["step"]) == ("running", 30)
    assert "fleet-0123456789ab" not in catalogue.rows()


def _until(true, seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_columns_hold_what_rows_held() -> None:
    rows = {
        "a": {"id": "a", "state": "done", "x": 1, "same": 3, "word": "p", "flag": True},
        "b": {"id": "b", "state": "failed", "x": None, "same": 3, "word": None, "flag": False},
    }
    table = to_table(Changes(7, True, rows, [], 2, True))
    assert table.shared == {"same": 3}
    found = {column.name: column for column in table.columns}
    assert found["x"].values == [1, None]
    assert (found["word"].words, found["word"].values) == (["p"], [0, -1])
    assert [found["flag"].words[place] for place in found["flag"].values] == ["yes", "no"]
    assert table.columns[0].name == "id"
    part = to_table(Changes(8, False, rows, ["c"], 2, True))
    assert part.shared == {}
    assert part.gone == ["c"]


def test_ones_own_data_go_by_their_name() -> None:
    rows = {
        "a": {"id": "a", "world.name": "images", "world.called": "photos"},
        "b": {"id": "b", "world.name": "table", "world.called": ""},
        "c": {"id": "c", "world.name": "micro"},
    }
    found = {column.name: column for column in to_table(Changes(7, True, rows, [], 3, True)).columns}["world.name"]
    assert found.words is not None
    assert [found.words[place] for place in found.values] == ["photos", "table", "micro"]
    assert rows["a"]["world.name"] == "images"


def test_twenty_thousand_runs_travel_light() -> None:
    draw = np.random.default_rng(0)
    rows = {
        f"micro-beta_vae-{n:012x}": {
            "id": f"micro-beta_vae-{n:012x}",
            "state": "done",
            "objective.name": "beta_vae",
            "seed": n % 50,
            **{f"scores.mean.metric_{m}": round(float(draw.random()), 5) for m in range(12)},
            **{f"setting_{m}": m for m in range(40)},
        }
        for n in range(20_000)
    }
    began = time.process_time()
    content = to_json(Changes(1, True, rows, [], len(rows), True))
    assert time.process_time() - began < 5.0  # typically 0.5; checked shapes and a shared machine make it slower
    assert len(content) < 6 * 2**20
    assert len(json.loads(content)["columns"]) == 4 + 12
    assert set(json.loads(content)["shared"]) == {f"setting_{m}" for m in range(40)}


def test_a_run_with_damaged_weights_is_not_done(store: Path) -> None:
    weights = store / "one" / "model.safetensors"
    kept = weights.read_bytes()
    catalogue = Catalogue(ReadOnlyStore(store))
    catalogue.refresh()
    assert catalogue.rows()["one"]["state"] == "done"
    weights.write_bytes(kept[:-1] + bytes([kept[-1] ^ 1]))
    for looking in (catalogue, Catalogue(ReadOnlyStore(store))):
        looking.refresh()
        row, version = looking.rows()["one"], looking.version
        assert (row["state"], row["latents"], "model.safetensors is damaged" in row["failure"]) == ("damaged", 4, True)
        looking.refresh()
        assert looking.version == version
    weights.write_bytes(kept)
    catalogue.refresh()
    assert catalogue.rows()["one"]["state"] == "done"


def test_a_search_shows_damaged_weights_as_the_table_does(store: Path, search_name: str, searched: list[str]) -> None:
    weights = store / searched[0] / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"?")
    shelf = ReadOnlyStore(store)
    states = {one.id: one.state for one in search_answer(shelf, Catalogue(shelf), search_name).visits}
    assert states == dict.fromkeys(searched, "done") | {searched[0]: "damaged"}


@pytest.mark.parametrize("value", [None, [], {"a": 1}, "x", 10**400])
@pytest.mark.parametrize("name", ["examples", "threshold", "method", "over"])
def test_a_search_whose_record_holds_anything_is_shown(name: str, value: object, store: Path, search_name: str) -> None:
    record = store / ".unweave" / "studies" / f"{search_name}.json"
    plan = unsealed(record.read_bytes())
    plan["options"]["search"] |= {name: value}
    record.write_text(sealed(plan))
    shelf = ReadOnlyStore(store)
    assert search_answer(shelf, Catalogue(shelf), search_name).name == search_name


@pytest.mark.parametrize("value", [True, None, [], "x", {"first": "x", "second": []}, {"first": 10**400}])
def test_a_search_whose_runs_hold_anything_is_shown(
    value: object, store: Path, search_name: str, searched: list[str]
) -> None:
    folder = RunFolder(store / searched[0])
    (measured,) = folder.names("measures/")
    folder.write_json(measured, dict.fromkeys(folder.read_json(measured), value))
    folder.write_json("config.json", folder.read_json("config.json") | {"steps": value})
    shelf = ReadOnlyStore(store)
    visits = search_answer(shelf, Catalogue(shelf), search_name).visits
    assert {one.id for one in visits} == set(searched)


def test_weights_are_read_a_few_at_a_time(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [store / name / "model.safetensors" for name in ("one", "two")]
    for weights in runs:
        weights.write_bytes(weights.read_bytes() + b"more")
    monkeypatch.setattr(catalogue_module, "READ_AT_MOST", max(path.stat().st_size for path in runs))
    catalogue, seen = Catalogue(ReadOnlyStore(store)), []
    for _ in range(9):
        catalogue.refresh()
        seen.append(sum(catalogue.rows()[name]["state"] == "damaged" for name in ("one", "two")))
    assert (seen[0] < 2, seen[-1]) == (True, 2)
