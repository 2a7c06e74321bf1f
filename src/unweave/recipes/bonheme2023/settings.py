"""The models of Bonheme (2023), chapter 7: four objectives on three worlds, convolutional and fully connected."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from unweave.data.cars3d import Cars3D
from unweave.data.dsprites import DSprites
from unweave.data.micro import Micro
from unweave.data.smallnorb import SmallNORB
from unweave.data.world import World
from unweave.models.networks.conv import Conv, ConvStudy
from unweave.models.networks.mlp import MLP
from unweave.models.objectives import AnnealedVAE, Objective
from unweave.models.optimisers import Adam
from unweave.recipes.bonheme2023.layers import Wanted, between
from unweave.recipes.extent import Extent, check_size
from unweave.recipes.strength import strength_of
from unweave.studies.measures.measure import Measure
from unweave.studies.study import Study
from unweave.training.experiment import Experiment, Plan

WORLDS: dict[str, World] = {"dsprites": DSprites(), "cars3d": Cars3D(), "smallnorb": SmallNORB()}

EPOCHS = {"dsprites": (2, 7, 14, 19, 26), "cars3d": (25, 292, 559, 826, 1090), "smallnorb": (10, 110, 210, 311, 410)}
"""Of the published snapshots (Figures C.2 to C.4); the last of them is the end of training."""

DENSE_EPOCHS = (1, 10, 410)
"""Figure 7.8."""

SHORTER = {False: (0.1, 0.27, 0.54, 0.75), True: (0.025, 0.1)}
"""Shares of a shorter training at which convolutional and dense models are kept: the published early ones, a hundredth
of 300,000 steps, would come before anything is learned."""

N_SEEDS = 5
DENSE = MLP((1200, 1200), (256, 1200, 1200))
"""Table C.4."""


EXTENTS = {
    "smoke": Extent(N_SEEDS, steps=400, n_samples=400),
    "small": Extent(N_SEEDS, steps=60_000, n_samples=1_000),
    "paper": Extent(N_SEEDS, steps=300_000, n_samples=5_000),
}
"""Layers are compared on 5,000 examples in the source."""


@dataclass(frozen=True)
class Setting:
    """All seeds of one objective on one world."""

    world: str
    objective: Objective
    dense: bool = False

    @property
    def name(self) -> str:
        return f"{self.objective.name} {strength_of(self.objective):g}, {self.world}{', dense' if self.dense else ''}"

    def shares(self, size: str) -> tuple[float, ...]:
        """Snapshots as shares of training, without its end."""
        if size != "paper":
            return SHORTER[self.dense]
        epochs = DENSE_EPOCHS if self.dense else EPOCHS[self.world]
        return tuple(epoch / epochs[-1] for epoch in epochs[:-1])

    def at(self, size: str) -> "Setting":
        """The setting that stands for this one at a size: SmallNORB must be fetched, so dSprites stands in."""
        check_size(size)
        if size == "smoke":
            return replace(self, world="micro")
        return replace(self, world="dsprites") if size == "small" and self.world == "smallnorb" else self

    def experiments(self, size: str) -> tuple[Experiment, ...]:
        """Five seeds with snapshots, as published."""
        here = self.at(size)
        steps = EXTENTS[size].steps
        objective = here.objective
        if isinstance(objective, AnnealedVAE):
            objective = replace(objective, rise=steps // 3)
        base = _micro(here.dense) if size == "smoke" else _published(here)
        kept = tuple(max(1, round(share * steps)) for share in here.shares(size))
        made = replace(base, objective=objective, steps=steps, snapshots=kept, history_every=max(50, steps // 100))
        return tuple(replace(made, seed=seed) for seed in range(N_SEEDS))


def settings_study(
    name: str, settings: Sequence[Setting], measures: Sequence[Measure], size: str, maps: Sequence[Wanted] = ()
) -> Study:
    """All seeds of these settings, and maps of them; equal models are asked once."""
    asked = dict.fromkeys(experiment for setting in settings for experiment in setting.experiments(size))
    return Study(f"{name}-{size}", tuple(asked), tuple(measures), between=partial(between, maps))


def _published(setting: Setting) -> Experiment:
    """Tables C.1 to C.5."""
    return Experiment(
        world=WORLDS[setting.world],
        network=DENSE if setting.dense else ConvStudy(),
        optimiser=Adam(1e-4),
        latents=10,
        holdout=0.1,
        order="epochs",
        plan=Plan(threads=1),
    )


def _micro(dense: bool) -> Experiment:
    return Experiment(
        world=Micro(),
        network=MLP((64, 64), (64, 64, 64)) if dense else Conv((8, 16, 16), (4, 4, 4), 64),
        optimiser=Adam(2e-3),
        latents=6,
        batch_size=32,
        init="pytorch",
        warmup=50,
        plan=Plan(threads=1),
    )
