"""Rényi entropy, mutual information and SPI by slow loops and in limiting cases."""

import math

import numpy as np
import pytest
import torch

from unweave.metrics.entropy.renyi import _normalised, renyi, renyi_entropy, silverman
from unweave.metrics.entropy.spi import spi

CODES = np.random.default_rng(0).normal(size=(40, 3))
OTHER = np.random.default_rng(1).normal(size=(40, 2))


def slow_matrix(codes, width):
    n = len(codes)
    k = np.array([[np.exp(-np.sum((codes[i] - codes[j]) ** 2) / (2 * width**2)) for j in range(n)] for i in range(n)])
    return k / (n * np.sqrt(np.outer(np.diag(k), np.diag(k))))


def slow_entropy(matrix, alpha):
    values = np.linalg.eigvalsh(matrix).clip(0)
    return np.log2((values**alpha).sum()) / (1 - alpha)


@pytest.mark.parametrize("alpha", [2.0, 1.01, 0.5, 3.0])
def test_entropies_by_their_equations(alpha):
    widths = silverman(torch.tensor(CODES)), silverman(torch.tensor(OTHER))
    assert widths[0] == pytest.approx(np.sqrt(CODES.var(0).mean()) * 40 ** (-1 / 7))
    a, b = slow_matrix(CODES, widths[0]), slow_matrix(OTHER, widths[1])
    joint = a * b / np.trace(a * b)
    found = renyi(CODES, OTHER, alpha=alpha)
    assert found.left == pytest.approx(slow_entropy(a, alpha))
    assert found.joint == pytest.approx(slow_entropy(joint, alpha))
    assert found.mutual == pytest.approx(slow_entropy(a, alpha) + slow_entropy(b, alpha) - slow_entropy(joint, alpha))
    assert renyi_entropy(CODES, alpha=alpha) == pytest.approx(found.left)


def test_the_limit_is_shannons():
    near = (renyi_entropy(CODES, alpha=1 - 1e-5) + renyi_entropy(CODES, alpha=1 + 1e-5)) / 2
    assert renyi_entropy(CODES, alpha=1.0) == pytest.approx(near, rel=1e-6)


def test_entropies_in_the_limits():
    for alpha in (0.5, 1.0, 1.01, 2.0):
        assert renyi_entropy(np.ones((16, 2)), alpha=alpha) == pytest.approx(0.0, abs=1e-6)
    apart = 1e6 * np.eye(16)
    assert renyi_entropy(apart, width=1.0) == pytest.approx(4.0)
    assert renyi_entropy(apart, width=1.0, alpha=1.01) == pytest.approx(4.0)
    # a code shares all it has with itself when its points are distinct
    assert renyi(apart, apart, widths=(1.0, 1.0)).mutual == pytest.approx(4.0)
    assert renyi(np.ones((16, 2)), apart, widths=(1.0, 1.0)).mutual == pytest.approx(0.0)


def test_what_depends_shares_more():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(300, 1))
    near, far = x + 0.1 * rng.normal(size=x.shape), rng.normal(size=x.shape)
    assert renyi(x, near, alpha=1.01).mutual > renyi(x, far, alpha=1.01).mutual + 1.0


def test_renyi_of_bad_input():
    with pytest.raises(ValueError, match="one row per sample"):
        renyi(CODES, OTHER[:5])
    with pytest.raises(ValueError, match="alpha must be positive"):
        renyi_entropy(CODES, alpha=0.0)
    with pytest.raises(ValueError, match="width"):
        renyi_entropy(CODES, width=0.0)


def test_spi_by_its_equation():
    rng = np.random.default_rng(0)
    images, others = rng.uniform(size=(30, 4, 5)), rng.uniform(size=(30, 4, 5))
    flat, flat_others = images.reshape(30, -1), others.reshape(30, -1)
    total = 0.0
    for i in range(30):
        for j in range(30):
            before = flat[i] @ flat[j] / np.linalg.norm(flat[i]) / np.linalg.norm(flat[j])
            after = flat_others[i] @ flat_others[j] / np.linalg.norm(flat_others[i]) / np.linalg.norm(flat_others[j])
            total += abs(before - after) / 30
    found = spi(images, others)
    assert found.score == pytest.approx(total, rel=1e-4)
    assert found.per_pair == pytest.approx(total / 30, rel=1e-4)
    assert float(found.per_example.sum()) == pytest.approx(total, rel=1e-4)
    assert spi(images, 3 * images).score == pytest.approx(0.0, abs=1e-4)
    assert spi(np.zeros((5, 3)), np.zeros((5, 3))).score == 0.0
    assert math.isfinite(spi(images, 0 * images).score)


def test_spi_of_bad_input():
    with pytest.raises(ValueError, match="one row per sample"):
        spi(np.ones((4, 2)), np.ones((5, 2)))
    with pytest.raises(ValueError, match="sample × …"):
        spi(np.ones(4), np.ones(4))


def test_wide_tables_have_the_kernels_of_narrow_ones():
    """Distances of pictures are made of products: they are those of the differences."""
    wide = np.random.default_rng(2).normal(size=(60, 300)) + 100.0
    wide[1] = wide[0]
    for width in (silverman(torch.tensor(wide)), 0.5, 1e-6):
        assert _normalised(torch.tensor(wide), width).numpy() == pytest.approx(slow_matrix(wide, width), abs=1e-9)
