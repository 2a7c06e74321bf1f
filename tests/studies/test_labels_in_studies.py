"""Methods that read labels are planned, packed and run by studies like any other."""

from pathlib import Path

import pytest

from unweave.data.ivae_toy import IVAEToy
from unweave.data.micro import Micro
from unweave.data.world import World
from unweave.models.likelihoods import Gaussian
from unweave.models.networks import MLP
from unweave.models.objectives import IVAE
from unweave.studies.run import run_study
from unweave.studies.study import Study
from unweave.training.experiment import Experiment, Plan


@pytest.mark.parametrize("world", [Micro(), IVAEToy(segments=3, points=20)])
def test_a_study_of_a_method_with_labels(world: World, tmp_path: Path) -> None:
    runs = tuple(
        Experiment(
            world,
            IVAE(prior_widths=(4,)),
            MLP((6,), (6,)),
            Gaussian(0.1),
            latents=2,
            steps=3,
            batch_size=8,
            seed=seed,
            plan=Plan("cpu", 1),
        )
        for seed in range(3)
    )
    assert run_study(Study("labels", runs), tmp_path).table.height == 3
