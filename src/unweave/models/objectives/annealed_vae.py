"""AnnealedVAE (Burgess et al., 2018): the KL is held at a capacity that grows during training."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from unweave.config import number
from unweave.models.method import Context, Terms
from unweave.models.objectives.objective import Objective, total_kl
from unweave.models.posteriors import Code
from unweave.shapes import Scalar


@dataclass(frozen=True)
class AnnealedVAE(Objective):
    """γ |KL − C(t)|, with C rising linearly from 0 to ``capacity`` over the first ``rise`` steps."""

    name: ClassVar[str] = "annealed_vae"
    sees_totals: ClassVar[bool] = True
    gamma: Scalar = number(1000.0, least=0, help="weight of the distance to the capacity")
    capacity: Scalar = number(25.0, least=0, help="nats at the end of the rise")
    rise: int = number(100_000, least=1, most=10**12, help="steps until the capacity is reached")

    def terms(self, code: Code, context: Context) -> Terms:
        kl = total_kl(code)
        share = torch.clamp(torch.as_tensor(context.step, device=kl.device) / self.rise, max=1.0)
        # C(t) = C_max · min(1, t / rise)
        capacity = (self.capacity * share).to(kl.dtype)
        return {"regulariser": self.gamma * (kl - capacity).abs(), "kl": kl, "capacity": capacity}
