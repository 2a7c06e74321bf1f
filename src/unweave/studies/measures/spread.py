"""How the values of every latent of a run are spread over examples: what a histogram of them is drawn from."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from unweave.evaluation.types import types_of
from unweave.shapes import Float, Tensor
from unweave.studies.measures.encoded import encoded
from unweave.studies.measures.measure import Measure
from unweave.training.run import Run


@dataclass(frozen=True)
class Spread(Measure):
    """``spread.mean``, ``spread.sampled``: for every latent, the middles of ``n_values`` equal shares of its values.

    ``priors`` adds posterior variances and learned priors. So few numbers are kept where the model is not.
    """

    name: ClassVar[str] = "spread"
    n_samples: int = 10_000
    n_values: int = 200
    priors: bool = False

    def __call__(self, run: Run) -> Mapping[str, Any]:
        code = encoded(run, self.n_samples)
        tables = {"mean": code.mean, "sampled": code.sampled}
        if self.priors:
            learned = {"prior_mean": code.prior_mean, "prior_variance": code.prior_variance}
            tables |= {"variance": code.variance} | {name: one for name, one in learned.items() if one is not None}
        return {"types": list(types_of(code))} | {name: self._middles(table) for name, table in tables.items()}

    def _middles(self, table: Float[Tensor, "sample latent"]) -> list[list[float]]:
        # quantiles at (i + ½) / n
        shares = (np.arange(self.n_values) + 0.5) / self.n_values
        found = np.quantile(table.double().cpu().numpy(), shares, axis=0)
        return [[float(f"{value:.4g}") for value in latent] for latent in found.T]
