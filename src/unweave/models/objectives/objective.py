"""What an objective is: what training adds to the reconstruction loss."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from torch import nn

from unweave.models.posteriors import Code, Diagonal, Posterior
from unweave.shapes import Float, Int, Tensor

Terms = dict[str, Float[Tensor, ""]]
Discriminator = Callable[[Float[Tensor, "batch latent"]], Float[Tensor, "batch 2"]]


@dataclass(frozen=True)
class Context:
    """What an objective may know besides the code: the step, the size of the data set, a discriminator to ask."""

    step: int | Int[Tensor, ""] = 0
    n_examples: int = 1
    discriminator: Discriminator | None = None


class Objective(ABC):
    """A frozen dataclass of hyperparameters; the maths is written for one model and one batch."""

    name: ClassVar[str]
    posterior: ClassVar[Posterior] = Diagonal()
    has_discriminator: ClassVar[bool] = False

    @property
    def needs_second_batch(self) -> bool:
        """Whether the discriminator is shown codes of other examples."""
        return False

    @abstractmethod
    def terms(self, code: Code, context: Context) -> Terms:
        """Named parts for the history. ``regulariser`` is what is added to the reconstruction loss."""

    def discriminator(self, latents: int) -> nn.Module | None:
        """A second network that is trained against the model, if there is one."""
        return None

    def discriminator_loss(
        self,
        discriminator: Discriminator,
        joint: Float[Tensor, "batch latent"],
        other: Float[Tensor, "batch latent"],
        permutation: Int[Tensor, "batch latent"],
    ) -> Float[Tensor, ""]:
        """What the discriminator minimises, given codes that carry no gradient."""
        raise NotImplementedError(f"{self.name} has no discriminator")

    def iterations(self, steps: int) -> int:
        """How many updates ``steps`` stand for: the same number, but for one faithful imitation."""
        return steps


def total_kl(code: Code) -> Float[Tensor, ""]:
    """KL(q(z|x) ‖ p(z)), summed over latents, averaged over the batch."""
    return code.kl.sum(-1).mean()
