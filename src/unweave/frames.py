"""Data frames of pandas, which need not be installed: it is imported when someone asks for one."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas


def pandas_frame(content: Mapping[str, Any] | Sequence[Mapping[str, Any]], index: str) -> "pandas.DataFrame":
    """Columns by name, or rows, as a data frame of pandas with one of the columns as its index."""
    try:
        import pandas
    except ImportError as error:
        raise ModuleNotFoundError(
            "pandas is not installed; run: pip install pandas, or take to_polars(), which needs nothing more"
        ) from error
    return pandas.DataFrame(content).set_index(index)
