"""A warm start: rows from the index that studies keep, for every folder that has not changed since."""

import io
from typing import Any

from unweave.studies.index import FILE
from unweave.web.shelf import Shelf


def warm_rows(shelf: Shelf) -> dict[str, dict[str, Any]]:
    """Rows of the store's index by run, each with its ``signature``; none without an index. Nothing is written."""
    content = shelf.own_file(FILE)
    if content is None:
        return {}
    import polars as pl

    try:
        table = pl.read_parquet(io.BytesIO(content))
    except (OSError, pl.exceptions.PolarsError):
        return {}
    if not {"id", "signature", "state"} <= set(table.columns):
        return {}
    return {row["id"]: row for row in table.iter_rows(named=True)}


def signature(marks: tuple[int, ...]) -> str:
    """The marks of a folder as the index writes them."""
    return "-".join(map(str, marks))
