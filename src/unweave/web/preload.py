"""Rows to begin with: from the index that studies keep, for every folder that has not changed since."""

from typing import Any

from unweave.studies.index import index_rows
from unweave.web.store import ReadOnlyStore


def preloaded_rows(store: ReadOnlyStore) -> dict[str, dict[str, Any]]:
    """Rows of the store's index by run, each with its ``signature``; none without an index. Nothing is written."""
    home = store.own_folder()
    return {} if home is None else {row["id"]: row for row in index_rows(home)}
