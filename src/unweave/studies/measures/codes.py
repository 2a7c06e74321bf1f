"""How dependent the latents of a run are: total correlation, averaged mutual information, effective rank.

Of the mean and of the sampled codes, between which the published study found its contrast (Locatello et al., 2019,
§5.2; Bonheme, 2023, §6.4.2).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from unweave.metrics.unsupervised.averaged_mi import averaged_mi
from unweave.metrics.unsupervised.effective_rank import effective_rank
from unweave.metrics.unsupervised.total_correlation import total_correlation
from unweave.shapes import Float, Tensor
from unweave.studies.measures.encoded import encoded
from unweave.studies.measures.measure import Measure
from unweave.training.run import Run


@dataclass(frozen=True)
class Codes(Measure):
    """``codes.mean.total_correlation`` and its neighbours; needs no factors."""

    name: ClassVar[str] = "codes"
    n_samples: int = 10_000

    def __call__(self, run: Run) -> Mapping[str, Any]:
        code = encoded(run, self.n_samples)
        return {"mean": _dependence(code.mean), "sampled": _dependence(code.sampled)}


def _dependence(codes: Float[Tensor, "sample latent"]) -> dict[str, Any]:
    correlation = total_correlation(codes)
    # linearly dependent latents have an infinite one: the finite part is kept, and said to be one
    value = correlation.pseudo if correlation.singular else correlation.score
    return {
        "total_correlation": float(value),
        "singular": bool(correlation.singular),
        "averaged_mi": float(averaged_mi(codes).score),
        "effective_rank": float(effective_rank(codes).score),
    }
