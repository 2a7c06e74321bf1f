"""What a method is: its networks, what a batch of it holds, its phases, and what of it is kept.

β-VAE is one network and one phase; FactorVAE has a discriminator beside it and a phase that trains it; a GAN has three
of each. The maths is written for one model and one batch; engines call it for one model, or map it over a stack.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from torch import nn

from unweave.config import word
from unweave.data.pairings import Pairing
from unweave.models.autoencoder import Architecture, Autoencoder
from unweave.models.initialise import Scheme, initialise
from unweave.models.optimisers import Optimiser
from unweave.models.posteriors import Code, Diagonal, Posterior
from unweave.shapes import Float, Int, Tensor

Terms = dict[str, Float[Tensor, ""]]
Batch = Mapping[str, Tensor]
"""The named parts of a batch; `unweave.training.batches` says what each is and draws it."""

MODEL = "model"
"""The name of the network that is kept, where a method keeps one."""

FIRST_DRAW = 1000
"""Initial weights of the second network draw with steps from here, those of the third from twice as far, …"""


class Beside:
    """A part of a loss that what follows need not wait for, until they are joined. Here everything goes in its turn.

    ``with beside(x):`` names the tensors from outside that the part reads.
    """

    def __call__(self, *read: Tensor) -> "Beside":
        return self

    def __enter__(self) -> None: ...

    def __exit__(self, *raised: object) -> None: ...

    def join(self) -> None:
        """From here on everyone waits for the part."""


@dataclass(frozen=True)
class Context:
    """What a loss may know besides the batch.

    ``networks`` holds the method's networks by name: modules, or what stands for them in a stack. ``code`` is what the
    model said of this step's batch in an earlier phase, without its gradient. ``beside`` is where a part may be made
    that others need not wait for.
    """

    step: int | Int[Tensor, ""] = 0
    n_examples: int = 1
    warmup: int = 0
    networks: Mapping[str, Any] = field(default_factory=dict)
    code: Code | None = None
    beside: Beside = field(default_factory=Beside)


Loss = Callable[[Batch, Context], tuple[Terms, Code | None]]
"""Named terms, and the code of the batch where one was made."""


@dataclass(frozen=True)
class Phase:
    """One kind of update: whose weights move, down which loss, by which optimiser, how often.

    Of the loss's terms the one named ``minimises`` is minimised. ``optimiser`` is the experiment's where none is given.
    A phase is due in every ``every``-th step. Where all phases of a method say so, engines that train a stack make the
    passes through the model for all members at once: ``forward`` names the parts of the batch with which the loss calls
    the model, ``encodes`` those that it only encodes. Other methods are mapped as a whole.
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

    def count(self, step: Int[Tensor, ""]) -> Int[Tensor, ""]:
        """How many updates this phase has made once a step is done in which it has its turn."""
        return (step + 1) // self.every


@dataclass(frozen=True)
class Draw:
    """Random numbers that a method asks for besides those of the usual parts: one row an example, ``columns`` wide.

    ``words`` are 32 random bits each, as int64; a ``permutation`` orders the rows, for every column another way.
    """

    kind: Literal["normal", "uniform", "words", "permutation"]
    columns: int


@dataclass(frozen=True)
class Given:
    """A finished run whose weights a method begins with: where it is, and what it is, the SHA-256 of its weights.

    The place is not part of a run's identity; the weights are.
    """

    run: str = field(default="", metadata={"help": "its folder", "identity": False})
    checksum: str = word("", "0123456789abcdef", help="SHA-256 of its model.safetensors")


class NoCodes(ValueError):
    """Something that only a model of images can do was asked of a run that trains none."""

    def __init__(self, method: str) -> None:
        super().__init__(
            f"{method} trains a change of images, and no model that makes codes of them: `unweave show` and `unweave"
            " report` say what it does, and models are trained on the world that it makes with: unweave train perturbed"
            " --world.run RUN"
        )


class NoDecoder(ValueError):
    """Something that only a decoder can do was asked of a method that trains none."""

    def __init__(self, method: str) -> None:
        super().__init__(
            f"{method} trains an encoder alone: without a decoder there are no traversals, reconstructions or samples,"
            " while codes, scores and comparisons are those of any model"
        )


class Method(ABC):
    """A frozen dataclass of hyperparameters that knows its networks, its batch and its phases.

    ``posterior`` is what the heads of the trained encoder stand for; ``kept`` are the networks whose weights stay.
    ``decodes`` says whether the trained model can turn codes into examples. ``measured`` are settings of metrics, by
    name, that its codes ask for: quantised ones are counted.
    """

    name: ClassVar[str]
    posterior: ClassVar[Posterior] = Diagonal()
    kept: ClassVar[tuple[str, ...]] = (MODEL,)
    encodes: ClassVar[bool] = True
    """Whether what is kept makes codes of images; one method makes images alone."""
    decodes: ClassVar[bool] = True
    warms_up: ClassVar[bool] = True
    """Whether it has a regulariser that ``warmup`` fades in."""
    measured: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    at_once: ClassVar[int] = 16
    """On a GPU, models of a mapped fleet that step together; a fleet is filled up to a multiple with doubles."""
    exact_decoders: ClassVar[bool] = False
    """On a GPU, whether decoders of a mapped fleet keep fp32 between layers, whatever the plan's precision."""

    @property
    def batch(self) -> tuple[str, ...]:
        """The parts that a batch must have, of those that `unweave.training.batches` lists."""
        return ("images", "noise")

    @property
    def reads_labels(self) -> bool:
        """Whether what is kept encodes examples together with their labels."""
        return "labels" in self.batch

    @property
    def samples_by_label(self) -> bool:
        """Whether codes are drawn from a prior of labels: what is kept then has ``prior_of``."""
        return self.reads_labels

    def labels_of_samples(self, names: Sequence[str]) -> tuple[str, ...]:
        """The labels, of these names, that samples can be asked to have."""
        return tuple(names) if self.samples_by_label else ()

    @property
    def pairing(self) -> Pairing | None:
        """How an example's partner comes about in a world with factors; None where examples come singly."""
        return None

    @property
    def given(self) -> Mapping[str, tuple[Given, str]]:
        """Networks that begin as a part (``encoder``, ``decoder``) of a finished run's model, by name."""
        return {}

    def draws(self, architecture: Architecture) -> dict[str, Draw]:
        """Parts of the batch that are random numbers of this method's own."""
        return {}

    def posterior_noise(self, batch: Batch) -> Float[Tensor, "*any"]:
        """What the model's posterior draws with: noise, and beside it whatever else it is told of a batch."""
        return batch["noise"]

    @abstractmethod
    def networks(self, architecture: Architecture) -> dict[str, nn.Module]:
        """Every network by name, its weights not yet drawn."""

    @abstractmethod
    def phases(self) -> tuple[Phase, ...]:
        """What happens in a step, in this order. A network is updated by one phase at most."""

    def model(self, architecture: Architecture) -> nn.Module:
        """What is opened again after training, its weights not yet filled in; they are named as those of ``kept``."""
        return Autoencoder(architecture, None)

    def iterations(self, steps: int) -> int:
        """How many updates ``steps`` stand for: the same number, but for one faithful imitation."""
        return steps


def kept_weights(method: Method, networks: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """What stays of each network's tensors, named as the kept model names them."""
    if len(method.kept) == 1:
        return dict(networks[method.kept[0]])
    return {f"{part}.{name}": value for part in method.kept for name, value in networks[part].items()}


def new_networks(method: Method, architecture: Architecture, init: Scheme, seed: int) -> dict[str, nn.Module]:
    """The networks of a method before their first step: a function of the seed alone."""
    networks = method.networks(architecture)
    for number, network in enumerate(networks.values()):
        initialise(network, init, seed, first=FIRST_DRAW * number)
    return networks
