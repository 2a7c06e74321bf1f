"""The store and its index: incremental, rebuildable, never the truth."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from unweave.runs.folder import RunFolder
from unweave.studies.index import FILE, frame
from unweave.studies.leases import Holder
from unweave.studies.store import Store


def fake_run(root: Path, n: int, done: bool = True, **measures: object) -> str:
    """A run folder as training would leave it, without training."""
    objective = {"name": "beta_vae", "beta": float(n % 4)}
    files = {"config.json": json.dumps({"world": {"name": "micro"}, "objective": objective, "seed": n, "latents": 3})}
    files |= {f"measures/{name}-0123abcd.json": json.dumps(value) for name, value in measures.items()}
    files |= {"model.safetensors": "weights"} if done else {}
    folder = root / f"micro-beta_vae-{n:012x}"
    lines = []
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
        lines.append(f"{hashlib.sha256(content.encode()).hexdigest()}  {name}\n")
    (folder / "SHA256SUMS").write_text("".join(lines))
    return folder.name


def test_a_table_has_a_row_a_run(tmp_path: Path) -> None:
    ids = [fake_run(tmp_path, n, done=n != 1, polarised={"n_active": n, "kl": [0.5, n]}) for n in range(3)]
    fleet = tmp_path / "fleet-0123"
    fleet.mkdir()
    (fleet / "SHA256SUMS").write_text("")
    table = Store(tmp_path).table()
    assert table["id"].to_list() == ids
    assert table["state"].to_list() == ["done", "unfinished", "done"]
    assert table["polarised.n_active"].to_list() == [0, 1, 2]
    assert table["polarised.kl"].to_list() == [[0.5, 0.0], [0.5, 1.0], [0.5, 2.0]]
    assert table["objective.beta"].dtype == pl.Float64
    assert Store(tmp_path).table([ids[2], "unknown", ids[0]])["seed"].to_list() == [2, 0]
    assert Store(tmp_path / "nothing").table().height == 0


def test_the_index_follows_the_folders(tmp_path: Path) -> None:
    store = Store(tmp_path)
    ids = [fake_run(tmp_path, n) for n in range(4)]
    store.table()
    for name in os.listdir(tmp_path / ids[3]):
        (tmp_path / ids[3] / name).unlink()
    RunFolder(tmp_path / ids[0]).write_json("measures/late-0123abcd.json", {"x": 1.5})
    fake_run(tmp_path, 9)
    table = store.table()
    assert table["seed"].to_list() == [0, 1, 2, 9]
    assert table["late.x"].to_list() == [1.5, None, None, None]
    (tmp_path / ".unweave" / FILE).write_bytes(b"torn")
    assert_frame_equal(store.table(), table, check_column_order=False)
    (tmp_path / ".unweave" / FILE).unlink()
    assert_frame_equal(store.table(), table, check_column_order=False)
    assert_frame_equal(store.table(rebuild=True), table, check_column_order=False)


def test_only_changed_runs_are_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from unweave.studies import index

    for n in range(5):
        fake_run(tmp_path, n)
    Store(tmp_path).table()
    read, before = [], index._row
    monkeypatch.setattr(index, "_row", lambda folder, signature: read.append(folder.name) or before(folder, signature))
    Store(tmp_path).table()
    assert read == []
    changed = fake_run(tmp_path, 2, polarised={"n_active": 2})
    Store(tmp_path).table()
    assert read == [changed]


def test_scores_failures_and_costs_are_columns(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / fake_run(tmp_path, 0))
    number = {"value": 0.25, "low": None, "draws": []}
    folder.write_json(
        "scores.json", {"mean": {"scores": {"mig": number, "dci.completeness": number | {"value": "inf"}}}}
    )
    folder.write_json("failures/raises-01234567.json", {"reason": "ValueError: no"})
    other = RunFolder(tmp_path / fake_run(tmp_path, 1, done=False))
    other.write_json("failure.json", {"step": 3, "term": "kl", "value": "nan"})
    table = Store(tmp_path).table()
    assert table["scores.mean.mig"].to_list() == [0.25, None]
    assert table["raises.failure"].to_list() == ["ValueError: no", None]
    assert table["state"].to_list() == ["done", "failed"]
    assert table["failure"].to_list() == [None, "kl became nan at step 3"]


def test_a_run_that_someone_holds_is_running(tmp_path: Path) -> None:
    store, run_id = Store(tmp_path), fake_run(tmp_path, 0, done=False)
    with Holder(store.home) as holder:
        holder.take(run_id)
        assert store.table()["state"].to_list() == ["running"]
        assert store.running()[run_id]["pid"] == os.getpid()
        pytest.importorskip("duckdb")
        assert store.sql("select state from runs").rows() == [("running",)]
    assert store.table()["state"].to_list() == ["unfinished"]


def test_damage_is_a_state(tmp_path: Path) -> None:
    run_id = fake_run(tmp_path, 0)
    (tmp_path / run_id / "config.json").write_text("{}")
    table = Store(tmp_path).table()
    assert table["state"].to_list() == ["damaged"]
    assert "config.json" in table["failure"][0]


def test_values_of_several_kinds_become_text() -> None:
    assert frame([{"x": [None, None]}, {"x": None}]).to_dict(as_series=False) == {"x": [[None, None], None]}
    table = frame([{"x": 1, "y": [1, 2]}, {"x": "a", "y": [0.5]}, {"z": {"k": 1}, "w": "inf"}, {"w": 1.5}])
    assert table["x"].to_list() == ["1", '"a"', None, None]
    assert table["y"].to_list() == [[1.0, 2.0], [0.5], None, None]
    assert table["w"].to_list() == [None, None, float("inf"), 1.5]


def test_a_column_may_change_its_kind(tmp_path: Path) -> None:
    fake_run(tmp_path, 0, odd={"x": 1.5})
    Store(tmp_path).table()
    fake_run(tmp_path, 1, odd={"x": [1, 2]})
    assert Store(tmp_path).table()["odd.x"].to_list() == ["1.5", "[1.0, 2.0]"]


def test_a_newer_store_is_refused_in_one_sentence(tmp_path: Path) -> None:
    Store(tmp_path).prepare()
    (tmp_path / ".unweave" / "version").write_text("2\n")
    with pytest.raises(ValueError, match=r"newer unweave.*version 2.*upgrade"):
        Store(tmp_path)
    (tmp_path / ".unweave" / "version").write_text("what")
    with pytest.raises(ValueError, match="should hold the number"):
        Store(tmp_path)


@pytest.mark.parametrize("name", ["", ".", "../x", "a/b", ".unweave"])
def test_an_id_is_no_path(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="named by its id"):
        Store(tmp_path).folder(name)


LIST_OFTEN = """
import shutil, sys
from pathlib import Path
from unweave.studies.store import Store
root = Path(sys.argv[1])
for n in range(10):
    (root / ("aside-" + sys.argv[2]) / str(n)).rename(root / f"micro-{sys.argv[2]}-{n}")
    Store(root).table()
"""


def test_many_writers_leave_a_whole_index(tmp_path: Path) -> None:
    for place in ("a", "b"):
        for n in range(10):
            made = fake_run(tmp_path / f"aside-{place}", n, polarised={"n_active": n})
            (tmp_path / f"aside-{place}" / made).rename(tmp_path / f"aside-{place}" / str(n))
    # not forked: polars has threads, which a fork loses
    crew = [subprocess.Popen([sys.executable, "-c", LIST_OFTEN, str(tmp_path), place]) for place in ("a", "b")]
    assert [process.wait() for process in crew] == [0, 0]
    assert Store(tmp_path).table().height == 20
    assert pl.read_parquet(tmp_path / ".unweave" / FILE).height == 20
    assert not list((tmp_path / ".unweave").glob(".*.part"))


def test_sql(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    for n in range(8):
        fake_run(tmp_path, n, polarised={"n_active": n})
    store = Store(tmp_path)
    query = 'select "objective.beta" as beta, avg("polarised.n_active") as n from runs group by all order by beta'
    assert store.sql(query).rows() == [(0.0, 2.0), (1.0, 3.0), (2.0, 4.0), (3.0, 5.0)]
    with pytest.raises(ValueError, match="DuckDB cannot answer"):
        store.sql("select nothing from nowhere")


def test_sql_without_duckdb_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(ImportError, match=r"unweave\[sql\]"):
        Store(tmp_path).sql("select 1")


@pytest.mark.slow
def test_twenty_thousand_runs_are_listed_and_queried_within_a_second() -> None:
    script = Path(__file__).parents[2] / "benchmarks" / "store_listing.py"
    given = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    told = json.loads(given.stdout)
    assert told["runs"] == 20_000
    assert told["list_cpu_s"] < 1.0
    assert told["sql_cpu_s"] < 1.0


def test_an_index_that_was_touched_is_made_again(tmp_path: Path) -> None:
    for n in range(6):
        fake_run(tmp_path, n, polarised={"n_active": n, "kl": [0.5, 1.5 * n]})
    store, file = Store(tmp_path), tmp_path / ".unweave" / FILE
    table, whole = store.table(), file.read_bytes()
    assert_frame_equal(Store(tmp_path).table(), table)
    for place in range(0, 8 * len(whole), 8 * len(whole) // 60):
        content = bytearray(whole)
        content[place // 8] ^= 1 << place % 8
        file.write_bytes(content)
        assert_frame_equal(store.table(), table, check_column_order=False)
    (tmp_path / ".unweave" / "index.sha256").unlink()  # as version 0.1.0 left it
    assert_frame_equal(store.table(), table, check_column_order=False)


def test_a_bad_folder_is_one_damaged_row(tmp_path: Path) -> None:
    fake_run(tmp_path, 0)
    for name, content in {"deep": "[" * 100_000, "half": '{"seed": "\\ud800"}', "list": "[]"}.items():
        RunFolder(tmp_path / name).write("config.json", content)
    (tmp_path / fake_run(tmp_path, 1) / "SHA256SUMS").write_text("nonsense\n")
    os.mkdir(os.fsencode(tmp_path) + b"/\xff")
    (tmp_path / os.fsdecode(b"\xff") / "SHA256SUMS").touch()
    table = Store(tmp_path).table()
    assert table["state"].to_list() == ["damaged", "damaged", "damaged", "done", "damaged"]
    assert table["failure"].null_count() == 1


def test_damaged_weights_are_not_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = [fake_run(tmp_path, n) for n in range(3)]
    store = Store(tmp_path)
    assert (store.unchecked(ids), store.table()["state"].to_list(), store.unchecked(ids)) == (3, ["done"] * 3, 0)
    weights = tmp_path / ids[1] / "model.safetensors"
    weights.write_text("weightz")
    for table in (store.table(), store.table(rebuild=True), store.table(ids[1:])):
        row = table.row(by_predicate=pl.col("id") == ids[1], named=True)
        assert (row["state"], row["seed"], "model.safetensors is damaged" in row["failure"]) == ("damaged", 1, True)
        assert set(table["state"]) == {"done", "damaged"}
    weights.write_text("weights")
    assert store.table()["state"].to_list() == ["done"] * 3
    (store.home / "weights.json").write_text("[]")
    monkeypatch.setattr("unweave.studies.store.READ_AT_MOST", 15)
    assert (store.table().height, store.unchecked(ids), store.table().height, store.unchecked(ids)) == (3, 1, 3, 0)


def test_the_whole_table_keeps_columns_that_nothing_fills_and_a_part_does_not(tmp_path: Path) -> None:
    ids = [fake_run(tmp_path, n) for n in range(2)]
    store = Store(tmp_path)
    assert "failure" in store.table().columns
    assert "failure" not in store.table(ids).columns
