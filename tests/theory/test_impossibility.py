"""Theorem 1 of Locatello et al. (2019): the same distribution, entangled."""

import numpy as np
import pytest
import torch
from scipy import stats

from unweave.models.impossibility import MARGINALS, Marginal, entangle, householder

KINDS = tuple(MARGINALS[name] for name in ("uniform", "normal", "logistic"))


def draw(n, seed=0):
    shares = torch.rand(n, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)).clamp(1e-9, 1 - 1e-9)
    return torch.stack([kind.quantile(column) for kind, column in zip(KINDS, shares.unbind(1))], dim=1)


@pytest.mark.parametrize("alpha", [0.1, 0.25, 0.45])
@pytest.mark.parametrize("n_factors", [2, 3, 10])
def test_householder_is_orthogonal_and_full(alpha, n_factors):
    matrix = householder(n_factors, alpha)
    torch.testing.assert_close(matrix @ matrix.T, torch.eye(n_factors, dtype=torch.float64))
    assert (matrix.abs() > 1e-3).all()


def test_the_distribution_stays_the_same():
    factors, entangled = draw(20_000), entangle(draw(20_000), KINDS)
    names = [stats.uniform, stats.norm, stats.logistic]
    for place, name in enumerate(names):
        assert stats.kstest(entangled[:, place].numpy(), name.cdf).pvalue > 0.01
    # jointly: independent, so that P(f(z) ≤ u) = Π P(z_i ≤ u_i) at any u
    for point in draw(20, seed=1):
        expected = np.prod([name.cdf(value) for name, value in zip(names, point.tolist())])
        assert float((entangled <= point).all(1).double().mean()) == pytest.approx(expected, abs=0.02)
    assert (entangled - factors).abs().mean() > 0.3


def test_every_factor_depends_on_every_other():
    factors = draw(50)
    jacobians = torch.func.vmap(torch.func.jacrev(lambda row: entangle(row[None], KINDS)[0]))(factors)
    assert (jacobians.abs() > 1e-8).all()
    # a disentangled code has one entry a row; here the second largest is no small one
    sizes = (jacobians.abs() / jacobians.abs().amax(-1, keepdim=True)).sort(-1).values
    assert sizes[..., -2].median() > 0.1


def test_the_map_can_be_undone():
    """A is its own inverse, so f is too: z and f(z) are interchangeable."""
    factors = draw(500)
    torch.testing.assert_close(entangle(entangle(factors, KINDS), KINDS), factors, rtol=1e-5, atol=1e-6)


def test_a_distribution_of_ones_own():
    exponential = Marginal(lambda value: -torch.expm1(-value), lambda share: -torch.log1p(-share))
    factors = exponential.quantile(torch.rand(5000, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0)))
    entangled = entangle(factors, (exponential, exponential))
    assert stats.kstest(entangled[:, 1].numpy(), stats.expon.cdf).pvalue > 0.01


def test_bad_arguments_get_one_sentence():
    with pytest.raises(ValueError, match="single factor"):
        householder(1)
    with pytest.raises(ValueError, match="alpha"):
        householder(3, 0.5)
    with pytest.raises(ValueError, match="each of the 3 factors"):
        entangle(draw(5), KINDS[:2])
    with pytest.raises(ValueError, match="orthogonal"):
        entangle(draw(5), KINDS, torch.ones(3, 3, dtype=torch.float64))
