"""The training loop: from an experiment to a finished run folder, through any number of interruptions."""

import math
import platform
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from unweave.data.world import Data
from unweave.models.objectives import Terms
from unweave.runs.folder import RunFolder
from unweave.training.batches import batches
from unweave.training.checkpoint import Resumed, load_checkpoint, save_checkpoint, to_bytes
from unweave.training.experiment import Experiment, experiment_from, experiment_to
from unweave.training.history import History, write_history
from unweave.training.step import Learner, columns, first_bad, new_learner, summary, update

Watcher = Callable[[int, int, Terms, bool], None]
"""Called after every step with (steps done, steps in all, terms, whether the history keeps this step)."""


class NotFinite(ArithmeticError):
    """Training stopped because a term of the loss was no longer a number."""


class Interrupted(RuntimeError):
    """Training was asked to stop, and saved everything first."""


@dataclass(frozen=True)
class Manner:
    """How to run, without any influence on the result: who watches, how often to save, when to stop."""

    watchers: tuple[Watcher, ...] = ()
    save_every: float = 30.0
    stop: Callable[[], bool] = lambda: False


def train(
    experiment: Experiment, folder: Path | str | None = None, *, data: Data | None = None, how: Manner = Manner()
) -> Path:
    """Train to the end and return the run's folder. The same call twice resumes, or returns at once."""
    experiment = experiment.resolve()
    run = RunFolder(folder if folder is not None else Path("runs") / experiment.id)
    if experiment.plan.precision == "bf16":
        return _train_as_fleet(run, experiment, data, how)
    with run.locked():
        _claim(run, experiment)
        if not run.has("model.safetensors"):
            torch.set_num_threads(experiment.plan.threads)
            _train(run, experiment, data or experiment.world.load(), how)
    return run.path


def resume(folder: Path | str, *, data: Data | None = None, how: Manner = Manner()) -> Path:
    """Go on with an interrupted run, from its folder alone."""
    run = RunFolder(folder)
    if not run.has("config.json"):
        raise FileNotFoundError(f"{run.path} is not a run folder: it has no config.json of ours")
    return train(experiment_from(run.read_json("config.json")), run.path, data=data, how=how)


def _train_as_fleet(run: RunFolder, experiment: Experiment, data: Data | None, how: Manner) -> Path:
    """A fleet of one: bf16 products are the GPU kernels', and a model alone gets the bits that it has in company."""
    from unweave.training.fleet_run import train_fleet

    train_fleet([experiment], run.path.parent, data=data, how=how, folders=[run.path])
    if run.has("failure.json"):
        failure = run.read_json("failure.json")
        raise NotFinite(f"training stopped at step {failure['step']}: {failure['term']} became {failure['value']}")
    return run.path


def _train(run: RunFolder, experiment: Experiment, data: Data, how: "Manner") -> None:
    data = data.to(experiment.plan.device)
    learner = new_learner(experiment, data.shape, len(data))
    resumed = load_checkpoint(run, learner) or Resumed(0, History())
    if resumed.note:
        print(resumed.note, file=sys.stderr)
    history, saved, n_steps = resumed.history, time.monotonic(), experiment.n_updates
    for step, batch in enumerate(batches(experiment, data, resumed.step, n_steps), resumed.step):
        if step in experiment.snapshots:
            _snapshot(run, learner, step)
        stopping = how.stop()  # asked once: an answer that changes in between would end without a checkpoint
        if stopping or time.monotonic() - saved >= how.save_every:
            save_checkpoint(run, learner, history, step)
            saved = time.monotonic()
        if stopping:
            raise Interrupted(f"stopped before step {step}; go on with: unweave resume {run.path}")
        terms, code = update(learner, batch, step)
        recorded = step % experiment.history_every == 0 or step == n_steps - 1
        if recorded or batch.images.device.type == "cpu":
            _stop_if_bad(run, learner, history, step, terms)
        if recorded:
            history.add(step, columns(terms, experiment.latents), summary(terms, code))
        for watch in how.watchers:
            watch(step + 1, n_steps, terms, recorded)
    _finish(run, experiment, learner, history)


def _finish(run: RunFolder, experiment: Experiment, learner: Learner, history: History) -> None:
    if experiment.n_updates in experiment.snapshots:
        _snapshot(run, learner, experiment.n_updates)
    write_history(run, history)
    run.write("model.safetensors", to_bytes(learner.model.state_dict(), _shape_note(learner)))
    run.remove(*run.names("checkpoints/"))


def _snapshot(run: RunFolder, learner: Learner, step: int) -> None:
    run.write(f"snapshots/step-{step:09d}.safetensors", to_bytes(learner.model.state_dict(), _shape_note(learner)))


def _shape_note(learner: Learner) -> dict[str, str]:
    # one entry only: safetensors writes several in no fixed order, and equal runs are to be equal files
    return {"shape": ",".join(map(str, learner.model.architecture.shape))}


def _stop_if_bad(run: RunFolder, learner: Learner, history: History, step: int, terms: Terms) -> None:
    if math.isfinite(terms["loss"].item()):
        return
    term = first_bad(terms)
    if learner.experiment.plan.device == "cpu":
        # the update was left out, so the weights are the last good ones
        save_checkpoint(run, learner, history, step)
    run.write_json("failure.json", {"step": step, "term": term, "value": str(terms[term].item())})
    raise NotFinite(
        f"training stopped at step {step}: {term} became {terms[term].item()}. The last good weights are kept in"
        f" {run.path / 'checkpoints'}. Try a smaller learning rate, or look at the data."
    )


def _claim(run: RunFolder, experiment: Experiment) -> None:
    plain = experiment_to(experiment)
    if run.has("config.json"):
        known = run.read_json("config.json")
        if known != plain:
            raise ValueError(
                f"{run.path} already holds another run: {_difference(known, plain)}. Choose another folder."
            )
        return
    run.write_json("config.json", plain)
    run.write_json("environment.json", environment())


def environment() -> dict[str, Any]:
    """Where a run was made: enough to tell why two results differ."""
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "machine": f"{platform.system()} {platform.machine()}",
        "gpu": gpu,
        "threads": torch.get_num_threads(),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": sys.argv,
    }


def _difference(known: Any, given: Any, place: str = "") -> str:
    if isinstance(known, dict) and isinstance(given, dict):
        for key in sorted(known.keys() | given.keys()):
            if known.get(key) != given.get(key):
                return _difference(known.get(key), given.get(key), f"{place}.{key}" if place else key)
    return f"{place} is {known!r} there and {given!r} here"
