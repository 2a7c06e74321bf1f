"""One training step of one model: the only place where an objective is called."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import nn

from unweave.models import VAE, Objective
from unweave.models.initialise import initialise
from unweave.models.objectives import Context, Terms
from unweave.models.optimisers import Adam, Tensors
from unweave.models.posteriors import Code
from unweave.shapes import Float, Tensor
from unweave.training.batches import Batch
from unweave.training.experiment import Experiment

LATENT_STATISTICS = ("kl", "mean", "variance_of_mean", "mean_variance", "variance_of_variance")
"""What the history keeps of every latent: of a batch, its KL, the mean and variance of μ, and those of σ²."""

AnyModule = TypeVar("AnyModule", bound=nn.Module)
Forward = Callable[[Tensor, Tensor], tuple[Code, Tensor]]


@dataclass
class Learner:
    """A model in training: networks, and the states of their optimisers as plain tensors."""

    experiment: Experiment
    n_examples: int
    model: VAE
    optimiser_state: Tensors
    discriminator: nn.Module | None
    discriminator_state: Tensors


def new_learner(experiment: Experiment, shape: tuple[int, ...], n_examples: int) -> Learner:
    """A learner before its first step: a function of the experiment alone."""
    device = experiment.plan.device
    model = _placed(VAE(experiment.architecture(shape), experiment.init, experiment.seed), device)
    discriminator = experiment.objective.discriminator(experiment.latents)
    if discriminator is not None:
        initialise(discriminator, experiment.init, experiment.seed, first=1000)
        discriminator = _placed(discriminator, device)
    return Learner(
        experiment,
        n_examples,
        model,
        experiment.optimiser.start(dict(model.named_parameters())),
        discriminator,
        {} if discriminator is None else _discriminator_adam(experiment).start(dict(discriminator.named_parameters())),
    )


def losses(objective: Objective, forward: Forward, batch: Batch, context: Context, warmup: int) -> tuple[Terms, Code]:
    """Every named term of the loss for one model and one batch, ``loss`` itself among them."""
    code, reconstructions = forward(batch.images, batch.noise)
    terms = objective.terms(code, context)
    reconstruction = reconstructions.mean()
    # loss = reconstruction + min(1, t / warmup) · regulariser
    loss = reconstruction + _share(context.step, warmup) * terms["regulariser"]
    return {"loss": loss, "reconstruction": reconstruction} | terms, code


def update(learner: Learner, batch: Batch, step: int) -> tuple[Terms, Code]:
    """One update of the model, then of its discriminator. Nothing is touched when the loss is not finite."""
    experiment = learner.experiment
    context = Context(step, learner.n_examples, learner.discriminator)
    terms, code = losses(experiment.objective, learner.model, batch, context, experiment.warmup)
    if terms["loss"].device.type == "cpu" and not math.isfinite(terms["loss"].item()):
        return terms, code
    parameters = dict(learner.model.named_parameters())
    gradients = torch.autograd.grad(terms["loss"], list(parameters.values()))
    with torch.no_grad():
        experiment.optimiser.update(parameters, list(gradients), learner.optimiser_state)
    if learner.discriminator is not None:
        terms = terms | {"discriminator": _update_discriminator(learner, batch, code.sampled.detach())}
    return terms, code


def summary(terms: Terms, code: Code) -> Float[Tensor, " column"]:
    """One row of the history: every term, then every statistic of every latent."""
    mean, variance = code.mean.detach(), code.variance.detach()
    per_latent = (
        code.kl.detach().mean(0),
        mean.mean(0),
        mean.var(0, correction=0),
        variance.mean(0),
        variance.var(0, correction=0),
    )
    return torch.cat([torch.stack([term.detach() for term in terms.values()]), *per_latent])


def columns(terms: Terms, latents: int) -> list[str]:
    """The names of :func:`summary`'s values."""
    return [*terms, *(f"{name}_{latent}" for name in LATENT_STATISTICS for latent in range(latents))]


def first_bad(terms: Terms) -> str:
    """The term that is not finite: a part rather than a sum, where a part is to blame."""
    bad = [name for name, value in terms.items() if not bool(torch.isfinite(value).all())]
    parts = [name for name in bad if name not in ("loss", "regulariser")]
    return (parts or bad)[0]


def _update_discriminator(learner: Learner, batch: Batch, joint: Float[Tensor, "batch latent"]) -> Float[Tensor, ""]:
    assert learner.discriminator is not None
    assert batch.permutation is not None
    other = joint
    if batch.second_images is not None and batch.second_noise is not None:
        with torch.no_grad():
            other = learner.model.code(batch.second_images, batch.second_noise).sampled
    objective = learner.experiment.objective
    # joint and other carry no gradient: the discriminator's loss must not reach the encoder
    loss = objective.discriminator_loss(learner.discriminator, joint, other, batch.permutation)
    parameters = dict(learner.discriminator.named_parameters())
    gradients = torch.autograd.grad(loss, list(parameters.values()))
    with torch.no_grad():
        _discriminator_adam(learner.experiment).update(parameters, list(gradients), learner.discriminator_state)
    return loss.detach()


def _discriminator_adam(experiment: Experiment) -> Adam:
    return Adam(getattr(experiment.objective, "learning_rate", 1e-4), beta1=0.5, beta2=0.9)


def _share(step: int | Tensor, warmup: int) -> float | Tensor:
    if warmup == 0:
        return 1.0
    return torch.clamp(step / warmup, max=1.0) if isinstance(step, Tensor) else min(1.0, step / warmup)


def _placed(module: AnyModule, device: str) -> AnyModule:
    return module.to(device=device, memory_format=torch.channels_last)  # type: ignore[call-overload]
