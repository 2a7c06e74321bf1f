"""Accuracy of a linear model on each combination of variable types (Bonheme, 2023, §6.4.1 and Figure 6.4)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from unweave.evaluation.accuracy_by_type import accuracy_by_type
from unweave.evaluation.types import types_of
from unweave.metrics.estimators.bins import discretise
from unweave.studies.measures.encoded import encoded
from unweave.studies.measures.measure import Measure
from unweave.training.run import Run


@dataclass(frozen=True)
class AccuracyByType(Measure):
    """``accuracy_by_type.mean.active+mixed``: mean test accuracy over factors; combinations that do not occur lack.

    ``all`` is that of all latents, ``chance`` that of uniform guessing. Published with 10,000 examples to learn from
    and 5,000 to test. A continuous factor is cut into ``n_bins`` classes of equal width.
    """

    name: ClassVar[str] = "accuracy_by_type"
    n_train: int = 10_000
    n_test: int = 5_000
    n_bins: int = 10

    def __call__(self, run: Run) -> Mapping[str, Any]:
        code = encoded(run, self.n_train + self.n_test)
        if code.factors is None:
            raise ValueError(f"{run.experiment.world.name} has no factors to predict")
        factors = discretise(code.factors, self.n_bins) if code.factors.is_floating_point() else code.factors
        types = types_of(code)
        n_train = len(code.mean) * self.n_train // (self.n_train + self.n_test)
        rows = accuracy_by_type(code.mean, code.sampled, factors, types, n_train=n_train)
        found: dict[str, Any] = {"types": list(types), "chance": rows[0].chance, "mean": {}, "sampled": {}}
        for row in rows:
            found[row.representation]["+".join(row.types)] = row.accuracy
            if row.n_latents == len(types):
                found[row.representation]["all"] = row.accuracy
        return found
