"""Failure is data: its reason and its log stay in the run's folder, the study goes on, and it can be retried."""

import errno
import signal
import traceback
from collections.abc import Iterable, Mapping
from typing import Any

from unweave.runs.failures import FAILURE, LOG, OF_MEASURES
from unweave.runs.folder import RunFolder
from unweave.studies.measures.measure import Measure
from unweave.training.experiment import Experiment, experiment_to
from unweave.training.many import names_gpu_fault

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)


def record(folder: RunFolder, experiment: Experiment, error: BaseException) -> None:
    """Keep why a run failed, and the traceback. A failure that training itself has written stays as it is."""
    _write_config(folder, experiment)
    folder.write(LOG, "".join(traceback.format_exception(error)))
    if not folder.has(FAILURE):
        folder.write_json(FAILURE, {"kind": _kind(error), "reason": _reason(error)})


def record_of_measure(folder: RunFolder, measure: Measure, error: BaseException) -> None:
    """Keep why one measure of a finished run failed."""
    _write_of_measure(folder, measure, {"kind": _kind(error), "reason": _reason(error)}, error)


def record_crash(folder: RunFolder, experiment: Experiment, missing: list[Measure], died: str, log: str) -> None:
    """Keep that the worker's process died, again and again, while it trained this run or took its measures."""
    _write_config(folder, experiment)
    reason = {"kind": "crash", "reason": f"the process that worked on it {died}; the end of its log is in {LOG}"}
    folder.write(LOG, log or "the process left no words\n")
    if not folder.has("model.safetensors"):
        folder.write_json(FAILURE, reason)
    elif missing:
        _write_of_measure(folder, missing[0], reason)


def clear(folder: RunFolder) -> bool:
    """Forget all failures of a run, so that what failed is tried again. Says whether there were any."""
    names = [name for name in folder.names() if name in (FAILURE, LOG) or name.startswith(OF_MEASURES)]
    folder.remove(*names)
    return bool(names)


def forget_outages(folders: Iterable[RunFolder]) -> int:
    """Forget failures that were a GPU's, as earlier versions kept them, so that the runs are tried again; how many."""
    met = [folder for folder in folders if folder.has(FAILURE) and is_outage(folder.read_json(FAILURE))]
    for folder in met:
        clear(folder)
    return len(met)


def is_outage(failure: Mapping[str, Any]) -> bool:
    """Whether a failure that was kept is a GPU's."""
    return failure.get("kind") == "exception" and names_gpu_fault(str(failure.get("reason")))


def is_machines(failure: Mapping[str, Any]) -> bool:
    """Whether a measure failed for want of a package or of memory: another machine may take it."""
    return failure.get("kind") == "memory" or str(failure.get("reason")).startswith(("ModuleNotFound", "ImportError"))


def file_of(measure: Measure) -> str:
    """Where the failure of a measure is kept."""
    return OF_MEASURES + measure.file.rpartition("/")[2]


def is_full(error: BaseException) -> bool:
    """Whether an error says that the disk is full or may only be read: no fault of the run."""
    return isinstance(error, OSError) and error.errno in FULL


def how_it_died(status: int) -> str:
    """Words for the exit status of a process; negative ones are signals."""
    if status >= 0:
        return f"ended with status {status}"
    name = signal.Signals(-status).name
    return f"was killed by {name}" + (", perhaps for want of memory" if -status == signal.SIGKILL else "")


def _write_config(folder: RunFolder, experiment: Experiment) -> None:
    """A run that failed before it began is still a run, with a config."""
    if not folder.has("config.json"):
        folder.write_json("config.json", experiment_to(experiment))


def _write_of_measure(
    folder: RunFolder, measure: Measure, what: dict[str, str], error: BaseException | None = None
) -> None:
    log = "".join(traceback.format_exception(error)) if error else ""
    folder.write_json(file_of(measure), what | {"measure": measure.name, "log": log})


def _kind(error: BaseException) -> str:
    words = str(error).lower()
    out = isinstance(error, MemoryError) or "out of memory" in words or "can't allocate memory" in words
    return "memory" if out else "not finite" if isinstance(error, ArithmeticError) else "exception"


def _reason(error: BaseException) -> str:
    first = (str(error).splitlines() or [""])[0]
    return f"{type(error).__name__}: {first}" if first else type(error).__name__
