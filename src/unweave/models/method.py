"""What a method is: its networks, what a batch of it holds, and its phases.

β-VAE is one network and one phase; FactorVAE has a discriminator beside it and a phase that trains it. The maths is
written for one model and one batch; engines call it for one model, or map it over a stack of them.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from torch import nn

from unweave.models.autoencoder import Architecture
from unweave.models.initialise import Scheme, initialise
from unweave.models.optimisers import Optimiser
from unweave.models.posteriors import Code, Diagonal, Posterior
from unweave.shapes import Float, Int, Tensor

Terms = dict[str, Float[Tensor, ""]]
Batch = Mapping[str, Tensor]
"""The named parts of a batch; `unweave.training.batches` says what each is and draws it."""

FIRST_DRAW = 1000
"""Initial weights of the second network draw with steps from here, those of the third from twice as far, …"""


@dataclass(frozen=True)
class Context:
    """What a loss may know besides the batch.

    ``networks`` holds the method's networks by name: modules, or what stands for them in a stack. ``code`` is what the
    model said of this step's batch in an earlier phase, without its gradient.
    """

    step: int | Int[Tensor, ""] = 0
    n_examples: int = 1
    warmup: int = 0
    networks: Mapping[str, Any] = field(default_factory=dict)
    code: Code | None = None


Loss = Callable[[Batch, Context], tuple[Terms, Code | None]]
"""Named terms, and the code of the batch where one was made."""


@dataclass(frozen=True)
class Phase:
    """One kind of update: whose weights move, down which loss, by which optimiser, how often.

    Of the loss's terms the one named ``minimises`` is minimised. ``optimiser`` is the experiment's where none is given.
    A phase is due in every ``every``-th step. Engines that train a stack make its passes through the model for all
    members at once: ``forward`` names the parts of the batch with which the loss calls the model, ``encodes`` those
    that it only encodes. A loss that asks for other passes is mapped as a whole.
    """

    updates: tuple[str, ...]
    loss: Loss
    minimises: str = "loss"
    optimiser: Optimiser | None = None
    every: int = 1
    forward: tuple[str, str] | None = None
    encodes: tuple[str, str] | None = None

    def due(self, step: int) -> bool:
        """Whether this phase has its turn in a step."""
        return (step + 1) % self.every == 0


class Method(ABC):
    """A frozen dataclass of hyperparameters that knows its networks, its batch and its phases."""

    name: ClassVar[str]
    posterior: ClassVar[Posterior] = Diagonal()

    @property
    def batch(self) -> tuple[str, ...]:
        """The parts that a batch must have."""
        return ("images", "noise")

    @abstractmethod
    def networks(self, architecture: Architecture) -> dict[str, nn.Module]:
        """Every network by name, its weights not yet drawn."""

    @abstractmethod
    def phases(self) -> tuple[Phase, ...]:
        """What happens in a step, in this order. A network is updated by one phase at most."""

    def iterations(self, steps: int) -> int:
        """How many updates ``steps`` stand for: the same number, but for one faithful imitation."""
        return steps


def new_networks(method: Method, architecture: Architecture, init: Scheme, seed: int) -> dict[str, nn.Module]:
    """The networks of a method before their first step: a function of the seed alone."""
    networks = method.networks(architecture)
    for number, network in enumerate(networks.values()):
        initialise(network, init, seed, first=FIRST_DRAW * number)
    return networks
