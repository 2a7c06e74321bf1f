"""AnnealedVAE (Burgess et al., 2018): the KL is held at a capacity that grows during training."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from unweave.models.method import Context, Terms
from unweave.models.objectives.objective import Objective, total_kl
from unweave.models.posteriors import Code
from unweave.shapes import Scalar


@dataclass(frozen=True)
class AnnealedVAE(Objective):
    """γ |KL − C(t)|, with C rising linearly from 0 to ``capacity`` over the first ``rise`` steps."""

    name: ClassVar[str] = "annealed_vae"
    gamma: Scalar = 1000.0
    capacity: Scalar = 25.0
    rise: int = 100_000

    def terms(self, code: Code, context: Context) -> Terms:
        kl = total_kl(code)
        share = torch.clamp(torch.as_tensor(context.step, device=kl.device) / self.rise, max=1.0)
        # C(t) = C_max · min(1, t / rise)
        capacity = (self.capacity * share).to(kl.dtype)
        return {"regulariser": self.gamma * (kl - capacity).abs(), "kl": kl, "capacity": capacity}
