"""Discs in segments: their sources, how a source shows, and what models are told."""

import torch

from unweave.data.micro_segments import MicroSegments


def test_sources_have_the_spread_of_their_segment():
    data = MicroSegments(segments=6, points=4000).load()
    spreads = torch.stack([data.labels[data.segments == segment].std(0) for segment in range(6)])
    assert 0.045 <= float(spreads.min()) < 0.3 < float(spreads.max()) <= 1.25
    assert float(data.labels.mean(0).abs().max()) < 0.05


def test_a_disc_lies_where_its_sources_say():
    data = MicroSegments(segments=2, points=50).load()
    images = data.images().double()
    mass = images.sum((1, 2, 3))
    pixel = torch.arange(32) + 0.5
    across, down = (images.sum((1, 2)) * pixel).sum(1) / mass, (images.sum((1, 3)) * pixel).sum(1) / mass
    # tanh(s) of the reach of 8 pixels from the middle; a disc has π r² pixels, r = 5 + 2 tanh(s)
    shares = torch.tanh(data.labels.double())
    assert float((across - 16 - 8 * shares[:, 0]).abs().max()) < 0.05
    assert float((down - 16 - 8 * shares[:, 1]).abs().max()) < 0.05
    assert float((mass / (torch.pi * (5 + 2 * shares[:, 2]) ** 2) - 1).abs().max()) < 0.03


def test_models_are_told_the_segment_and_scored_by_the_sources():
    data = MicroSegments(segments=3, points=4).load()
    rows = torch.tensor([0, 5, 11])
    assert data.given(rows).tolist() == [[0], [1], [2]]
    assert data.label_names == ("x", "y", "size")
    assert data.factors(rows).shape == (3, 3)


def test_another_seed_is_another_world():
    one, other = MicroSegments(3, 5).load(), MicroSegments(3, 5, seed=1).load()
    assert not torch.equal(one.labels, other.labels)
    assert torch.equal(one.store, MicroSegments(3, 5).load().store)
