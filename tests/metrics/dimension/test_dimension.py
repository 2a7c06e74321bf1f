"""Intrinsic dimension on manifolds of known dimension, and against scikit-learn's neighbours and slow loops."""

import math
import sys

import numpy as np
import pytest
import torch
from sklearn.neighbors import NearestNeighbors

from unweave.metrics.dimension import nearest, neighbours
from unweave.metrics.dimension.intrinsic import intrinsic
from unweave.metrics.dimension.mle import mle
from unweave.metrics.dimension.nearest import Nearest
from unweave.metrics.dimension.neighbours import distinct, neighbour_distances
from unweave.metrics.dimension.stable import stable_range
from unweave.metrics.dimension.two_nn import two_nn


def cube(n, d, embedded=None, seed=0):
    """Uniform in a d-cube, rotated into a larger space."""
    rng = np.random.default_rng(seed)
    points = rng.uniform(size=(n, d))
    return points if embedded is None else points @ np.linalg.qr(rng.normal(size=(embedded, d)))[0].T


def sphere(n, d, seed=0):
    points = np.random.default_rng(seed).normal(size=(n, d + 1))
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def reference(points, k):
    return NearestNeighbors(n_neighbors=k + 1, algorithm="brute").fit(points).kneighbors(points)[0][:, 1:]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("block_bytes", [1_000, 20_000, 2**26])
def test_neighbours_are_scikit_learns(dtype, block_bytes):
    points = np.random.default_rng(0).normal(size=(150, 9)) + 100.0
    found = neighbour_distances(torch.tensor(points, dtype=dtype), 6, block_bytes=block_bytes)
    np.testing.assert_allclose(found, reference(points, 6), rtol=1e-4 if dtype == torch.float32 else 1e-8)


def test_close_neighbours_do_not_drown_in_rounding():
    """Pairs 1e-4 apart at a distance of 1 from the rest: ‖x‖² − 2x·y + ‖y‖² alone cannot see that in float32."""
    base = torch.randn(100, 64, generator=torch.Generator().manual_seed(0))
    points = torch.cat([base, base + 1e-4 / 8])
    found = neighbour_distances(points, 1)
    assert found[:, 0].tolist() == pytest.approx([1e-4] * 200, rel=0.1)


def test_distinct_points_keep_their_order():
    points = torch.tensor([[3.0, 1.0], [0.0, 2.0], [3.0, 1.0], [1.0, 1.0], [0.0, 2.0]])
    assert distinct(points).tolist() == [[3.0, 1.0], [0.0, 2.0], [1.0, 1.0]]


def slow_mle(points, k):
    estimates = []
    for row in reference(points, k):
        estimates.append(1 / (sum(math.log(row[k - 1] / row[j]) for j in range(k - 1)) / (k - 1)))
    return np.mean(estimates), 1 / np.mean([1 / e for e in estimates])


def test_mle_by_its_equation():
    points = cube(300, 3, 6)
    found = mle(points, neighbours=[10, 3, 5])
    assert found.neighbours == (3, 5, 10)
    for place, k in enumerate(found.neighbours):
        mean, inverse = slow_mle(points, k)
        assert float(found.levina_bickel[place]) == pytest.approx(mean)
        assert float(found.mackay_ghahramani[place]) == pytest.approx(inverse)
    torch.testing.assert_close(found.per_k, found.levina_bickel)
    torch.testing.assert_close(
        mle(points, neighbours=[3, 5], averaging="mackay_ghahramani").per_k, found.mackay_ghahramani[:2]
    )


def test_the_worked_example_of_the_thesis():
    """A point at 0 with neighbours at distances 1, 1, 2 has dimension 1 / log 2 by k = 3 (equation 8.4)."""
    from unweave.metrics.dimension.mle import mle_of

    found = mle_of(torch.tensor([[1.0, 1.0, 2.0]], dtype=torch.float64), (3,))
    assert found.score == pytest.approx(1 / math.log(2))


@pytest.mark.parametrize(
    ("points", "dimension"), [(cube(2000, 2, 20), 2), (cube(3000, 5, 20), 5), (sphere(2000, 3), 3)]
)
def test_known_dimensions(points, dimension):
    found = mle(points, neighbours=(10, 20), averaging="mackay_ghahramani")
    assert found.score == pytest.approx(dimension, rel=0.12)
    assert two_nn(points).score == pytest.approx(dimension, rel=0.12)


def test_two_nn_by_its_equation():
    points = cube(500, 3)
    near = reference(points, 2)
    ratios = np.sort(near[:, 1] / near[:, 0])
    kept = int(500 * 0.9)
    y = -np.log(1 - np.arange(1, 501) / 500 + 1e-300)[:kept]
    x = np.log(ratios[:kept])
    slope = np.linalg.lstsq(x[:, None], y, rcond=None)[0][0]
    found = two_nn(points)
    assert found.score == pytest.approx(slope)
    assert len(found.log_ratio) == kept


def test_repeated_points_count_once():
    points = cube(400, 2)
    twice = np.concatenate([points, points[:150], points[:40]])
    assert mle(twice).score == pytest.approx(mle(points).score)
    assert mle(twice).n_points == 400
    assert two_nn(twice).score == pytest.approx(two_nn(points).score)


def test_constant_points_have_no_dimension():
    points = np.ones((50, 4))
    assert mle(points).score == 0.0
    assert two_nn(points).score == 0.0
    found = intrinsic(points)
    assert (found.score, found.two_nn) == (0.0, 0.0)


def test_constant_columns_change_nothing():
    points = cube(300, 2)
    wider = np.c_[points, np.full((300, 3), 7.0)]
    assert mle(wider).score == pytest.approx(mle(points).score)


def test_equally_far_neighbours():
    """One-hot points: every distance is √2. No ratio tells anything, and the answer is defined."""
    points = np.eye(30)
    assert mle(points, neighbours=(3, 5)).score == math.inf
    assert two_nn(points).score == math.inf


def test_too_few_points_are_refused():
    with pytest.raises(ValueError, match="at least 21 distinct points, given 10"):
        mle(cube(10, 2))
    with pytest.raises(ValueError, match="fewer neighbours"):
        mle(np.repeat(cube(10, 2), 5, axis=0))
    with pytest.raises(ValueError, match="at least 2"):
        mle(cube(30, 2), neighbours=(1, 5))
    with pytest.raises(ValueError, match="averaging"):
        mle(cube(30, 2), averaging="median")
    with pytest.raises(ValueError, match="anchor"):
        two_nn(cube(30, 2), anchor=1.0)
    with pytest.raises(ValueError, match="finite"):
        mle(np.full((30, 2), np.nan))
    for wrong, said in {"neighbours": (1, 5), "averaging": "median", "anchor": 1.0, "n_samples": 2}.items():
        with pytest.raises(ValueError, match=wrong):
            intrinsic(cube(30, 2), **{wrong: said})
    assert np.isfinite(intrinsic(cube(30, 2), neighbours=(2,), n_samples=3).two_nn)
    with pytest.raises(ValueError, match="given none"):
        intrinsic(cube(30, 2), neighbours=())


def test_the_stable_range_is_the_longest_calm_one():
    found = stable_range((3, 5, 10, 20), (4.0, 5.0, 5.1, 4.9))
    assert found.neighbours == (5, 10, 20)
    assert found.value == pytest.approx(5.0)
    assert found.found
    wild = stable_range((3, 5, 10), (1.0, 3.0, 4.0))
    assert (wild.neighbours, wild.found) == ((5, 10), False)
    assert stable_range((3,), (2.0,)).value == 2.0
    tie = stable_range((3, 5, 10, 20), (2.0, 2.1, 5.0, 5.01))
    assert tie.neighbours == (10, 20)


def test_subsets_are_drawn_by_the_seed():
    points = cube(1500, 2)
    first = intrinsic(points, n_samples=500, seeds=(0, 1, 2))
    again = intrinsic(points, n_samples=500, seeds=(0, 1, 2))
    assert first.score == again.score
    assert first.spread > 0
    assert len(first.mle_runs) == 3
    assert first.score == pytest.approx(np.mean([run.score for run in first.mle_runs]))
    whole = intrinsic(points, seeds=(0, 1, 2))
    assert (whole.score, whole.spread) == (mle(points).score, 0.0)
    assert whole.two_nn == pytest.approx(two_nn(points).score)


def test_points_are_left_alone():
    points = torch.tensor(cube(100, 2))
    before = points.clone()
    mle(points)
    two_nn(points)
    torch.testing.assert_close(points, before, rtol=0, atol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("repeated", [False, True])
def test_a_tree_finds_the_neighbours_that_products_find(dtype, repeated, monkeypatch):
    points = torch.from_numpy(cube(1200, 3, embedded=8)).to(dtype)
    points = points[torch.arange(1200) % 300] if repeated else points
    by_tree = neighbour_distances(points, 20)
    monkeypatch.setattr(neighbours, "FEW_DIRECTIONS", 0.0)
    assert torch.equal(by_tree, neighbour_distances(points, 20))


@pytest.mark.parametrize("dimension", [3, 16])
def test_of_many_points_some_are_asked_for_neighbours_among_all(dimension):
    points = cube(4000, dimension)
    every, some = (
        neighbour_distances(torch.from_numpy(points), 20, asked=rows) for rows in (None, torch.arange(7, 900))
    )
    assert torch.equal(every[7:900], some)
    for estimate in (mle, two_nn):
        few = estimate(np.concatenate([points, points[:50]]), n_asked=1500)
        assert few.n_points == 1500
        assert few.score == pytest.approx(estimate(points).score, rel=0.06)
        assert few.score != estimate(points).score
        assert estimate(points, n_asked=4000).score == estimate(points).score
    with pytest.raises(ValueError, match="n_asked"):
        mle(points, n_asked=1)


def test_a_machine_without_scipy_finds_the_same_neighbours(monkeypatch):
    points = torch.randn(2000, 3, dtype=torch.float64)
    by_tree = neighbour_distances(points, 20)
    monkeypatch.setattr(neighbours.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "scipy.spatial", None)
    assert torch.equal(by_tree, neighbour_distances(points, 20))


def test_many_directions_are_no_matter_for_a_tree():
    many, few = torch.from_numpy(cube(1200, 16)), torch.from_numpy(cube(1200, 4, embedded=16))
    assert neighbours._is_for_a_tree(few - few.mean(0))
    assert not neighbours._is_for_a_tree(many - many.mean(0))


@pytest.mark.parametrize(
    "points", [cube(300, 3), np.repeat(cube(200, 2, 5), 2, axis=0), np.ones((30, 2)), cube(3000, 3)]
)
def test_neighbours_that_are_searched_once_are_those_searched_twice(points, monkeypatch):
    searches = []

    def counted(*given, **rest):
        searches.append(given)
        return neighbour_distances(*given, **rest)

    monkeypatch.setattr(nearest, "neighbour_distances", counted)
    table = torch.from_numpy(points)
    shared = Nearest(table)
    assert mle(shared, n_asked=1000).score == mle(table, n_asked=1000).score
    n_searches = len(searches)
    found = two_nn(shared, n_asked=1000)
    assert len(searches) == n_searches
    for own, n_asked in ((found, 1000), (two_nn(shared, n_asked=100), 100)):
        alone = two_nn(table, n_asked=n_asked)
        assert (own.score, own.n_points) == (pytest.approx(alone.score, rel=1e-12), alone.n_points)
