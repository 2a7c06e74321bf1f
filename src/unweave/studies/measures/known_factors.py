"""What the latents of a run know of every factor at its snapshots (Burgess et al., 2018, Figure 3)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from unweave.evaluation.encode import factor_names
from unweave.evaluation.over_training import means_of
from unweave.metrics.supervised.mig import mig
from unweave.studies.measures.encoded import encoded
from unweave.studies.measures.measure import Measure
from unweave.training.run import Run


@dataclass(frozen=True)
class KnownFactors(Measure):
    """``known.shares.scale``: by snapshot, what the best latent tells of a factor, as a share of its entropy."""

    name: ClassVar[str] = "known"
    n_samples: int = 10_000

    def __call__(self, run: Run) -> Mapping[str, Any]:
        code = encoded(run, self.n_samples)
        if code.factors is None:
            raise ValueError(f"{run.experiment.world.name} has no factors that could be known")
        images, factors = run.data.examples(code.rows), code.factors.to(torch.int64)
        shares: dict[str, list[float]] = {name: [] for name in factor_names(run.data)}
        steps = sorted(run.snapshots)
        for step in steps:
            found = mig(means_of(run, run.snapshots[step], images, None), factors)
            best = found.mutual.amax(0) / found.denominator.clamp(min=1e-300)
            for name, share in zip(shares, best.tolist()):
                shares[name].append(round(share, 5))
        return {"steps": steps, "shares": shares}
