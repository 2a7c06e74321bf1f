"""What the training loop drives: models that advance step by step, one alone or a stack of them."""

import math
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch

from unweave.models.objectives import Terms
from unweave.models.optimisers import Tensors
from unweave.models.posteriors import Code
from unweave.shapes import Float, Tensor
from unweave.training.experiment import Experiment, Form

LATENT_STATISTICS = ("kl", "mean", "variance_of_mean", "mean_variance", "variance_of_variance")
"""What the history keeps of every latent: of a batch, its KL, the mean and variance of μ, and those of σ².

Of a learned prior they are those of (μ − μ†)/σ† and of σ²/σ†²."""


@dataclass(frozen=True)
class Failure:
    """Where a model's loss stopped being a number, and which term of it was to blame."""

    step: int
    term: str
    value: float


@dataclass(frozen=True)
class Rows:
    """A row of the history for each of some models that record the same columns."""

    columns: list[str]
    values: Float[Tensor, "model column"]


@runtime_checkable
class Engine(Protocol):
    """Models in training. A member is named by its place among ``experiments``."""

    @property
    def name(self) -> str: ...

    @property
    def experiments(self) -> tuple[Experiment, ...]: ...

    @property
    def form(self) -> Form: ...

    def advance(self, step: int, *, record: bool) -> None:
        """One step of every model that is well; with ``record``, a row for the history and weights to fall back on."""

    def wait(self) -> None:
        """Until what was asked for is done: a GPU runs minutes behind."""

    def rows(self) -> list[Rows]:
        """What the last recorded step leaves for the history, by groups of models."""

    def group_of(self, member: int) -> tuple[int, int]:
        """The group of a member, and its place there."""

    def terms(self) -> list[dict[str, float]]:
        """Every member's terms of the last step; none of those that failed."""

    def weights(self, member: int) -> Tensors:
        """The model's parameters, in their own shapes."""

    def all_failed(self) -> bool:
        """Whether no model is well any more, as far as that is known without waiting."""

    def failure(self, member: int) -> Failure | None:
        """What became of a member that is not well."""

    def last_good(self, member: int) -> tuple[int, Tensors] | None:
        """The last recorded step whose loss was finite, and the weights that gave it."""

    def tensors(self) -> Tensors:
        """The whole state by name; writing into these tensors changes it."""

    def fitted(self, tensors: Tensors) -> Tensors:
        """A state that another engine gave, in the form of this one."""

    def restore(self, tensors: Tensors) -> None:
        """Bring everything to a state that :meth:`tensors` gave."""


def summary(terms: Terms, code: Code | None) -> Float[Tensor, " column"]:
    """One row of the history: every term, then every statistic of every latent."""
    losses = torch.stack([term.detach() for term in terms.values()])
    if code is None:
        return losses
    plain = code.detach().standardised()
    mean, variance = plain.mean, plain.variance
    per_latent = (
        plain.kl.mean(0),
        mean.mean(0),
        mean.var(0, correction=0),
        variance.mean(0),
        variance.var(0, correction=0),
    )
    return torch.cat([losses, *per_latent])


def columns(terms: Terms, latents: int) -> list[str]:
    """The names of :func:`summary`'s values."""
    return [*terms, *(f"{name}_{latent}" for name in LATENT_STATISTICS for latent in range(latents))]


def blame(step: int, terms: dict[str, float]) -> Failure:
    """The term that is not finite: a part rather than a sum, where a part is to blame."""
    bad = [name for name, value in terms.items() if not math.isfinite(value)]
    parts = [name for name in bad if name not in ("loss", "regulariser")]
    term = (parts or bad)[0]
    return Failure(step, term, terms[term])
