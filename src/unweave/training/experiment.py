"""An experiment: everything that decides what a run becomes. Its hash is the run's id."""

import importlib.util
import os
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import torch

from unweave.config import Tables, fingerprint, from_plain, to_plain
from unweave.data import WORLDS, World
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
from unweave.models.likelihoods import Bernoulli
from unweave.models.networks import Conv
from unweave.models.objectives.beta_vae import BetaVAE
from unweave.models.optimisers import Adam

TABLES: Tables = {
    World: WORLDS,
    Method: OBJECTIVES,
    Network: NETWORKS,
    Likelihood: LIKELIHOODS,
    Optimiser: OPTIMISERS,
}

PRECISIONS = ("bf16", "tf32", "fp32")


@dataclass(frozen=True)
class Plan:
    """How the arithmetic is done. It changes the last bits of a result, so it belongs to the run's identity."""

    device: str = field(default="auto", metadata={"help": "auto, cpu, cuda or cuda:N"})
    threads: int = field(default=0, metadata={"help": "CPU threads; 0 takes what this process may use"})
    precision: str = field(
        default="auto", metadata={"help": "auto, bf16, tf32 or fp32 products; sums and weights are fp32 always"}
    )

    def resolve(self) -> "Plan":
        """The plan with every automatic choice made for this machine."""
        device = self.device if self.device != "auto" else ("cuda" if torch.cuda.is_available() else "cpu")
        kind = device.partition(":")[0]
        if kind not in ("cpu", "cuda"):
            raise ValueError(f"plan.device must be auto, cpu, cuda or cuda:N, not {self.device!r}")
        if kind == "cuda" and not torch.cuda.is_available():
            raise ValueError(f"plan.device is {self.device!r}, but PyTorch sees no CUDA device here; use cpu or auto")
        if self.threads < 0:
            raise ValueError(f"plan.threads must be 0 or more, not {self.threads}")
        return Plan(device, self.threads or min(torch.get_num_threads(), usable_cores()), self._precision(kind))

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
class Experiment:
    """One model to train. The defaults are those of the published study, but for its 300,000 steps."""

    world: World = field(metadata={"help": "what to learn from; `unweave worlds` lists them"})
    objective: Method = field(default=BetaVAE(), metadata={"help": "what to minimise"})
    network: Network = field(default=Conv(), metadata={"help": "encoder and decoder"})
    likelihood: Likelihood = field(default=Bernoulli(), metadata={"help": "how reconstructions are scored"})
    optimiser: Optimiser = field(default=Adam(), metadata={"help": "how weights are updated"})
    latents: int = field(default=10, metadata={"help": "size of the code"})
    steps: int = field(default=300_000, metadata={"help": "training steps"})
    batch_size: int = field(default=64, metadata={"help": "examples in a step"})
    seed: int = field(default=0, metadata={"help": "decides initial weights, data order and noise"})
    init: Scheme = field(default="glorot", metadata={"help": "initial weights"})
    order: Literal["iid", "epochs"] = field(
        default="iid", metadata={"help": "draw examples independently (as the study did), or go through all in turn"}
    )
    warmup: int = field(default=0, metadata={"help": "steps over which the regulariser fades in"})
    holdout: float = field(default=0.0, metadata={"help": "share of the examples never trained on"})
    history_every: int = field(default=50, metadata={"help": "steps between two rows of the history"})
    snapshots: tuple[int, ...] = field(default=(), metadata={"help": "steps at which the weights are kept"})
    plan: Plan = field(default=Plan(), metadata={"help": "how the arithmetic is done"})

    def resolve(self) -> "Experiment":
        """This experiment with every automatic choice made and every number checked."""
        self._check()
        resolved = replace(self, world=self.world.resolve(), plan=self.plan.resolve())
        # through JSON and back: BetaVAE(6) and BetaVAE(6.0) are one experiment with one id
        return experiment_from(experiment_to(resolved))

    def architecture(self, shape: tuple[int, ...]) -> Architecture:
        """The structure of the model for examples of a given shape."""
        return Architecture(shape, self.latents, self.network, self.objective.posterior, self.likelihood)

    @property
    def n_updates(self) -> int:
        """Updates of the weights; fewer than steps for one faithful imitation."""
        return self.objective.iterations(self.steps)

    @property
    def id(self) -> str:
        """World, objective and a hash of everything: the name of the run's folder."""
        return f"{self.world.name}-{self.objective.name}-{fingerprint(self)}"

    def _check(self) -> None:
        for name in ("latents", "steps", "batch_size", "history_every"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        if not 0.0 <= self.holdout < 1.0:
            raise ValueError(f"holdout must lie in [0, 1), not {self.holdout}")
        if self.seed < 0 or self.seed >= 2**63:
            raise ValueError(f"seed must lie in 0…2⁶³−1, not {self.seed}")
        if self.warmup < 0:
            raise ValueError(f"warmup must be 0 or more, not {self.warmup}")
        if any(step < 0 or step > self.n_updates for step in self.snapshots):
            raise ValueError(f"snapshots must lie in 0…{self.n_updates}, given {self.snapshots}")


def experiment_from(plain: Any) -> Experiment:
    """An experiment from its JSON form."""
    experiment: Experiment = from_plain(Experiment, plain, TABLES)
    return experiment


def experiment_to(experiment: Experiment) -> Any:
    """The JSON form of an experiment."""
    return to_plain(experiment)


def usable_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
