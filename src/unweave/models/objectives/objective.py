"""What an objective is: a variational autoencoder, and what training adds to its reconstruction loss."""

from abc import abstractmethod

import torch
from torch import nn

from unweave.models.autoencoder import Architecture, Autoencoder
from unweave.models.method import Batch, Context, Method, Phase, Terms
from unweave.models.posteriors import Code
from unweave.shapes import Float, Tensor

MODEL = "model"
"""The name of the VAE among a method's networks."""


class Objective(Method):
    """A method with one VAE. One that only adds a regulariser has nothing to write but its :meth:`terms`."""

    @abstractmethod
    def terms(self, code: Code, context: Context) -> Terms:
        """Named parts for the history. ``regulariser`` is what is added to the reconstruction loss."""

    def networks(self, architecture: Architecture) -> dict[str, nn.Module]:
        return {MODEL: Autoencoder(architecture, None)}

    def phases(self) -> tuple[Phase, ...]:
        return (Phase((MODEL,), self.loss, forward=("images", "noise")),)

    def loss(self, batch: Batch, context: Context) -> tuple[Terms, Code]:
        """Every named term of the model's loss for one batch, ``loss`` itself among them."""
        code, reconstructions = self.passed(batch, context)
        terms = self.terms(code, context)
        reconstruction = reconstructions.mean()
        # loss = reconstruction + min(1, t / warmup) · regulariser
        loss = reconstruction + _share(context) * terms["regulariser"]
        return {"loss": loss, "reconstruction": reconstruction} | terms, code

    def passed(self, batch: Batch, context: Context) -> tuple[Code, Tensor]:
        """What the model says of the batch: its code, and every example's reconstruction loss."""
        passed: tuple[Code, Tensor] = context.networks[MODEL](batch["images"], batch["noise"])
        return passed


def total_kl(code: Code) -> Float[Tensor, ""]:
    """KL(q(z|x) ‖ p(z)), summed over latents, averaged over the batch."""
    return code.kl.sum(-1).mean()


def _share(context: Context) -> float | Tensor:
    step, warmup = context.step, context.warmup
    if warmup == 0:
        return 1.0
    return torch.clamp(step / warmup, max=1.0) if isinstance(step, Tensor) else min(1.0, step / warmup)
