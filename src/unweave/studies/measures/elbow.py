"""One point of the elbow curves: reconstruction loss and downstream accuracy of a run (Bonheme, 2023, §8.4.1)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from unweave.evaluation.describe import describe
from unweave.metrics.downstream.learning import downstream
from unweave.studies.measures.encoded import encoded
from unweave.studies.measures.measure import Measure
from unweave.training.run import Run

LOSS, ACCURACY = "reconstruction loss", "downstream accuracy"


@dataclass(frozen=True)
class ElbowPoint(Measure):
    """Loss at the mean codes, and the accuracy of boosted trees over all factors where these are classes."""

    name: ClassVar[str] = "elbow"
    n_samples: int = 10_000
    accuracy: bool = True
    """Trees take minutes on one core with 10,000 examples of five factors."""

    def __call__(self, run: Run) -> Mapping[str, Any]:
        return elbow_point(run, self.n_samples, accuracy=self.accuracy)


def elbow_point(run: Run, n_samples: int, *, accuracy: bool = True) -> dict[str, float]:
    """What a model of this size reaches, by name of the curve."""
    run.require_decoder()
    loss = describe(run, n=min(n_samples, 2048)).reconstruction
    assert loss is not None
    point = {LOSS: loss}
    if not accuracy:
        return point
    code = encoded(run, n_samples)
    if code.factors is None or (code.factors.is_floating_point() and bool((code.factors % 1 != 0).any())):
        return point
    # boosted trees on mean codes, every factor a task of its own
    n_train = max(1, 2 * len(code.mean) // 3)
    predicted = downstream(code.mean, code.factors.long(), predictor="trees", sizes=(n_train,), seed=0)
    return point | {ACCURACY: predicted.score}
