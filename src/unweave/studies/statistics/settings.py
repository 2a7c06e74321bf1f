"""The settings of a study: which runs differ in nothing but their seed, and their scores as one array."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from unweave.shapes import Float

if TYPE_CHECKING:
    import polars as pl


def with_settings(table: "pl.DataFrame") -> "pl.DataFrame":
    """The table with ``world``, ``objective``, ``strength`` and ``setting`` (objective and strength in words).

    The strength of an objective is the first of its numbers that differs among its runs; without one it is null.
    """
    import polars as pl

    parts = [
        _of_objective(part, str(name)) for (name,), part in table.group_by(["objective.name"], maintain_order=True)
    ]
    place = pl.col("_place")
    numbered = table.with_row_index("_place")
    found = pl.concat(parts) if parts else pl.DataFrame({"id": [], "objective": [], "strength": [], "setting": []})
    joined = numbered.join(found, on="id", how="left", maintain_order="left").sort(place).drop("_place")
    names = [name for name in ("world.called", "world.name") if name in joined.columns]
    return joined.with_columns(pl.coalesce(names).alias("world"))


@dataclass(frozen=True)
class Cube:
    """Scores as [world setting seed metric], NaN where a run is missing, and the names along each axis."""

    scores: Float[np.ndarray, "world setting seed metric"]
    worlds: tuple[str, ...]
    settings: tuple[str, ...]
    seeds: tuple[int, ...]
    metrics: tuple[str, ...]


def cube(table: "pl.DataFrame", metrics: Sequence[str]) -> Cube:
    """The columns ``metrics`` of a table that :func:`with_settings` made."""
    axes = [table[name].unique(maintain_order=True).to_list() for name in ("world", "setting")]
    seeds = sorted(table["seed"].unique().to_list())
    places = [_places(table, name, known) for name, known in zip(("world", "setting", "seed"), (*axes, seeds))]
    scores = np.full((len(axes[0]), len(axes[1]), len(seeds), len(metrics)), np.nan)
    for number, metric in enumerate(metrics):
        scores[places[0], places[1], places[2], number] = column(table, metric)
    return Cube(scores, tuple(axes[0]), tuple(axes[1]), tuple(seeds), tuple(metrics))


def grid(table: "pl.DataFrame", metrics: Sequence[str]) -> Float[np.ndarray, "objective place seed metric"]:
    """The same of one world, its settings as objectives and the places of their strengths; NaN where a run is missing.

    The table has ``objective``, ``place`` and ``seed``.
    """
    names = ("objective", "place", "seed")
    axes = [sorted(table[name].unique().to_list()) for name in names]
    places = tuple(_places(table, name, known) for name, known in zip(names, axes))
    scores = np.full((*map(len, axes), len(metrics)), np.nan)
    for number, metric in enumerate(metrics):
        scores[places[0], places[1], places[2], number] = column(table, metric)
    return scores


def column(table: "pl.DataFrame", name: str) -> Float[np.ndarray, " run"]:
    """A column as numbers; NaN where a run has none."""
    import polars as pl

    if name not in table.columns:
        return np.full(table.height, np.nan)
    return table[name].cast(pl.Float64, strict=False).fill_null(float("nan")).to_numpy()


def numeric_columns(table: "pl.DataFrame", prefixes: Sequence[str] = ()) -> list[str]:
    """Columns of measured numbers that differ between runs, those that begin with one of ``prefixes`` where given."""
    import polars as pl

    kinds = [name for name, kind in table.schema.items() if kind.is_numeric() or kind == pl.Boolean]
    chosen = [name for name in kinds if not prefixes or name.startswith(tuple(prefixes))]
    return [name for name in chosen if table[name].drop_nulls().n_unique() > 1]


def _of_objective(part: "pl.DataFrame", name: str) -> "pl.DataFrame":
    import polars as pl

    numbers = [c for c in part.columns if c.startswith("objective.") and part.schema[c].is_numeric()]
    varying = [c for c in numbers if part[c].n_unique() > 1]
    strength = part[varying[0]].cast(pl.Float64) if varying else pl.Series([None] * part.height, dtype=pl.Float64)
    words = (
        [_words(name, varying, row) for row in part.select(varying).iter_rows()] if varying else [name] * part.height
    )
    return pl.DataFrame(
        {"id": part["id"], "objective": [name] * part.height, "strength": strength, "setting": words},
        schema_overrides={"id": pl.String, "objective": pl.String, "setting": pl.String},
    )


def _words(name: str, varying: Sequence[str], row: Sequence[Any]) -> str:
    given = ", ".join(f"{field.removeprefix('objective.')} {value:g}" for field, value in zip(varying, row))
    return f"{name} {given}"


def _places(table: "pl.DataFrame", name: str, known: Sequence[Any]) -> np.ndarray:
    place = {value: number for number, value in enumerate(known)}
    return np.array([place[value] for value in table[name].to_list()], dtype=np.int64)
