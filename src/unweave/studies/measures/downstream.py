"""What a run's mean codes are worth to a learner with few or many labels (Locatello et al., 2019, §5.6)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from unweave.metrics.downstream.learning import downstream
from unweave.studies.measures.encoded import encoded
from unweave.studies.measures.measure import Measure
from unweave.training.run import Run


@dataclass(frozen=True)
class DownstreamAccuracy(Measure):
    """Accuracy by learner and number of labels, ``downstream.trees.accuracy_100``, and the efficiency 100 / 10,000.

    ``few`` and ``many`` are the two numbers of labels whose accuracies the efficiency divides; both are among
    ``sizes``.
    """

    name: ClassVar[str] = "downstream"
    learners: tuple[str, ...] = ("logistic", "trees")
    sizes: tuple[int, ...] = (10, 100, 1_000, 10_000)
    n_test: int = 5_000
    few: int = 100
    many: int = 10_000

    def __call__(self, run: Run) -> Mapping[str, Any]:
        code = encoded(run, max(self.sizes) + self.n_test)
        if code.factors is None:
            raise ValueError(f"{run.experiment.world.name} has no factors to predict")
        return {learner: self._learned(learner, code.mean, code.factors.long()) for learner in self.learners}

    def _learned(self, learner: str, codes: Any, factors: Any) -> dict[str, Any]:
        n_test = min(self.n_test, len(codes) - max(self.sizes))
        found = downstream(codes, factors, predictor=learner, sizes=self.sizes, n_test=n_test)
        accuracy = dict(zip(found.sizes, found.mean.tolist()))
        efficiency = accuracy[self.few] / accuracy[self.many] if accuracy[self.many] > 0 else None
        return {f"accuracy_{size}": value for size, value in accuracy.items()} | {"efficiency": efficiency}
