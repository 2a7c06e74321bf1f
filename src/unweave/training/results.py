"""What a run keeps in its folder, whichever engine trains it: its config, its environment, weights, a failure."""

import platform
import sys
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, TypeVar

import torch

from unweave.config import fingerprint
from unweave.files import load_json, things_in
from unweave.models.optimisers import Tensors
from unweave.runs.folder import RunFolder, as_json
from unweave.runs.names import read_plain
from unweave.runs.state import left_checkpoints
from unweave.training.checkpoint import to_bytes
from unweave.training.engine import Engine, Failure
from unweave.training.experiment import Experiment, Form, experiment_to, is_experiment, read_experiment
from unweave.training.history import Recording, history_file, write_history

LAST_GOOD = "last_good.safetensors"

OURS = ("config.json", "environment.json", "member.json", "checkpoints", "snapshots", "measures", "SHA256SUMS")
"""What a kill may leave in a folder before anything in it counts, and empty folders of a run that lost its files."""

AT_A_TIME = 16
"""Folders that are written side by side."""

Item = TypeVar("Item")
Result = TypeVar("Result")


def for_all(work: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """``work`` of every item, many at a time: folders of members wait for the disk, not for each other."""
    given = list(items)
    if len(given) < 2:
        return [work(item) for item in given]
    with ThreadPoolExecutor(min(AT_A_TIME, len(given))) as pool:
        return list(pool.map(work, given))


def claim(folder: RunFolder, experiment: Experiment, also: Mapping[str, Any] = MappingProxyType({})) -> None:
    """Write what a folder is for, once, and other values with it; refuse one that is for something else."""
    refuse_others(folder, experiment)
    values = dict(also)
    if not folder.has("config.json"):
        values |= {"environment.json": environment(), "config.json": experiment_to(experiment)}
    if values:  # a finished run may lie where nothing can be written
        folder.write_new({name: as_json(value) for name, value in values.items()})


def refuse_others(folder: RunFolder, experiment: Experiment) -> None:
    """A run has a folder of its own: it is not spilled among pictures, tables or other runs."""
    if folder.has("config.json"):
        known, plain = folder.read_json("config.json"), experiment_to(experiment)
        if known != plain and fingerprint(read_experiment(folder)) != fingerprint(experiment):
            raise ValueError(
                f"{folder.path} already holds another run: {_difference(known, plain)}. Choose another folder."
            )
    if folder.sums() or not folder.path.is_dir() or _was_a_run(folder):
        return
    found = [name for name in things_in(folder.path) if name not in OURS]
    if found:
        more = f" and {len(found) - 1:,} more" if len(found) > 1 else ""
        raise ValueError(
            f"{folder.path} holds other things ({found[0]}{more}), and a run needs a folder of its own: choose another"
        )


def _was_a_run(folder: RunFolder) -> bool:
    """Whether this is a run that lost its list of files."""
    try:
        return is_experiment(load_json(read_plain(folder.path, "config.json", most=1 << 20)))
    except (OSError, ValueError):
        return False


def ended(folder: RunFolder) -> bool:
    """Whether nothing is left to train: the model is there, or it failed."""
    return folder.has("model.safetensors") or folder.has("failure.json")


def keep_snapshot(folder: RunFolder, engine: Engine, member: int, step: int) -> None:
    """Keep a member's weights of this step."""
    folder.write(f"snapshots/step-{step:09d}.safetensors", weights_file(engine.weights(member), engine.form))


def keep_result(folder: RunFolder, engine: Engine, member: int, recording: Recording) -> str:
    """Write what a member has become; for one that failed, a line that says why."""
    if ended(folder):
        drop_checkpoints(folder)
        return ""  # written already, before an interruption
    failure = engine.failure(member)
    if failure is not None:
        write_history(folder, recording.of(*engine.group_of(member), before=failure.step))
        return _keep_failure(folder, engine, member, failure)
    name, content = history_file(recording.of(*engine.group_of(member)))
    folder.write_new({name: content, "model.safetensors": weights_file(engine.weights(member), engine.form)})
    drop_checkpoints(folder)
    return ""


def failure_words(folder: RunFolder, failure: Mapping[str, Any]) -> str:
    """Where and why a run failed, where its last good weights are, and what to do."""
    words = f"{folder.path}: training stopped at step {failure['step']}: {failure['term']} became {failure['value']}."
    return f"{words} {kept_words(folder, failure)} Try a smaller learning rate, or look at the data."


def kept_words(folder: RunFolder, failure: Mapping[str, Any]) -> str:
    """Where the last weights are that gave a finite loss."""
    if "kept_step" not in failure:
        return "No weights were kept: no recorded step gave a finite loss."
    return f"Weights of step {failure['kept_step']}, whose loss was finite, are in {folder.path / LAST_GOOD}."


def drop_checkpoints(folder: RunFolder) -> None:
    """Remove what a finished run does not need any more; those of one that failed stay."""
    if folder.has("model.safetensors"):
        folder.remove(*left_checkpoints(folder))


def weights_file(weights: Tensors, form: Form) -> bytes:
    """The content of a file with a model's weights, which tells the form of its examples."""
    # one entry only: safetensors writes several in no fixed order, and equal runs are to be equal files
    return to_bytes(weights, {"shape": str(form)})


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


def _keep_failure(folder: RunFolder, engine: Engine, member: int, failure: Failure) -> str:
    kept = engine.last_good(member)
    if kept is not None:
        folder.write(LAST_GOOD, weights_file(kept[1], engine.form))
    told: dict[str, Any] = {"step": failure.step, "term": failure.term, "value": str(failure.value)}
    told |= {} if kept is None else {"kept": LAST_GOOD, "kept_step": kept[0]}
    folder.write_json("failure.json", told)
    return failure_words(folder, told)


def _difference(known: Any, given: Any, place: str = "") -> str:
    if isinstance(known, dict) and isinstance(given, dict):
        for key in sorted(known.keys() | given.keys()):
            if known.get(key) != given.get(key):
                return _difference(known.get(key), given.get(key), f"{place}.{key}" if place else key)
    return f"{place} is {known!r} there and {given!r} here"
