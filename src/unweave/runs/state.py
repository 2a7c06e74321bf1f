"""How far a run has come, from its folder alone."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from unweave.files import in_words
from unweave.runs.failures import FAILURE, reason_of
from unweave.runs.fleets import home_of
from unweave.runs.folder import WEIGHTS, RunFolder
from unweave.runs.lock import is_locked

STEP = re.compile(r"(?:checkpoints|snapshots)/step-(?P<step>[0-9]{1,15})\.safetensors")
Word = Literal["done", "failed", "training", "interrupted", "damaged"]
COLUMN = {"training": "running", "interrupted": "unfinished"}


@dataclass(frozen=True)
class State:
    """One word; the step that was saved last, or at which it failed; the reason of a failure or a damage."""

    word: Word
    step: int = 0
    reason: str = ""

    def __str__(self) -> str:
        if self.word == "done":
            return "done"
        return f"damaged: {self.reason}" if self.word == "damaged" else f"{self.word} at step {self.step}"

    @property
    def column(self) -> str:
        """The word of tables and JSON: ``done``, ``failed``, ``running``, ``unfinished`` or ``damaged``."""
        return COLUMN.get(self.word, self.word)


def state_of(
    folder: RunFolder,
    *,
    thorough: bool = False,
    locks: Mapping[int, int] | None = None,
    homes: Mapping[str, RunFolder] | None = None,
) -> State:
    """What a run folder says of itself. Only ``thorough`` reads the weights to see whether they are whole.

    Who asks for many runs asks once for ``locks`` (:func:`~unweave.runs.lock.holders`) and ``homes``
    (:func:`~unweave.runs.fleets.homes_in`).
    """
    try:
        return _trained(folder, thorough) or _unfinished(folder, locks, homes)
    except (OSError, ValueError, RecursionError) as error:
        return State("damaged", reason=in_words(error))


def saved_step(folder: RunFolder, homes: Mapping[str, RunFolder] | None = None) -> int:
    """The newest checkpoint's step, of the run or of the fleet that trains it; 0 before the first."""
    home = home_of(folder, homes)
    places = [folder] if home is None else [folder, home]
    return max((step for place in places for step in steps(place, "checkpoints/")), default=0)


def steps(folder: RunFolder, prefix: Literal["checkpoints/", "snapshots/"]) -> dict[int, str]:
    """Step to file name, for the weights kept during training."""
    return {int(found["step"]): name for name in folder.names(prefix) if (found := STEP.fullmatch(name))}


def left_checkpoints(folder: RunFolder) -> list[str]:
    """Every checkpoint that is there, also those that a kill took off the list and left on the disk."""
    there = [name for name in folder.files_in("checkpoints") if STEP.fullmatch(name)]
    return sorted({*folder.names("checkpoints/"), *there})


def failure_of(folder: RunFolder) -> dict[str, Any] | None:
    """Why a run failed, as it was written; None where it has not."""
    if not folder.has(FAILURE):
        return None
    found = folder.read_json(FAILURE)
    if not isinstance(found, dict):
        return {"reason": f"{FAILURE} holds no object"}
    try:
        json.dumps(found, allow_nan=False)
    except ValueError:
        return {"reason": f"{FAILURE} holds a number that is not finite"}
    return found


def _trained(folder: RunFolder, thorough: bool) -> State | None:
    sums = folder.sums()
    if "config.json" in sums and not isinstance(folder.read_json("config.json"), dict):
        raise ValueError(f"{folder.path / 'config.json'} holds no settings")
    if folder.trained:
        if thorough and folder.has(WEIGHTS):
            folder.read(WEIGHTS)
        return State("done")
    if WEIGHTS in sums:
        raise FileNotFoundError(f"{folder.path / WEIGHTS} is missing")
    return None


def _unfinished(folder: RunFolder, locks: Mapping[int, int] | None, homes: Mapping[str, RunFolder] | None) -> State:
    home, failure, step = home_of(folder, homes), failure_of(folder), saved_step(folder, homes)
    alone, together = is_locked(folder.path, locks), home is not None and is_locked(home.path, locks)
    if alone or (together and failure is None):
        return State("training", step)
    if failure is not None:
        return State("failed", _number(failure.get("step"), step), reason_of(failure))
    return State("interrupted", step)


def _number(value: Any, otherwise: int = 0) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else otherwise
