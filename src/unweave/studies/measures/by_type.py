"""Total correlation, mutual information and effective rank with and without passive latents (Bonheme, 2023, §6.4)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from unweave.evaluation.types import types_of
from unweave.metrics.polarised.by_type import Dependence, by_type
from unweave.studies.measures.encoded import encoded
from unweave.studies.measures.measure import Measure
from unweave.training.run import Run


@dataclass(frozen=True)
class ByType(Measure):
    """``by_type.n_passive``, ``by_type.mean.all.total_correlation``, ``by_type.sampled.active.averaged_mi`` …

    The variances of every latent's mean and sampled codes stand beside them. A total correlation that is infinite is
    given by its finite part; an empty subset shares nothing: 0.
    """

    name: ClassVar[str] = "by_type"
    n_samples: int = 10_000

    def __call__(self, run: Run) -> Mapping[str, Any]:
        code = encoded(run, self.n_samples)
        types = types_of(code)
        found: dict[str, Any] = {"types": list(types)}
        found |= {f"n_{kind}": types.count(kind) for kind in ("active", "mixed", "passive")}
        found["variance_of_mean"] = code.mean.var(0).tolist()
        found["variance_of_sampled"] = code.sampled.var(0).tolist()
        for one in by_type(code.mean, code.sampled, types):
            found.setdefault(one.representation, {})[one.subset] = _numbers(one)
        return found


def _numbers(one: Dependence) -> dict[str, float]:
    if one.total_correlation is None or one.pseudo is None:
        return {"total_correlation": 0.0, "averaged_mi": 0.0, "effective_rank": 0.0}
    finite = one.total_correlation if math.isfinite(one.total_correlation) else one.pseudo
    return {
        "total_correlation": finite,
        "averaged_mi": one.averaged_mi or 0.0,
        "effective_rank": one.effective_rank or 0.0,
    }
