"""How far a study is: done, running, failed, waiting; its pace and the time that is left."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from unweave.studies.cost import share_of
from unweave.studies.record import Record, read_progress
from unweave.studies.repair import CheckedFolders
from unweave.studies.store import Store, with_damaged

if TYPE_CHECKING:
    import polars as pl

DAY = 86_400.0


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
    unchecked: int = 0
    """Finished runs whose weights were not read yet: the next look goes on with them."""
    share: float | None = None
    """How much of the GPUs was in use, over all runs trained on one."""

    def to_plain(self) -> dict[str, Any]:
        """Ready for JSON."""
        return asdict(self)


def status_of(store: Store, record: Record) -> Status:
    """Count the runs of a study."""
    import polars as pl

    table = store.table(record.experiments, measures=record.measures or None)
    table, unchecked = _without_damaged_files(store, table)
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
        unchecked=unchecked,
        share=share_of(table),
    )


def _without_damaged_files(store: Store, table: "pl.DataFrame") -> "tuple[pl.DataFrame, int]":
    """The table with runs as ``damaged`` whose files are not the ones that were written, and how many are unchecked."""
    import polars as pl

    ids = {
        state: table.filter(pl.col("state") == state)["id"].to_list() if table.height else []
        for state in ("done", "damaged")
    }
    if unchecked := store.unchecked(ids["done"]):
        return table, unchecked
    folders = map(store.folder, ids["done"] + ids["damaged"])
    problems = {
        run_id: ", ".join(f"{name} ({problem})" for name, problem in sorted(found.items()))
        for run_id, found in CheckedFolders(store.home).problems(folders).items()
    }
    return with_damaged(table, problems), 0


def _workers(store: Store, record: Record) -> tuple[str, ...]:
    own = set(record.experiments)
    found = {f"{who['host']}:{who['pid']}" for run_id, who in store.running().items() if run_id in own}
    return tuple(sorted(found))
