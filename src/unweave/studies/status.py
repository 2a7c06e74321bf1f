"""How far a study is: done, running, failed, waiting; its pace and the time that is left."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unweave.runs.folder import WEIGHTS
from unweave.studies.record import Record, read_progress
from unweave.studies.repair import CheckedFolders
from unweave.studies.store import Store

if TYPE_CHECKING:
    import polars as pl

DAY = 86_400.0
READ_AT_MOST = 1 << 30
"""Bytes of weights up to which a study's files are checked whenever its status is asked for."""


@dataclass(frozen=True)
class Status:
    """Counts over the runs that a study has asked for so far."""

    name: str
    title: str
    total: int
    done: int
    running: int
    failed: int
    damaged: int
    waiting: int
    failed_measures: int
    active: bool
    """Whether a process is running the study now."""
    models_per_day: float | None
    seconds_left: float | None
    failures: tuple[tuple[str, str], ...] = ()
    """Runs that failed and why."""
    workers: tuple[str, ...] = ()
    """Who works on runs of this study: host and process."""

    def to_plain(self) -> dict[str, Any]:
        """Ready for JSON."""
        return asdict(self)


def status_of(store: Store, record: Record) -> Status:
    """Count the runs of a study."""
    import polars as pl

    table = store.table(record.experiments, measures=record.measures or None)
    table = _without_damaged_weights(store, table)
    counts = dict(table["state"].value_counts().rows()) if table.height else {}
    total = len(record.experiments)
    n = {state: int(counts.get(state, 0)) for state in ("done", "running", "failed", "damaged")}
    waiting = total - sum(n.values())
    progress = read_progress(store.home, record.name)
    alive = bool(progress.get("alive")) and waiting + n["running"] > 0
    rate = progress["ended"] / progress["seconds"] if progress.get("seconds") and progress.get("ended") else None
    broken = [name for name in table.columns if name.endswith(".failure")]
    failures = table.filter(pl.col("state").is_in(["failed", "damaged"]))
    return Status(
        record.name,
        record.title,
        total,
        **n,
        waiting=waiting,
        failed_measures=sum(table[name].count() for name in broken),
        active=alive,
        models_per_day=None if rate is None else DAY * rate,
        seconds_left=None if rate is None or not alive else (waiting + n["running"]) / rate,
        failures=tuple(zip(failures["id"], failures["failure"])) if failures.height else (),
        workers=_workers(store, record),
    )


def _without_damaged_weights(store: Store, table: "pl.DataFrame") -> "pl.DataFrame":
    """The table with runs as ``damaged`` whose files are not the ones that were written, where looking is cheap."""
    import polars as pl

    ids = table.filter(pl.col("state") == "done")["id"].to_list() if table.height else []
    folders = [store.folder(run_id) for run_id in ids]
    if sum(_size(folder.path / WEIGHTS) for folder in folders) > READ_AT_MOST:
        return table
    problems = {
        run_id: ", ".join(f"{name} ({problem})" for name, problem in sorted(found.items()))
        for run_id, found in CheckedFolders(store.home).problems(folders).items()
    }
    is_damaged = pl.col("id").is_in(list(problems))
    failure = pl.col("failure") if "failure" in table.columns else pl.lit(None, pl.String)
    return (
        table.with_columns(
            pl.when(is_damaged).then(pl.lit("damaged")).otherwise(pl.col("state")).alias("state"),
            pl.when(is_damaged).then(pl.col("id").replace(problems)).otherwise(failure).alias("failure"),
        )
        if problems
        else table
    )


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _workers(store: Store, record: Record) -> tuple[str, ...]:
    own = set(record.experiments)
    found = {f"{who['host']}:{who['pid']}" for run_id, who in store.running().items() if run_id in own}
    return tuple(sorted(found))
