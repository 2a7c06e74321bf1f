"""Every command ends with 0 only if what was asked for was done, and no pipe holds one up."""

import errno
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from unweave.cli import COMMANDS, main
from unweave.cli.study import ACTIONS
from unweave.runs.folder import RunFolder
from unweave.training.run import Run

TINY = [
    *("--network", "mlp", "--network.encoder-widths", "8", "--network.decoder-widths", "8", "--latents", "2"),
    *("--batch-size", "8", "--plan.threads", "1", "--quiet"),
]
BAD = ["--optimiser.learning-rate", "1e30"]
RECIPE = """
import unweave as uw
from unweave.data.micro import Micro
from unweave.models.optimisers import Adam
SMALL = {"network": uw.MLP((8,), (8,)), "latents": 2, "batch_size": 8, "plan": uw.Plan("cpu", 1)}
def study(size):
    rates = [1e-3, 1e30]
    return uw.Study("rates", tuple(uw.Experiment(Micro(), steps=20, optimiser=Adam(rate), **SMALL) for rate in rates))
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a finished run, and one that failed."""
    folder = tmp_path_factory.mktemp("made")
    assert main(["train", "micro", "--folder", str(folder / "good"), "--steps", "20", *TINY]) == 0
    assert main(["train", "micro", "--folder", str(folder / "bad"), "--steps", "50", *BAD, *TINY]) == 1
    return folder


@pytest.fixture
def here(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with copies: good, bad, torn (weights with a flipped bit), and things that are no files."""
    for name in ("good", "bad"):
        shutil.copytree(made / name, tmp_path / name)
    shutil.copytree(made / "good", tmp_path / "torn")
    weights = tmp_path / "torn" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\xa5")
    (tmp_path / "text").write_text("hello")
    (tmp_path / "recipe.py").write_text(RECIPE)
    np.savez(tmp_path / "codes.npz", codes=np.zeros((4, 2)))
    np.savez(tmp_path / "holed.npz", codes=np.full((4, 2), np.nan), mean=np.full((4, 2), np.nan))
    monkeypatch.delitem(sys.modules, "recipe", raising=False)  # another test's
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("UNWEAVE_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


FAILING = {
    "demo": [("demo --seed x", 2), ("demo --folder bad --quiet", 2)],
    "worlds": [
        ("worlds nowhere", 2),
        ("worlds get", 2),
        ("worlds get nowhere", 2),
        ("worlds get cars3d", 1),
        ("worlds get celeba", 1),
        ("worlds get images", 1),
        ("worlds get mpi3d", 2),
        ("worlds get kitti_masks", 2),
        ("worlds get natural_sprites", 2),
        ("worlds get dsprites", 2),
    ],
    "train": [
        ("train", 2),
        ("train nowhere", 2),
        ("train micro --config text", 2),
        (f"train micro --steps 50 --folder new {' '.join(BAD + TINY)}", 1),
        (f"train micro --steps 50 --seeds 0:2 {' '.join(BAD + TINY)}", 1),
        (f"train micro --steps 20 --optimiser.learning-rate 1e-3,1e30 --seed 7 {' '.join(TINY)}", 1),
        ("train images --world.path nowhere", 2),
    ],
    "resume": [("resume nowhere", 2), ("resume torn --quiet", 1), ("resume bad --quiet", 1)],
    "show": [("show nowhere", 2), ("show text", 2), ("show codes.npz", 2), ("show torn", 1)],
    "report": [("report nowhere", 2), ("report bad", 2), ("report torn", 1)],
    "export": [("export nowhere out", 2), ("export bad out", 2), ("export torn out", 1), ("export good text", 2)],
    "measure": [("measure nowhere.npz", 2), ("measure holed.npz", 2), ("measure text", 2)],
    "evaluate": [("evaluate nowhere", 2), ("evaluate bad --quiet", 2), ("evaluate torn --quiet", 1)],
    "study": [
        ("study nonsense", 2),
        ("study run nowhere.py", 2),
        ("study run recipe.py --executor here --quiet --store store", 1),
        ("study status --store nowhere", 2),
        ("study resume --store nowhere", 2),
        ("study retry --store nowhere", 2),
        ("study report --store nowhere", 2),
        ("study export all.csv --store nowhere", 2),
        ("study export all.txt --store .", 2),
        ("study sql select --store .", 2),
        ("study gc --store nowhere", 2),
    ],
    "reproduce": [("reproduce nowhere", 2), ("reproduce k-1 --trained --store nowhere", 2)],
    "dimension": [
        ("dimension", 2),
        ("dimension nowhere", 2),
        ("dimension --convert nowhere", 2),
        (f"dimension micro --most 3 --start 2 {' '.join(BAD + TINY[:6] + TINY[8:])}", 1),
    ],
    "perturb": [
        ("perturb", 2),
        ("perturb nowhere", 2),
        ("perturb synth_lin", 2),
        ("perturb micro --epsilon 0", 2),
        ("perturb micro --epsilon 0.6", 2),
        ("perturb micro --models 3 --ensemble 2", 2),
        ("perturb --foster good", 2),
        ("perturb --foster good --diminish good", 2),
        ("perturb --foster good --diminish bad", 2),
        ("perturb --foster good --diminish nowhere", 2),
    ],
    "diagnose": [("diagnose nowhere", 2), ("diagnose holed.npz", 2), ("diagnose bad", 2), ("diagnose torn", 1)],
    "compare": [("compare good nowhere", 2), ("compare good bad --quiet", 2), ("compare good torn --quiet", 1)],
    "traverse": [("traverse nowhere", 2), ("traverse bad", 2), ("traverse torn", 1)],
    "sample": [("sample nowhere", 2), ("sample bad", 2), ("sample torn", 1), ("sample good --label x=1", 2)],
    "explore": [("explore nowhere", 2), ("explore text", 2)],
    "intrinsic": [("intrinsic nowhere", 2), ("intrinsic holed.npz", 2), ("intrinsic bad", 2), ("intrinsic torn", 1)],
    "zoo": [("zoo nowhere", 2), ("zoo pull", 2), ("zoo --zoo nowhere", 2)],
    "new": [("new", 2), ("new nothing x", 2), ("new metric ../x", 2)],
    "completion": [("completion", 2), ("completion nowhere", 2)],
    "bench": [("bench nowhere", 2), ("bench train nowhere", 2), ("bench train --ways nowhere", 2)],
}
"""What to type, and the status it ends with."""


def test_every_command_is_tried() -> None:
    assert FAILING.keys() == COMMANDS.keys()
    assert {words.split()[1] for words, _ in FAILING["study"]} >= ACTIONS.keys()


@pytest.mark.parametrize(("words", "status"), [case for cases in FAILING.values() for case in cases])
def test_what_fails_does_not_end_with_zero(
    words: str, status: int, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _status(words.split()) == status
    said = capsys.readouterr()
    assert "Traceback" not in said.err
    assert (said.err + said.out).strip()
    assert not (here / "out" / "model.safetensors").exists()


def _status(words: list[str]) -> int:
    try:
        return main(words)
    except SystemExit as ended:  # the parser's
        return int(ended.code or 0)


def test_how_many_failed_is_said(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["train", "micro", "--steps", "20", "--optimiser.learning-rate", "1e-3,1e30", *TINY, "--json"]
    assert main(words) == 1
    said = capsys.readouterr()
    assert sorted(row["state"] for row in json.loads(said.out)) == ["done", "failed"]
    assert "1 of 2 models failed" in said.err
    (failed,) = (row["folder"] for row in json.loads(said.out) if row["state"] == "failed")
    assert Run(failed).history.steps[-1] == RunFolder(failed).read_json("failure.json")["kept_step"]
    assert main(words) == 1  # nothing is left to train, and they still failed


def test_a_failed_run_says_where_it_failed_and_where_its_weights_are(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    failure = RunFolder("bad").read_json("failure.json")
    assert main(["show", "bad"]) == 0
    said = capsys.readouterr().out
    for words in (f"at step {failure['step']}", f"Weights of step {failure['kept_step']}", "bad/last_good.safetensors"):
        assert words in said
    assert "its history has" in said
    assert main(["resume", "bad", "--quiet"]) == 1
    said = capsys.readouterr().err
    for words in (f"at step {failure['step']}", f"Weights of step {failure['kept_step']}", "bad/last_good.safetensors"):
        assert words in said
    assert main(["show", "bad", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["failure"]["kept_step"] == failure["kept_step"]
    assert len(shown["history"]["steps"]) == len(shown["history"]["loss"]) > 0


def test_a_damaged_model_of_a_study_is_not_done(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main("study run recipe.py --executor here --quiet --store store --json".split()) == 1
    (done,) = Path("store").glob("micro-*/model.safetensors")
    content = done.read_bytes()
    done.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    capsys.readouterr()
    assert main("study status --store store --json".split()) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["done"], found["damaged"], found["failed"]) == (0, 1, 1)
    assert any("model.safetensors (edited)" in reason for _, reason in found["failures"])


ENTRIES = {
    "intrinsic": "intrinsic {}",
    "measure": "measure {}",
    "measure a pair": "measure {} {}",
    "diagnose": "diagnose {}",
    "train images": "train images --world.path {} --quiet",
    "train --config": "train micro --config {} --quiet",
    "dimension --config": "dimension micro --config {} --quiet",
    "show": "show {}",
    "resume": "resume {}",
    "evaluate": "evaluate {}",
    "report": "report {}",
    "traverse": "traverse {}",
    "sample": "sample {}",
    "export": "export {} out",
    "compare": "compare {}",
    "study run": "study run {}",
    "study status": "study status --store {}",
    "explore": "explore {}",
}
SUFFIXES = ("", ".npz", ".npy", ".csv", ".parquet", ".json", ".py", ".h5", "-ubyte")
KINDS = ("pipe", "socket", "device", "folder")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("entry", ENTRIES)
def test_what_is_no_file_is_refused_at_once(
    entry: str, kind: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if (entry, kind) == ("explore", "folder"):
        pytest.skip("any folder may become a store")
    with _Alarm(5 * len(SUFFIXES)):
        for suffix in SUFFIXES:
            place = _special(here, kind, suffix)
            begin = time.monotonic()
            assert _status(ENTRIES[entry].replace("{}", place).split()) != 0, (entry, place)
            assert time.monotonic() - begin < 5
            said = capsys.readouterr().err
            assert "Errno" not in said
            assert said.count("\n") == 1, said


@pytest.mark.parametrize("name", ["labels.csv", "a.png"])
def test_pipes_among_images_are_refused(name: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from PIL import Image

    Path("pictures").mkdir()
    for other in ("b.png", "c.png"):
        Image.fromarray(np.zeros((8, 8), np.uint8)).save(Path("pictures") / other)
    os.mkfifo(Path("pictures") / name)
    with _Alarm(5):
        assert main(["train", "images", "--world.path", "pictures", "--steps", "2", *TINY]) == 2
    assert f"pictures/{name} is a pipe" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["SHA256SUMS", "config.json", "model.safetensors", "history.parquet"])
def test_pipes_in_a_run_are_refused(name: str, here: Path) -> None:
    (here / "good" / name).unlink()
    os.mkfifo(here / "good" / name)
    with _Alarm(30):
        commands = ("show", "report", "evaluate", "diagnose", "traverse", "sample", "resume", "intrinsic", "compare")
        for command in commands:
            if name != "history.parquet" or command == "report":
                assert _status([command, "good"]) != 0, command


class _Alarm:
    """Whoever waits for a pipe is ended by SIGALRM, as a failure."""

    def __init__(self, seconds: int) -> None:
        self.seconds = seconds

    def __enter__(self) -> None:
        self.before = signal.signal(signal.SIGALRM, self._late)
        signal.alarm(self.seconds)

    def __exit__(self, *about: object) -> None:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, self.before)

    def _late(self, *about: object) -> None:
        pytest.fail("it waits for something that is no file")


def _special(folder: Path, kind: str, suffix: str) -> str:
    path = folder / f"special{suffix}"
    if kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        with socket.socket(socket.AF_UNIX) as listening:
            here = os.getcwd()
            os.chdir(folder)  # names of sockets are short
            listening.bind(path.name)
            os.chdir(here)
    return path.name


@pytest.mark.parametrize(
    "words",
    [
        f"train micro --steps 1000000 --folder run {' '.join(TINY)}",
        f"train micro --steps 1000000 --seeds 0:2 --folder run {' '.join(TINY)}",
        "train micro --steps 1000000 --seeds 0:2 --folder run --network.hidden 8 --batch-size 8 --quiet",
        "reproduce k-1 --train-only --store run",
    ],
    ids=["one", "fleet", "processes", "train-only"],
)
def test_ctrl_c_ends_with_130(words: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "unweave", *words.split()]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True)
    while not list(tmp_path.rglob("environment.json")):
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.05)
    time.sleep(1.0)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: everybody in the group is told
    told = process.communicate(timeout=60)[1]
    assert process.returncode == 130, told
    assert "Traceback" not in told
    assert list(tmp_path.rglob("checkpoints/*.safetensors"))


@pytest.fixture
def read_only(made: Path, tmp_path: Path) -> Iterator[Path]:
    """A file system that may only be read, with a finished run."""
    disk = tmp_path / "disk"
    disk.mkdir()
    said = subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(disk)], capture_output=True, text=True, check=False)
    if said.returncode:
        pytest.skip(f"a file system takes root, or CAP_SYS_ADMIN: {said.stderr.strip()}")
    shutil.copytree(made / "good", disk / "good")
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


def test_a_file_system_that_may_only_be_read_is_read(read_only: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = str(read_only / "good")
    for words in (
        ["show", good],
        ["resume", good, "--quiet"],
        ["train", "micro", "--folder", good, "--steps", "20", *TINY],
        ["diagnose", good, "--page", str(read_only.parent / "p")],
    ):
        assert main(words) == 0, capsys.readouterr().err
    capsys.readouterr()
    for words in (
        ["report", good],
        ["evaluate", good, "--quiet", "--metrics", "mig", "--samples", "200"],
        ["traverse", good],
        ["train", "micro", "--folder", str(read_only / "new"), "--steps", "2", *TINY],
        ["export", good, str(read_only / "out")],
    ):
        assert main(words) == 2, words
        *waiting, said = capsys.readouterr().err.splitlines()
        assert all(line.endswith("s so far") for line in waiting)  # on a busy machine
        assert said.startswith("unweave: the file system may only be read (")
        assert str(read_only) in said


def test_data_on_a_file_system_that_may_only_be_read_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from unweave.data import files

    path = tmp_path / "a.npy"
    files.cached_array(path, lambda: np.arange(5))
    os.utime(path, (1, 1))  # touched: it is checked, and what is known of it would be written again

    def refuse(*about: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(files, "write_text", refuse)
    assert files.open_cached(path).tolist() == [0, 1, 2, 3, 4]
