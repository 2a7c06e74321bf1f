"""Edited or half-deleted run folders: found by their checksums, and repaired by doing again what is missing."""

import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path

from unweave.data.files import digest, write_text
from unweave.runs.folder import RunFolder
from unweave.training.experiment import Experiment, experiment_to
from unweave.training.results import environment

TRAINED = ("model.safetensors", "history.", "snapshots/")
"""What training writes: when one of these is damaged, the run is trained again, to the same bits."""


def examine(folder: RunFolder) -> dict[str, str]:
    """Every damaged file of a run: its name, and whether it is missing or edited."""
    problems = {}
    for name, expected in folder.sums().items():
        path = folder.path / name
        if not path.is_file():
            problems[name] = "missing"
        elif digest(path) != expected:
            problems[name] = "edited"
    return problems


def repair(folder: RunFolder, experiment: Experiment, problems: dict[str, str]) -> None:
    """Take what is damaged away, and write again what is known; the rest is for training and measuring."""
    damaged = set(problems)
    if any(name.startswith(TRAINED) for name in damaged):
        damaged.add("model.safetensors")
    folder.remove(*sorted(damaged))
    if "config.json" in damaged:
        folder.write_json("config.json", experiment_to(experiment))
    if "environment.json" in damaged:
        folder.write_json("environment.json", environment() | {"note": "written again: the first one was damaged"})


class Memory:
    """Which folders were found whole, by the sizes and times of their files, so that bytes are read once only."""

    def __init__(self, home: Path) -> None:
        self.file = home / "checked.json"
        try:
            self.known: dict[str, str] = json.loads(self.file.read_text())
        except (OSError, ValueError):
            self.known = {}

    def problems(self, folders: Iterable[RunFolder]) -> dict[str, dict[str, str]]:
        """Damaged folders by id, with what is wrong; whole ones are remembered."""
        found, before = {}, dict(self.known)
        for folder in folders:
            look = _look(folder)
            if not look or self.known.get(folder.path.name) == look:
                continue
            if problems := examine(folder):
                found[folder.path.name] = problems
            else:
                self.known[folder.path.name] = look
        if self.known != before:
            write_text(self.file, json.dumps(self.known))
        return found


def _look(folder: RunFolder) -> str:
    """A hash of sizes and times; empty where nothing is listed."""
    try:
        listed = (folder.path / "SHA256SUMS").read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    looks = [listed]
    for line in listed.splitlines():
        name = line.partition("  ")[2]
        try:
            found = os.stat(folder.path / name)
        except OSError:
            looks.append(f"{name} missing")
            continue
        looks.append(f"{name} {found.st_size} {found.st_mtime_ns}")
    return hashlib.sha256("\n".join(looks).encode()).hexdigest()[:16] if listed else ""
