"""The types of a model's latents, held against its own prior (Bonheme, 2023, Proposition 5.2.2)."""

from typing import Protocol, runtime_checkable

from unweave.metrics.polarised.types import Type, variable_types
from unweave.shapes import Float, Tensor


@runtime_checkable
class Posteriors(Protocol):
    """Posteriors of some examples and the prior of each; None stands for the standard normal."""

    @property
    def mean(self) -> Float[Tensor, "sample latent"]: ...

    @property
    def variance(self) -> Float[Tensor, "sample latent"]: ...

    @property
    def prior_mean(self) -> Float[Tensor, "sample latent"] | None: ...

    @property
    def prior_variance(self) -> Float[Tensor, "sample latent"] | None: ...


def types_of(code: Posteriors, rule: str = "variance") -> list[Type]:
    """Active, mixed or passive: a passive latent keeps its prior, whatever that is."""
    return variable_types(
        code.mean, code.variance, rule=rule, prior_mean=code.prior_mean, prior_variance=code.prior_variance
    )
