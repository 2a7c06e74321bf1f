"""iVAE (Khemakhem et al., 2020; Bonheme, 2023, ch. 5): the prior of the codes is a function of observed labels.

Two models that explain the data equally well then agree up to the order and the scale of their latents, where labels
change the prior enough; a VAE with a fixed prior makes no such promise.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import nn

from unweave.config import number
from unweave.models.autoencoder import Architecture
from unweave.models.conditional import ConditionalAutoencoder
from unweave.models.labels import Encoding
from unweave.models.method import MODEL, Batch, Context, Draw, Phase, Terms
from unweave.models.objectives.objective import Objective, total_kl
from unweave.models.posteriors import Code
from unweave.shapes import Float, Tensor

OTHERS = "others"
"""The part of a batch that says whose labels an example is told, in the control."""


@dataclass(frozen=True)
class IVAE(Objective):
    """KL(q(z|x,u) ‖ N(μ†(u), Σ†(u))), in closed form or, as the original has it, from the sample alone.

    ``prior_mean`` is 0 (the original's, and what the theory is about) or learned. ``encoding`` is how labels enter the
    networks: a column for each value, or one number for each label. ``labels="random"`` is the control: every example
    is told the labels of another one.
    """

    name: ClassVar[str] = "ivae"
    prior_mean: Literal["zero", "learned"] = "zero"
    encoding: Encoding = "one_hot"
    elbo: Literal["closed_form", "monte_carlo"] = "closed_form"
    prior_widths: tuple[int, ...] = number(
        (50, 50, 50), least=1, most=100_000, entries=(0, 100), help="units of each layer between labels and prior"
    )

    labels: Literal["own", "random"] = "own"

    @property
    def batch(self) -> tuple[str, ...]:
        return ("images", "noise", "labels")

    def draws(self, architecture: Architecture) -> dict[str, Draw]:
        return {} if self.labels == "own" else {OTHERS: Draw("permutation", 1)}

    def networks(self, architecture: Architecture) -> dict[str, nn.Module]:
        return {MODEL: self.model(architecture)}

    def model(self, architecture: Architecture) -> ConditionalAutoencoder:
        if not architecture.labels:
            raise ValueError("ivae needs data with labels, and this has none")
        learns_mean = self.prior_mean == "learned"
        return ConditionalAutoencoder(architecture, self.encoding, self.prior_widths, learns_mean=learns_mean)

    def phases(self) -> tuple[Phase, ...]:
        return (Phase((MODEL,), self.loss),)

    def loss(self, batch: Batch, context: Context) -> tuple[Terms, Code]:
        labels = batch["labels"] if self.labels == "own" else batch["labels"][batch[OTHERS][:, 0]]
        code, reconstructions = context.networks[MODEL](batch["images"], batch["noise"], labels)
        return self.totals(code, reconstructions, context), code

    def terms(self, code: Code, context: Context) -> Terms:
        kl = total_kl(code)
        return {"regulariser": kl if self.elbo == "closed_form" else sampled_kl(code), "kl": kl}


def sampled_kl(code: Code) -> Float[Tensor, ""]:
    """log q(z|x,u) − log p(z|u) at the sample, averaged over the batch: the KL's estimate from one draw."""
    shift = 0.0 if code.prior_mean is None else code.prior_mean
    spread = torch.zeros_like(code.mean) if code.prior_log_variance is None else code.prior_log_variance
    # ½ Σ_j ((z − μ†)² / σ†² + log σ†² − (z − μ)² / σ² − log σ²)
    prior = (code.sampled - shift).square() * torch.exp(-spread) + spread
    posterior = (code.sampled - code.mean).square() * torch.exp(-code.log_variance) + code.log_variance
    return 0.5 * (prior - posterior).sum(-1).mean()
