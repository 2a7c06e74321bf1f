"""The store: a folder of run folders. The folders are the truth; everything else about them can be rebuilt."""

import contextlib
import tempfile
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unweave.files import write_text
from unweave.runs.columns import shown_names
from unweave.runs.folder import RunFolder
from unweave.runs.names import read_plain
from unweave.runs.weights import CheckedWeights
from unweave.sealed import sealed, unsealed
from unweave.studies.index import picked, refresh
from unweave.studies.leases import Holders
from unweave.training.run import Run

if TYPE_CHECKING:
    import polars as pl


VERSION = 1
"""Of the store's own files below ``.unweave``."""

CHECKED = "weights.json"
READ_AT_MOST = 1 << 30
"""Bytes of weights that one table reads to see whether they are whole; the next one goes on with the rest."""


class Store:
    """Runs by their id: the name of their folder directly below the store's."""

    def __init__(self, root: Path | str = "runs") -> None:
        self.root = Path(root)
        _check_version(self.home / "version")

    @property
    def home(self) -> Path:
        """Where the store keeps its own files."""
        return self.root / ".unweave"

    def prepare(self) -> "Store":
        """Make the folder ready for work in it."""
        if not (self.home / "version").exists():
            write_text(self.home / "version", f"{VERSION}\n")
        return self

    def ids(self) -> list[str]:
        """Every run that has begun, sorted."""
        if not self.root.is_dir():
            return []
        return sorted(path.name for path in self.root.iterdir() if (path / "config.json").exists())

    def folder(self, run_id: str) -> RunFolder:
        """The folder of a run by its id, which is never a path."""
        if not run_id or run_id.startswith(".") or "/" in run_id or "\\" in run_id or not run_id.isprintable():
            raise ValueError(f"a run is named by its id, such as micro-beta_vae-0123456789ab, not {run_id!r}")
        return RunFolder(self.root / run_id)

    def run(self, run_id: str) -> Run:
        """A run that can be asked."""
        return Run(self.folder(run_id).path)

    def table(
        self, ids: Iterable[str] | None = None, *, measures: Collection[str] | None = None, rebuild: bool = False
    ) -> "pl.DataFrame":
        """One row a run: ``id``, ``state``, its config, measures and scores, flattened with dots.

        With ``ids``, the rows of those that have begun, in the order given. With ``measures``, the names of files,
        those measures and no others: what ``unweave evaluate`` finds is left out too. Two settings of one measure are
        two columns, ``fondue@1a2b.n`` and ``fondue@9f00.n``. A run whose weights are not the ones that were written is
        ``damaged``, with the reason as ``failure``; weights are read once, up to 1 GiB a call (:meth:`unchecked`).
        """
        import polars as pl

        table = refresh(self.root, self.home, rebuild=rebuild).drop("signature")
        if "state" not in table.columns:
            return pl.DataFrame({"id": [], "state": []}, schema={"id": pl.String, "state": pl.String})
        if ids is not None:
            wanted = pl.DataFrame({"id": list(ids)}, schema={"id": pl.String}).unique(maintain_order=True)
            table = wanted.join(table, on="id", how="inner", maintain_order="left")
        whole = ids is None or not table.height
        kept = [name for name in table.columns if whole or table[name].null_count() < table.height]
        shown = shown_names(kept, measures)
        held = list(self.running())
        running = (pl.col("state") == "unfinished") & pl.col("id").is_in(held)
        state = pl.when(running).then(pl.lit("running")).otherwise("state").alias("state")
        done = table.filter(pl.col("state") == "done")["id"].to_list()
        return with_damaged(picked(table, shown).with_columns(state), self._damaged_weights(done))

    def unchecked(self, ids: Iterable[str]) -> int:
        """How many of these runs have weights that no table has read yet."""
        checked = CheckedWeights(checked_weights(self.home), 0)
        for run_id in ids:
            checked.problem(f"{self.root}/{run_id}")
        return checked.unread

    def _damaged_weights(self, ids: Iterable[str]) -> dict[str, str]:
        before = checked_weights(self.home)
        checked = CheckedWeights(before, READ_AT_MOST)
        found = {run_id: problem for run_id in ids if (problem := checked.problem(f"{self.root}/{run_id}"))}
        if checked.whole != before:
            with contextlib.suppress(OSError):  # a store that may only be read
                write_text(self.home / CHECKED, sealed({"weights": checked.whole}))
        return found

    def running(self) -> dict[str, dict[str, Any]]:
        """Runs that someone works on now, with the host and the process."""
        return Holders(self.home).running()

    def sql(self, query: str) -> "pl.DataFrame":
        """Ask the table ``runs`` in SQL: ``select "objective.beta", count(*) from runs group by all``."""
        import polars as pl

        try:
            import duckdb
        except ImportError as error:
            raise ImportError("SQL needs DuckDB; run: pip install 'unweave[sql]'") from error
        table = self.table()
        if not table.height:
            raise FileNotFoundError(f"{self.root} has no runs, so SQL has no table")
        # a copy of what was checked, and not the index, which another process may be writing
        with tempfile.TemporaryDirectory(prefix="unweave-sql-") as place, duckdb.connect() as connection:
            table.write_parquet(f"{place}/runs.parquet", compression="uncompressed")
            path = f"{place}/runs.parquet".replace("'", "''")
            connection.execute(f"create view runs as select * from read_parquet('{path}')")
            try:
                found = connection.execute(query)
            except duckdb.Error as error:
                raise ValueError(f"DuckDB cannot answer this: {error}") from error
            names = [column[0] for column in found.description or ()]
            return pl.DataFrame(found.fetchall(), schema=names, orient="row", infer_schema_length=None)


def checked_weights(home: Path) -> dict[str, str]:
    """The runs whose weights were found whole, with the sizes and times of then; none where that cannot be read."""
    try:
        found = unsealed(read_plain(home, CHECKED)).get("weights")
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def with_damaged(table: "pl.DataFrame", problems: Mapping[str, str]) -> "pl.DataFrame":
    """A table of runs in which some are ``damaged``, with the reason as ``failure``."""
    import polars as pl

    if not problems:
        return table
    damaged = pl.col("id").is_in(list(problems))
    failure = pl.col("failure") if "failure" in table.columns else pl.lit(None, pl.String)
    reason = pl.col("id").replace_strict(problems, default=None, return_dtype=pl.String)
    return table.with_columns(
        pl.when(damaged).then(pl.lit("damaged")).otherwise(pl.col("state")).alias("state"),
        pl.when(damaged).then(reason).otherwise(failure).alias("failure"),
    )


def _check_version(file: Path) -> None:
    try:
        text = read_plain(file.parent, file.name, most=100).decode().strip()
    except FileNotFoundError:
        return
    except ValueError:
        text = ""
    if not text.isascii() or not text.isdecimal():
        raise ValueError(f"{file} should hold the number of the store's version; delete it if the store is yours")
    found = int(text)
    if found > VERSION:
        raise ValueError(
            f"{file.parent.parent} was written by a newer unweave (store version {found}; this one reads up to"
            f" {VERSION}); upgrade with: pip install -U unweave"
        )
