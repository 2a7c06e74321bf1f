"""Convolutional members side by side on a CPU: each exactly the run it would be alone."""

from dataclasses import replace
from pathlib import Path

import pytest

from unweave.data.micro import Micro
from unweave.models.networks import Conv
from unweave.models.optimisers import Adam
from unweave.training.experiment import Experiment, Plan
from unweave.training.loop import train
from unweave.training.many import train_many
from unweave.training.run import Run


@pytest.mark.slow
def test_members_side_by_side_are_the_single_runs_to_the_last_bit(tmp_path: Path) -> None:
    base = Experiment(Micro(), network=Conv((4, 4), (4, 4), 8), steps=3, batch_size=4, latents=2, plan=Plan("cpu", 2))
    given = [base, replace(base, seed=1), replace(base, seed=2, optimiser=Adam(1e30))]
    paths = train_many(given, tmp_path / "fleet")
    for member, path in zip(given[:2], paths):
        single = replace(member, plan=Plan("cpu", 1))
        assert Run(path).experiment == single.resolve()
        other = Run(train(single, tmp_path / "alone" / str(member.seed)))
        assert Run(path).files.read("model.safetensors") == other.files.read("model.safetensors")
    assert Run(paths[2]).state == "failed"
    assert train_many(given, tmp_path / "fleet") == paths
