"""What measuring gives: every number with its interval, the parts behind it, and what was left out and why."""

import dataclasses
import html
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from unweave.evaluation.finding import ENOUGH
from unweave.frames import pandas_frame
from unweave.metrics import METRICS
from unweave.shapes import Float, Tensor

if TYPE_CHECKING:
    import polars as pl

MOST_WRITTEN = 100_000
"""Entries up to which a part is written out in full; a larger one is named with its shape."""
MOST_OF_A_CURVE = 200
"""Points of a curve that are written, its two ends among them."""

LEVEL = 0.95

TRIVIAL = ("modularity", "infomec.modularity", "beta_vae_sklearn", "factor_vae_score", "dci.disentanglement")
"""Metrics that ask whether a latent follows one factor rather than several: 1 where there is one factor alone."""


class Number:
    """One headline number: a float, or for a fleet one entry per model.

    ``draws`` holds it again for every resampling seed (NaN where a half had too few rows for it), ``error`` is its
    standard error over them, ``low`` and ``high`` bound its interval at 95 %. ``chance`` is what the same codes get in
    random order, ``adjusted`` the share of the way from chance to the top: (value − chance) / (top − chance).
    ``higher_is_better`` is None for what describes a code without judging it.

    No dataclass: polars takes one for a struct, and what only has a ``__float__`` for a number.
    """

    value: float | Float[np.ndarray, " model"]
    range: tuple[float, float]
    higher_is_better: bool | None
    draws: Float[np.ndarray, " seed *model"]
    chance: float | Float[np.ndarray, " model"] | None

    def __init__(
        self,
        value: float | Float[np.ndarray, " model"],
        range: tuple[float, float],
        higher_is_better: bool | None,
        draws: Float[np.ndarray, " seed *model"],
        chance: float | Float[np.ndarray, " model"] | None = None,
    ) -> None:
        held = {"value": value, "range": range, "higher_is_better": higher_is_better, "draws": draws, "chance": chance}
        self.__dict__.update(held)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a score cannot be changed: {name} stays what was measured")

    def __repr__(self) -> str:
        return f"Number({written(self)})"

    def __float__(self) -> float:
        if np.ndim(self.value):
            raise TypeError(f"this number has a value for each of {np.size(self.value)} models: take .value")
        return float(self.value)

    @property
    def error(self) -> float | Float[np.ndarray, " model"] | None:
        return spread(self.draws)

    @property
    def interval(self) -> tuple[Any, Any] | None:
        """From low to high, inside the range; None where there were fewer than two draws to compare."""
        return around(self.value, self.draws, self.range)

    @property
    def adjusted(self) -> float | Float[np.ndarray, " model"] | None:
        top = self.range[1] if self.higher_is_better else self.range[0]
        if self.chance is None or self.higher_is_better is None or not math.isfinite(top):
            return None
        room = np.asarray(top - self.chance)
        found = np.where(np.abs(room) > 1e-12, (self.value - self.chance) / np.where(room == 0, 1.0, room), 0.0)
        return float(found) if found.ndim == 0 else found


class Numbers(Number, Sequence[float]):
    """One headline number of every model of a fleet: a sequence of floats, so that frames take it for a column."""

    def __len__(self) -> int:
        return np.size(self.value)

    @overload
    def __getitem__(self, model: int) -> float: ...

    @overload
    def __getitem__(self, model: slice) -> list[float]: ...

    def __getitem__(self, model: int | slice) -> float | list[float]:
        return np.asarray(self.value)[model].tolist()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.value, dtype)


def number(value: float | Float[np.ndarray, " model"], *rest: Any) -> Number:
    """A headline number, of one model or of a fleet."""
    return (Numbers if np.ndim(value) else Number)(value, *rest)


@dataclass(frozen=True)
class Row:
    """A score in a table; for a fleet, lists with an entry a model."""

    score: str
    value: Any
    low: Any
    high: Any
    chance: Any


@dataclass(frozen=True)
class Scores(Mapping[str, Number]):
    """Numbers by name (``mig``, ``dci.completeness``), the full result of every metric, and why others are missing.

    A mapping: ``dict(scores)``, ``scores["mig"]``, ``float(scores["mig"])``. ``scores.to_pandas()`` and
    ``scores.to_polars()`` are the table with intervals, one row a score; ``pd.DataFrame(scores)`` is the same.
    ``pl.DataFrame(scores)`` has a column a score and a row a model: to polars, a mapping is columns by name.
    """

    numbers: dict[str, Number]
    parts: dict[str, Any]
    """What each metric returned; a tuple of results where the models of a fleet were measured one by one."""
    left_out: dict[str, str]
    seconds: dict[str, float]
    n_samples: int
    n_models: int | None = None
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def __getitem__(self, name: str) -> Number:
        if name not in self.numbers:
            why = f": {self.left_out[name]}" if name in self.left_out else f"; there are {', '.join(self.numbers)}"
            raise KeyError(f"there is no score {name!r}{why}")
        return self.numbers[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.numbers)

    def __len__(self) -> int:
        return len(self.numbers)

    def to_rows(self) -> list[dict[str, Any]]:
        """One row a score: its name, value and interval."""
        return [vars(row) for row in self._rows()]

    def _rows(self) -> list[Row]:
        found = []
        for name, number in self.numbers.items():
            numbers = (number.value, *(number.interval or (None, None)), number.chance)
            found.append(Row(name, *(one.tolist() if isinstance(one, np.ndarray) else one for one in numbers)))
        return found

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """The rows, one an entry: from these pandas makes its table."""
        rows = np.empty(len(self), dtype=object)
        rows[:] = self._rows()
        return rows if dtype is None else rows.astype(dtype)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The same table as ``pl.DataFrame(scores)`` for what reads Arrow: polars before it took mappings."""
        import polars as pl

        columns = {name: number.value for name, number in self.numbers.items()}
        one = pl.DataFrame({name: np.atleast_1d(np.asarray(value)) for name, value in columns.items()})
        return one.__arrow_c_stream__(requested_schema)

    def to_polars(self) -> "pl.DataFrame":
        """The scores as a polars data frame, one row each."""
        import polars as pl

        return pl.DataFrame(self.to_rows(), infer_schema_length=None)

    def to_pandas(self) -> Any:
        """The scores as a pandas data frame, one row each, by name; pandas must be installed."""
        return pandas_frame(self.to_rows(), "score")

    def _repr_html_(self) -> str:
        """A table, for notebooks."""
        rows = "".join(
            f"<tr><td>{html.escape(name)}</td><td>{html.escape(written(self[name]))}</td></tr>" for name in self
        )
        return f"<table><tr><th>score</th><th>value</th></tr>{rows}</table>"

    def __repr__(self) -> str:
        width = max(map(len, self.numbers), default=0)
        return "\n".join(f"{name:<{width}}  {written(number)}" for name, number in self.numbers.items())

    def to_plain(self) -> dict[str, Any]:
        """As dictionaries, lists and numbers, ready for JSON; infinity is written as the text "inf"."""
        return {
            "n_samples": self.n_samples,
            "n_models": self.n_models,
            "settings": plain(dict(self.settings)),
            "scores": {name: _number(number) for name, number in self.numbers.items()},
            "left_out": self.left_out,
            "seconds": {name: round(value, 4) for name, value in self.seconds.items()},
            "parts": {name: plain(part) for name, part in self.parts.items()},
        }


class ScoresOfCodes(dict[str, Scores]):
    """The scores of ``mean`` and ``sampled`` codes, shown side by side."""

    def __missing__(self, name: str) -> Scores:
        raise KeyError(f"there are scores of {' and '.join(self)} codes, not of {name!r}" if self else repr(self))

    def __repr__(self) -> str:
        if not self:
            return "no scores yet: `unweave evaluate` keeps them with the run, and so does run.evaluate(keep=True)"
        rows = [("", *self), *self._rows()]
        widths = [max(map(len, column)) for column in zip(*rows)]
        return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)

    def _repr_html_(self) -> str:
        """A table, for notebooks."""
        if not self:
            return f"<p>{html.escape(repr(self))}</p>"
        titles = "".join(f"<th>{html.escape(one)}</th>" for one in ("score", *self))
        rows = ("".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in self._rows())
        return f"<table><tr>{titles}</tr>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"

    def _rows(self) -> list[tuple[str, ...]]:
        """A name, and what is written of each kind of code; nothing where it was not measured."""
        names = dict.fromkeys(name for scores in self.values() for name in scores)
        return [
            (name, *(written(scores[name]) if name in scores else "" for scores in self.values())) for name in names
        ]


def about_one_factor(scores: Scores, n_factors: int) -> str:
    """A sentence on the scores that tell nothing where there is one factor alone; empty where there are more."""
    trivial = [name for name in TRIVIAL if name in scores.numbers] if n_factors == 1 else []
    told = f"With one factor alone, what compares factors is 1 for any code that varies: {', '.join(trivial)}."
    return told if trivial else ""


def about_few(scores: Scores, how: str = "--adjust chance") -> str:
    """A sentence on scores of few rows, which chance raises; empty for enough, or where chance was measured."""
    if scores.n_samples >= ENOUGH or scores.settings["adjust"]:
        return ""
    return (
        f"Only {scores.n_samples} rows were measured, and chance alone raises several scores: give {ENOUGH:,} or more,"
        f" or see by how much with {how}."
    )


def scores_from_plain(found: Mapping[str, Any]) -> Scores:
    """Scores as :meth:`Scores.to_plain` wrote them; the parts behind them stay plain."""
    numbers = {name: _read_number(name, one) for name, one in found["scores"].items()}
    kept = (found["parts"], found["left_out"], found["seconds"], found["n_samples"], found["n_models"])
    return Scores(numbers, *kept, found["settings"])


def _read_number(name: str, found: Mapping[str, Any]) -> Number:
    # a metric that is not the library's has the range that its interval was cut off at, which is not written
    row = METRICS.get(name.partition(".")[0])
    value, chance = (None if one is None else _read(one) for one in (found["value"], found["chance"]))
    draws = np.array([np.nan if one is None else _read(one) for one in found["draws"]])
    bounds = (-math.inf, math.inf) if row is None else row.range
    return number(value, bounds, found["higher_is_better"], draws, chance)  # type: ignore[arg-type]


def _read(value: Any) -> Any:
    """A number, infinity among them as text, or one a model."""
    return np.array(value, dtype=np.float64) if isinstance(value, list) else float(value)


def spread(draws: Float[np.ndarray, " seed *model"]) -> float | Float[np.ndarray, " model"] | None:
    """Standard deviation over the seeds that gave a number; None with fewer than two, or with infinite ones."""
    kept = draws[~np.isnan(draws).reshape(len(draws), -1).any(1)] if len(draws) else draws
    if len(kept) < 2 or not np.isfinite(kept).all():
        return None
    found = kept.std(axis=0, ddof=1)
    return float(found) if found.ndim == 0 else found


def around(value: Any, draws: np.ndarray, bounds: tuple[float, float]) -> tuple[Any, Any] | None:
    """value ± t · error, Student's t for the number of draws, cut off at the bounds."""
    from scipy.stats import t

    error = spread(draws)
    if error is None or not np.isfinite(value).all():
        return None
    n_draws = int((~np.isnan(draws).reshape(len(draws), -1).any(1)).sum())
    reach = float(t.ppf(0.5 + LEVEL / 2, n_draws - 1)) * error
    ends = np.clip(value - reach, *bounds), np.clip(value + reach, *bounds)
    # the value may lie outside by rounding alone
    low, high = np.minimum(ends[0], value), np.maximum(ends[1], value)
    return (float(low), float(high)) if np.ndim(low) == 0 else (low, high)


def written(number: Number) -> str:
    """Value and interval as a few characters; for a fleet the mean and the extremes."""
    if np.ndim(number.value):
        values = np.asarray(number.value)
        return f"{values.mean():.4g} over {len(values)} models, {values.min():.4g} to {values.max():.4g}"
    ends = number.interval
    return f"{number.value:.4g}" + (f"  [{ends[0]:.4g}, {ends[1]:.4g}]" if ends else "")


def plain(value: Any) -> Any:
    """A result as plain values. Infinity becomes text, a NaN would be a mistake of ours and stops the program."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(_written_part(value, field)) for field in dataclasses.fields(value)}
    if isinstance(value, Tensor | np.ndarray):
        if math.prod(value.shape) > MOST_WRITTEN:
            return {"shape": list(value.shape), "left_out": f"more than {MOST_WRITTEN} entries"}
        return plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float | np.floating):
        assert not math.isnan(value)
        return float(value) if math.isfinite(value) else "inf" if value > 0 else "-inf"
    return int(value) if isinstance(value, np.integer) else value


def _written_part(value: Any, field: "dataclasses.Field[Any]") -> Any:
    """A field of a result, or evenly spaced points of it where it is a long curve."""
    part = getattr(value, field.name)
    if not field.metadata.get("curve") or len(part) <= MOST_OF_A_CURVE:
        return part
    return part[np.linspace(0, len(part) - 1, MOST_OF_A_CURVE).round().astype(int)]


def _number(number: Number) -> dict[str, Any]:
    ends = number.interval
    draws = [None if np.isnan(draw).any() else plain(draw) for draw in number.draws]
    return {
        "value": plain(number.value),
        "low": plain(ends[0]) if ends else None,
        "high": plain(ends[1]) if ends else None,
        "error": plain(number.error),
        "chance": plain(number.chance),
        "adjusted": plain(number.adjusted),
        "higher_is_better": number.higher_is_better,
        "draws": draws,
    }
