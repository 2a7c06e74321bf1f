"""Posteriors beside the priors that a run learned, latent by latent (Bonheme, 2023, §5.3)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from unweave.evaluation.types import types_of
from unweave.studies.measures.encoded import encoded
from unweave.studies.measures.measure import Measure
from unweave.training.run import Run


@dataclass(frozen=True)
class Priors(Measure):
    """``priors.n_passive`` and, for every latent, second moments of posterior and prior over examples.

    ``squared_mean`` is E[μ²], ``squared_shift`` E[(μ − μ†)²], ``prior_variance`` E[σ†²]; a prior that is not learned
    is the standard normal.
    """

    name: ClassVar[str] = "priors"
    n_samples: int = 10_000

    def __call__(self, run: Run) -> Mapping[str, Any]:
        code = encoded(run, self.n_samples)
        types = types_of(code)
        shift = torch.zeros_like(code.mean) if code.prior_mean is None else code.prior_mean
        variance = torch.ones_like(code.mean) if code.prior_variance is None else code.prior_variance
        tables = {
            "squared_mean": code.mean.square(),
            "squared_shift": (code.mean - shift).square(),
            "mean_variance": code.variance,
            "prior_variance": variance,
            "kl": code.kl,
        }
        found: dict[str, Any] = {"types": list(types)}
        found |= {f"n_{kind}": types.count(kind) for kind in ("active", "mixed", "passive")}
        found |= {name: table.double().mean(0).tolist() for name, table in tables.items()}
        return found | {"variance_of_mean": code.mean.double().var(0).tolist()}
