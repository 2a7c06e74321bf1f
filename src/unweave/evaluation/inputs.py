"""The arrays of one draw, handed to a metric as it asks for them."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch

from unweave.evaluation.sampling import Draw, permutation
from unweave.evaluation.truth import Truth
from unweave.metrics import Information, Metric, information
from unweave.metrics.dimension.nearest import Nearest
from unweave.shapes import Float, Tensor


@dataclass(frozen=True)
class Arrays:
    """Everything known of a representation, all rows of it; ``pool`` is a table to draw interventions from."""

    codes: Float[Tensor, "*model sample latent"]
    variance: Float[Tensor, "*model sample latent"] | None = None
    truth: Truth | None = None
    pool: tuple[Tensor, Truth] | None = None


class Inputs:
    """The arrays of one draw, each made when the first metric asks for it."""

    def __init__(
        self, table: Arrays, draw: Draw, settings: Mapping[str, Mapping[str, Any]], permuted: bool = False
    ) -> None:
        self.table, self.draw, self.settings, self.permuted = table, draw, settings, permuted
        self.counts: dict[int, Information] = {}
        """By number of bins, shared by every metric that starts from counts."""

    @cached_property
    def codes(self) -> Float[Tensor, "*model sample latent"]:
        return self._take(self.table.codes, self.draw.rows)

    @cached_property
    def factors(self) -> Tensor:
        assert self.table.truth is not None
        return self._take(self.table.truth.numbers, self.draw.rows)

    @cached_property
    def variance(self) -> Float[Tensor, "*model sample latent"]:
        assert self.table.variance is not None
        return self._take(self.table.variance, self.draw.rows)

    @cached_property
    def sampled(self) -> Float[Tensor, "*model sample latent"]:
        noise = torch.from_numpy(np.random.default_rng(self.draw.seed).standard_normal(tuple(self.codes.shape)))
        return self.codes + self.variance.sqrt() * noise.to(self.codes)

    @cached_property
    def nearest(self) -> Nearest:
        """The codes, with the distances between neighbours that every metric of dimension starts from."""
        return Nearest(self.codes)

    @cached_property
    def kl(self) -> Float[Tensor, "*model latent"]:
        variance = self.variance.clamp(min=1e-300 if self.variance.dtype == torch.float64 else 1e-38)
        # KL_j = ½ E[μ² + σ² − log σ² − 1]
        return 0.5 * (self.codes.square() + variance - variance.log() - 1.0).mean(-2)

    def call(self, row: Metric) -> Any:
        """One metric on these arrays; the models of a fleet one by one where it does not take them together."""
        needs = row.needs.split()
        self._check(row, needs)
        if "models" in needs:
            kl = None if self.table.variance is None else self.kl
            return row.function(self.codes, kl, **self._settings(row))
        if self.table.codes.ndim == 3 and not row.batched:
            return tuple(self._of(model, row) for model in range(len(self.table.codes)))
        return self._of(None, row)

    def _of(self, model: int | None, row: Metric) -> Any:
        options, needs = self._settings(row), row.needs.split()
        if row.counted:
            return row.function(self._informed(options.pop("n_bins", 20)), **options)
        if row.nearest and model is None:
            return row.function(self.nearest, **options)
        arguments = [self._argument(word, model) for word in needs if word not in ("seed", "split", "pairs")]
        if "pairs" in needs and (self.draw.test is not None or self.table.pool is not None):
            arguments = self._pool(model)
        elif "split" in needs and self.draw.test is not None:
            arguments += [self._one(self._take(self.table.codes, self.draw.test), model), self._test_factors]
        return row.function(*arguments, **options)

    def _argument(self, word: str, model: int | None) -> Tensor:
        array = getattr(self, word)
        return array if word == "factors" else self._one(array, model)

    @cached_property
    def _test_factors(self) -> Tensor:
        assert self.table.truth is not None
        assert self.draw.test is not None
        return self._take(self.table.truth.numbers, self.draw.test)

    def _pool(self, model: int | None) -> list[Tensor]:
        if self.table.pool is not None:
            codes, truth = self.table.pool
            order = permutation(codes.shape[-2], self.draw.seed) if self.permuted else np.arange(codes.shape[-2])
            return [self._one(self._take(codes, order), model), truth.numbers]
        assert self.table.truth is not None
        return [
            self._one(self._take(self.table.codes, self.draw.pool), model),
            self._take(self.table.truth.numbers, self.draw.pool),
        ]

    def _informed(self, n_bins: int) -> Information:
        if n_bins not in self.counts:
            self.counts[n_bins] = information(self.codes, self.factors, n_bins)
        return self.counts[n_bins]

    def _settings(self, row: Metric) -> dict[str, Any]:
        options = dict(self.settings.get(row.name, {}))
        # a table in file order may be sorted, so a metric that divides it shuffles it; an explicit split is kept
        drawn = self.draw.test is None if "split" in row.needs.split() else "seed" in row.needs.split()
        return ({"seed": self.draw.seed} if drawn else {}) | options

    def _check(self, row: Metric, needs: list[str]) -> None:
        if "factors" in needs and self.table.truth is None:
            raise ValueError("needs factors, and none are given")
        if self.table.truth is not None and self.table.truth.words and row.ordered:
            raise ValueError("needs factors that are numbers; words have no order")
        if "models" in needs and (self.table.codes.ndim != 3 or len(self.table.codes) < 2):
            raise ValueError("needs the codes of several models, model × sample × latent")
        if self.table.variance is None and {"variance", "sampled"} & {*needs}:
            raise ValueError("needs the codes' posterior variances, and none are given")

    def _take(self, table: Tensor, rows: np.ndarray) -> Tensor:
        if len(rows) == table.shape[-2] and rows[0] == 0 and (np.diff(rows) == 1).all():
            return table
        return table[..., torch.from_numpy(rows).to(table.device), :]

    def _one(self, table: Tensor, model: int | None) -> Tensor:
        return table if model is None or table.ndim < 3 else table[model]
