"""How many nats are told of every factor while the capacity rises (Burgess et al., 2018, Figure 3)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from unweave.evaluation.encode import factor_names
from unweave.studies.measures.measure import Measure
from unweave.training.run import Run


@dataclass(frozen=True)
class ToldFactors(Measure):
    """``told.nats.scale``: the KL of a factor's latent at every row of the history of a run by ``known_factors``."""

    name: ClassVar[str] = "told"

    def __call__(self, run: Run) -> Mapping[str, Any]:
        method = run.experiment.objective.name
        if method != "known_factors":
            raise ValueError(f"latents belong to factors in runs by known_factors, and this one is by {method}")
        nats = run.history.latent("kl").T.tolist()
        shown = {name: [round(one, 5) for one in line] for name, line in zip(factor_names(run.data), nats)}
        return {"steps": list(run.history.steps), "nats": shown}
