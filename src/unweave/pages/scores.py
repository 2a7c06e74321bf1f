"""The figures that go with scores: all numbers with their intervals, matrices, and bars for every factor."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from unweave.plots.matrices import bars, heat_map

if TYPE_CHECKING:
    import matplotlib.figure


@dataclass(frozen=True)
class ScoreArrays:
    """What can be drawn; whatever is missing is left out.

    ``values`` and ``intervals`` (low, high) by name of the score, all between 0 and 1; matrices [latent, factor] or
    [latent, latent]; ``per_factor`` values [factor] by name of the metric.
    """

    values: Mapping[str, float] = field(default_factory=dict)
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    information: ArrayLike | None = None
    importance: ArrayLike | None = None
    correlation: ArrayLike | None = None
    code_correlation: ArrayLike | None = None
    per_factor: Mapping[str, ArrayLike] = field(default_factory=dict)
    latent_names: Sequence[str] = ()
    factor_names: Sequence[str] = ()


def score_figures(arrays: ScoreArrays) -> dict[str, "matplotlib.figure.Figure"]:
    """Every figure that these arrays allow, by name."""
    drawn: dict[str, matplotlib.figure.Figure] = {}
    if arrays.values:
        ends = [arrays.intervals.get(name, (value, value)) for name, value in arrays.values.items()]
        names = [name.replace("_", " ") for name in arrays.values]
        drawn["scores"] = bars(list(arrays.values.values()), names, ends, "All scores, with intervals at 95 %")
    for name, (matrix, title) in _against_factors(arrays).items():
        if matrix is not None:
            diverging = name == "correlation"
            drawn[name] = _map(matrix, arrays.latent_names, arrays.factor_names, title, "factor", diverging)
    if arrays.code_correlation is not None:
        title = "Correlation of latents"
        latents = arrays.latent_names
        drawn["code_correlation"] = _map(arrays.code_correlation, latents, latents, title, "latent", True)
    for name, values in arrays.per_factor.items():
        title = f"{name.replace('_', ' ')}, factor by factor"
        drawn[f"per_factor_{name}"] = bars(values, _names(arrays.factor_names, len(np.asarray(values))), title=title)
    return drawn


def _against_factors(arrays: ScoreArrays) -> dict[str, tuple[ArrayLike | None, str]]:
    return {
        "mutual_information": (arrays.information, "Information I(z; v) / H(v)"),
        "importance": (arrays.importance, "Importance to trees"),
        "correlation": (arrays.correlation, "Correlation"),
    }


def _map(
    matrix: ArrayLike, rows: Sequence[str], columns: Sequence[str], title: str, across: str, diverging: bool
) -> "matplotlib.figure.Figure":
    array = np.asarray(matrix)
    limits = (-1.0, 1.0) if diverging else (0.0, max(1.0, float(array.max())))
    return heat_map(
        array,
        _names(rows, array.shape[0]),
        _names(columns, array.shape[1]),
        title,
        limits=limits,
        diverging=diverging,
        row_label="latent",
        column_label=across,
    )


def _names(names: Sequence[str], size: int) -> Sequence[str]:
    return names if len(names) == size else [str(place) for place in range(size)]
