"""Fleets by their folders: which one a run is trained in, and which runs one trains.

A fleet's home is ``fleet-<12 hex>`` beside its members. ``fleet.json`` lists their folders; while it trains, each
member's ``member.json`` names it. Fleets of version 0.1.0 have the list only.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from unweave.runs.folder import DamagedFile, RunFolder

LIST, MEMBER = "fleet.json", "member.json"
NAME = re.compile(r"fleet-[0-9a-f]{12}")


def home_of(folder: RunFolder, homes: Mapping[str, RunFolder] | None = None) -> RunFolder | None:
    """The home of the fleet that trains a run; None for a run that is trained alone, or not any more.

    ``homes`` are those of the folder around it (:func:`homes_in`), where they are known.
    """
    if folder.has(MEMBER):
        note = folder.read_json(MEMBER)
        name = note.get("fleet") if isinstance(note, dict) else None
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise DamagedFile(f"{folder.path / MEMBER} should name a fleet beside the run, and names {name!r}")
        home = folder.path.parent / name
        return RunFolder(home) if home.is_dir() and not home.is_symlink() else None
    return (homes_in(folder.path.parent) if homes is None else homes).get(folder.path.name)


def members_of(home: RunFolder) -> list[Path]:
    """The folders of a fleet's members, all beside its home."""
    names = home.read_json(LIST)
    if not isinstance(names, list) or not all(_is_neighbour(name) for name in names):
        bad = names if not isinstance(names, list) else next(name for name in names if not _is_neighbour(name))
        raise DamagedFile(f"{home.path / LIST} should list folders beside it, and lists {str(bad)[:80]!r}")
    return [home.path.parent / name for name in names]


def homes_in(parent: Path) -> dict[str, RunFolder]:
    """The fleets of a folder of runs, by the names of their members; a fleet that cannot be read is left out."""
    found: dict[str, RunFolder] = {}
    for home in fleets_in(parent):
        try:
            found |= dict.fromkeys((path.name for path in members_of(home)), home)
        except (OSError, ValueError, RecursionError):
            continue
    return found


def fleets_in(parent: Path) -> list[RunFolder]:
    """The home of every fleet of a folder of runs."""
    try:
        with os.scandir(parent) as entries:
            names = [one.name for one in entries if NAME.fullmatch(one.name) and one.is_dir(follow_symlinks=False)]
    except OSError:
        return []
    return [RunFolder(parent / name) for name in sorted(names)]


def _is_neighbour(name: object) -> bool:
    return isinstance(name, str) and name.isprintable() and name[:1] not in ("", ".") and not set(name) & set("/\\")
