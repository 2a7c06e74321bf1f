"""Commands on a disk that fills up, may only be read, or vanishes: one true sentence, and nothing lost."""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from unweave.cli import main
from unweave.runs.folder import RunFolder
from unweave.studies.repair import damaged_files

TRAIN = ["train", "micro", "--network", "mlp", "--network.encoder-widths", "4", "--network.decoder-widths", "4"]
TRAIN += [
    "--latents",
    "2",
    "--steps",
    "6",
    "--batch-size",
    "8",
    "--plan.threads",
    "1",
    "--plan.device",
    "cpu",
    "--quiet",
]
COMMANDS = {
    "evaluate": ["evaluate", "RUN", "--samples", "60", "--seeds", "0", "--metrics", "mig", "--quiet"],
    "report": ["report", "RUN"],
    "traverse": ["traverse", "RUN", "--steps", "2"],
    "train": [*TRAIN, "--folder", "RUN"],
}
ERRORS = {
    errno.ENOSPC: "the disk is full",
    errno.EROFS: "the file system may only be read",
    errno.EACCES: "Permission denied",
    errno.ENOENT: "No such file or directory",
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("lost") / "run"
    assert main([*TRAIN, "--folder", str(run)]) == 0
    return run


@contextmanager
def failing(place: Path, call: str, at: int, error: int) -> Iterator[list[int]]:
    """The ``at``-th such call below a folder fails, and all that follow: the disk does not come back."""
    count, real = [0], getattr(os, call)

    def fails(*args, **kwargs):
        paths = [str(one) for one in args if isinstance(one, str | os.PathLike)]
        writes = call != "open" or (len(args) > 1 and args[1] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
        if writes and any(one.startswith(str(place)) for one in paths):
            count[0] += 1
            if count[0] >= at:
                raise OSError(error, os.strerror(error), paths[0])
        return real(*args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, call, fails)
        yield count


@pytest.mark.parametrize("error", ERRORS, ids=errno.errorcode.get)
@pytest.mark.parametrize("name", COMMANDS)
def test_a_lost_disk_is_one_true_sentence(
    made: Path, tmp_path: Path, name: str, error: int, capsys: pytest.CaptureFixture[str]
) -> None:
    for at in (1, 3):
        run = tmp_path / f"run-{at}"
        if name != "train":
            shutil.copytree(made, run)
        before = {one: RunFolder(run).read(one) for one in RunFolder(run).names()}
        words = [str(run) if word == "RUN" else word for word in COMMANDS[name]]
        capsys.readouterr()
        with failing(run, "replace", at, error) as count:
            code = main(words)
        told = capsys.readouterr().err.strip()
        assert count[0] >= at
        assert (code, "\n" in told) == (2, False), told
        assert ERRORS[error] in told
        assert str(run) in told
        folder = RunFolder(run)
        assert damaged_files(folder) == {}
        assert {one: folder.read(one) for one in before} == before
        assert not folder.torn_files()
        assert main(words) == 0  # the disk is back
        assert damaged_files(folder) == {}


def test_a_folder_that_vanishes_while_it_is_written(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run, real = Path(shutil.copytree(made, tmp_path / "run")), os.fsync

    def vanish(handle: int) -> None:
        real(handle)
        shutil.rmtree(run, ignore_errors=True)

    monkeypatch.setattr(os, "fsync", vanish)
    assert main(["report", str(run)]) == 2
    told = capsys.readouterr().err.strip()
    assert ("\n" in told, str(run) in told) == (False, True)
