"""SlowVAE (Klindt et al., 2021): codes of neighbours in time differ sparsely, by a Laplace step."""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch

from unweave.config import number
from unweave.data.pairings import Pairing, RandomPairs, Transitions
from unweave.models.method import Context, Terms
from unweave.models.objectives.objective import Objective, total_kl
from unweave.models.posteriors import Code
from unweave.shapes import Float, Scalar, Tensor


@dataclass(frozen=True)
class SlowVAE(Objective):
    """β KL + γ (CE(0→1) + CE(1→0) − H): each frame's posterior under a Laplace around the other frame's mean.

    ``protocol="study"`` does what the authors' code does: reconstructions count twice, the entropy is subtracted once
    for both directions, and factors step along a line even where they are cyclic. ``protocol="paper"`` is the loss of
    the paper: one reconstruction, an entropy for each direction, rings are rings. ``pairs="random"`` is the control,
    partners that have nothing to do with each other.
    """

    name: ClassVar[str] = "slow_vae"
    beta: Scalar = number(1.0, least=0, help="weight of the KL")
    gamma: Scalar = number(10.0, least=0, help="weight of the step from one frame to the next")
    rate: Scalar = number(6.0, above=0, help="rate of the Laplace: steps of the code are about 1/rate long")
    protocol: Literal["paper", "study"] = "study"
    pairs: Literal["transitions", "random"] = "transitions"
    step_rate: float = number(1.0, above=0, help="of the world's steps: they are log(size)/rate values long")

    @property
    def reconstruction_weight(self) -> float:
        return 2.0 if self.protocol == "study" else 1.0

    @property
    def pairing(self) -> Pairing:
        return RandomPairs() if self.pairs == "random" else Transitions(self.step_rate, cyclic=self.protocol == "paper")

    def terms(self, code: Code, context: Context) -> Terms:
        kl = total_kl(code)
        steps = step_cross_entropy(code, self.rate).sum(-1).mean()
        # H = ½ Σ_j (log σ² + log 2πe), averaged over all images; both directions' add up to 2 H
        entropy = 0.5 * (code.log_variance + math.log(2.0 * math.pi * math.e)).sum(-1).mean()
        slowness = steps - (1.0 if self.protocol == "study" else 2.0) * entropy
        return {"regulariser": self.beta * kl + self.gamma * slowness, "kl": kl, "slowness": slowness}


def step_cross_entropy(code: Code, rate: Scalar) -> Float[Tensor, "pair latent"]:
    """CE(0→1) + CE(1→0) for pairs whose firsts are the first half of a batch."""
    half = len(code.mean) // 2
    step = (code.mean[:half] - code.mean[half:]).abs()
    deviation = torch.exp(0.5 * code.log_variance)
    return laplace_cross_entropy(step, deviation[:half], rate) + laplace_cross_entropy(step, deviation[half:], rate)


def laplace_cross_entropy(
    step: Float[Tensor, "*any"], deviation: Float[Tensor, "*any"], rate: Scalar
) -> Float[Tensor, "*any"]:
    """−E log Laplace(z; 0, 1/λ) for z ~ N(m, σ²), m = ``step`` ≥ 0."""
    # beyond 38 σ the folding is 0 in any float; not dividing there keeps gradients finite as σ → 0
    far = step >= 38.0 * deviation
    ratio = torch.where(far, 38.0, step / torch.where(far, 1.0, deviation))
    # E|z| = σ √(2/π) e^{−m²/2σ²} + m (2 Φ(m/σ) − 1)
    folded = deviation * math.sqrt(2.0 / math.pi) * torch.exp(-0.5 * ratio.square()) + step * torch.erf(
        ratio / math.sqrt(2.0)
    )
    rate = torch.as_tensor(rate, dtype=step.dtype, device=step.device)
    return rate * folded - torch.log(0.5 * rate)
