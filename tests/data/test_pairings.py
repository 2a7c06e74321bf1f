"""Pairings: the partners of 0.1.0's pairs, over any leading axes, and what distinguishes each of them."""

import hashlib

import numpy as np
import pytest
import torch
from scipy.stats import chi2_contingency, laplace

from unweave import rng
from unweave.config import from_plain, to_plain
from unweave.data import pairs
from unweave.data.factors import Factor, FactorSpace
from unweave.data.pairings import (
    PAIRINGS,
    ChangePairs,
    Changes,
    Pairing,
    RandomPairs,
    RankPairs,
    SharePairs,
    Transitions,
    scaled,
    step_probabilities,
)

SPACE = FactorSpace(
    (
        *(Factor("shape", 3, "categorical"), Factor("scale", 6), Factor("turn", 10, "cyclic")),
        *(Factor("x", 8), Factor("big", 183)),
    )
)
ALL = (
    Transitions(),
    Transitions(rate=20.0, cyclic=False, categorical_change=True),
    Changes(),
    Changes(k=2, often_one=True, must_differ=True),
    SharePairs(),
    ChangePairs((("x", "scale"), ("turn",))),
    RankPairs(),
    RandomPairs(),
)


def drawn(pairing: Pairing, *axes: int, seed: int = 5) -> tuple[torch.Tensor, torch.Tensor]:
    n_rows, n_factors = int(np.prod(axes)), len(SPACE.factors)
    words = rng.words(seed, rng.Purpose.PAIR, 0, n_rows, n_factors + pairing.n_words(SPACE)).view(*axes, -1)
    return scaled(SPACE, words[..., :n_factors]), words[..., n_factors:]


@pytest.mark.parametrize("pairing", ALL, ids=repr)
def test_any_leading_axes_give_the_partners_of_their_rows(pairing: Pairing) -> None:
    first, words = drawn(pairing, 3, 4, 25)
    kept = first.clone()
    found = pairing.partners(SPACE, first, words)
    flat = pairing.partners(SPACE, first.flatten(0, 2), words.flatten(0, 2))
    assert found.factors.shape == found.redrawn.shape == first.shape
    assert (found.factors.flatten(0, 2) == flat.factors).all()
    assert (found.redrawn.flatten(0, 2) == flat.redrawn).all()
    assert (found.factors >= 0).all()
    assert (found.factors < torch.tensor(SPACE.sizes)).all()
    assert (first == kept).all()
    assert not ((found.factors != first) & ~found.redrawn).any()
    assert found.group is None or (found.group.shape == first.shape[:-1] and (found.group >= 0).all())


@pytest.mark.parametrize("pairing", ALL, ids=repr)
def test_a_gpu_draws_the_same(pairing: Pairing, gpu: torch.device) -> None:
    first, words = drawn(pairing, 2, 500)
    here, there = (pairing.partners(SPACE, first.to(at), words.to(at)) for at in ("cpu", gpu))
    assert (here.factors == there.factors.cpu()).all()
    assert (here.redrawn == there.redrawn.cpu()).all()


@pytest.mark.parametrize(
    ("call", "digest"),
    [
        ("transitions(SPACE, 5000, 3, 4)", "4528f3cad22753f2"),
        ("transitions(SPACE, 5000, 3, 4, rate=8.0, categorical_change=True)", "759d9d4b5e71b5ef"),
        ("transitions(SPACE, 5000, 3, 4, rate=20.0)", "38be22285a9d492d"),
        ("transitions(SPACE, 5000, 1, always_change=False)", "f0f961d8b2d0bdff"),
        ("changes(SPACE, 5000, 3, 4)", "a76935115eb821ea"),
        ("changes(SPACE, 5000, 3, 4, often_one=True)", "6d9f01957283e642"),
        ("changes(SPACE, 5000, 3, 4, k=2, must_differ=True)", "aea6fc5c366cc32a"),
        ("share_pairs(SPACE, 5000, 3, 4)", "e7c7eb67788f56bb"),
        ('change_pairs(SPACE, 5000, 3, 4, groups=[["x", "scale"], ["turn"]])', "c17e3a70750f9e61"),
        ('rank_pairs(SPACE, 5000, 3, 4, names=["x"])', "987c6ad56522fa55"),
    ],
)
def test_the_pairs_are_those_of_version_0_1_0(call: str, digest: str) -> None:
    found = eval(call, {**vars(pairs), "SPACE": SPACE})
    parts = (found.first, found.second, getattr(found, "redrawn", None))
    parts = (*parts[:2], found.greater if parts[2] is None else parts[2])
    content = b"".join(part.to(torch.int64).numpy().tobytes() for part in parts)
    assert hashlib.sha256(content).hexdigest()[:16] == digest


def test_a_step_inverts_the_distribution_function() -> None:
    pairing = Transitions(rate=3.0, always_change=False)
    first, words = drawn(pairing, 400)
    second = pairing.partners(SPACE, first, words).factors
    for place, factor in enumerate(SPACE.factors):
        table = step_probabilities(factor, 3.0).numpy()
        for row in range(400):
            reached, value, word = 0.0, -1, int(words[row, place]) / 2**32
            while reached <= word and value < factor.size - 1:
                value += 1
                reached += table[first[row, place], value]
            expected = int(first[row, place]) if factor.kind == "categorical" else value
            assert int(second[row, place]) == expected


def test_the_original_codes_steps_do_not_go_round() -> None:
    for start in range(10):
        density = laplace.pdf(np.arange(10), loc=start, scale=np.log(10) / 2.0)
        found = step_probabilities(Factor("turn", 10, "cyclic"), 2.0, cyclic=False)[start]
        np.testing.assert_allclose(found, density / density.sum(), rtol=1e-12)
    wraps, ends = ((Transitions(rate=5.0, cyclic=cyclic), cyclic) for cyclic in (True, False))
    for pairing, cyclic in (wraps, ends):
        first, words = drawn(pairing, 20_000)
        far = pairing.partners(SPACE, first, words).factors[first[:, 2] == 0, 2] == 9
        assert (far.float().mean() > 0.05) == cyclic


def test_extreme_words_stay_inside_and_move_what_must_move() -> None:
    for word in (0, 2**32 - 1):
        for value in (0, -1):
            first = torch.tensor([[value % size for size in SPACE.sizes]])
            for pairing in ALL:
                words = torch.full((1, pairing.n_words(SPACE)), word)
                found = pairing.partners(SPACE, first, words).factors
                assert ((found >= 0) & (found < torch.tensor(SPACE.sizes))).all()
                assert not isinstance(pairing, Transitions) or (found != first).any()


def test_the_last_redrawn_factor_is_one_that_was_redrawn() -> None:
    first, words = drawn(Changes(), 2_000)
    found = Changes().partners(SPACE, first, words)
    assert found.redrawn.gather(1, found.group[:, None]).all()
    one = Changes(k=1).partners(SPACE, first, words)
    assert (one.redrawn == torch.nn.functional.one_hot(one.group, 5).bool()).all()
    assert torch.bincount(found.group, minlength=5).min() > 300


def test_random_partners_know_nothing_of_the_first() -> None:
    first, words = drawn(RandomPairs(), 40_000)
    found = RandomPairs().partners(SPACE, first, words)
    for place, size in list(enumerate(SPACE.sizes))[:4]:
        table = np.bincount(first[:, place] * size + found.factors[:, place], minlength=size * size)
        assert chi2_contingency(table.reshape(size, size)).pvalue > 1e-3
    assert found.redrawn.all()
    assert torch.bincount(found.group).tolist() == pytest.approx([8_000] * 5, rel=0.05)


def test_every_pairing_is_in_the_table_and_in_plain_json() -> None:
    assert {pairing.name: pairing for pairing in PAIRINGS.values()} == PAIRINGS
    assert set(Pairing.__subclasses__()) == set(PAIRINGS.values())
    for pairing in ALL:
        assert from_plain(Pairing, to_plain(pairing), {Pairing: PAIRINGS}) == pairing


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: Transitions(rate=0.0), "rate must be above 0, not 0.0"),
        (lambda: Changes(k=-1), "k must be 0 or more, not -1"),
        (lambda: Changes(k=6), "k must lie in 0…5 for the factors shape, scale, turn, x, big, given 6"),
        (lambda: SharePairs(((),)), "non-empty lists"),
        (lambda: ChangePairs((("colour",),)), "unknown factor 'colour'"),
    ],
)
def test_bad_input_is_refused(make: object, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        use(make())


def use(pairing: Pairing) -> None:
    pairing.partners(SPACE, *drawn(pairing, 3))
