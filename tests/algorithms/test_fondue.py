"""FONDUE on constructed codes: a model that has use for so many latents and no more."""

import math

import numpy as np
import pytest
import torch

from unweave.algorithms.fondue import (
    CRITERIA,
    METHODS,
    Evidence,
    Reading,
    batchwise_ib_reading,
    fondue,
    ib_reading,
    ide_reading,
    stable_ide_reading,
    trace_reading,
)
from unweave.metrics.dimension.mle import mle

USEFUL = 3


def codes(n, useful=USEFUL, n_samples=800, active=0.02, seed=0):
    """Codes of n latents, as many active as are useful, the others at the prior."""
    generator = torch.Generator().manual_seed(seed)
    mean = torch.randn(n_samples, n, generator=generator)
    variance = torch.full((n_samples, n), active)
    mean[:, useful:] *= 1e-3
    variance[:, useful:] = 1.0
    sampled = mean + variance.sqrt() * torch.randn(n_samples, n, generator=generator)
    return Evidence(mean, variance, sampled)


@pytest.mark.parametrize("method", ["fondue", "bs_fondue"])
@pytest.mark.parametrize("start", [1, 5, 20, 100])
def test_the_trace_counts_useful_latents_from_any_start(method, start):
    found = fondue(lambda n: trace_reading(codes(n, n_samples=50)), method=method, start=start)
    assert found.n == USEFUL
    assert found.threshold == 1.0
    assert set(found.readings) == {visit.n for visit in found.found.visits}


@pytest.mark.parametrize("useful", [1, 2, 7, 11])
def test_as_many_as_are_useful(useful):
    assert fondue(lambda n: trace_reading(codes(n, useful, 50))).n == useful


@pytest.mark.parametrize("n_passive", [0, 1, 4])
def test_the_trace_difference_counts_passive_latents(n_passive):
    evidence = codes(USEFUL + n_passive, n_samples=40_000, active=0.0)
    assert trace_reading(evidence).difference == pytest.approx(n_passive, abs=1e-6)
    # the published route, through samples
    drawn = np.trace(np.atleast_2d(np.cov(evidence.sampled.T))) - np.trace(np.atleast_2d(np.cov(evidence.mean.T)))
    assert trace_reading(evidence).difference == pytest.approx(drawn, abs=0.1)


def test_a_mixed_latent_lies_between():
    evidence = codes(USEFUL, active=0.0)
    variance = evidence.variance.clone()
    variance[: len(variance) // 4, 0] = 1.0
    found = trace_reading(Evidence(evidence.mean, variance, evidence.sampled))
    assert found.difference == pytest.approx(0.25, abs=1e-6)


def test_thresholds_below_one_allow_active_latents_only():
    # two latents of four are passive for a quarter of the examples each: 0.5 in all
    def measure(n):
        return Reading(0.25 * max(0, min(n, 4) - 2) + max(0, n - 4), 0.0)

    assert fondue(measure, threshold=0.1).n == 2
    assert fondue(measure, threshold=1.0).n == 4


def test_dimensions_of_mean_and_sampled_codes_part():
    assert ide_reading(codes(USEFUL)).difference == pytest.approx(0.0, abs=0.25)
    wide = ide_reading(codes(8, n_samples=2000))
    assert wide.first == pytest.approx(8, abs=1.5)
    found = fondue(lambda n: ide_reading(codes(n)), method="fondue_ide", threshold=0.5, start=6, most=40)
    assert found.n == USEFUL


def entropy(table, together):
    """Rényi's entropy of order 2 from eigenvalues, without any shortcut."""
    table = np.asarray(table, dtype=np.float64).reshape(len(table), -1)
    spread = table.std() if together else math.sqrt(table.var(0).mean())
    width = spread * len(table) ** (-1 / (4 + table.shape[1]))
    gram = np.exp(-((table[:, None] - table[None]) ** 2).sum(-1) / (2 * width**2))
    return gram / np.trace(gram)


def order_two(matrix):
    return -math.log2((np.linalg.eigvalsh(matrix) ** 2).sum())


def information(together):
    """Batches, and by eigenvalues what each has of H(z) and of I(x, x̂)."""
    generator = torch.Generator().manual_seed(0)
    batches = [
        tuple(
            1 + place + torch.randn(20, *shape, generator=generator)
            for place, shape in enumerate(((2,), (1, 3, 3), (1, 3, 3)))
        )
        for _ in range(3)
    ]
    expected = np.zeros((3, 2))
    for place, (sampled, images, rebuilt) in enumerate(batches):
        first, second = entropy(images, together), entropy(rebuilt, together)
        joint = first * second / np.trace(first * second)
        shared = order_two(first) + order_two(second) - order_two(joint)
        expected[place] = [order_two(entropy(sampled, together)), shared]
    return batches, expected


EMPTY = torch.zeros(2, 2)


def test_information_is_averaged_first_and_truncated_then():
    batches, expected = information(together=True)
    asked = []
    found = ib_reading(Evidence(EMPTY, EMPTY, EMPTY, lambda size: asked.append(size) or batches))
    assert asked == [1000]
    assert (found.first, found.second) == pytest.approx(tuple(np.floor(100 * expected.mean(0)) / 100), abs=1e-9)
    with pytest.raises(ValueError, match="needs images"):
        ib_reading(Evidence(EMPTY, EMPTY, EMPTY))


def test_the_other_form_truncates_small_batches_first():
    batches, expected = information(together=False)
    asked = []
    found = batchwise_ib_reading(Evidence(EMPTY, EMPTY, EMPTY, lambda size: asked.append(size) or batches))
    assert asked == [100]
    assert (found.first, found.second) == pytest.approx(tuple((np.floor(100 * expected) / 100).mean(0)), abs=1e-9)
    # the order matters: a mean of truncated values is up to a hundredth lower than the truncated mean
    assert found.first != pytest.approx(math.floor(100 * expected[:, 0].mean()) / 100, abs=1e-9)
    with pytest.raises(ValueError, match="needs images"):
        batchwise_ib_reading(Evidence(EMPTY, EMPTY, EMPTY))


def test_dimensions_are_those_of_twenty_neighbours():
    evidence = codes(8, n_samples=500)
    assert ide_reading(evidence).first == mle(evidence.sampled, neighbours=(20,)).score
    assert stable_ide_reading(evidence).first == mle(evidence.sampled).score
    assert ide_reading(evidence).first != stable_ide_reading(evidence).first


@pytest.mark.parametrize("method", ["fondue_ib", "ib"])
def test_information_stops_at_equality(method):
    # H(z) grows to I(x, x̂) = 6.64 in steps of 0.01: 6.63 − 6.64 is a little more than −0.01 in floats, and passes
    found = fondue(lambda n: Reading(min(6.64, 6.6 + 0.01 * n), 6.64), method=method, start=2)
    assert found.n == 3


def test_every_method_has_its_criterion():
    assert {method.criterion for method in METHODS.values()} == set(CRITERIA)
    assert {name: CRITERIA[METHODS[name].criterion].threshold for name in METHODS} == {
        "fondue": 1.0, "fondue_ide": 1.0, "fondue_ib": -0.01, "bs_fondue": 1.0, "ib": -0.01,
        "fondue_ide_stable": 1.0, "fondue_ib_100": -0.01,
    }  # fmt: skip


def test_bad_input():
    with pytest.raises(ValueError, match="Did you mean fondue"):
        fondue(lambda n: Reading(0.0, 0.0), method="fondu")
    with pytest.raises(ValueError, match="cannot judge n = 1"):
        fondue(lambda n: Reading(math.inf, 0.0))


def test_nothing_passes_and_everything_passes():
    assert fondue(lambda n: Reading(2.0, 0.0), start=9).n == 0
    found = fondue(lambda n: Reading(0.0, 0.0), start=9, most=50)
    assert (found.n, found.found.limited) == (50, True)
