"""The store: a folder of run folders. The folders are the truth; everything else about them can be rebuilt."""

import tempfile
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unweave.files import write_text
from unweave.runs.columns import shown_names
from unweave.runs.folder import RunFolder
from unweave.runs.names import read_plain
from unweave.studies.index import picked, refresh
from unweave.studies.leases import Holders
from unweave.training.run import Run

if TYPE_CHECKING:
    import polars as pl


VERSION = 1
"""Of the store's own files below ``.unweave``."""


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
        two columns, ``fondue@1a2b.n`` and ``fondue@9f00.n``.
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
        return picked(table, shown).with_columns(state)

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
