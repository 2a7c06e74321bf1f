"""Pairs for weak supervision: their distributions, exact numbers of changes, wrapping and determinism."""

import inspect
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare, laplace

from unweave.data.factors import Factor, FactorSpace
from unweave.data.micro import Micro
from unweave.data.pairings import PAIRINGS
from unweave.data.pairs import (
    change_pairs,
    changes,
    rank_pairs,
    share_pairs,
    step_probabilities,
    transitions,
)
from unweave.data.supervision import supervision_of

SPACE = FactorSpace(
    (Factor("shape", 3, "categorical"), Factor("scale", 6), Factor("turn", 10, "cyclic"), Factor("x", 8))
)
ALL = (transitions, changes, share_pairs, change_pairs, rank_pairs)


@pytest.mark.parametrize("draw", ALL)
def test_first_values_are_uniform_and_inside(draw: object) -> None:
    pairs = draw(SPACE, 20_000, 1)
    sizes = torch.tensor(SPACE.sizes)
    for values in (pairs.first, pairs.second):
        assert values.shape == (20_000, 4)
        assert values.dtype == torch.int64
        assert (values >= 0).all()
        assert (values < sizes).all()
    for place, size in enumerate(SPACE.sizes):
        assert chisquare(np.bincount(pairs.first[:, place], minlength=size)).pvalue > 1e-3


@pytest.mark.parametrize("draw", ALL)
def test_draws_are_functions_of_seed_step_and_row(draw: object) -> None:
    pairs = draw(SPACE, 50, 3, 4)
    again, longer = draw(SPACE, 50, 3, 4), draw(SPACE, 80, 3, 4)
    assert (pairs.first == again.first).all()
    assert (pairs.second == again.second).all()
    assert (longer.second[:50] == pairs.second).all()
    assert (draw(SPACE, 50, 3, 5).first != pairs.first).any()
    assert (draw(SPACE, 50, 4, 4).second != pairs.second).any()
    assert next(iter(inspect.signature(draw).parameters)) == "space"


@pytest.mark.parametrize("rate", [1.0, 6.0])
def test_steps_are_truncated_laplace(rate: float) -> None:
    table = step_probabilities(Factor("x", 8), rate)
    for start in range(8):
        density = laplace.pdf(np.arange(8), loc=start, scale=math.log(8) / rate)
        np.testing.assert_allclose(table[start], density / density.sum(), rtol=1e-12)


def test_cyclic_steps_wrap_round() -> None:
    table = step_probabilities(Factor("turn", 10, "cyclic"), 2.0)
    for start in range(10):
        np.testing.assert_allclose(table[start], np.roll(table[0], start), rtol=1e-12)
    assert table[0, 9] == table[0, 1] > table[0, 2]
    pairs = transitions(SPACE, 20_000, 2, rate=5.0)
    at_zero = pairs.second[pairs.first[:, 2] == 0, 2]
    counts = torch.bincount(at_zero, minlength=10)
    assert counts[9] > 3 * counts[5]
    assert counts[9].item() == pytest.approx(counts[1].item(), rel=0.25)
    ordinal = pairs.second[pairs.first[:, 3] == 0, 3]
    assert (ordinal == 7).sum() < (ordinal == 1).sum() / 3


def test_transitions_follow_their_table() -> None:
    pairs = transitions(SPACE, 40_000, 5, rate=2.0, always_change=False, categorical_change=True)
    for place, factor in enumerate(SPACE.factors):
        table = step_probabilities(factor, 2.0)
        for start in range(0, factor.size, 2):
            found = np.bincount(pairs.second[pairs.first[:, place] == start, place], minlength=factor.size)
            assert chisquare(found, (table[start] * found.sum()).numpy()).pvalue > 1e-4
    assert (pairs.redrawn == pairs.changed).all()


def test_something_always_moves_and_the_rest_is_conditioned_rightly() -> None:
    loose = transitions(SPACE, 20_000, 6, rate=8.0, always_change=False)
    strict = transitions(SPACE, 20_000, 6, rate=8.0)
    assert (strict.first == loose.first).all()
    still = ~loose.changed.any(-1)
    assert still.float().mean() > 0.5
    assert strict.changed.any(-1).all()
    assert (strict.second[~still] == loose.second[~still]).all()
    # where nothing had moved exactly one factor is nudged, each of the three movable ones equally often
    nudged = strict.changed[still]
    assert (nudged.sum(-1) == 1).all()
    assert not nudged[:, 0].any()
    assert chisquare(nudged[:, 1:].sum(0).numpy()).pvalue > 1e-3
    middle = (strict.first[:, 3] == 4) & still & strict.changed[:, 3]
    away = step_probabilities(SPACE.factors[3], 8.0)[4].clone()
    away[4] = 0
    found = np.bincount(strict.second[middle, 3], minlength=8)
    expected = (away / away.sum() * found.sum()).numpy()
    assert found[4] == 0
    assert np.abs(found - expected).max() < 4.5 * np.sqrt(expected.max())


def test_categorical_factors_stay_unless_asked() -> None:
    assert not transitions(SPACE, 500, 7).changed[:, 0].any()
    assert transitions(SPACE, 500, 7, categorical_change=True).changed[:, 0].any()
    with pytest.raises(ValueError, match="no factor can change"):
        transitions(FactorSpace((Factor("shape", 3, "categorical"),)), 5, 0)


@settings(max_examples=30, deadline=None)
@given(k=st.integers(0, 4), seed=st.integers(0, 2**40), step=st.integers(0, 2**20))
def test_exactly_k_factors_change(k: int, seed: int, step: int) -> None:
    pairs = changes(SPACE, 60, seed, step, k=k, must_differ=True)
    assert (pairs.changed.sum(-1) == k).all()
    assert (pairs.changed == pairs.redrawn).all()
    loose = changes(SPACE, 60, seed, step, k=k)
    assert (loose.redrawn.sum(-1) == k).all()
    assert not (loose.changed & ~loose.redrawn).any()


def test_redrawn_factors_and_new_values_are_uniform() -> None:
    pairs = changes(SPACE, 30_000, 8, k=2)
    subsets = (pairs.redrawn.long() * torch.tensor([1, 2, 4, 8])).sum(-1)
    counts = torch.bincount(subsets, minlength=16)
    assert chisquare(counts[counts > 0].numpy()).pvalue > 1e-3
    assert (counts > 0).sum() == 6
    for differ in (False, True):
        drawn = changes(SPACE, 30_000, 9, k=4, must_differ=differ)
        new = np.bincount(drawn.second[drawn.first[:, 1] == 2, 1], minlength=6)
        expected = np.full(6, new.sum() / (5 if differ else 6))
        if differ:
            assert new[2] == 0
            new, expected = np.delete(new, 2), np.delete(expected, 2)
        assert chisquare(new, expected).pvalue > 1e-3


def test_the_number_of_changes_can_be_drawn() -> None:
    plain = changes(SPACE, 30_000, 10).redrawn.sum(-1)
    assert chisquare(torch.bincount(plain)[1:].numpy()).pvalue > 1e-3
    assert plain.max() == 3
    # half of the pairs have one change, the other half k = 1, 2, 3 alike
    often = torch.bincount(changes(SPACE, 30_000, 10, often_one=True).redrawn.sum(-1)).numpy()[1:]
    assert chisquare(often, 30_000 * np.array([1 / 2 + 1 / 6, 1 / 6, 1 / 6])).pvalue > 1e-3
    fixed = changes(SPACE, 20_000, 11, k=3, often_one=True).redrawn.sum(-1)
    assert chisquare(torch.bincount(fixed).numpy()[[1, 3]]).pvalue > 1e-3


def test_share_pairs_agree_in_their_group_only() -> None:
    pairs = share_pairs(SPACE, 20_000, 12)
    assert chisquare(torch.bincount(pairs.group).numpy()).pvalue > 1e-3
    shared = torch.nn.functional.one_hot(pairs.group, 4).bool()
    assert (pairs.redrawn == ~shared).all()
    assert not (pairs.changed & shared).any()
    # an independent factor of size s differs with probability 1 - 1/s
    for place, size in enumerate(SPACE.sizes):
        free = pairs.changed[pairs.redrawn[:, place], place].float().mean()
        assert free.item() == pytest.approx(1 - 1 / size, abs=0.02)


def test_change_pairs_differ_in_their_group_only() -> None:
    pairs = change_pairs(SPACE, 3_000, 13, groups=[["x", "scale"], ["turn"]])
    members = torch.tensor([[0, 1, 0, 1], [0, 0, 1, 0]]).bool()[pairs.group]
    assert (pairs.redrawn == members).all()
    assert not (pairs.changed & ~members).any()
    assert pairs.changed[pairs.group == 0][:, [1, 3]].any(0).all()


def test_rank_pairs_tell_the_greater() -> None:
    pairs = rank_pairs(SPACE, 20_000, 14, names=["x", "scale"])
    assert (pairs.greater == (pairs.first > pairs.second)[:, [3, 1]]).all()
    # P(first > second) = (1 - 1/s) / 2
    assert pairs.greater[:, 0].float().mean().item() == pytest.approx(7 / 16, abs=0.015)
    assert rank_pairs(SPACE, 5, 14).greater.shape == (5, 4)


def test_hidden_axes_are_no_factors() -> None:
    space = FactorSpace((Factor("kind", 4), Factor("instance", 9, hidden=True), Factor("view", 5)))
    pairs = changes(space, 100, 15, k=1, must_differ=True)
    assert pairs.first.shape == (100, 2)
    assert space.find(pairs.second, seed=0).max() < 180


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        (lambda: changes(SPACE, 3, 0, k=5), "k must lie in 0…4"),
        (lambda: transitions(SPACE, 3, 0, rate=0.0), "rate must be positive"),
        (lambda: share_pairs(SPACE, 3, 0, groups=[["colour"]]), "unknown factor 'colour'"),
        (lambda: share_pairs(SPACE, 3, 0, groups=[]), "non-empty lists"),
        (lambda: share_pairs(SPACE, 3, 0, groups=["x"]), "non-empty lists"),
        (lambda: rank_pairs(SPACE, 3, 0, names=["y"]), "unknown factor 'y'"),
        (lambda: changes(FactorSpace((Factor("one", 1),)), 3, 0, must_differ=True), "one value only"),
    ],
)
def test_bad_input_is_refused(call: object, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        call()


def test_what_must_change_is_never_a_factor_with_a_single_value() -> None:
    space = FactorSpace((Factor("single", 1), Factor("x", 4, "ordinal"), Factor("also", 1, "ordinal")))
    pairs = transitions(space, 500, 3, rate=50.0)
    assert (pairs.first[:, 1] != pairs.second[:, 1]).all()


def test_transitions_are_offered_where_a_factor_can_move() -> None:
    card = Micro().card()
    assert supervision_of(card).pairings == tuple(PAIRINGS)
    kinds = FactorSpace((Factor("kind", 3, "categorical"),))
    still = supervision_of(replace(card, space=kinds))
    assert (still.steps, still.pairings) == ((), tuple(name for name in PAIRINGS if name != "transitions"))
