"""Losses against the densities of torch.distributions, and against sums written out."""

import pytest
import torch
from torch.distributions import Bernoulli as Coin
from torch.distributions import Normal

from unweave.models.likelihoods import SMALL, Bernoulli, Gaussian, LearnedGaussian, SquaredError

X = torch.rand(5, 2, 3, 3, generator=torch.Generator().manual_seed(0))
OUTPUTS = torch.randn(5, 2, 3, 3, generator=torch.Generator().manual_seed(1))


def summed(density: torch.Tensor) -> torch.Tensor:
    return -density.flatten(1).sum(1)


@pytest.mark.parametrize("log_noise", [-2.0, 0.0, 0.7])
@pytest.mark.parametrize("squash", ["identity", "sigmoid", "tanh"])
def test_a_learned_variance_enters_as_in_the_normal_density(log_noise: float, squash: str) -> None:
    likelihood, noise = LearnedGaussian(squash), torch.tensor(log_noise)
    wanted = summed(Normal(likelihood.mean(OUTPUTS), (noise / 2).exp()).log_prob(X))
    torch.testing.assert_close(likelihood.loss(X, OUTPUTS, noise), wanted)


@pytest.mark.parametrize("variance", [0.01, 0.5, 3.0])
def test_a_fixed_variance_gives_the_normal_density(variance: float) -> None:
    wanted = summed(Normal(OUTPUTS, variance**0.5).log_prob(X))
    torch.testing.assert_close(Gaussian(variance).loss(X, OUTPUTS), wanted)


def test_the_variance_that_is_best_is_the_mean_squared_error() -> None:
    error = (X - OUTPUTS).square().mean()
    losses = [LearnedGaussian().loss(X, OUTPUTS, error.log() + shift).sum() for shift in (-0.1, 0.0, 0.1)]
    assert losses[1] == min(losses)


def test_squared_errors_are_a_gaussian_of_variance_a_half_without_its_constant() -> None:
    error = (X - torch.sigmoid(OUTPUTS)).square().flatten(1).sum(1)
    torch.testing.assert_close(SquaredError().loss(X, OUTPUTS), error)
    steady = Gaussian(0.5, "sigmoid").loss(X, OUTPUTS) - error
    torch.testing.assert_close(steady, steady[:1].expand(5))


def test_pixels_are_coins() -> None:
    coins = (X > 0.5).float()
    torch.testing.assert_close(Bernoulli().loss(coins, OUTPUTS), summed(Coin(logits=OUTPUTS).log_prob(coins)))
    p = (torch.tanh(OUTPUTS) / 2 + 0.5).clamp(SMALL, 1 - SMALL)
    torch.testing.assert_close(Bernoulli("tanh").loss(coins, OUTPUTS), summed(Coin(p).log_prob(coins)))
    torch.testing.assert_close(Bernoulli("tanh").mean(OUTPUTS), torch.tanh(OUTPUTS) / 2 + 0.5)


def test_outputs_out_of_reach_stay_finite() -> None:
    far = torch.full((1, 1), 50.0)
    wanted = -torch.log(torch.tensor(SMALL, dtype=torch.float32))
    found = Bernoulli("tanh").loss(torch.zeros(1, 1), far)
    torch.testing.assert_close(found, wanted.expand(1), rtol=0.05, atol=0.0)


def test_an_image_has_no_loss_beside_its_own_entropy() -> None:
    found = Bernoulli(subtract_entropy=True).loss(X, torch.logit(X))
    torch.testing.assert_close(found, torch.zeros(5), rtol=0.0, atol=1e-4)
    entropy = Coin(X.clamp(SMALL, 1 - SMALL)).entropy().flatten(1).sum(1)
    torch.testing.assert_close(Bernoulli().loss(X, torch.logit(X)), entropy, rtol=1e-4, atol=1e-4)
