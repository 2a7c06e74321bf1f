"""Worker processes: the same store as in one process, through the death of workers and parents."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from tiny_studies import CONV, Dies, tiny, tiny_study

from unweave.studies.executors.executor import Executor
from unweave.studies.executors.here import Here
from unweave.studies.executors.local import Local, _Queue
from unweave.studies.measures import Polarised
from unweave.studies.one_by_one import OneByOne
from unweave.studies.pack import Pack
from unweave.studies.run import run_study
from unweave.studies.store import Store
from unweave.studies.study import Study
from unweave.studies.together import Together
from unweave.training.running import Interrupted, RunOptions

RESULTS = ("config.json", "model.safetensors", "history.parquet", "measures/")


def results(root: Path) -> dict[str, bytes]:
    found = {}
    for folder in root.glob("micro-*"):
        for path in folder.rglob("*"):
            if path.relative_to(folder).as_posix().startswith(RESULTS) and path.is_file():
                found[path.relative_to(root).as_posix()] = path.read_bytes()
    return found


def mixed(n: int = 4) -> Study:
    given = [tiny(seed, network=CONV) if seed % 2 else tiny(seed) for seed in range(n)]
    return Study("mixed", tuple(given), (Polarised(32),))


def test_workers_make_the_store_that_one_process_makes(tmp_path: Path) -> None:
    ended: list[tuple[int, int]] = []
    run_study(mixed(), tmp_path / "here")
    found = run_study(
        mixed(), tmp_path / "local", execute=Local(2), tell=lambda done, total: ended.append((done, total))
    )
    assert found.table.height == 4
    assert results(tmp_path / "here") == results(tmp_path / "local")
    assert ended[0] == (0, 4)
    assert ended[-1] == (4, 4)
    assert not list((tmp_path / "local" / ".unweave" / "holders").iterdir())


@pytest.mark.parametrize("execute", [Here(), OneByOne(), Together(), Local(2)], ids=lambda one: type(one).__name__)
def test_packs_that_follow_from_one_that_ended_are_performed_too(tmp_path: Path, execute: Executor) -> None:
    first, second = tiny(0).resolve(), tiny(1).resolve()
    measured = Pack((first,), (Polarised(32),), trains=False)
    following = {first.id: [measured, Pack((second,))], second.id: []}
    ended: list[Pack] = []

    def follow(pack: Pack) -> list[Pack]:
        ended.append(pack)
        return following[pack.experiments[0].id] if pack.trains else []

    execute([Pack((first,))], Store(tmp_path).prepare().root, RunOptions(), follow)
    assert len(ended) == 3
    assert Store(tmp_path).folder(first.id).has(Polarised(32).file)
    assert Store(tmp_path).folder(second.id).trained


@pytest.mark.slow
def test_a_measure_that_kills_its_process_is_a_failure_and_the_rest_is_done(tmp_path: Path) -> None:
    study = replace(tiny_study(3), measures=(Dies(1), Polarised(32)))
    found = run_study(study, tmp_path, execute=Local(1))
    assert found.table["dies.value"].to_list() == [1, None, 1]
    assert "SIGSEGV" in found.table["dies.failure"][1]
    assert found.table["polarised.n_active"].null_count() == 0
    folder = Store(tmp_path).folder(found.experiments[1].id)
    assert "Segmentation fault" in folder.read("log.txt").decode()


@pytest.mark.slow
def test_stopping_workers_saves_their_work(tmp_path: Path) -> None:
    study, begin = tiny_study(2, steps=100_000), time.monotonic()

    def stop() -> bool:
        return bool(list(tmp_path.glob("fleet-*/fleet.json")) or time.monotonic() - begin > 100)

    with pytest.raises(Interrupted):
        run_study(study, tmp_path, execute=Local(1), how=RunOptions(stop=stop))
    assert list(tmp_path.glob("fleet-*/checkpoints/*"))


PARENT = """
import sys
from tiny_studies import tiny_study
from unweave.studies.executors.local import Local, _Queue
from unweave.studies.run import run_study
run_study(tiny_study(2, steps=100_000), sys.argv[1], execute=Local(1))
"""


@pytest.mark.slow
def test_workers_end_with_their_parent(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PARENT, str(tmp_path)]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
    with subprocess.Popen(command, env=environment) as parent:
        until = time.monotonic() + 100
        while not list(tmp_path.glob("fleet-*/fleet.json")) and time.monotonic() < until:
            time.sleep(0.1)
        parent.send_signal(signal.SIGKILL)
    store = Store(tmp_path)
    while store.running() and time.monotonic() < until:
        time.sleep(0.1)
    assert not store.running()
    assert list(tmp_path.glob("fleet-*/checkpoints/*"))


def test_deaths_are_counted_by_run_and_not_by_where_a_pack_lies_in_memory(tmp_path: Path) -> None:
    jobs = _Queue((), tmp_path, RunOptions())
    for seed in range(8):
        jobs.at_work += 1
        jobs.crashed(Pack((tiny(seed).resolve(),)), -9, "")
        jobs.waiting.clear()  # the next pack may be made at the same address
    assert set(jobs.attempts.values()) == {1}
    assert not list(tmp_path.iterdir())
    for _ in range(2):
        jobs.at_work += 1
        jobs.crashed(Pack((tiny(0).resolve(),)), -9, "")
    assert Store(tmp_path).table()["failure"][0].startswith("the process that worked on it was killed by SIGKILL")


def test_there_is_one_worker_at_least(tmp_path: Path) -> None:
    Local(1)((), tmp_path, RunOptions(), lambda pack: None)
    with pytest.raises(ValueError, match="workers must be at least 1, not 0"):
        Local(0)((), tmp_path, RunOptions(), lambda pack: None)


def test_a_worker_that_fails_ends_though_its_input_is_open(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "unweave.studies.worker", str(tmp_path), "1.0"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        try:
            process.stdin.write(b"no pack\n")
            process.stdin.flush()
            assert process.wait(60) != 0
        finally:
            process.kill()
