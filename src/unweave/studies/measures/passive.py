"""Correlations of the latents of a run with each other, at its end and over its snapshots (Bonheme, 2023, §6.5)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from unweave.evaluation.over_training import means_of
from unweave.evaluation.types import types_of
from unweave.metrics.polarised.passive import passive_correlation
from unweave.shapes import Tensor
from unweave.studies.measures.encoded import encoded
from unweave.studies.measures.measure import Measure
from unweave.training.run import Run

DIGITS = 4


@dataclass(frozen=True)
class PassiveCorrelations(Measure):
    """Correlation matrices of the mean codes at every snapshot, and how often each latent's strongest exceeds 0.2."""

    name: ClassVar[str] = "passive"
    n_samples: int = 10_000
    threshold: float = 0.2

    def __call__(self, run: Run) -> Mapping[str, Any]:
        code = encoded(run, self.n_samples)
        types = types_of(code)
        last = passive_correlation(code.standardised().mean, types, threshold=self.threshold)
        steps = sorted(run.snapshots)
        found = {
            "types": list(types),
            "correlation": _rounded(last.correlation),
            "strongest": _rounded(last.strongest),
            "steps": steps,
        }
        if steps:
            rows = code.rows[: min(len(code.rows), 2048)]
            images, labels = run.data.examples(rows), run.labels(rows=rows)
            means = torch.stack([means_of(run, run.snapshots[step], images, labels) for step in steps])
            course = passive_correlation(means, types, threshold=self.threshold)
            found |= {"often": course.often.tolist(), "course": _rounded(course.correlation)}
        return found


def _rounded(values: Tensor) -> Any:
    return values.double().round(decimals=DIGITS).tolist()
