"""An experiment: everything that decides what a run becomes. Its hash is the run's id."""

import functools
import importlib.util
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import torch

from unweave.config import Tables, fingerprint, from_plain, later, number, own_modules, to_plain
from unweave.data import WORLDS, World
from unweave.data.world import Card, Data
from unweave.files import as_typed
from unweave.models import (
    LIKELIHOODS,
    NETWORKS,
    OBJECTIVES,
    OPTIMISERS,
    Architecture,
    Likelihood,
    Method,
    Network,
    Optimiser,
)
from unweave.models.initialise import Scheme
from unweave.models.likelihoods import Bernoulli, Gaussian
from unweave.models.networks import MLP, Conv, Linear
from unweave.models.objectives.ae import AE
from unweave.models.objectives.beta_vae import VAE, BetaVAE
from unweave.models.optimisers import Adam
from unweave.runs.folder import RunFolder
from unweave.trusted import Untrusted, trust_words

TABLES: Tables = {
    World: WORLDS,
    Method: OBJECTIVES,
    Network: NETWORKS,
    Likelihood: LIKELIHOODS,
    Optimiser: OPTIMISERS,
}

FOR_PICTURES: dict[str, Any] = {"network": Conv(), "likelihood": Bernoulli()}
"""What an experiment has where nothing is said, as the published study had it."""
FOR_TABLES: dict[str, Any] = {"network": MLP((128, 128), (128, 128)), "likelihood": Gaussian(0.025)}
"""The same where examples are rows of a table. Columns have variance 1: with β 4 a tenth of it is left as noise."""

MOST_WEIGHTS = 2 * 10**9
"""Weights of one model."""

PRECISIONS = ("bf16", "tf32", "fp32")


@dataclass(frozen=True)
class Plan:
    """How the arithmetic is done. It changes the last bits of a result, so it belongs to the run's identity."""

    device: str = field(default="auto", metadata={"help": "auto, cpu, cuda or cuda:N"})
    threads: int = number(0, least=0, most=1024, help="CPU threads; 0 takes what this process may use")
    precision: str = field(
        default="auto", metadata={"help": "auto, bf16, tf32 or fp32 products; sums and weights are fp32 always"}
    )
    dense: Literal["auto", "mapped", "kernels"] = later(
        "auto",
        help="fully connected models on a GPU: auto and kernels take our own, mapped PyTorch's; kernels in bf16 too",
    )

    def resolve(self) -> "Plan":
        """The plan with every automatic choice made for this machine."""
        device = self.device if self.device != "auto" else ("cuda" if torch.cuda.is_available() else "cpu")
        kind = device.partition(":")[0]
        if kind not in ("cpu", "cuda"):
            raise ValueError(f"plan.device must be auto, cpu, cuda or cuda:N, not {self.device!r}")
        if kind == "cuda" and not torch.cuda.is_available():
            raise ValueError(f"plan.device is {self.device!r}, but PyTorch sees no CUDA device here; use cpu or auto")
        if kind == "cpu" and self.dense == "kernels":
            raise ValueError("plan.dense kernels needs a GPU; on a CPU leave it out")
        threads = self.threads or min(torch.get_num_threads(), usable_cores())
        return Plan(device, threads, self._precision(kind), self.dense)

    def _precision(self, kind: str) -> str:
        if self.precision not in ("auto", *PRECISIONS):
            raise ValueError(f"plan.precision must be auto, {', '.join(PRECISIONS)}, not {self.precision!r}")
        if self.precision != "auto":
            if kind == "cpu" and self.precision != "fp32":
                raise ValueError(f"plan.precision {self.precision} needs a GPU; on a CPU products are fp32 (or auto)")
            return self.precision
        # bf16 is what the GPU kernels are made for; without Triton there are none
        return "fp32" if kind == "cpu" else "bf16" if importlib.util.find_spec("triton") else "tf32"


@dataclass(frozen=True)
class Form:
    """What a model must know of its examples: their shape, and how many values each label has that it reads."""

    shape: tuple[int, ...]
    labels: tuple[int, ...] = ()

    def __str__(self) -> str:
        return " ".join(",".join(map(str, sizes)) for sizes in (self.shape, self.labels) if sizes)


def form_of(method: Method, data: Data) -> Form:
    """The form of a data set's examples for a method."""
    reads_labels = {"labels", "labelled_labels", "changed", "group"} & {*method.batch}
    return Form(data.shape, data.label_sizes if reads_labels else ())


def form_of_card(card: Card) -> Form:
    """The form of examples that nobody has loaded yet; labels of which only the names are known count as two values."""
    if card.space is not None:
        return Form(card.shape, card.space.sizes)
    return Form(card.shape, tuple(2 for _ in card.labels) or ((2,) if card.segments else ()))


@dataclass(frozen=True)
class Experiment:
    """One model to train. The defaults are those of the published study, but for its 300,000 steps."""

    world: World = field(metadata={"help": "what to learn from; `unweave worlds` lists them"})
    objective: Method = field(default=BetaVAE(), metadata={"help": "what to minimise"})
    network: Network = field(default=FOR_PICTURES["network"], metadata={"help": "encoder and decoder"})
    likelihood: Likelihood = field(
        default=FOR_PICTURES["likelihood"], metadata={"help": "how reconstructions are scored"}
    )
    optimiser: Optimiser = field(default=Adam(), metadata={"help": "how weights are updated"})
    latents: int = number(10, least=1, most=10_000, help="size of the code")
    steps: int = number(300_000, least=1, most=10**12, help="training steps")
    batch_size: int = number(64, least=1, most=10**6, help="examples in a step")
    seed: int = number(0, least=0, most=2**63 - 1, help="decides initial weights, data order and noise")
    init: Scheme = field(default="glorot", metadata={"help": "initial weights"})
    order: Literal["iid", "epochs"] = field(
        default="iid", metadata={"help": "draw examples independently (as the study did), or go through all in turn"}
    )
    warmup: int = number(0, least=0, most=10**12, help="steps over which the regulariser fades in")
    holdout: float = number(0.0, least=0, below=1, help="share of the examples never trained on")
    history_every: int = number(50, least=1, most=10**12, help="steps between two rows of the history")
    snapshots: tuple[int, ...] = number(
        (), least=0, most=10**12, entries=(0, 100_000), help="steps at which the weights are kept"
    )
    plan: Plan = field(default=Plan(), metadata={"help": "how the arithmetic is done"})

    def __post_init__(self) -> None:
        # the very object is what was left out: who says conv means conv, also for a table
        for name, usual in FOR_PICTURES.items() if getattr(self.world, "tabular", False) else ():
            if getattr(self, name) is usual:
                object.__setattr__(self, name, FOR_TABLES[name])

    def resolve(self) -> "Experiment":
        """This experiment with every automatic choice made and every number checked."""
        # objects are checked like files, and BetaVAE(6) and BetaVAE(6.0) are one experiment with one id
        asked: Experiment = from_plain(Experiment, self, TABLES)
        if asked.optimiser != Adam() and all(phase.optimiser is not None for phase in asked.objective.phases()):
            name = asked.objective.name
            raise ValueError(f"{name} has an optimiser of its own: leave out optimiser, set objective.learning_rate")
        if asked.warmup and not asked.objective.warms_up:
            raise ValueError(f"{asked.objective.name} has no regulariser that could fade in: leave out warmup")
        if any(step > asked.n_updates for step in asked.snapshots):
            raise ValueError(f"snapshots must lie in 0…{asked.n_updates}, given {asked.snapshots}")
        return from_plain(Experiment, replace(asked, world=asked.world.resolve(), plan=asked.plan.resolve()), TABLES)

    def architecture(self, shape: tuple[int, ...], labels: tuple[int, ...] = ()) -> Architecture:
        """The structure of the model for examples of a given shape, with labels of these numbers of values."""
        found = Architecture(shape, self.latents, self.network, self.objective.posterior, self.likelihood, labels)
        _check_size(self.objective, found)
        return found

    @property
    def n_updates(self) -> int:
        """Updates of the weights; fewer than steps for one faithful imitation."""
        return self.objective.iterations(self.steps)

    @property
    def dense_kernels(self) -> bool:
        """Whether kernels are tried that are made for stacks of fully connected models."""
        wanted = self.plan.dense != "mapped" and self.plan.device.startswith("cuda")
        return wanted and isinstance(self.network, MLP | Linear) and importlib.util.find_spec("triton") is not None

    @property
    def whole_steps(self) -> bool:
        """Whether one kernel is tried that makes whole steps of small dense models, many at a time."""
        return self.dense_kernels and type(self.objective) in (AE, VAE, BetaVAE)

    @functools.cached_property
    def id(self) -> str:
        """World, objective and a hash of everything: the name of the run's folder."""
        return f"{self.world.name}-{self.objective.name}-{fingerprint(self)}"


def experiment_from(plain: Any) -> Experiment:
    """An experiment from its JSON form, in which objects may stand for themselves; every number is checked."""
    experiment: Experiment = from_plain(Experiment, plain, TABLES)
    return experiment


def read_experiment(folder: RunFolder) -> Experiment:
    """The experiment of a run, from its config.json; an error says in which file."""
    plain = folder.read_json("config.json")
    try:
        found = experiment_from(plain)
    except Untrusted:
        raise
    except ValueError as error:
        raise ValueError(f"{folder.path / 'config.json'}: {error}") from error
    return replace(found, world=found.world.near(folder.path))


def config_near(plain: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The JSON form of an experiment, its world as a run in a folder means it; what cannot be read stays as it is."""
    try:
        world: World = from_plain(World, plain.get("world"), TABLES, "world")
    except ValueError:
        return plain
    return plain | {"world": to_plain(world.near(folder))}


def is_experiment(plain: Any) -> bool:
    """Whether this is the JSON form of an experiment, as far as its names tell."""
    return isinstance(plain, dict) and {"world", "objective", "network", "steps"} <= set(plain)


def experiment_to(experiment: Experiment) -> Any:
    """The JSON form of an experiment."""
    return to_plain(experiment)


def resume_words(path: Path, experiment: Experiment) -> str:
    """The command that goes on with a run."""
    return f"unweave resume {as_typed(path)}{trust_words(own_modules(experiment))}"


@functools.lru_cache(maxsize=1000)
def _check_size(method: Method, architecture: Architecture) -> None:
    """Refuse a model that no machine holds, before any of it is made."""
    with torch.device("meta"):
        model = method.model(architecture)
    n = sum(parameter.numel() for parameter in model.parameters())
    if n > MOST_WEIGHTS:
        raise ValueError(f"such a model would have {n:,} weights, more than {MOST_WEIGHTS:,}; make its layers smaller")


def usable_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
