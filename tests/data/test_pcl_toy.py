"""The mixed sources: their law, their mixing and their pairs."""

import pytest
import torch

from unweave.data.pcl_toy import PCLToy


def moments(x):
    centred = x.double() - x.double().mean(0)
    return centred.square().mean(0), centred


def test_sources_are_autocorrelated_laplace_of_unit_variance():
    data = PCLToy(n_points=2**16, n_sources=4).load()
    variance, centred = moments(data.labels)
    torch.testing.assert_close(variance, torch.ones(4, dtype=torch.float64), rtol=0, atol=0.05)
    lagged = (centred[1:] * centred[:-1]).mean(0) / variance
    torch.testing.assert_close(lagged, torch.full((4,), 0.7, dtype=torch.float64), rtol=0, atol=0.02)
    innovations = centred[1:] - 0.7 * centred[:-1]
    tails = (innovations**4).mean(0) / innovations.square().mean(0) ** 2
    torch.testing.assert_close(tails, torch.full((4,), 6.0, dtype=torch.float64), rtol=0, atol=0.6)


def test_a_series_by_its_recursion():
    world = PCLToy(n_points=50, n_sources=2, layers=1, whiten=False)
    series = world.load().labels.double()
    white = PCLToy(n_points=50, n_sources=2, layers=1, autocorrelation=0.0).load().labels.double()
    for t in range(1, 50):
        step = (series[t] - 0.7 * series[t - 1]) / (1 - 0.7**2) ** 0.5
        torch.testing.assert_close(step, white[t], rtol=0, atol=1e-6)


def test_mixtures_are_white_and_pairs_follow_each_other():
    data = PCLToy(n_points=5000, n_sources=5).load()
    assert data.shape == (5,)
    _variance, centred = moments(data.store)
    covariance = centred.T @ centred / len(centred)
    torch.testing.assert_close(covariance, torch.eye(5, dtype=torch.float64), rtol=0, atol=1e-4)
    assert torch.equal(data.pairs[:, 1] - data.pairs[:, 0], torch.ones(4999, dtype=torch.int64))
    assert data.label_names == ("s1", "s2", "s3", "s4", "s5")


def test_the_mixing_can_be_undone():
    world = PCLToy(n_points=1000, n_sources=6, whiten=False)
    data = world.load()
    x = data.store.double()
    for layer in reversed(range(world.layers)):
        x = torch.linalg.solve(world._matrix(layer).T, x.T).T
        x = torch.where(x > 0, x, x / 0.2) if layer else x
    torch.testing.assert_close(x, data.labels.double(), rtol=0, atol=1e-4)


def test_bad_settings_are_refused():
    with pytest.raises(ValueError, match="autocorrelation"):
        PCLToy(autocorrelation=1.0).load()
    with pytest.raises(ValueError, match="n_points"):
        PCLToy(n_points=1).load()
