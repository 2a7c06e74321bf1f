"""The codes of a stack of models: `unweave.models.posteriors.Code` with a leading model axis."""

from typing import NamedTuple

from unweave.shapes import Float, Tensor


class StackedCode(NamedTuple):
    """What the encoders of all models say of their batches."""

    mean: Float[Tensor, "model batch latent"]
    log_variance: Float[Tensor, "model batch latent"]
    sampled: Float[Tensor, "model batch latent"]
    kl: Float[Tensor, "model batch latent"]

    def detach(self) -> "StackedCode":
        """The same numbers, without their history."""
        return StackedCode(*(part.detach() for part in self))
