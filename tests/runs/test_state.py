"""State, row, lock and fleets of run folders, made by hand."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from unweave.runs.fleets import home_of, homes_in, members_of
from unweave.runs.folder import DamagedFile, RunFolder
from unweave.runs.lock import holders, is_locked
from unweave.runs.row import row_of
from unweave.runs.state import State, failure_of, saved_step, state_of, steps
from unweave.runs.sums import SUMS, write_sums

HOME = "fleet-0123456789ab"


def begun(path: Path, *checkpoints: int, **more: object) -> RunFolder:
    """A folder as training begins it, with checkpoints and further JSON files."""
    folder = RunFolder(path)
    folder.write_json("config.json", {"world": {"name": "micro"}, "steps": 50, "seed": 3})
    for step in checkpoints:
        folder.write(f"checkpoints/step-{step:09d}.safetensors", b"state")
    for name, value in more.items():
        folder.write_json(f"{name}.json", value)
    return folder


def fleet(root: Path, *members: str, checkpoints: tuple[int, ...] = ()) -> RunFolder:
    home = RunFolder(root / HOME)
    home.write_json("fleet.json", list(members))
    for step in checkpoints:
        home.write(f"checkpoints/step-{step:09d}.safetensors", b"state")
    return home


def test_the_words_of_a_run(tmp_path: Path) -> None:
    folder = begun(tmp_path / "run")
    assert str(state_of(folder)) == "interrupted at step 0"
    begun(tmp_path / "run", 10, 20)
    assert state_of(folder) == State("interrupted", 20)
    assert state_of(folder).column == "unfinished"
    with folder.locked():
        assert str(state_of(folder)) == "training at step 20"
        assert state_of(folder).column == "running"
    folder.write_json("failure.json", {"step": 23, "term": "kl", "value": "nan"})
    assert state_of(folder) == State("failed", 23, "kl became nan at step 23")
    folder.write_json("failure.json", {"kind": "memory", "reason": "RuntimeError: out of memory"})
    assert state_of(folder) == State("failed", 20, "RuntimeError: out of memory")
    folder.write("model.safetensors", b"weights")
    assert str(state_of(folder)) == "done"


def test_damage_has_a_reason(tmp_path: Path) -> None:
    folder = begun(tmp_path / "run")
    folder.write("model.safetensors", b"weights")
    (folder.path / "model.safetensors").write_bytes(b"weighty")
    assert state_of(folder).word == "done"  # weights are large: they are read when they are asked for
    assert "model.safetensors is damaged" in state_of(folder, thorough=True).reason
    (folder.path / "model.safetensors").unlink()
    assert str(state_of(folder)).startswith("damaged: ")
    assert "model.safetensors is missing" in state_of(folder).reason
    (folder.path / "config.json").write_text("{}")
    assert "config.json is damaged" in state_of(folder).reason
    (folder.path / SUMS).write_text("nonsense")
    assert "SHA256SUMS is damaged" in state_of(folder).reason


@pytest.mark.parametrize("name", ["step-².safetensors", f"step-{'9' * 5000}.safetensors", "step-.safetensors", "x"])
def test_odd_checkpoints_are_no_steps(tmp_path: Path, name: str) -> None:
    folder = begun(tmp_path / "run", 7)
    sums = folder.sums() | ({f"checkpoints/{name}": "0" * 64} if len(name) < 900 else {})
    (folder.path / SUMS).write_text(write_sums(sums))
    assert saved_step(folder) == 7
    assert list(steps(folder, "checkpoints/")) == [7]
    assert state_of(folder) == State("interrupted", 7)


def test_a_member_is_where_its_fleet_is(tmp_path: Path) -> None:
    folder = begun(tmp_path / "run", member={"fleet": HOME, "place": 0})
    assert home_of(folder) is None  # the fleet has ended, or was cleared away
    home = fleet(tmp_path, "run", "other", checkpoints=(10, 40))
    found = home_of(folder)
    assert found is not None
    assert found.path == home.path
    assert members_of(found) == [tmp_path / "run", tmp_path / "other"]
    assert state_of(folder) == State("interrupted", 40)
    with home.locked():
        assert state_of(folder) == State("training", 40)
        folder.write_json("failure.json", {"step": 5, "term": "kl", "value": "inf"})
        assert state_of(folder).word == "failed"


def test_a_fleet_of_version_0_1_0_knows_its_members(tmp_path: Path) -> None:
    folder, alone = begun(tmp_path / "run"), begun(tmp_path / "alone")
    home = fleet(tmp_path, "run", checkpoints=(30,))
    assert state_of(folder) == State("interrupted", 30)
    assert state_of(alone) == State("interrupted", 0)
    assert {name: found.path for name, found in homes_in(tmp_path).items()} == {"run": home.path}
    assert home_of(begun(tmp_path / "run")) is not None


@pytest.mark.parametrize("name", ["../fleet-0123456789ab", "fleet-0123456789ab/..", "other", "", 7, None, ["x"]])
def test_a_member_names_no_other_place(tmp_path: Path, name: object) -> None:
    folder = begun(tmp_path / "run", member={"fleet": name, "place": 0})
    with pytest.raises(DamagedFile, match=r"member\.json should name a fleet"):
        home_of(folder)
    assert state_of(folder).word == "damaged"


@pytest.mark.parametrize("name", ["../x", "a/b", "/etc", "..", ".unweave", "", 7, None])
def test_a_fleet_lists_neighbours_only(tmp_path: Path, name: object) -> None:
    home = RunFolder(tmp_path / HOME)
    home.write_json("fleet.json", ["run", name])
    with pytest.raises(DamagedFile, match=r"fleet\.json should list folders beside it"):
        members_of(home)
    assert homes_in(tmp_path) == {}


def test_who_holds_a_folder_is_known(tmp_path: Path) -> None:
    folder = begun(tmp_path / "run")
    assert not is_locked(folder.path)
    with folder.locked():
        assert is_locked(folder.path)
        assert holders()[(folder.path / ".lock").stat().st_ino] == os.getpid()
        assert not is_locked(folder.path, {})
    assert not is_locked(folder.path)
    assert not is_locked(tmp_path / "nowhere")


def test_a_row_has_everything_that_a_run_wrote(tmp_path: Path) -> None:
    folder = begun(tmp_path / "run", cost={"seconds": 2.5})
    folder.write_json("measures/polarised-0123abcd.json", {"n_active": 2, "kl": [0.5, 1.0]})
    folder.write_json("failures/raises-0123abcd.json", {"reason": "ValueError: no"})
    folder.write_json("scores.json", {"mean": {"scores": {"mig": {"value": 0.25}}}})
    assert row_of(folder) == {
        "id": "run",
        "state": "unfinished",
        "failure": None,
        "world.name": "micro",
        "steps": 50,
        "seed": 3,
        "polarised.n_active": 2,
        "polarised.kl": [0.5, 1.0],
        "raises.failure": "ValueError: no",
        "cost.seconds": 2.5,
        "scores.mean.mig": 0.25,
    }
    assert row_of(RunFolder(tmp_path / "nowhere")) is None


def test_a_listed_file_that_is_missing_is_named_in_words(tmp_path: Path) -> None:
    folder = begun(tmp_path / "run")
    folder.write("measures/x-0.json", "{}").unlink()
    row = row_of(folder)
    assert row is not None
    assert row["failure"] == f"{folder.path}/measures/x-0.json: No such file or directory"


BAD = {
    "deep": "[" * 100_000,
    "deep object": '{"a":' * 900 + "1" + "}" * 900,
    "long number": '{"steps": ' + "9" * 5000 + "}",
    "half a character": '{"name": "\\ud800"}',
    "half a key": '{"\\uD800": 1}',
    "a list": "[]",
    "a number": "1",
    "nothing": "",
    "torn": "{",
    "utf-16": b"\xff\xfe{\x00}\x00",
    "not text": b"\xff",
    "scores of another kind": '{"mean": {"scores": {"mig": 3}}}',
    "scores that are a list": '{"mean": []}',
}


@pytest.mark.parametrize("name", ["config.json", "scores.json", "failure.json", "measures/x-0.json", "cost.json"])
@pytest.mark.parametrize("bad", BAD)
def test_whatever_a_folder_holds_it_is_one_row(tmp_path: Path, bad: str, name: str) -> None:
    folder = begun(tmp_path / "run")
    folder.write(name, BAD[bad])
    row = row_of(folder)
    assert row is not None
    json.dumps(row, ensure_ascii=False).encode()
    assert row["id"] == "run"
    if "scores" not in bad and bad != "deep object":
        assert row["state"] == "damaged"
        assert row["failure"]


def test_a_row_keeps_its_own_names(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.write_json("config.json", {"id": "other", "state": "done", "failure": "no", "signature": "x", "seed": 1})
    assert row_of(folder) == {"id": "run", "state": "unfinished", "failure": None, "seed": 1}


def test_reading_runs_needs_neither_torch_nor_numpy() -> None:
    code = "import sys, unweave.runs.row, unweave.runs.state; print(*{'torch', 'numpy'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == ""


def test_a_failure_that_is_none_is_said(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.write_json("config.json", {})
    for content, words in (("[]", "holds no object"), ('{"step": NaN}', "holds a number that is not finite")):
        folder.write("failure.json", content)
        assert failure_of(folder) == {"reason": f"failure.json {words}"}
        assert state_of(folder).word == "failed"
