"""Linear accuracy by variable type on codes in which one latent of each type knows a different factor."""

import numpy as np
import pytest
import torch

from unweave.evaluation.accuracy_by_type import accuracy_by_type


def test_every_combination() -> None:
    draw = np.random.default_rng(0)
    factors = draw.integers(0, [2, 4], (240, 2))
    # the active latent knows the first factor; the passive one knows the second in its tiny means, not in its samples
    mean = torch.from_numpy(np.stack([factors[:, 0] - 0.5, 0.01 * (factors[:, 1] - 1.5)], 1))
    sampled = mean + torch.from_numpy(draw.normal(size=(240, 2))) * torch.tensor([0.01, 1.0])
    found = {
        (one.representation, one.types): one.accuracy
        for one in accuracy_by_type(mean, 100 * sampled, factors, ["active", "passive"])
    }
    assert list(found)[:3] == [("mean", ("active",)), ("mean", ("passive",)), ("mean", ("active", "passive"))]
    assert len(found) == 6
    # a latent that knows one factor is right on it, and at chance on the other
    assert found["sampled", ("active",)] == pytest.approx((1 + 1 / 4) / 2, abs=0.1)
    assert found["sampled", ("passive",)] == pytest.approx((1 / 2 + 1 / 4) / 2, abs=0.1)
    assert found["mean", ("active", "passive")] >= found["mean", ("active",)] - 0.05


def test_chance() -> None:
    factors = np.arange(60)[:, None] % 5
    codes = torch.randn(60, 1, generator=torch.Generator().manual_seed(0))
    assert accuracy_by_type(codes, codes, factors, ["mixed"])[0].chance == pytest.approx(0.2)
