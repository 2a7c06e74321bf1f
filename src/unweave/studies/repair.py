"""Edited or half-deleted run folders: found by their checksums, and repaired by doing again what is missing."""

import contextlib
import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from unweave.files import digest, write_text
from unweave.runs.folder import DamagedFile, RunFolder
from unweave.runs.names import read_plain
from unweave.runs.sums import SUMS
from unweave.sealed import is_sealed, sealed, unsealed
from unweave.training.experiment import Experiment, experiment_to
from unweave.training.results import environment


def damaged_files(folder: RunFolder) -> dict[str, str]:
    """Every damaged file of a run: its name, and whether it is missing or edited."""
    try:
        sums = folder.sums()
    except DamagedFile:
        return {SUMS: "edited"}
    problems = {}
    for name, expected in sums.items():
        path = folder.path / name
        if not path.is_file():
            problems[name] = "missing"
        elif digest(path) != expected:
            problems[name] = "edited"
    return problems


def repair(folder: RunFolder, experiment: Experiment, problems: dict[str, str]) -> None:
    """Take what is damaged away, and write again what is known; the rest is for training and measuring."""
    damaged = set(problems) - {SUMS}
    if SUMS in problems:
        folder.mend_list()
    whole = set(folder.names()) - damaged
    if not _has_all_of_training(whole, experiment):
        damaged.add("model.safetensors")  # trained again, to the same bits
    folder.remove(*sorted(damaged & set(folder.names())))
    if "config.json" not in whole:
        folder.write_json("config.json", experiment_to(experiment))
    if "environment.json" not in whole:
        folder.write_json("environment.json", environment() | {"note": "written again: the first one was damaged"})


class CheckedFolders:
    """Which folders were found whole, by the sizes and times of their files, so that bytes are read once only."""

    def __init__(self, home: Path) -> None:
        self.file = home / "checked.json"
        try:
            found = unsealed(read_plain(home, self.file.name))
        except (OSError, ValueError):
            found = {}  # everything is checked again
        self.known: dict[str, Any] = found.get("folders", {}) if is_sealed(found) else {}

    def problems(self, folders: Iterable[RunFolder]) -> dict[str, dict[str, str]]:
        """Damaged folders by id, with what is wrong; whole ones are remembered."""
        found, before = {}, dict(self.known)
        for folder in folders:
            signature = _signature(folder)
            if not signature or self.known.get(folder.path.name) == signature:
                continue
            if problems := damaged_files(folder):
                found[folder.path.name] = problems
            else:
                self.known[folder.path.name] = signature
        if self.known != before:
            with contextlib.suppress(OSError):  # a store that may only be read
                write_text(self.file, sealed({"folders": self.known}))
        return found


def _has_all_of_training(whole: set[str], experiment: Experiment) -> bool:
    snapshots = {f"snapshots/step-{step:09d}.safetensors" for step in experiment.snapshots}
    return snapshots <= whole and any(name.startswith("history.") for name in whole)


def _signature(folder: RunFolder) -> str:
    """A hash of sizes and times; empty where nothing is listed."""
    try:
        listed = (folder.path / SUMS).read_bytes()
        names = folder.names()
    except FileNotFoundError:
        return ""
    except DamagedFile:
        return "damaged"
    parts = [hashlib.sha256(listed).hexdigest()]
    for name in names:
        try:
            found = os.stat(folder.path / name)
        except OSError:
            parts.append(f"{name} missing")
            continue
        parts.append(f"{name} {found.st_size} {found.st_mtime_ns}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16] if names else ""
