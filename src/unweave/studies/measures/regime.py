"""Share of the training that a run spends in the polarised regime (Zietlow, 2022, §3.3.2 and Table 3.2)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from unweave.metrics.polarised.regime import SPREAD, regime_share
from unweave.studies.measures.measure import Measure
from unweave.training.run import Run

MOST_POINTS = 200


@dataclass(frozen=True)
class RegimeCourse(Measure):
    """Δ_KL over training, looked at every so many steps, and since when it stays below the threshold.

    Taken from the history of the run, hence from training batches. ``since`` is the step of the first look from which
    Δ_KL stayed below; None when it was not below at the end.
    """

    name: ClassVar[str] = "regime"
    threshold: float = 0.03
    every: int = 500

    def __call__(self, run: Run) -> Mapping[str, Any]:
        rows = looks(run.history.steps, self.every)
        steps = [run.history.steps[row] for row in rows]
        names = ("kl", "variance_of_mean", "mean_variance")
        kl, spread, average = (run.history.latent(name)[torch.tensor(rows)] for name in names)
        found = regime_share(kl, spread, average, steps=steps, threshold=self.threshold)
        stride = -(-len(steps) // MOST_POINTS)
        return {
            "share": found.share,
            "since": found.since,
            "n_looks": len(steps),
            "n_active": int((spread[-1].sqrt() > SPREAD).sum()),
            "steps": steps[::stride],
            "delta": found.delta[::stride].tolist(),
        }


def looks(steps: list[int], every: int) -> list[int]:
    """The rows of a history at multiples of ``every`` steps."""
    rows = [row for row, step in enumerate(steps) if step % every == 0]
    if len(rows) < 2:
        raise ValueError(
            f"the history has {len(rows)} rows at multiples of {every} steps, and a course needs two; train with"
            " a history_every that divides it"
        )
    return rows
