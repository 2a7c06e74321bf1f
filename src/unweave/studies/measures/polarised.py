"""Types of latents, KL, reconstruction and the trace difference of a run (Bonheme, 2023; Rolinek et al., 2019)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from unweave.evaluation.describe import describe
from unweave.evaluation.encode import encode
from unweave.evaluation.types import types_of
from unweave.metrics.polarised.traces import traces
from unweave.studies.measures.measure import Measure
from unweave.training.run import Run


@dataclass(frozen=True)
class Polarised(Measure):
    """How many latents are active, mixed and passive, and what that costs; σ² in units of a learned prior's."""

    name: ClassVar[str] = "polarised"
    n_samples: int = 10_000

    def __call__(self, run: Run) -> Mapping[str, Any]:
        code = encode(run, run.rows(self.n_samples))
        types, plain = types_of(code), code.standardised()
        return {
            "types": list(types),
            "n_active": types.count("active"),
            "n_mixed": types.count("mixed"),
            "n_passive": types.count("passive"),
            "kl": code.kl.mean(0).tolist(),
            "kl_sum": code.kl.mean(0).sum().item(),
            "mean_variance": plain.variance.mean(0).tolist(),
            "reconstruction": describe(run, n=min(self.n_samples, 2048)).reconstruction,
            "traces": traces(plain.mean, sampled=plain.sampled).score,
        }
