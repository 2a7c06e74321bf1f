"""The codes of a stack of models: `unweave.models.posteriors.Code` with a leading model axis, and losses of them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

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


TotalLoss = Callable[[StackedCode, Float[Tensor, "model batch"]], Float[Tensor, ""]]
"""From the codes and reconstruction losses of all models to the sum of their losses."""


@dataclass(frozen=True)
class Weighed:
    """Losses that are the mean reconstruction loss and the total KL, each times a number: slopes are known before them.

    ``by_kl`` is the slope by every KL of every example, ``by_reconstruction`` that by every reconstruction loss.
    ``judge`` is told of both once they are known.
    """

    by_kl: Float[Tensor, " model"]
    by_reconstruction: Float[Tensor, "model batch"]
    judge: Callable[[Float[Tensor, "model batch latent"], Float[Tensor, "model batch"]], None]


Losses = TotalLoss | Weighed


@dataclass(frozen=True)
class Early:
    """How parameters may be updated before all gradients are there.

    ``columns`` is called with gradients of which all columns from some on are there, or will be once all work aside is
    done. ``inside``, called once all losses are known, hands over the whole update, to be made where gradients are
    made: an ``AdamStack`` or ``AdaGradStack``; nothing is left to update then. None: this optimiser's is not.
    """

    columns: Callable[[Float[Tensor, "model size"], int], None]
    inside: Callable[[], Any]
