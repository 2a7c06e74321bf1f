"""Synth-Lin and Synth-NonLin against their definitions."""

import math

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation

from unweave.data.synthetic import SynthLin, SynthNonLin, rotation


def test_rotation_is_scipys() -> None:
    axis = np.array([1.0, -1.0, 1.0]) / math.sqrt(3)
    expected = Rotation.from_rotvec(axis * math.pi / 4).as_matrix()
    np.testing.assert_allclose(rotation((1.0, -1.0, 1.0), math.pi / 4).numpy(), expected, atol=1e-12)


@pytest.mark.parametrize("ratio", [1.0, 1.2, 2.0])
def test_linear_points_are_the_turned_stretched_square(ratio: float) -> None:
    data = SynthLin(ratio=ratio, n_points=500).load()
    square = data.labels.double().numpy()
    flat = np.concatenate([square * [ratio, 1.0], np.zeros((500, 1))], axis=1)
    expected = Rotation.from_rotvec(np.array([1.0, -1.0, 1.0]) / math.sqrt(3) * math.pi / 4).apply(flat)
    np.testing.assert_allclose(data.store.numpy(), expected, atol=1e-6)
    assert data.shape == (3,)


def test_principal_directions_carry_the_ratio() -> None:
    data = SynthLin().load()
    values = torch.linalg.svdvals((data.store - data.store.mean(0)).double()) / math.sqrt(len(data))
    # a uniform factor of width a has standard deviation a / sqrt(12)
    torch.testing.assert_close(values, torch.tensor([2.0, 1.0, 0.0]).double() / math.sqrt(12), atol=3e-3, rtol=0)


@pytest.mark.parametrize("world", [SynthLin(), SynthNonLin()])
def test_labels_fill_the_unit_square(world: SynthLin | SynthNonLin) -> None:
    data = world.load()
    assert len(data) == world.card().n_examples == 50_000
    assert data.space is None
    assert data.label_names == ("w1", "w2")
    labels = data.factors(torch.arange(len(data)))
    assert labels.shape == (50_000, 2)
    assert labels.min() >= 0
    assert labels.max() < 1
    counts = torch.histogramdd(labels, bins=[5, 5], range=[0.0, 1.0, 0.0, 1.0]).hist
    # 25 cells of 2,000 with standard deviation 44
    assert (counts - 2000).abs().max() < 4.5 * 44
    examples = data.examples(torch.tensor([3, 1]))
    assert (examples == data.store[[3, 1]]).all()


def test_nonlinear_points_are_smooth_curved_and_fill_six_dimensions() -> None:
    data = SynthNonLin().load()
    square, points = data.labels.double().numpy(), data.store.double().numpy()
    design = np.column_stack([np.ones(len(square)), square])
    residual = points - design @ np.linalg.lstsq(design, points, rcond=None)[0]
    curved = residual.var(axis=0).sum() / points.var(axis=0).sum()
    assert 0.005 < curved < 0.5
    powers = np.column_stack([square[:, 0] ** i * square[:, 1] ** j for i in range(8) for j in range(8 - i)])
    smooth = points - powers @ np.linalg.lstsq(powers, points, rcond=None)[0]
    assert smooth.var(axis=0).sum() / points.var(axis=0).sum() < 1e-4
    assert points.shape == (50_000, 6)
    assert np.linalg.matrix_rank(points - points.mean(axis=0)) == 6


def test_seeds_and_sizes() -> None:
    for world in (SynthLin, SynthNonLin):
        few, many, other = world(n_points=10).load(), world(n_points=20).load(), world(n_points=10, seed=1).load()
        assert (few.store == many.store[:10]).all()
        assert (few.labels != other.labels).any()
    assert (SynthNonLin(n_points=9).load().store != SynthNonLin(n_points=9, seed=1).load().store).all()


def test_bad_options_are_refused() -> None:
    with pytest.raises(ValueError, match="n_points must be at least 1, not 0"):
        SynthNonLin(n_points=0).load()
    with pytest.raises(ValueError, match="ratio must be above 0, not -1"):
        SynthLin(ratio=-1.0).load()
