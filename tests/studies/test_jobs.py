"""Jobs of a cluster without one: what is asked of the queue, what is submitted again, and when it is given up."""

import errno
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tiny_studies import tiny

import unweave as uw
from unweave.studies import plan as planning
from unweave.studies.executors import on_slurm
from unweave.studies.executors.on_slurm import OnSlurm, Task
from unweave.studies.measures import Polarised
from unweave.studies.outage import Outage
from unweave.studies.pack import Pack, pack_from, pack_to
from unweave.studies.store import Store
from unweave.training.running import Interrupted, RunOptions

RUNS = tuple(tiny(seed).resolve() for seed in range(3))


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Path]:
    """Put a program of this name first; it writes down what it was given."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")

    def written(name: str, script: str) -> Path:
        file = tmp_path / "bin" / name
        file.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path / name}.given\n{script}\n')
        file.chmod(0o755)
        return tmp_path / f"{name}.given"

    return written


def test_the_queue_is_asked_for_arrays(command: Callable[[str, str], Path]) -> None:
    given = command("squeue", "echo 7_0; echo 7_2; echo 9_0")
    assert on_slurm._queued({"9", "7"}) == {"7_0", "7_2", "9_0"}
    assert given.read_text().strip() == "--noheader --array --format=%i --jobs=7,9"
    command("squeue", "echo slurm_load_jobs error: Invalid job id specified >&2; exit 1")
    assert on_slurm._queued({"7"}) == set(), "it has forgotten them"
    command("squeue", "echo the controller is away >&2; exit 1")
    with pytest.raises(OSError, match="squeue does not answer: the controller is away"):
        on_slurm._queued({"7"})
    command("squeue", "exit 3")
    with pytest.raises(OSError, match="squeue does not answer: 3"):
        on_slurm._queued({"7"})


def test_jobs_that_are_gone_can_be_cancelled(
    command: Callable[[str, str], Path], capfd: pytest.CaptureFixture[str]
) -> None:
    given = command("scancel", "echo gone >&2; exit 1")
    on_slurm._scancel({"9", "7"}, "--state=PENDING")
    assert given.read_text().strip() == "--state=PENDING 7 9"
    assert capfd.readouterr().err == ""


def test_what_has_not_ended_comes_again_one_by_one_and_then_no_more(tmp_path: Path) -> None:
    Store(tmp_path).prepare()
    both, ended = Pack(RUNS[:2]), list[Pack]()
    alone = [Pack((run,)) for run in RUNS[:2]]
    for attempts in (1, 2):
        assert on_slurm._again([both], tmp_path, ended.append, attempts) == [both]
    assert on_slurm._again([both], tmp_path, ended.append, 3) == alone
    assert not ended
    assert on_slurm._again([both], tmp_path, ended.append, 4) == []
    assert ended == alone
    found = Store(tmp_path).folder(RUNS[0].id).read_json("failure.json")
    assert "ended 4 times without a result" in found["reason"]
    assert on_slurm._again([Pack(RUNS[2:])], tmp_path, ended.append, 3) == [], "it was alone already"
    assert on_slurm._is_settled(both, tmp_path)


def test_options_of_a_cluster() -> None:
    assert on_slurm._options("") == {}
    assert on_slurm._options(" time = 240 , qos=a1") == {"time": 240, "qos": "a1"}
    for wrong in ("partition", "a=\x07"):
        with pytest.raises(ValueError, match="takes NAME=VALUE"):
            on_slurm._options(wrong)


def test_a_job_works_until_it_is_told_to_stop(tmp_path: Path) -> None:
    pack, stop = Pack(RUNS[:1], (Polarised(32),)), tmp_path / "stop"
    assert Task(str(tmp_path), 60.0, str(stop))(pack_to(pack)) == "ended"
    assert on_slurm._is_settled(pack, tmp_path)
    assert not on_slurm._is_settled(Pack(RUNS[:2]), tmp_path)
    with pytest.raises(ValueError, match="nonsense"):
        Task(str(tmp_path), 60.0, str(stop))(pack_to(pack).replace("micro", "nonsense"))


class Cluster:
    """submitit, as far as it is used: jobs run when the queue is asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, works: Callable[[int], bool]) -> None:
        self.asked: list[dict[str, Any]] = []
        self.waiting: dict[str, Callable[[], Any]] = {}
        self.n_jobs, self.works = 0, works
        monkeypatch.setitem(sys.modules, "submitit", SimpleNamespace(SlurmExecutor=self.executor))
        monkeypatch.setattr(on_slurm, "LOOK_EVERY", 0.0)
        monkeypatch.setattr(on_slurm, "_queued", self.queued)

    def executor(self, **given: Any) -> Any:
        self.asked.append(given)
        return SimpleNamespace(update_parameters=lambda **more: self.asked.append(more), map_array=self.map_array)

    def map_array(self, task: Task, texts: list[str]) -> list[Any]:
        jobs = [SimpleNamespace(job_id=f"{len(self.asked)}_{place}") for place in range(len(texts))]
        for job, text in zip(jobs, texts):
            self.waiting[job.job_id] = lambda text=text: task(text)
        return jobs

    def queued(self, ids: set[str]) -> set[str]:
        assert ids == {job.partition("_")[0] for job in self.waiting} or not self.waiting
        for work in self.waiting.values():
            self.n_jobs += 1
            if self.works(self.n_jobs):
                work()
        self.waiting = {}
        return set()


def test_packs_are_jobs_of_an_array_and_follow_ups_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, ended = Cluster(monkeypatch, lambda n: n != 1), list[Pack]()
    packs = [Pack(RUNS[:1]), Pack(RUNS[1:2])]

    def told(pack: Pack) -> list[Pack]:
        ended.append(pack)
        return [Pack(RUNS[2:])] if len(ended) == 2 else []

    Store(tmp_path).prepare()
    OnSlurm(5, slurm="time=9")(packs, tmp_path, RunOptions(), told)
    assert [pack.experiments[0].seed for pack in ended] == [1, 0, 2], "the first job died, and came again"
    assert cluster.n_jobs == 4
    assert cluster.asked[0] == {"folder": tmp_path / ".unweave" / "slurm", "max_num_timeout": 1000}
    wanted = {"array_parallelism": 5, "cpus_per_task": 1, "job_name": "unweave", "signal_delay_s": 60, "time": 9}
    assert cluster.asked[1] == wanted
    assert OnSlurm(5).n_gpus() == 5
    assert not list((tmp_path / ".unweave").glob("stop-*"))


def test_jobs_that_never_end_well_are_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, ended = Cluster(monkeypatch, lambda n: False), list[Pack]()
    Store(tmp_path).prepare()
    OnSlurm(1)([Pack(RUNS[:2])], tmp_path, RunOptions(), ended.append)
    assert cluster.n_jobs == 3 + 2, "three times together, and once each alone"
    assert [pack.experiments[0].seed for pack in ended] == [0, 1]


def test_a_stop_reaches_the_jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Cluster(monkeypatch, lambda n: False)
    cancelled: list[tuple[str, ...]] = []
    monkeypatch.setattr(on_slurm, "_scancel", lambda ids, *options: cancelled.append(options))
    Store(tmp_path).prepare()
    with pytest.raises(Interrupted):
        OnSlurm(1)([Pack(RUNS[:1])], tmp_path, RunOptions(stop=lambda: True), lambda pack: None)
    assert cancelled == [("--state=PENDING",)]
    assert not list((tmp_path / ".unweave").glob("stop-*"))


def test_a_fault_that_is_a_packs_own_is_not_waited_for(tmp_path: Path) -> None:
    home, state, pack = Store(tmp_path).prepare().home, Outage(), Pack(RUNS[:1])
    assert on_slurm._met_fault([pack], tmp_path, state, RunOptions()) == ([], [pack])
    assert not state.pausing
    assert home.exists()


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (KeyError("the key"), "the key"),
        (ValueError("first\nsecond"), "first"),
        (ValueError(), "ValueError"),
        (OSError(errno.ENOENT, "no file"), "[Errno 2] no file"),
    ],
)
def test_why_an_experiment_cannot_be_run_is_one_line(
    error: Exception, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*given: Any) -> None:
        raise error

    monkeypatch.setattr(planning, "_try", refuse)
    with pytest.raises(planning.Poisoned) as caught:
        planning.plan([tiny(4)])
    assert str(caught.value).endswith(f"cannot be run: {words}")
    assert "number 1 of 1 (" in str(caught.value)


def test_a_pack_comes_back_from_its_text_only_as_measures(tmp_path: Path) -> None:
    text = pack_to(Pack(RUNS[:1], (Polarised(7),)))
    assert pack_from(text, tmp_path).measures == (Polarised(7),)
    with pytest.raises(ValueError, match="is not a measure"):
        pack_from(text.replace("polarised:Polarised", "polarised:Run"))


def test_threads_of_a_plan_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    given = [tiny(0, plan=uw.Plan("cpu", threads)) for threads in (0, 1, 2)]
    assert [planning._steady(one).plan.threads for one in given] == [1, 1, 2]
    monkeypatch.setattr(planning.torch.cuda, "is_available", lambda: False)
    assert planning._steady(tiny(0, plan=uw.Plan("auto", 0))).plan.threads == 1
    assert planning._steady(tiny(0, plan=uw.Plan("cuda", 0))).plan.threads == 0
    assert not planning._can(tiny(0, plan=uw.Plan("cuda", 0)))
    found = planning._for_others(tiny(0, plan=uw.Plan("cuda", 3, "fp32"))).plan
    assert (found.device, found.threads, found.precision) == ("cuda", 3, "fp32")
