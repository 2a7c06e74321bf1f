"""What an objective is: a variational autoencoder, and what training adds to its reconstruction loss."""

from abc import abstractmethod
from dataclasses import replace
from typing import ClassVar

import torch
from torch import nn

from unweave.models.autoencoder import Architecture, Autoencoder
from unweave.models.method import MODEL, Batch, Context, Method, Phase, Terms
from unweave.models.posteriors import Code, Deterministic, Diagonal, Posterior
from unweave.shapes import Float, Int, Tensor


class Objective(Method):
    """A method with one VAE. One that only adds a regulariser has nothing to write but its :meth:`terms`."""

    sees_totals: ClassVar[bool] = False
    """Whether the :meth:`terms` written here ask a code for its :func:`total_kl` alone, which fleets sum at once."""

    weighs_totals: ClassVar[bool] = False
    """Whether each of these terms is that times a number which never changes: then fleets know the loss's slopes."""

    @property
    def training_posterior(self) -> Posterior:
        """What the heads stand for while training: for pairs, something that depends on both examples."""
        return self.posterior

    @property
    def reconstruction_weight(self) -> float:
        """What reconstructions count in the loss: one, but for one faithful imitation."""
        return 1.0

    @abstractmethod
    def terms(self, code: Code, context: Context) -> Terms:
        """Named parts for the history. ``regulariser`` is what is added to the reconstruction loss."""

    def networks(self, architecture: Architecture) -> dict[str, nn.Module]:
        return {MODEL: Autoencoder(replace(architecture, posterior=self.training_posterior), None)}

    def phases(self) -> tuple[Phase, ...]:
        return (Phase((MODEL,), self.loss, forward=("images", "noise")),)

    def loss(self, batch: Batch, context: Context) -> tuple[Terms, Code]:
        """Every named term of the model's loss for one batch, ``loss`` itself among them."""
        model, passed = context.networks[MODEL], batch["images"] is None
        code, reconstructions = model(batch["images"], None if passed else self.posterior_noise(batch))
        return self.totals(code, reconstructions, context), code

    def totals(self, code: Code, reconstructions: Float[Tensor, " batch"], context: Context) -> Terms:
        """All terms, for a code and the losses of the reconstructions from it."""
        terms = self.terms(code, context)
        reconstruction = reconstructions.mean() if reconstructions.dim() else reconstructions
        # loss = reconstruction + min(1, t / warmup) · regulariser
        weight, regulariser = self.reconstruction_weight, terms["regulariser"]
        if context.warmup:
            regulariser = warmed(context.step, context.warmup) * regulariser
        loss = (reconstruction if weight == 1.0 else weight * reconstruction) + regulariser
        return {"loss": loss, "reconstruction": reconstruction} | terms


def total_kl(code: Code) -> Float[Tensor, ""]:
    """KL(q(z|x) ‖ p(z)), summed over latents, averaged over the batch; a single number is that already."""
    return code.kl.sum(-1).mean() if code.kl.dim() else code.kl


def known_by_totals(method: Method) -> bool:
    """Whether a method's loss is one of two numbers: of the mean reconstruction loss and the total KL."""
    if not isinstance(method, Objective) or not isinstance(method.training_posterior, Diagonal | Deterministic):
        return False
    # what changes the loss has promised nothing
    same = all(getattr(type(method), name) is getattr(Objective, name) for name in ("loss", "totals", "phases"))
    return same and _promised(method, "sees_totals")


def known_by_weights(method: Method) -> bool:
    """Whether, moreover, every term is these two numbers times others that never change, but for the warm-up."""
    return known_by_totals(method) and _promised(method, "weighs_totals")


def _promised(method: Method, name: str) -> bool:
    """Whether the class whose terms these are says so: whoever writes terms of its own promises for itself."""
    writer = next(kind for kind in type(method).__mro__ if "terms" in vars(kind))
    return bool(vars(writer).get(name, False))


def warmed(step: int | Int[Tensor, ""], warmup: int) -> float | Tensor:
    """min(1, t / warmup)"""
    return torch.clamp(step / warmup, max=1.0) if isinstance(step, Tensor) else min(1.0, step / warmup)
