"""Training draws correlated factors together; the world that scores are taken on stays as it is."""

from pathlib import Path

import numpy as np
import pytest
import torch

from unweave.data.micro import Micro
from unweave.models.networks import MLP
from unweave.training.batches import Drawing, source_of
from unweave.training.experiment import Experiment, Plan
from unweave.training.loop import train
from unweave.training.run import Run

SMALL = {"network": MLP((4,), (4,)), "latents": 2, "batch_size": 50, "plan": Plan("cpu", 1)}
WORLD = Micro(correlated=("x=y:0.1",))


def drawn_factors(*experiments: Experiment) -> torch.Tensor:
    """Factors of the examples of 60 steps, model by model."""
    data = experiments[0].world.load()
    drawing = Drawing(source_of(experiments, data))
    rows = torch.stack([drawing(step)["rows of images"] for step in range(60)], dim=1)
    return data.factors(rows.flatten(1))


@pytest.mark.parametrize("holdout", [0.0, 0.3])
def test_what_is_trained_on_is_correlated(holdout: float) -> None:
    experiments = [Experiment(WORLD, seed=seed, holdout=holdout, **SMALL) for seed in (0, 1)]
    together = drawn_factors(*experiments)
    for place, experiment in enumerate(experiments):
        found = np.corrcoef(together[place].double().T)
        assert found[0, 1] > 0.9
        assert abs(found[0, 2]) < 0.1
        assert torch.equal(drawn_factors(experiment)[0], together[place])
    assert abs(np.corrcoef(drawn_factors(Experiment(Micro(), **SMALL))[0].double().T)[0, 1]) < 0.1


def test_epochs_cannot_be_correlated() -> None:
    with pytest.raises(ValueError, match="set order=iid"):
        drawn_factors(Experiment(WORLD, order="epochs", **SMALL))


def test_scores_are_taken_on_independent_factors(tmp_path: Path) -> None:
    run = Run(train(Experiment(WORLD, steps=2, **SMALL), tmp_path / "run"))
    seen = run.data.factors(run.rows(2_000, 0)).double()
    assert abs(np.corrcoef(seen.T)[0, 1]) < 0.1
