"""Data that has pairs of its own: they are what a method sees, and the control breaks them."""

import torch

from unweave.data.pcl_toy import PCLToy
from unweave.models.networks import Maxout
from unweave.models.objectives import PCL
from unweave.training.batches import batches
from unweave.training.experiment import Experiment, Plan

BASE = Experiment(
    PCLToy(n_points=400, n_sources=3), network=Maxout((4,)), batch_size=64, latents=3, plan=Plan("cpu", 1)
)


def gaps(method: PCL) -> torch.Tensor:
    """By how many points in time the two of each pair differ."""
    data = BASE.world.load()
    (batch,) = batches(Experiment(BASE.world, method, BASE.network, batch_size=64, latents=3), data, 5, 6)
    rows = (batch["images"][:, None] == data.store).all(-1).int().argmax(-1)
    return rows[64:] - rows[:64]


def test_pairs_of_the_data_are_what_is_seen() -> None:
    assert gaps(PCL()).tolist() == [1] * 64


def test_the_control_breaks_them() -> None:
    found = gaps(PCL(pairs="random"))
    assert (found == 1).sum() < 5
    assert len(found.unique()) > 40
