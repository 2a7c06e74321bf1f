"""Worker processes on this machine: one that dies is replaced, and its pack tried again."""

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch

from unweave.studies.executors.executor import Ended, Executor
from unweave.studies.failures import how_it_died
from unweave.studies.outage import Outage, gpu_answers, noted_fault
from unweave.studies.pack import Pack, pack_to
from unweave.studies.train_and_measure import give_up
from unweave.training.experiment import usable_cores
from unweave.training.loop import say
from unweave.training.running import Interrupted, RunOptions

ATTEMPTS = 3
"""Times that a worker may die over one run, before it counts as failed; once less over a pack, before it is parted."""

TAIL = 20_000


@dataclass(frozen=True)
class Local(Executor):
    """``workers`` single-threaded processes; of these, one a GPU trains fleets, or several side by side."""

    workers: int = field(default_factory=usable_cores)
    gpus: float = 1.0
    """What a fleet takes of a GPU: with 0.25 four are trained side by side."""

    def n_gpus(self) -> int:
        return torch.cuda.device_count() * self._at_a_time

    @property
    def _at_a_time(self) -> int:
        return max(1, int(1 / self.gpus)) if self.gpus else 1

    def __call__(self, packs: Sequence[Pack], root: Path, how: RunOptions, ended: Ended) -> None:
        if self.workers < 1:
            raise ValueError(f"workers must be at least 1, not {self.workers}")
        jobs = _Queue(packs, root, how)
        # one that cannot be counted is tried
        n_cards = torch.cuda.device_count() or any(pack.needs_gpu for pack in packs)
        n_gpus = n_cards * self._at_a_time
        # a worker sees one GPU alone, unless a plan names its GPU by number
        pinned = all(pack.experiments[0].plan.device == "cuda" for pack in packs if pack.needs_gpu)
        workers = [
            _Worker(jobs, gpu=place % n_cards if place < n_gpus else None, pinned=pinned)
            for place in range(max(self.workers, min(n_gpus, len(packs))))
        ]
        for worker in workers:
            worker.start()
        try:
            jobs.watch(workers, ended)
        finally:
            jobs.stopping = jobs.stopping or any(worker.is_alive() for worker in workers)
            for worker in workers:
                worker.end()
        if jobs.errors:
            raise jobs.errors[0]
        if jobs.left():
            raise Interrupted("stopped; the same command goes on")


class _Queue:
    """Packs that wait and what became of them, shared by the threads that attend to one worker each."""

    def __init__(self, packs: Sequence[Pack], root: Path, how: RunOptions) -> None:
        self.root, self.how, self.lock = root, how, threading.Lock()
        self.waiting, self.at_work = list(packs), 0
        self.attempts: dict[tuple[str, ...], int] = {}
        """Deaths so far by what was worked on: the ids of a pack's runs."""
        self.ended: queue.SimpleQueue[Pack] = queue.SimpleQueue()
        self.errors: list[BaseException] = []
        self.stopping = False
        self.outage = Outage()

    def next(self, gpu: bool) -> Pack | None:
        """A pack that this worker can do now; GPU workers do others too, where nothing waits for a GPU."""
        with self.lock:
            suited = [place for place, pack in enumerate(self.waiting) if self._is_for(pack, gpu)]
            if not suited or self.stopping or self.errors:
                return None
            place = min(suited, key=lambda place: not self.waiting[place].needs_gpu)
            self.at_work += 1
            return self.waiting.pop(place)

    def watch(self, workers: "list[_Worker]", ended: Ended) -> None:
        """Until all workers have ended: say which packs have, and pass on the wish to stop."""
        while any(worker.is_alive() for worker in workers) or not self.ended.empty():
            with contextlib.suppress(queue.Empty):
                pack = self.ended.get(timeout=0.2)
                following = ended(pack) or ()
                with self.lock:  # only now is nobody at work on it: workers wait for what follows
                    self.waiting += following
                    self.at_work -= 1
            if self.how.stop() and not self.stopping:
                self.stopping = True
                for worker in workers:
                    worker.say("stop")

    def back(self, pack: Pack, done: bool) -> None:
        """A worker is through with a pack, or puts it back."""
        if done:
            self.ended.put(pack)
            return
        with self.lock:
            self.at_work -= 1
            self.waiting.append(pack)

    def gpu_failed(self, pack: Pack, words: str) -> None:
        """The machine's fault: the pack waits for its turn after a pause, and nothing is counted against it."""
        with self.lock:
            self.at_work -= 1
            self.waiting.append(pack)
            if not self.stopping:
                self.outage.begin(words)

    def crashed(self, pack: Pack, status: int, log: str) -> None:
        """A worker died over a pack: again, one by one, or given up."""
        with self.lock:
            self.at_work -= 1
            key = tuple(experiment.id for experiment in pack.experiments)
            n = self.attempts[key] = self.attempts.get(key, 0) + 1
            if not self.stopping:
                say(f"a worker {how_it_died(status)} over {len(key)} models{_last(log)}; they go on")
            if self.stopping or n < (ATTEMPTS if len(pack.experiments) == 1 else ATTEMPTS - 1):
                self.waiting.append(pack)
                return
            if len(pack.experiments) > 1:
                self.waiting += [replace(pack, experiments=(experiment,)) for experiment in pack.experiments]
                return
        again = give_up(pack, self.root, how_it_died(status), log)
        with self.lock:
            self.attempts.pop(key, None)
            self.at_work += 1
        self.back(pack, done=not again)

    def paused(self, gpu: bool) -> bool:
        """Whether this worker has something to do, now or after a pause."""
        with self.lock:
            return any(gpu or not pack.needs_gpu for pack in self.waiting)

    def _is_for(self, pack: Pack, gpu: bool) -> bool:
        return (gpu or not pack.needs_gpu) and not (self.outage.pausing and self.outage.concerns(pack))

    def left(self) -> bool:
        return bool(self.waiting) or self.at_work > 0


class _Worker(threading.Thread):
    """Attends to one process: hands it packs, hears its answers, replaces it when it dies."""

    def __init__(self, jobs: _Queue, gpu: int | None, pinned: bool = True) -> None:
        super().__init__(daemon=True)
        self.jobs, self.gpu, self.pinned = jobs, gpu, pinned
        self.process: subprocess.Popen[str] | None = None
        self.writing = threading.Lock()

    def run(self) -> None:
        try:
            while (pack := self.jobs.next(self.gpu is not None)) is not None or self._more_to_come():
                if pack is not None:
                    self._hand_over(pack)
        except BaseException as error:
            self.jobs.errors.append(error)
        finally:
            self._close()

    def say(self, word: str) -> None:
        """One line to the process, if it still listens."""
        with self.writing:
            try:
                if self.process is not None and self.process.stdin is not None:
                    self.process.stdin.write(word + "\n")
                    self.process.stdin.flush()
            except (OSError, ValueError):
                return

    def end(self) -> None:
        """Not later, now: nothing is lost but the work since the last checkpoint."""
        if self.is_alive() and self.process is not None:
            self.process.kill()
        self.join()

    def _more_to_come(self) -> bool:
        """Whether a pack may come back from a worker that dies, or after a pause."""
        jobs = self.jobs
        if jobs.stopping or jobs.errors or not (jobs.at_work or jobs.paused(self.gpu is not None)):
            return False
        threading.Event().wait(0.1)
        return True

    def _hand_over(self, pack: Pack) -> None:
        process = self._running_process()
        self.say(pack_to(pack))
        assert process.stdout is not None
        answer = json.loads(process.stdout.readline() or "{}")
        state = answer.get("state")
        if state == "full":
            self.jobs.errors.append(OSError(answer["errno"], os.strerror(answer["errno"]), answer["file"]))
        if state is None:
            status, log = process.wait(), self._log()
            self._close()
            self._died_over(pack, status, log)
        else:
            if state == "ended":
                self.jobs.outage.well(pack)
            self.jobs.back(pack, done=state == "ended")

    def _died_over(self, pack: Pack, status: int, log: str) -> None:
        words, outage = noted_fault(self.jobs.root / ".unweave", pack), self.jobs.outage
        if words and not outage.is_own(pack, lambda: gpu_answers(self._environment())):
            self.jobs.gpu_failed(pack, words)
        else:
            self.jobs.crashed(pack, status, log)

    def _running_process(self) -> "subprocess.Popen[str]":
        if self.process is None or self.process.poll() is not None:
            logs = self.jobs.root / ".unweave" / "logs"
            logs.mkdir(parents=True, exist_ok=True)
            self.log = logs / f"worker-{os.getpid()}-{threading.get_ident()}.txt"
            command = [sys.executable, "-m", "unweave.studies.worker", str(self.jobs.root)]
            with self.log.open("wb") as log:
                self.process = subprocess.Popen(
                    [*command, str(self.jobs.how.save_every)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    text=True,
                    env=self._environment(),
                )
            if self.jobs.stopping:
                self.say("stop")
        return self.process

    def _environment(self) -> dict[str, str]:
        # what the parent can import (a user's study.py), its workers can; one thread unless a plan asks for more
        given = os.environ | {"PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)}
        given |= {"OMP_NUM_THREADS": "1", "UNWEAVE_WORKER": "1"}
        return given | ({} if self.gpu is None or not self.pinned else {"CUDA_VISIBLE_DEVICES": _visible(self.gpu)})

    def _log(self) -> str:
        content = self.log.read_bytes()[-TAIL:]
        return content.decode(errors="replace")

    def _close(self) -> None:
        process, self.process = self.process, None
        if process is None:
            return
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except OSError:
                    continue
        process.wait()
        if process.returncode == 0:
            self.log.unlink(missing_ok=True)


def _last(log: str) -> str:
    """The last line that a worker has left, in brackets."""
    lines = log.strip().splitlines()
    return f" ({lines[-1][:200]})" if lines else ""


def _visible(place: int) -> str:
    listed = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    return listed.split(",")[place].strip() if listed else str(place)
