"""Whether weights are the ones that were written: read once, and again when the disk says that they have changed."""

import os
from collections.abc import Mapping
from pathlib import Path

from unweave.runs.folder import WEIGHTS, RunFolder, signature


class CheckedWeights:
    """What was found of weights, by run, with the sizes and times of then. At most ``budget`` bytes are read."""

    def __init__(self, whole: Mapping[str, str], budget: int) -> None:
        self.whole, self.budget, self.unread = dict(whole), budget, 0
        self._problems: dict[str, tuple[str, str]] = {}

    def problem(self, folder: Path | str) -> str:
        """What is wrong with the weights of a run in one sentence; empty where nothing is, or nobody has read them."""
        name = os.path.basename(folder)
        if not (mark := _mark(folder)) or self.whole.get(name) == mark:
            return ""
        known, problem = self._problems.get(name, ("", ""))
        if known == mark:
            return problem
        if (size := int(mark.partition("-")[0])) > self.budget:
            self.unread += 1
            return ""
        self.budget -= size
        try:
            RunFolder(folder).read(WEIGHTS)
        except (OSError, ValueError) as error:
            self._problems[name] = mark, str(error)
            return str(error)
        self.whole[name] = mark
        return ""


def _mark(folder: Path | str) -> str:
    """Size, time and inode of the weights and of the list that has their checksum; empty where one is missing."""
    try:
        found = os.lstat(f"{folder}/{WEIGHTS}")
    except (OSError, ValueError):
        return ""
    listed = signature(folder)
    return f"{found.st_size}-{found.st_mtime_ns}-{found.st_ino} {listed}" if listed else ""
