"""Disentanglement scores of a run, as ``unweave evaluate`` gives them (Locatello et al., 2019)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from unweave.config import unknown
from unweave.evaluation.evaluation import settings_for
from unweave.evaluation.measure import Measurer
from unweave.evaluation.rows import find_rows, row_among
from unweave.metrics.supervised.split import N_TEST, N_TRAIN
from unweave.studies.measures.encoded import encoded
from unweave.studies.measures.measure import Measure
from unweave.training.run import Run
from unweave.trusted import trust

SIX = ("beta_vae_sklearn", "factor_vae_score", "mig", "dci", "modularity", "sap_score")
"""The metrics of the published study."""


@dataclass(frozen=True)
class Scores(Measure):
    """Numbers by representation and metric: ``scores.mean.mig``, ``scores.sampled.dci.disentanglement``.

    Batches with one factor held fixed are drawn from the sample itself, which spares encoding the world. No intervals:
    a study has seeds.
    """

    name: ClassVar[str] = "scores"
    metrics: tuple[str, ...] = SIX
    n_samples: int = N_TRAIN + N_TEST
    representations: tuple[str, ...] = ("mean",)
    options: tuple[tuple[str, str, bool | int | float | str], ...] = ()
    """Settings of metrics, each (metric, setting, value): ``("dci", "backend", "sklearn")``."""

    def check(self) -> None:
        trust(*(name.partition(":")[0] for name in self.metrics if ":" in name))
        rows = find_rows(self.metrics)
        for metric, setting, _ in self.options:
            row = row_among(metric, rows)
            if setting not in row.options:
                raise unknown(f"option of {row.name}", setting, row.options)

    def __call__(self, run: Run) -> Mapping[str, Any]:
        code = encoded(run, self.n_samples)
        if code.factors is None:
            raise ValueError(f"{run.experiment.world.name} has no factors to score codes against")
        split = (N_TRAIN, N_TEST) if len(code.rows) == N_TRAIN + N_TEST else None
        exact = torch.float64 if code.factors.is_floating_point() else torch.int64
        options = settings_for(run, self.metrics, self._options())
        measurer = Measurer(code.factors.to(exact), self.metrics, split, seeds=0, options=options)
        return {name: self._numbers(measurer, getattr(code, name)) for name in self.representations}

    def _options(self) -> dict[str, Mapping[str, Any]]:
        names = dict.fromkeys(metric for metric, _, _ in self.options)
        return {name: {key: value for metric, key, value in self.options if metric == name} for name in names}

    def _numbers(self, measurer: Measurer, codes: torch.Tensor) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, number in measurer.measure(codes).numbers.items():
            metric, _, part = name.partition(".")
            value = float(number.value)
            shown = value if math.isfinite(value) else None
            if part:
                found.setdefault(metric, {})[part] = shown
            else:
                found[metric] = shown
        return found
