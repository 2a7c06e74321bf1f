"""Counter-based randomness: known answers, independence of place, and the distributions."""

import importlib.util
import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from scipy import stats

from unweave import rng
from unweave.rng import Purpose

FULL = 0xFFFFFFFF


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [  # the known-answer vectors published with Random123 for philox4x32-10
        ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((FULL,) * 4, (FULL,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_philox_gives_the_published_answers(counter, key, expected):
    drawn = rng.philox(tuple(map(torch.tensor, counter)), tuple(map(torch.tensor, key)))
    assert tuple(int(word) for word in drawn) == expected


def test_a_draw_does_not_depend_on_its_neighbours():
    wide = rng.normal(7, Purpose.NOISE, torch.arange(5), 64, 10)
    narrow = rng.normal(7, Purpose.NOISE, 3, 16, 6)
    assert torch.equal(wide[3, :16, :6], narrow)


def test_seeds_and_steps_may_be_stacked():
    seeds, steps = torch.tensor([3, 9])[:, None], torch.arange(4)
    stacked = rng.uniform(seeds, Purpose.BATCH, steps, 8, 3)
    assert stacked.shape == (2, 4, 8, 3)
    assert torch.equal(stacked[1, 2], rng.uniform(9, Purpose.BATCH, 2, 8, 3))


def test_seed_purpose_and_step_all_matter():
    draws = [rng.words(s, p, t, 4, 4) for s in (0, 1, 2**40) for p in (1, 2) for t in (0, 1, 2**33)]
    assert len({tuple(d.flatten().tolist()) for d in draws}) == len(draws)


def test_distributions():
    assert stats.kstest(rng.normal(1, Purpose.NOISE, 0, 1000, 20).flatten().numpy(), "norm").pvalue > 0.01
    assert stats.kstest(rng.uniform(1, Purpose.NOISE, 0, 1000, 20).flatten().numpy(), "uniform").pvalue > 0.01
    counts = torch.bincount(rng.integers(7, 1, Purpose.BATCH, 0, 1000, 20).flatten(), minlength=7)
    assert len(counts) == 7
    assert stats.chisquare(counts.numpy()).pvalue > 0.01


def test_pairs_of_normals_are_uncorrelated():
    drawn = rng.normal(5, Purpose.NOISE, 0, 20_000, 4)
    off = torch.corrcoef(drawn.T) - torch.eye(4)
    assert off.abs().max() < 4 / math.sqrt(20_000)


def test_permutations_are_permutations_and_differ():
    drawn = rng.permutations(0, Purpose.PERMUTATION, 0, 32, 6)
    assert torch.equal(drawn.sort(0).values, torch.arange(32)[:, None].expand(32, 6))
    assert len({tuple(column.tolist()) for column in drawn.T}) == 6


@pytest.mark.parametrize("size", [1, 2, 3, 64, 1000, 4097])
def test_shuffled_is_a_bijection_that_changes_every_epoch(size):
    place = torch.arange(size)
    orders = [rng.shuffled(place, size, 5, Purpose.ORDER, torch.full_like(place, epoch)) for epoch in (0, 1)]
    for order in orders:
        assert torch.equal(order.sort().values, place)
    assert size < 64 or not torch.equal(*orders)


def test_split_takes_the_share_it_was_asked_for():
    assert int(rng.split_rows(1000, 0.1, 3).sum()) == 100
    assert not torch.equal(rng.split_rows(1000, 0.1, 3), rng.split_rows(1000, 0.1, 4))


@pytest.mark.parametrize(
    ("size", "expected"),
    [  # as version 0.1.0 shuffled: the order of every run with order=epochs depends on it
        (10, [6, 2, 1, 9, 5, 4, 8, 3, 0, 7]),
        (50_000, [37748, 38253, 25245, 30377, 36305, 16023, 18916, 20716, 48721, 24521]),
    ],
)
def test_shuffles_stay_what_they_were(size, expected):
    place = torch.arange(10)
    assert rng.shuffled(place, size, 7, 257, torch.full_like(place, 3)).tolist() == expected


def test_shuffles_of_many_keys_are_those_of_each():
    place = torch.arange(40_000) % 1000
    seeds, epochs = torch.arange(40_000) // 1000, torch.arange(40_000) % 3
    together = rng.shuffled(place, 1000, seeds, 257, epochs)
    for seed in (0, 17, 39):
        own = slice(1000 * seed, 1000 * (seed + 1))
        assert torch.equal(together[own], rng.shuffled(place[own], 1000, seed, 257, epochs[own]))


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed")
def test_the_kernels_draw_the_same_words():
    script = Path(__file__).with_name("drawn_by_kernels.py")
    done = subprocess.run([sys.executable, "-W", "ignore", str(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    same = json.loads(done.stdout.splitlines()[-1])
    assert len(same) > 20
    assert all(same.values()), [name for name, equal in same.items() if not equal]
