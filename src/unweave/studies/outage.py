"""Faults of a GPU, or of reaching one, are counted against the machine: pauses that grow, then the end of the study."""

import hashlib
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from unweave.files import write_text
from unweave.studies.pack import Pack
from unweave.training.loop import say
from unweave.training.running import GpuFailed

PAUSES = (5.0, 15.0, 60.0, 180.0)
"""Seconds until packs are tried again, after each fault in a row."""

PROBE = "import torch; torch.zeros(1, device='cuda').add_(1.0).item()"
PATIENCE = 120.0
"""Seconds in which a GPU answers a probe."""


class Outage:
    """What is known of the GPUs."""

    def __init__(self) -> None:
        self.in_a_row = 0
        self.until = 0.0
        """When the pause is over, on the monotonic clock."""
        self.worked = 0
        """Packs that ended well."""
        self.seen: dict[tuple[str, ...], int] = {}
        """How many had, when a pack last met a fault."""

    def well(self, pack: Pack) -> None:
        """A pack has ended: its GPU works."""
        if pack.needs_gpu:
            self.worked += 1
            self.in_a_row = 0

    def is_own(self, pack: Pack, answers: Callable[[], bool] | None = None) -> bool:
        """Whether a fault is the pack's: others have worked, and the GPU ``answers``, or does more of their work."""
        key = _ids(pack)
        since, self.seen[key] = self.seen.get(key), self.worked
        if not self.worked:
            return False
        return answers() if answers is not None else since is not None and self.worked > since

    def begin(self, words: str) -> None:
        """A fault of the machine: a pause begins, unless there is one; GpuFailed where there were enough."""
        if time.monotonic() < self.until:
            return
        if self.in_a_row >= len(PAUSES):
            times = self.in_a_row + 1
            raise GpuFailed(f"{words}, {times} times in a row: once it works again, the same command goes on")
        if not self.in_a_row:
            say(f"{words}; that is no fault of the models, which are tried again after a pause")
        self.until = time.monotonic() + PAUSES[self.in_a_row]
        self.in_a_row += 1

    def concerns(self, pack: Pack) -> bool:
        """Whether a pack needs a GPU, or met a fault of one."""
        return pack.needs_gpu or _ids(pack) in self.seen

    @property
    def pausing(self) -> bool:
        return time.monotonic() < self.until

    def wait(self, stop: Callable[[], bool]) -> None:
        """Until the pause is over, or somebody wants to stop."""
        while self.pausing and not stop():
            time.sleep(0.1)


def note_fault(home: Path, pack: Pack, words: str) -> None:
    """Leave word for the executor, whose worker is about to die."""
    write_text(_note(home, pack), words + "\n")


def noted_fault(home: Path, pack: Pack) -> str:
    """What a worker has left about a pack, once; nothing where the GPU was well."""
    note = _note(home, pack)
    words = note.read_text().strip() if note.is_file() else ""
    note.unlink(missing_ok=True)
    return words


def gpu_answers(environment: Mapping[str, str]) -> bool:
    """Whether a new process can use the GPU."""
    command = [sys.executable, "-c", PROBE]
    try:
        done = subprocess.run(command, env=dict(environment), capture_output=True, timeout=PATIENCE, check=False)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def _note(home: Path, pack: Pack) -> Path:
    return home / "gpu-faults" / f"{hashlib.sha256(','.join(_ids(pack)).encode()).hexdigest()[:16]}.txt"


def _ids(pack: Pack) -> tuple[str, ...]:
    return tuple(experiment.id for experiment in pack.experiments)
