"""Parquet as bytes to a table: whatever the bytes hold, an answer or one error."""

import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl


def read_parquet(content: bytes, name: str) -> "pl.DataFrame":
    """The table in some bytes; ValueError with ``name`` where there is none, a panic of polars included."""
    import polars as pl

    try:
        return pl.read_parquet(io.BytesIO(content))
    # a panic is no Exception; nothing else that is none, such as Ctrl-C, is caught
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError) as error:
        reason = (str(error).splitlines() or [""])[0][:200]
        raise ValueError(f"{name} holds no table that can be read: {reason or type(error).__name__}") from error
