"""A row of the history: every term, then the moments of every latent over the batch; whom a failure is put down to."""

import dataclasses
import importlib
import math
import pkgutil

import numpy as np
import torch

import unweave.training
from unweave.models.posteriors import Diagonal
from unweave.training.engine import LATENT_STATISTICS, Failure, blame, columns, summary


def test_moments_are_those_of_the_batch_itself() -> None:
    given = torch.from_numpy(np.random.default_rng(0).normal(size=(2, 5, 3)))
    code = Diagonal().code({"mean": given[0], "log_variance": given[1]}, torch.zeros_like(given[0]))
    terms = {"loss": torch.tensor(3.0, dtype=torch.float64), "kl": torch.tensor(1.0, dtype=torch.float64)}
    row = dict(zip(columns(terms, 3), summary(terms, code).tolist(), strict=True))
    assert (row["loss"], row["kl"]) == (3.0, 1.0)
    mean, variance = code.mean.numpy(), code.variance.numpy()
    wanted = {
        "kl": 0.5 * (mean**2 + variance - np.log(variance) - 1.0).mean(0),
        "mean": mean.mean(0),
        "variance_of_mean": ((mean - mean.mean(0)) ** 2).sum(0) / 5,
        "mean_variance": variance.mean(0),
        "variance_of_variance": ((variance - variance.mean(0)) ** 2).sum(0) / 5,
    }
    assert tuple(wanted) == LATENT_STATISTICS
    for name, values in wanted.items():
        np.testing.assert_allclose([row[f"{name}_{latent}"] for latent in range(3)], values, rtol=1e-12)
    assert summary(terms, None).tolist() == [3.0, 1.0]
    assert columns(terms, 0) == ["loss", "kl"]


def test_a_part_is_to_blame_rather_than_a_sum() -> None:
    assert blame(4, {"loss": math.nan, "regulariser": math.inf, "kl": math.inf}) == Failure(4, "kl", math.inf)
    assert blame(4, {"loss": math.inf, "kl": 1.0}) == Failure(4, "loss", math.inf)


def test_only_what_trains_can_be_changed() -> None:
    found = {}
    for module in pkgutil.walk_packages(unweave.training.__path__, "unweave.training."):
        for one in vars(importlib.import_module(module.name)).values():
            if isinstance(one, type) and dataclasses.is_dataclass(one) and one.__module__ == module.name:
                found[one.__name__] = one.__dataclass_params__.frozen  # type: ignore[attr-defined]
    assert len(found) > 15
    changeable = {name for name, frozen in found.items() if not frozen}
    assert changeable == {"History", "Group", "Fleet", "MappedFleet", "Stack", "StackedNetwork"}
