"""Clear away what kills have left: dead leases, torn files, checkpoints of finished runs, orphaned fleets, old logs."""

import contextlib
import shutil
from dataclasses import dataclass
from pathlib import Path

from unweave.runs.fleets import fleets_in, members_of
from unweave.runs.folder import RunFolder
from unweave.runs.lock import holders, long_lock
from unweave.runs.state import left_checkpoints, state_of
from unweave.studies.leases import Holders
from unweave.studies.store import Store


@dataclass(frozen=True)
class Swept:
    """What was removed, or would be, and its size."""

    paths: tuple[Path, ...]
    n_bytes: int


def sweep(store: Store, *, dry_run: bool = False) -> Swept:
    """Remove what no run needs any more. Runs that someone works on are left alone, and so is every result."""
    holders_of_runs = Holders(store.home)
    running = holders_of_runs.running()
    dead = holders_of_runs.sweep(dry_run=True)
    torn = list(store.home.glob("**/.*.part")) if not running else []
    logs = sorted((store.home / "logs").glob("*")) if not running else []
    found = [*dead, *torn, *logs, *_orphans(store, running)]
    for run_id in store.ids():
        if run_id not in running:
            found += _left_over(store.folder(run_id))
    n_bytes = sum(_size(path) for path in found)
    for path in () if dry_run else found:
        _remove(path, store)
    return Swept(tuple(found), n_bytes)


def _left_over(folder: RunFolder) -> list[Path]:
    """Torn files and checkpoints of a finished run; nothing while another command writes into the folder."""
    try:
        with long_lock(folder.path):
            found = folder.torn_files()
    except OSError:
        return []
    with contextlib.suppress(ValueError):  # a damaged folder is left as it is
        if folder.has("model.safetensors"):
            found += [folder.path / name for name in left_checkpoints(folder)]
    return found


def _orphans(store: Store, running: dict[str, dict[str, object]]) -> list[Path]:
    """Fleets whose members have all ended, or whose list of members cannot be read."""
    found, locks = [], holders()
    for home in fleets_in(store.root):
        try:
            members = members_of(home)
        except (OSError, ValueError):
            members = []
        ended = all(state_of(RunFolder(path), locks=locks, homes={}).word in ("done", "failed") for path in members)
        if ended and not {path.name for path in members} & set(running):
            found.append(home.path)
    return found


def _remove(path: Path, store: Store) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    elif path.parent.name == "checkpoints":
        folder = RunFolder(path.parent.parent)
        folder.remove(path.relative_to(folder.path).as_posix())
    else:
        path.unlink(missing_ok=True)


def _size(path: Path) -> int:
    if path.is_dir() and not path.is_symlink():
        return sum(part.stat().st_size for part in path.rglob("*") if part.is_file())
    return path.lstat().st_size if path.exists() or path.is_symlink() else 0
