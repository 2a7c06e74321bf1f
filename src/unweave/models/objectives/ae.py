"""Autoencoder: reconstruction alone, without noise."""

from dataclasses import dataclass
from typing import ClassVar

from unweave.models.method import Context, Terms
from unweave.models.objectives.objective import Objective, total_kl
from unweave.models.posteriors import Code, Deterministic, Posterior


@dataclass(frozen=True)
class AE(Objective):
    """No regulariser, and a deterministic code."""

    name: ClassVar[str] = "ae"
    sees_totals: ClassVar[bool] = True
    weighs_totals: ClassVar[bool] = True
    posterior: ClassVar[Posterior] = Deterministic()

    def terms(self, code: Code, context: Context) -> Terms:
        return {"regulariser": total_kl(code)}
