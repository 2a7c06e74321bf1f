"""Measure a representation: every metric that applies, with intervals, from one table of codes and factors."""

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from unweave.config import unknown
from unweave.evaluation.inputs import Arrays, Inputs
from unweave.evaluation.rows import Metrics, find_rows, is_named, row_among
from unweave.evaluation.sampling import Draw, half, permutation, stretch, whole
from unweave.evaluation.scores import Scores, about_one_factor, number
from unweave.evaluation.truth import Truth, as_truth
from unweave.metrics import Metric
from unweave.metrics.estimators.arrays import as_codes, check_count, check_lengths
from unweave.shapes import Tensor

Watch = Callable[[int, int, str], None]
"""Called with how far measuring is, of how much, and what comes next."""

ROWS_ASKED_FOR = {"n_train", "n_test", "n_asked"}
"""Settings that say how many rows a metric uses."""


def measure(
    codes: Any,
    factors: Any = None,
    *,
    variance: Any = None,
    metrics: Metrics = None,
    split: tuple[int, int] | None = None,
    seeds: int = 5,
    seed: int = 0,
    adjust: str | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    factor_bins: int | None = None,
    watch: Watch | None = None,
) -> Scores:
    """Every metric that applies to these arrays, or those that ``metrics`` names (which must then apply).

    ``metrics="all"`` adds the downstream learners, which take longer than all metrics together. A function of one's own
    may stand beside the names: ``metrics=["mig", spread]`` (:func:`own_metric`).

    ``codes`` are sample × latent, or model × sample × latent for a whole fleet; ``factors`` sample × factor, without
    which only the metrics that need no labels remain. ``variance`` are the codes' posterior variances. The path of a
    csv, parquet or npz file stands for the codes, factors and variances in it, by the names of its columns or arrays.
    ``split=(N, M)`` fits on the first N rows and tests on the next M, in the order given; otherwise rows are shuffled
    by ``seed`` and divided as each protocol says. ``seeds`` is the number of random halves behind every interval.
    ``adjust="chance"`` measures the codes in random order too. ``options`` are settings of metrics by name:
    ``{"dci": {"backend": "sklearn"}}``. ``factor_bins`` puts factors that hold fractions into that many bins. Where
    there is one factor alone, a warning says which scores then tell nothing.

    >>> import numpy as np
    >>> import unweave as uw
    >>> factors = np.random.default_rng(0).integers(0, 5, size=(500, 2))
    >>> scores = uw.measure(factors + 0.1, factors, metrics=["mig", "sap_score"], seeds=0)
    >>> scores["mig"].value > 0.9
    True
    """
    if isinstance(codes, str | Path):
        # arrays are measured without the worlds and files that this brings along
        from unweave.evaluation.tables import read_tables

        (table,) = read_tables([codes])
        codes, variance = table.codes, table.variance if variance is None else variance
        factors = table.factors if factors is None else factors
    measurer = Measurer(factors, metrics, split, seeds, seed, adjust, dict(options or {}), factor_bins)
    found = measurer.measure(codes, variance, watch=watch)
    if told := about_one_factor(found, 0 if measurer.truth is None else measurer.truth.numbers.shape[1]):
        warnings.warn(told, stacklevel=2)
    return found


@dataclass(frozen=True)
class Measurer:
    """The settings of :func:`measure` with the factors prepared once, for many representations of the same samples."""

    factors: Any = None
    metrics: Metrics = None
    split: tuple[int, int] | None = None
    seeds: int = 5
    seed: int = 0
    adjust: str | None = None
    options: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    factor_bins: int | None = None

    def __post_init__(self) -> None:
        check_count(self.seeds, "seeds", least=0)
        if self.adjust not in (None, "chance"):
            raise ValueError(f"adjust must be 'chance' or left out, not {self.adjust!r}")
        self._check_options()

    def measure(
        self, codes: Any, variance: Any = None, pool: tuple[Any, Any] | None = None, *, watch: Watch | None = None
    ) -> Scores:
        """The scores of one representation, or of a fleet of them.

        ``pool`` is another table (codes, factors) to draw the batches with one factor held fixed from: a whole world.
        """
        table, spread = self._checked(codes, variance)
        first = whole(table.shape[-2], self.split, self.seed)
        rounds = [first, *(half(first, self.seed + 1 + place) for place in range(self.seeds))]
        chances = max(1, self.seeds) if self.adjust and self.truth is not None else 0
        jobs = len(self.rows) * (len(rounds) + chances)
        one = _Measuring(self, table, spread, pool, watch or _silent, jobs)
        found = [one.round(draw, place) for place, draw in enumerate(rounds)]
        shuffled = [replace(first, seed=self.seed + place) for place in range(chances)]
        random = [one.round(draw, 0, permutation(table.shape[-2], draw.seed)) for draw in shuffled]
        return one.scores(found, random)

    @cached_property
    def truth(self) -> Truth | None:
        """The factors, checked and relabelled once."""
        return None if self.factors is None else as_truth(self.factors, self.factor_bins)

    @cached_property
    def rows(self) -> list[Metric]:
        return find_rows(self.metrics)

    @cached_property
    def settings(self) -> dict[str, dict[str, Any]]:
        """The given options under the full names of their metrics."""
        return {row_among(name, self.rows).name: dict(values) for name, values in self.options.items()}

    def stretch(self, row: Metric, n_rows: int) -> float:
        """By how much a number varies more over tables of so many rows than over the halves of one."""
        told = self.settings.get(row.name, {}).keys() & ROWS_ASKED_FOR
        return 1.0 if self.split or told else stretch(n_rows, row.most_rows)

    def _check_options(self) -> None:
        for given, values in self.options.items():
            row = row_among(given, self.rows)
            if row.name not in {one.name for one in self.rows}:
                raise ValueError(f"options are given for {row.name}, which is not among the metrics asked for")
            for key in values:
                if key not in row.options:
                    raise unknown(f"option of {row.name}", key, row.options)

    def _checked(self, codes: Any, variance: Any) -> tuple[Tensor, Tensor | None]:
        table = as_codes(codes, batched=True)
        if table.shape[-2] < 2:
            raise ValueError("codes has a single row, and scores compare rows: give several")
        spread = None if variance is None else as_codes(variance, "variance", batched=True).to(table.device)
        if self.truth is not None:
            check_lengths(table, self.truth.numbers)
        if spread is not None and spread.shape != table.shape:
            raise ValueError(f"variance must have the shape of codes, {tuple(table.shape)}, not {tuple(spread.shape)}")
        if spread is not None and bool((spread < 0).any()):
            raise ValueError("variance has negative entries; give variances, not their logarithms")
        return table, spread


Yardstick = Measurer
"""The name until 0.1.0."""


class _Measuring:
    """One representation being measured: what was found, what was left out, how long it took."""

    def __init__(
        self, how: Measurer, codes: Tensor, variance: Tensor | None, pool: Any, watch: Watch, n_jobs: int
    ) -> None:
        self.how, self.codes, self.variance, self.watch, self.n_jobs = how, codes, variance, watch, n_jobs
        self.pool = None if pool is None else (as_codes(pool[0], "pool", batched=True), as_truth(pool[1], None))
        self.left_out: dict[str, str] = {}
        self.seconds: dict[str, float] = {}
        self.done = 0

    def round(self, draw: Draw, place: int, order: np.ndarray | None = None) -> dict[str, Any]:
        """The results of every row on one draw; the first round decides which rows apply."""
        codes = self.codes if order is None else self.codes[..., torch.from_numpy(order).to(self.codes.device), :]
        table = Arrays(codes, self.variance, self.how.truth, self.pool)
        inputs = Inputs(table, draw, self.how.settings, permuted=order is not None)
        found = {}
        for row in self.how.rows:
            self.watch(self.done, self.n_jobs, row.name)
            self.done += 1
            if row.name not in self.left_out:
                result = self._try(row, inputs, first=place == 0 and order is None)
                if result is not None:
                    found[row.name] = result
        return found

    def scores(self, found: list[dict[str, Any]], random: list[dict[str, Any]]) -> Scores:
        """What was found in the first round, with its spread over the others and its level at chance."""
        numbers = {}
        for row in self.how.rows:
            for part in row.scores if row.name in found[0] else ():
                value = _value(found[0][row.name], part)
                if value is not None:
                    draws = np.array([_value_or_nan(one.get(row.name), part, value) for one in found[1:]])
                    draws = draws.reshape(len(found) - 1, *np.shape(value))
                    draws = _stretched(draws, value, self.how.stretch(row, self.codes.shape[-2]))
                    levels = [_value(one[row.name], part) for one in random if row.name in one]
                    chance = _mean(levels) if levels and row.kind != "unsupervised" else None
                    name = row.name if part == "score" else f"{row.name}.{part}"
                    numbers[name] = number(value, row.range, row.higher_is_better, draws, chance)
        self.watch(self.n_jobs, self.n_jobs, "done")
        n_models = len(self.codes) if self.codes.ndim == 3 else None
        settings: dict[str, Any] = {name: getattr(self.how, name) for name in ("split", "seeds", "seed", "adjust")}
        settings |= {"factor_bins": self.how.factor_bins, "options": self.how.settings}
        shape = self.codes.shape
        return Scores(numbers, found[0], self.left_out, self.seconds, shape[-2], n_models, settings)

    def _try(self, row: Metric, inputs: Inputs, first: bool) -> Any:
        """A result, or None with the reason kept. A metric that was asked for by name must apply."""
        begin = time.perf_counter()
        try:
            result = inputs.call(row)
        except ValueError as error:
            if first and is_named(self.how.metrics):
                raise ValueError(f"{row.name}: {error}") from error
            if first:
                self.left_out[row.name] = str(error).splitlines()[0]
            # a half may be too small for what the whole table allowed: no number from that seed
            return None
        if first:
            self.seconds[row.name] = time.perf_counter() - begin
        return result


def _value(result: Any, part: str) -> Any:
    """A headline number as a float, or as an array over the models of a fleet."""
    if isinstance(result, tuple):
        values = [_value(one, part) for one in result]
        return None if None in values else np.array(values)
    value = getattr(result, part)
    if isinstance(value, Tensor):
        return value.detach().cpu().double().numpy() if value.ndim else float(value)
    return None if value is None else float(value)


def _value_or_nan(result: Any, part: str, like: Any) -> Any:
    value = None if result is None else _value(result, part)
    return np.full(np.shape(like), np.nan) if value is None else value


def _stretched(draws: np.ndarray, value: Any, by: float) -> np.ndarray:
    """Draws farther from the value, so that they spread as tables of its size do."""
    if by == 1.0 or not np.isfinite(value).all():
        return draws
    return value + by * (draws - value)


def _mean(levels: list[Any]) -> Any:
    mean = np.mean(levels, axis=0)
    return float(mean) if mean.ndim == 0 else mean


def _silent(done: int, total: int, name: str) -> None:
    """Nobody is watching."""
