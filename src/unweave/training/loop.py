"""The training loop: from experiments to finished run folders, through any number of interruptions."""

import contextlib
import math
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import torch

from unweave.data.world import Data
from unweave.files import require_folder
from unweave.runs.folder import RunFolder
from unweave.runs.state import left_checkpoints
from unweave.training.alone import Alone
from unweave.training.batches import check_before_fetching, check_supervision
from unweave.training.checkpoint import Checkpoints
from unweave.training.engine import Engine
from unweave.training.experiment import Experiment, read_experiment, resume_words
from unweave.training.history import Recording
from unweave.training.results import (
    claim,
    drop_checkpoints,
    failure_words,
    for_all,
    keep_result,
    keep_snapshot,
    refuse_others,
)
from unweave.training.running import Interrupted, NotFinite, RunOptions, StepReport
from unweave.training.trackers import check_trackers, tracked


def train(
    experiment: Experiment,
    folder: Path | str | None = None,
    *,
    data: Data | None = None,
    how: RunOptions = RunOptions(),
) -> Path:
    """Train to the end and return the run's folder. The same call twice resumes, or returns at once."""
    experiment = experiment.resolve()
    run = RunFolder(require_folder(folder or Path("runs") / experiment.id, "a folder for the run"))
    if _is_left_alone(run):
        claim(run, experiment)
        return run.path
    refuse_others(run, experiment)
    check_trackers(how.trackers)
    if experiment.plan.precision == "bf16" or experiment.dense_kernels:
        return _train_as_fleet(run, experiment, data, how)
    if data is not None:
        check_supervision(experiment, data)
    else:
        check_before_fetching(experiment)
    with run.locked():
        refuse_others(run, experiment)
        if not run.has("model.safetensors"):
            torch.set_num_threads(experiment.plan.threads)
            engine = Alone(experiment, data or experiment.world.load())
            claim(run, experiment)  # not before: an experiment that is refused leaves nothing behind
            run.remove("failure.json")  # an earlier attempt's
            (failure,) = drive(engine, [run], run, how)
            if failure:
                raise NotFinite(failure)
        drop_checkpoints(run)  # those that a kill at the very end has left
    return run.path


def resume(folder: Path | str, *, data: Data | None = None, how: RunOptions = RunOptions()) -> Path:
    """Go on with an interrupted run, from its folder alone; a member of a fleet goes on with its fleet."""
    from unweave.training.many import resume_fleet

    run = RunFolder(folder)
    if not run.has("config.json"):
        raise FileNotFoundError(f"{run.path} is not a run folder: it has no config.json of ours")
    if not run.has("model.safetensors") and resume_fleet(run, data, how):
        return run.path
    return train(read_experiment(run), run.path, data=data, how=how)


def drive(
    engine: Engine,
    folders: Sequence[RunFolder],
    home: RunFolder,
    how: RunOptions,
    claim_all: Callable[[], None] = lambda: None,
) -> list[str]:
    """From the newest checkpoint in ``home`` to the end; the failure of each member, or nothing, in words.

    ``claim_all`` writes what the folders are for, once the first steps are made and before anything else is written.
    """
    first, last = engine.experiments[0], engine.experiments[0].n_updates
    recording, checkpoints = Recording(), Checkpoints(home, how.save_every)
    begin = checkpoints.load(engine, recording)
    kept = {step for one in engine.experiments for step in one.snapshots}
    claims, pace = Claims(claim_all), Pace(last)
    with contextlib.closing(checkpoints), contextlib.closing(claims), contextlib.ExitStack() as opened:
        if how.trackers:
            claims.wait()
        tell_trackers = opened.enter_context(tracked(how.trackers, engine, [folder.path for folder in folders]))
        for step in range(begin, last):
            if step in kept:
                claims.wait()
                _keep_snapshots(engine, folders, step)
            stopping = how.stop()  # asked once: an answer that changes in between would end without a checkpoint
            if stopping or checkpoints.due(pace.left):
                claims.wait()
                checkpoints.save(engine, recording, step, beside=not stopping)
            if stopping:
                raise Interrupted(f"stopped before step {step}; go on with: {resume_words(folders[0].path, first)}")
            recorded = step % first.history_every == 0 or step == last - 1
            engine.advance(step, record=recorded)
            if step > begin:
                claims.begin()
            if engine.all_failed():
                break
            if recorded:
                recording.add(step, engine.rows())
                engine.wait()
                pace.waited(step)
            report = StepReport(step + 1, last, recorded, engine)
            for watch in (*how.watchers, tell_trackers):
                watch(report)
        claims.wait()
    _keep_snapshots(engine, folders, last)
    return for_all(lambda member: keep_result(folders[member], engine, member, recording), range(len(folders)))


class Claims:
    """Folders are claimed once, beside the first steps: a GPU makes these while the folders wait for the disk."""

    def __init__(self, claim_all: Callable[[], None]) -> None:
        self.claim_all, self.writer = claim_all, ThreadPoolExecutor(1)
        self.claiming: Future[None] | None = None

    def begin(self) -> None:
        """Begin, where nobody has; an error of what was begun is raised here at the latest."""
        if self.claiming is None:
            self.claiming = self.writer.submit(self.claim_all)
        elif self.claiming.done():
            self.claiming.result()

    def wait(self) -> None:
        """Until all folders are claimed."""
        self.begin()
        assert self.claiming is not None
        self.claiming.result()

    def close(self) -> None:
        """Nothing is written any more."""
        self.writer.shutdown()


class Pace:
    """How long the rest will take, by the steps so far whose end was waited for: others are only asked for."""

    def __init__(self, last: int) -> None:
        self.last, self.first, self.left = last, (0, math.inf), math.inf

    def waited(self, step: int) -> None:
        """A step has been made. The first one tells nothing: kernels are compiled and loaded for it."""
        now = time.monotonic()
        if self.first[1] == math.inf:
            self.first = step, now
        else:
            begin, then = self.first
            self.left = (self.last - step - 1) * (now - then) / (step - begin)


def _is_left_alone(run: RunFolder) -> bool:
    """Whether a run is finished and tidy: nothing has to be written, so that it may lie where nothing can be."""
    finished = run.has("config.json") and run.has("model.safetensors")
    return finished and not left_checkpoints(run) and not run.torn_files()


def say(line: str) -> None:
    """A line about training, where its progress goes."""
    print(line, file=sys.stderr, flush=True)


def _train_as_fleet(run: RunFolder, experiment: Experiment, data: Data | None, how: RunOptions) -> Path:
    """A fleet of one: GPU kernels make these steps, and a model alone gets the bits that it has in company."""
    from unweave.training.many import train_many

    train_many([experiment], run.path.parent, data=data, how=how, folders=[run.path])
    if run.has("failure.json"):
        raise NotFinite(failure_words(run, run.read_json("failure.json")))
    return run.path


def _keep_snapshots(engine: Engine, folders: Sequence[RunFolder], step: int) -> None:
    due = [member for member, one in enumerate(engine.experiments) if step in one.snapshots]
    well = [member for member in due if engine.failure(member) is None]
    for_all(lambda member: keep_snapshot(folders[member], engine, member, step), well)
