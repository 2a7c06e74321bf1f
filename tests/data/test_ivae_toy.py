"""The toy of iVAE: its sources, its mixing by loops, and the original's data beside it."""

import math

import numpy as np
import pytest
import torch

from unweave.data.ivae_toy import IVAEToy


def test_sources_have_the_spread_of_their_segment():
    data = IVAEToy(segments=5, points=20_000).load()
    assert data.segments.tolist() == sorted(data.segments.tolist())
    spreads = torch.stack([data.labels[data.segments == segment].std(0) for segment in range(5)])
    assert float(spreads.min()) >= 0.48
    assert float(spreads.max()) <= 3.05
    assert len({round(float(value), 2) for value in spreads.flatten()}) > 5
    means = torch.stack([data.labels[data.segments == segment].mean(0) for segment in range(5)])
    assert float(means.abs().max()) < 0.1


def test_the_mixing_by_loops():
    world = IVAEToy(segments=2, points=3, sources=2, observed=3, seed=7)
    first, later = world._drawn(2, 2, 3), world._drawn(3, 3, 3)
    data = world.load()
    for row, source in zip(data.store.tolist(), data.labels.tolist()):
        values = source
        for layer, matrix in enumerate((first, later, later)):
            values = [sum(v * float(matrix[i, j]) for i, v in enumerate(values)) for j in range(3)]
            values = [math.tanh(v) + 0.1 * v for v in values] if layer < 2 else values
        np.testing.assert_allclose(row, values, atol=1e-5)
    torch.testing.assert_close(later.norm(dim=0), torch.ones(3, dtype=torch.float64))


def test_it_looks_like_the_original(reference):
    """The original's data of one seed: equal sizes, spreads of sources and points of the same order."""
    original = np.load(reference / "weak_ivae_toy_data.npz")
    data = IVAEToy().load()
    assert tuple(data.store.shape) == original["x"].shape
    assert tuple(data.labels.shape) == original["s"].shape
    assert np.bincount(data.segments.numpy()).tolist() == np.bincount(original["segment"]).tolist()
    assert float(data.labels.std()) == pytest.approx(float(original["s"].std()), rel=0.15)
    assert 0.5 < float(data.store.std()) / float(original["x"].std()) < 2.0


def test_models_are_told_the_segment_and_scored_by_the_sources():
    data = IVAEToy(segments=3, points=4).load()
    rows = torch.tensor([0, 5, 11])
    assert data.given(rows).tolist() == [[0], [1], [2]]
    assert data.given_names == ("segment",)
    assert data.label_sizes == (3,)
    assert data.factors(rows).shape == (3, 2)
    assert data.label_names == ("s1", "s2")
    assert torch.equal(data.to("cpu").segments, data.segments)


def test_fewer_observed_than_sources_are_refused():
    with pytest.raises(ValueError, match="3 sources need at least as many observed numbers, not 2"):
        IVAEToy(sources=3, observed=2).load()
