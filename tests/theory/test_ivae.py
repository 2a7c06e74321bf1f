"""Linear identifiable VAEs: closed forms against numerical optimisation, and Propositions 5.2.1 and 5.2.2."""

import pytest
import torch

from unweave.metrics.polarised.types import variable_types
from unweave.models.closed_form import linear_loss, posterior
from unweave.models.closed_form_ivae import ivae_loss, ivae_posterior, ivae_prior

BASIS = torch.linalg.qr(torch.randn(5, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(2))).Q
SPECTRUM = torch.tensor([3.0, 1.0, 0.4, 0.05, 0.05], dtype=torch.float64)
COVARIANCE = BASIS @ torch.diag(SPECTRUM) @ BASIS.T
WEIGHT = BASIS[:, :3] * torch.tensor([1.0, 2.0, 0.5], dtype=torch.float64)
NOISE = 0.1


def test_a_standard_prior_gives_the_linear_vae():
    ones = torch.ones(3, dtype=torch.float64)
    weight = torch.randn(5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    encoder, _, covariance = ivae_posterior(weight, NOISE, ones)
    expected = posterior(weight, NOISE)
    torch.testing.assert_close(encoder, expected[0])
    torch.testing.assert_close(covariance, expected[1])
    assert float(ivae_loss(weight, COVARIANCE, NOISE, ones)) == pytest.approx(linear_loss(weight, COVARIANCE, NOISE))


def test_the_posterior_is_bayes():
    """For a full covariance it is the exact posterior of a linear Gaussian model, found here by conditioning."""
    prior = torch.tensor([0.5, 2.0, 1.5], dtype=torch.float64)
    weight = torch.randn(5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    encoder, shift, covariance = ivae_posterior(weight, NOISE, prior, diagonal=False)
    cross = torch.diag(prior) @ weight.T
    gain = cross @ torch.linalg.inv(weight @ torch.diag(prior) @ weight.T + NOISE * torch.eye(5))
    torch.testing.assert_close(encoder, gain)
    torch.testing.assert_close(covariance, torch.diag(prior) - gain @ cross.T)
    # E[z | x] = μ† + gain (x − b − Wμ†)
    torch.testing.assert_close(shift, torch.eye(3, dtype=torch.float64) - gain @ weight)


def test_the_prior_is_the_minimum():
    prior = ivae_prior(WEIGHT, COVARIANCE, NOISE)
    torch.testing.assert_close(prior, (SPECTRUM[:3] - NOISE) / torch.tensor([1.0, 4.0, 0.25]).double())
    free = prior.clone().mul_(1.3).log().requires_grad_()
    optimiser = torch.optim.LBFGS(
        [free], max_iter=200, tolerance_grad=1e-12, tolerance_change=1e-16, line_search_fn="strong_wolfe"
    )

    def closure():
        optimiser.zero_grad()
        loss = ivae_loss(WEIGHT, COVARIANCE, NOISE, free.exp())
        loss.backward()
        return loss

    optimiser.step(closure)
    torch.testing.assert_close(free.detach().exp(), prior, rtol=1e-5, atol=0)


def test_active_latents_have_a_prior_of_their_squared_mean():
    """Proposition 5.2.1: Σ† = Σ + μ², and Σ vanishes beside it as the reconstruction gets precise."""
    for noise in (0.1, 1e-3):
        prior = ivae_prior(WEIGHT, COVARIANCE, noise)
        encoder, _, covariance = ivae_posterior(WEIGHT, noise, prior)
        squared_mean = torch.diagonal(encoder @ COVARIANCE @ encoder.T)
        torch.testing.assert_close(prior, torch.diagonal(covariance) + squared_mean)
    assert (torch.diagonal(covariance) / prior).max() < 0.01


def test_passive_latents_keep_their_prior():
    """Proposition 5.2.2: mean 0 and Σ = Σ†, whatever Σ† is; and the rule for types sees it."""
    weight = torch.cat([WEIGHT, torch.zeros(5, 1, dtype=torch.float64)], dim=1)
    prior = torch.tensor([2.9, 0.225, 1.2, 0.3], dtype=torch.float64)
    encoder, _, covariance = ivae_posterior(weight, 1e-3, prior)
    assert (encoder[3] == 0).all()
    torch.testing.assert_close(torch.diagonal(covariance)[3], prior[3])
    data = torch.randn(500, 5, dtype=torch.float64) @ torch.linalg.cholesky(COVARIANCE).T
    variance = torch.diagonal(covariance).expand(500, 4)
    types = variable_types(data @ encoder.T, variance, prior_variance=prior.expand(500, 4))
    assert types == ["active", "active", "active", "passive"]
    assert variable_types(data @ encoder.T, variance)[3] == "mixed"  # a prior of 1 would not see it


def test_a_direction_below_the_noise_is_passive():
    assert ivae_prior(BASIS[:, 2:4], COVARIANCE, NOISE).tolist() == pytest.approx([0.3, 0.0])


def test_what_the_closed_form_cannot_do_is_refused():
    with pytest.raises(ValueError, match="must be orthogonal"):
        ivae_prior(torch.ones(5, 2, dtype=torch.float64), COVARIANCE, NOISE)
    with pytest.raises(ValueError, match="must be positive"):
        ivae_posterior(WEIGHT, NOISE, torch.zeros(3, dtype=torch.float64))


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
def test_columns_are_orthogonal_or_not_whatever_their_length(scale):
    ivae_prior(WEIGHT * scale, COVARIANCE, NOISE)
    leaning = WEIGHT.clone()
    leaning[:, 1] += 0.01 * WEIGHT[:, 0]
    with pytest.raises(ValueError, match="must be orthogonal"):
        ivae_prior(leaning * scale, COVARIANCE, NOISE)
