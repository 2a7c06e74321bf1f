"""A disk that is really full: the study says so and stops, nothing is torn, and it goes on once there is space."""

import errno
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from test_local import mixed, results

from unweave.runs.folder import RunFolder
from unweave.studies.executors.executor import Executor
from unweave.studies.executors.here import Here
from unweave.studies.executors.local import Local
from unweave.studies.executors.on_ray import OnRay
from unweave.studies.leases import Holder, Holders
from unweave.studies.repair import damaged_files
from unweave.studies.run import run_study
from unweave.studies.store import Store
from unweave.training.running import RunOptions

pytestmark = pytest.mark.slow

OFTEN = RunOptions((), 0.0)
"""A checkpoint after every step, so that the disk is full in the middle of training too."""


@dataclass
class Disk:
    """A file system in memory, of a size that can be changed while it is in use."""

    path: Path
    size: int = 16 << 10

    def grow(self, n_bytes: int) -> None:
        self.size += n_bytes
        subprocess.run(["mount", "-o", f"remount,size={self.size}", str(self.path)], check=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    found = Disk(tmp_path / "disk")
    found.path.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={found.size}", "tmpfs", str(found.path)]
    try:
        said = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("a small disk cannot be made: there is no mount here")
    if said.returncode:
        pytest.skip(f"a small disk takes root, or CAP_SYS_ADMIN: {said.stderr.strip()}")
    yield found
    subprocess.run(["umount", "--lazy", str(found.path)], check=True)


def calls_until_through(disk: Disk, execute: Executor, grow: int) -> int:
    """The same call again and again on a disk that grows; after each the store must be whole."""
    n_calls = 1
    while not through(disk.path / "store", execute):
        assert_nothing_is_torn(disk.path / "store")
        disk.grow(grow)
        n_calls += 1
    return n_calls


def through(root: Path, execute: Executor) -> bool:
    try:
        run_study(mixed(), root, execute=execute, how=OFTEN)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        return False
    return True


def assert_nothing_is_torn(root: Path) -> None:
    assert not list(root.rglob(".*.part"))
    assert not list(root.rglob("fail*"))
    assert not list(root.glob(".unweave/claims/*"))
    assert not list(root.glob(".unweave/holders/*"))
    assert {path.name: problems for path in root.glob("*-*") if (problems := damaged_files(RunFolder(path)))} == {}


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("execute", "grow"), [(Here(), 28 << 10), (Local(2), 400 << 10)], ids=["here", "local"])
def test_a_study_goes_on_as_its_disk_grows_to_the_same_bytes(
    tmp_path: Path, disk: Disk, execute: Executor, grow: int
) -> None:
    assert calls_until_through(disk, execute, grow) >= 3
    run_study(mixed(), tmp_path / "space")
    assert len(results(disk.path / "store")) == 16
    assert results(disk.path / "store") == results(tmp_path / "space")


@pytest.mark.timeout(600)
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_study_on_ray_stops_and_goes_on(tmp_path: Path, disk: Disk) -> None:
    pytest.importorskip("ray")
    disk.grow(160 << 10)
    assert not through(disk.path / "store", OnRay(1))
    # a task that worked beside the one that found the disk full is killed: its claim stays, and nobody holds it
    assert not Holders(disk.path / "store" / ".unweave").running()
    assert not list((disk.path / "store").rglob("fail*"))
    disk.grow(8 << 20)
    assert through(disk.path / "store", OnRay(1))
    run_study(mixed(), tmp_path / "space")
    assert results(disk.path / "store") == results(tmp_path / "space")


def test_a_store_on_a_full_disk_is_read_without_an_index(disk: Disk) -> None:
    disk.grow(4 << 20)
    run_study(mixed(8), disk.path / "store")
    store, index = Store(disk.path / "store"), disk.path / "store" / ".unweave" / "index.parquet"
    wanted = store.table()
    for n_free in range(3):
        index.unlink()
        fill(disk, n_free)
        assert store.table(rebuild=True).equals(wanted)
        assert not index.exists()
        assert not list(index.parent.glob(".*.part"))
        (disk.path / "filled").unlink()
        assert store.table().equals(wanted)
        assert index.exists()


def test_who_cannot_say_that_it_lives_leaves_nothing(disk: Disk) -> None:
    with Holder(disk.path):
        pass
    fill(disk)
    with pytest.raises(OSError, match="No space left"), Holder(disk.path):
        pytest.fail("there was space")
    assert not list((disk.path / "holders").iterdir())


def fill(disk: Disk, n_free: int = 0) -> None:
    """Take all pages of a disk but some."""
    (disk.path / "filled").write_bytes(bytes(shutil.disk_usage(disk.path).free - 4096 * n_free))


RECIPE = """
import unweave as uw
from unweave.data.micro import Micro
from unweave.studies.measures import Polarised
from unweave.studies.study import Study


def study(size):
    plan = uw.Plan("cpu", 1)
    network = uw.MLP((8,), (8,))
    given = [uw.Experiment(Micro(), network=network, latents=2, steps=5, seed=n, plan=plan) for n in range(3)]
    return Study("full", tuple(given), (Polarised(32),))
"""


@pytest.mark.timeout(600)
@pytest.mark.parametrize("executor", ["here", "local"])
def test_the_command_says_one_sentence_and_goes_on(tmp_path: Path, disk: Disk, executor: str) -> None:
    (tmp_path / "full.py").write_text(RECIPE)

    def called() -> tuple[int, str]:
        words = ["study", "run", str(tmp_path / "full.py"), "--store", str(disk.path / "store"), "--quiet"]
        command = [sys.executable, "-m", "unweave", *words, "--executor", executor]
        said = subprocess.run(command, capture_output=True, text=True, check=False)
        return said.returncode, said.stderr

    disk.grow(160 << 10)
    status, said = called()
    assert status == 2
    assert said.startswith("unweave: the disk is full")
    assert said.endswith("What was saved before is intact.\n")
    assert said.count("\n") == 1
    assert_nothing_is_torn(disk.path / "store")
    disk.grow(8 << 20)
    assert called() == (0, "")
    assert len(list((disk.path / "store").glob("micro-*/model.safetensors"))) == 3
