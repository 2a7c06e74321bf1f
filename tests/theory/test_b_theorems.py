"""Theorems 5.2.1, 7.4.1 and 7.4.2 of Bonheme (2023) in numbers, and where the last of them does not hold."""

from itertools import combinations

import numpy as np
import pytest
import torch

from unweave.metrics.similarity.cka import cka

RNG = np.random.default_rng(0)


def ivae_loss(weight, noise, image, mean, variance, prior_mean, prior_variance):
    """−L of a linear iVAE with one example, equation 5.3: reconstruction and KL to the learned prior."""
    rebuilt = (image - weight @ mean).square().sum() + (weight.square().sum(0) * variance).sum()
    kl = (variance / prior_variance + (mean - prior_mean).square() / prior_variance).sum()
    return rebuilt / noise + kl + prior_variance.log().sum() - variance.log().sum()


@pytest.mark.parametrize("noise", [1e-3, 1.0, 1e3, 1e9])
def test_no_point_maximises_all_parameters_of_an_ivae_unless_it_rebuilds_nothing(noise):
    """Theorem 5.2.1: where prior and mean are optimal, the posterior variance is not, by WᵀW/γ."""
    weight, image = (torch.tensor(RNG.normal(size=size)) for size in ((5, 3), (5,)))
    mean = torch.linalg.lstsq(weight, image[:, None]).solution[:, 0]  # equation 5.10
    variance = torch.tensor([0.3, 0.1, 0.02], dtype=torch.float64)
    point = [tensor.clone().requires_grad_() for tensor in (mean, variance, mean, variance)]
    slopes = torch.autograd.grad(ivae_loss(weight, noise, image, *point), point)
    for slope in (slopes[0], slopes[2], slopes[3]):
        torch.testing.assert_close(slope, torch.zeros_like(slope), atol=1e-9 + 1e-12 / noise, rtol=0)
    torch.testing.assert_close(slopes[1], weight.square().sum(0) / noise)


def test_posterior_and_prior_shrink_together_without_an_end():
    """Setting each to its optimum in turn (5.6 and 5.7) lets 1/Σ grow by WᵀW/γ a round: there is no fixed point."""
    squares, noise, variance = np.array([2.0, 0.5]), 0.1, np.array([0.4, 0.7])
    begin = variance.copy()
    for _ in range(50):
        prior = variance  # 5.6
        variance = 1 / (squares / noise + 1 / prior)  # 5.7
    np.testing.assert_allclose(variance, 1 / (1 / begin + 50 * squares / noise))


def linear_variance(n, passive, noise=1e-8):
    """Σ of equation 4.15 for eigenvalues that vanish at the passive places."""
    eigenvalues = np.where(np.isin(np.arange(n), passive), 0.0, RNG.uniform(0.5, 2.0, n))
    return np.diag(1 / (eigenvalues / noise + 1))


def test_equal_variances_have_equal_numbers_of_passive_latents():
    """Theorem 7.4.1 over all polarised Σ of five latents: a CKA of 1 comes with the same number of passive ones."""
    n = 5
    places = [some for size in range(1, n + 1) for some in combinations(range(n), size)]
    tables = {some: linear_variance(n, some) for some in places}
    for one, other in combinations(places, 2):
        if cka(tables[one], tables[other], estimator="biased") > 1 - 1e-6:
            assert len(one) == len(other)
    turned = np.linalg.qr(RNG.normal(size=(n, n)))[0]
    sigma = tables[0, 1]
    assert cka(sigma, 3.0 * sigma @ turned, estimator="biased") == pytest.approx(1.0)
    # a rotation and a scale change no singular value's share: as many stay at 0
    assert (np.linalg.svd(3.0 * sigma @ turned)[1] < 1e-6).sum() == n - 2


def test_rotations_and_scales_of_variances_keep_the_number_of_active_latents():
    """Theorem 7.4.2 as it is proved: Σ̄(x) = ξ R Σ(x) has as many directions without variance as Σ(x)."""
    slopes = RNG.normal(size=(7, 4)) @ np.diag([1.0, 2.0, 0.0, 0.0])
    sigma = np.linalg.inv(np.eye(4) + slopes.T @ slopes / 1e-10)  # 7.13
    turned = 0.5 * np.linalg.qr(RNG.normal(size=(4, 4)))[0] @ sigma
    for one in (sigma, turned):
        assert (np.linalg.svd(one)[1] < 1e-6).sum() == 2


def test_centred_variances_may_be_alike_with_other_numbers_of_active_latents():
    """But a CKA of 1 of variance codes over examples does not give Σ̄ = ξRΣ: centring takes constant columns away.

    One active latent beside two passive ones, and the same spread over two active latents beside one passive one.
    """
    active = RNG.uniform(0.01, 0.05, 200)
    ones = np.ones_like(active)
    first = np.stack([active, ones, ones], axis=1)
    second = np.stack([active / np.sqrt(2), active / np.sqrt(2), ones], axis=1)
    assert cka(first, second, estimator="biased") == pytest.approx(1.0)
    assert [(table.mean(0) < 0.1).sum() for table in (first, second)] == [1, 2]
