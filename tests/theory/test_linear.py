"""The linear theory: closed forms against numerical optimisation, and trained models against closed forms."""

import math
from dataclasses import replace

import pytest
import torch

from unweave.data.synthetic import SynthLin
from unweave.data.world import Data
from unweave.metrics.geometry.jacobian import decoder_gram
from unweave.metrics.geometry.orthogonality import dto
from unweave.metrics.polarised.regime import regime
from unweave.metrics.polarised.traces import traces
from unweave.metrics.polarised.types import variable_types
from unweave.models.closed_form import learned_noise, linear_loss, linear_optimum, posterior
from unweave.models.likelihoods import Gaussian, LearnedGaussian
from unweave.models.networks.mlp import Linear
from unweave.models.objectives.beta_vae import BetaVAE, BetaVAEFull
from unweave.models.optimisers import Adam
from unweave.training.alone import Alone
from unweave.training.experiment import Experiment, Plan


def covariance_of(eigenvalues, seed=0):
    generator = torch.Generator().manual_seed(seed)
    size = len(eigenvalues)
    basis = torch.linalg.qr(torch.randn(size, size, dtype=torch.float64, generator=generator)).Q
    return basis @ torch.diag(torch.tensor(eigenvalues, dtype=torch.float64)) @ basis.T


COVARIANCE = covariance_of([4.0, 2.0, 0.7, 0.3, 0.05])


def minimised(loss, *start):
    """The smallest loss that L-BFGS finds."""
    parameters = [part.contiguous().clone().requires_grad_() for part in start]
    optimiser = torch.optim.LBFGS(parameters, max_iter=500, tolerance_grad=1e-10, line_search_fn="strong_wolfe")

    def closure():
        optimiser.zero_grad()
        value = loss(*parameters)
        value.backward()
        return value

    for _ in range(4):
        optimiser.step(closure)
    return float(loss(*parameters).detach()), [part.detach() for part in parameters]


def elbo_loss(weight, encoder, log_variance, covariance, noise, beta):
    """Reconstruction + β KL of an arbitrary linear VAE with a diagonal posterior, written out once more."""
    residual = torch.eye(len(covariance), dtype=torch.float64) - weight @ encoder
    error = torch.trace(residual @ covariance @ residual.T) + (log_variance.exp() * weight.square().sum(0)).sum()
    moved = torch.diagonal(encoder @ covariance @ encoder.T)
    kl = 0.5 * (moved + log_variance.exp() - log_variance - 1).sum()
    return error / (2 * noise) + 0.5 * len(covariance) * torch.log(2 * math.pi * torch.as_tensor(noise)) + beta * kl


@pytest.mark.parametrize(("noise", "beta", "n_latents"), [(0.5, 1.0, 3), (0.1, 4.0, 4), (0.02, 1.0, 2), (0.5, 10.0, 3)])
def test_the_closed_form_is_the_minimum(noise, beta, n_latents):
    optimum = linear_optimum(COVARIANCE, n_latents, noise=noise, beta=beta)
    generator = torch.Generator().manual_seed(1)
    weight = 0.5 * torch.randn(5, n_latents, dtype=torch.float64, generator=generator)
    found, (decoder, encoder, log_variance) = minimised(
        lambda w, e, v: elbo_loss(w, e, v, COVARIANCE, noise, beta), weight, weight.T, torch.zeros(n_latents).double()
    )
    assert found == pytest.approx(optimum.loss, abs=1e-6)
    torch.testing.assert_close(decoder @ decoder.T, optimum.weight @ optimum.weight.T, atol=1e-3, rtol=0)
    torch.testing.assert_close(log_variance.exp().sort().values, optimum.variance.sort().values, atol=1e-3, rtol=0)
    torch.testing.assert_close(decoder @ encoder, optimum.weight @ optimum.encoder, atol=1e-3, rtol=0)
    assert linear_loss(optimum.weight, COVARIANCE, noise, beta=beta) == pytest.approx(optimum.loss, abs=1e-9)


def test_the_closed_form_says_what_the_thesis_says():
    """Equation 4.15 and its example: Λ² = (4, 1); γ = 0.1 gives (0.02, 0.09), γ = 100 gives (0.96, 0.99)."""
    weight = torch.diag(torch.tensor([2.0, 1.0], dtype=torch.float64))
    for noise, expected in ((0.1, (0.0244, 0.0909)), (100.0, (0.9615, 0.9901))):
        variance = torch.diagonal(posterior(weight, noise)[1])
        torch.testing.assert_close(variance, torch.tensor(expected, dtype=torch.float64), atol=1e-4, rtol=0)


def test_the_encoder_has_both_published_forms():
    weight = torch.randn(6, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    encoder, covariance = posterior(weight, 0.3, beta=2.0, diagonal=False)
    # μ = Wᵀ(βγ I + WWᵀ)⁻¹ (x − b),  Σ = (WᵀW/βγ + I)⁻¹
    other = weight.T @ torch.linalg.inv(0.6 * torch.eye(6) + weight @ weight.T)
    torch.testing.assert_close(encoder, other)
    torch.testing.assert_close(covariance @ (weight.T @ weight / 0.6 + torch.eye(3)), torch.eye(3).double())


def test_rate_and_distortion_are_reverse_water_filling():
    optimum = linear_optimum(COVARIANCE, 5, noise=0.5, beta=1.0)
    assert optimum.n_active == 3
    assert optimum.rate == pytest.approx(0.5 * (math.log(4 / 0.5) + math.log(2 / 0.5) + math.log(0.7 / 0.5)))
    constant = 2.5 * math.log(2 * math.pi * 0.5)
    assert optimum.distortion == pytest.approx((3 * 0.5 + 0.3 + 0.05) / (2 * 0.5) + constant)
    assert optimum.variance.tolist() == pytest.approx([0.125, 0.25, 0.5 / 0.7, 1.0, 1.0])


def test_beta_and_noise_act_as_one():
    first = linear_optimum(COVARIANCE, 4, noise=0.1, beta=5.0)
    second = linear_optimum(COVARIANCE, 4, noise=0.5, beta=1.0)
    torch.testing.assert_close(first.weight, second.weight)
    torch.testing.assert_close(first.variance, second.variance)
    assert first.n_active == 3
    assert linear_optimum(COVARIANCE, 4, noise=0.1, beta=50.0).n_active == 0  # posterior collapse


def test_the_full_covariance_vae_is_probabilistic_pca():
    from sklearn.decomposition import PCA

    generator = torch.Generator().manual_seed(0)
    data = torch.randn(4000, 5, dtype=torch.float64, generator=generator) @ torch.linalg.cholesky(COVARIANCE).T
    covariance = torch.cov(data.T)
    pca = PCA(2).fit(data.numpy())
    optimum = linear_optimum(covariance, 2)
    assert optimum.noise == pytest.approx(pca.noise_variance_)
    model = optimum.weight @ optimum.weight.T + optimum.noise * torch.eye(5)
    torch.testing.assert_close(model, torch.from_numpy(pca.get_covariance()))
    # the loss is the negative log-likelihood: the bound is tight
    centred = data - data.mean(0)
    exact = -pca.score(data.numpy()) * 1.0
    biased = centred.T @ centred / len(data)
    assert linear_loss(optimum.weight, biased, optimum.noise, diagonal=False) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("beta", [0.5, 1.0, 1.5])
def test_the_learned_noise_is_the_minimum(beta):
    found = linear_optimum(COVARIANCE, 2, beta=beta)
    for factor in (0.5, 0.9, 0.99, 1.01, 1.1, 2.0):
        assert linear_optimum(COVARIANCE, 2, noise=found.noise * factor, beta=beta).loss > found.loss


def test_noise_that_would_vanish_is_refused():
    with pytest.raises(ValueError, match="cannot be learned"):
        learned_noise(torch.tensor([2.0, 1.0, 0.0, 0.0]).double(), 3)
    # a large β keeps fewer latents instead
    assert linear_optimum(COVARIANCE, 5, beta=3.0).n_active < 2


def test_bad_arguments_get_one_sentence():
    with pytest.raises(ValueError, match="at least one latent"):
        linear_optimum(COVARIANCE, 0, noise=1.0)
    with pytest.raises(ValueError, match="must be positive"):
        linear_optimum(COVARIANCE, 2, noise=0.0)
    with pytest.raises(ValueError, match="feature × feature"):
        linear_optimum(COVARIANCE[:2], 2, noise=1.0)


def rotation(angle):
    return torch.tensor([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]], dtype=torch.float64)


@pytest.mark.parametrize("angle", [0.2, math.pi / 4, 1.3])
def test_only_the_diagonal_posterior_minds_a_rotation(angle):
    optimum = linear_optimum(COVARIANCE, 2, noise=0.1)
    turned = optimum.weight @ rotation(angle)
    assert linear_loss(turned, COVARIANCE, 0.1, diagonal=False) == pytest.approx(optimum.loss, abs=1e-12)
    assert linear_loss(turned, COVARIANCE, 0.1, diagonal=True) > optimum.loss + 1e-3


@pytest.mark.parametrize("angle", [0.2, math.pi / 4])
def test_equal_singular_values_leave_the_directions_open(angle):
    covariance = covariance_of([2.0, 2.0, 0.1])
    optimum = linear_optimum(covariance, 2, noise=0.05)
    assert linear_loss(optimum.weight @ rotation(angle), covariance, 0.05) == pytest.approx(optimum.loss, abs=1e-12)


def trained(experiment, data, phases=((1500, 3e-2), (1000, 3e-3), (500, 3e-4))):
    """Our own steps, with a falling learning rate so that the optimum is met closely."""
    engine, step = Alone(experiment, data), 0
    for steps, rate in phases:
        engine.experiment = replace(experiment, optimiser=Adam(rate))
        for _ in range(steps):
            engine.advance(step, record=False)
            step += 1
            assert not engine.all_failed()
    return engine.networks["model"].requires_grad_(False)


def experiment(objective, latents, likelihood, **options):
    return Experiment(
        SynthLin(), objective, Linear(), likelihood, latents=latents, batch_size=128, plan=Plan("cpu", 1), **options
    )


def gaussian_data(eigenvalues, n=20_000):
    points = torch.randn(n, len(eigenvalues), generator=torch.Generator().manual_seed(3))
    points = (points - points.mean(0)) @ torch.linalg.cholesky(covariance_of(eigenvalues).float()).T
    return Data(points + 1.0, shape=(len(eigenvalues),), packing="floats")


@pytest.mark.slow
@pytest.mark.parametrize(("beta", "noise"), [(1.0, 0.04), (4.0, 0.01)])
def test_a_trained_linear_vae_meets_its_closed_form(beta, noise):
    """Theorem 2: PCA directions up to sign and order, with the variances and the rate that the theory gives."""
    data = SynthLin().load()
    model = trained(experiment(BetaVAE(beta), 3, Gaussian(noise)), data)
    covariance = torch.cov(data.store.double().T, correction=0)
    optimum = linear_optimum(covariance, 3, noise=noise, beta=beta)
    assert optimum.n_active == 2
    code = model.encode(data.store)
    order = code.variance.mean(0).argsort()
    torch.testing.assert_close(code.variance.mean(0)[order].double(), optimum.variance, atol=0.02, rtol=0.05)
    weight = model.decoder.output.weight.double()[:, order[:2]]
    cosines = torch.nn.functional.cosine_similarity(weight, optimum.weight[:, :2], dim=0).abs()
    assert (cosines > 0.999).all()
    torch.testing.assert_close(weight.norm(dim=0), optimum.weight[:, :2].norm(dim=0), rtol=0.05, atol=0)
    assert float(code.kl.sum(1).mean()) == pytest.approx(optimum.rate, rel=0.03)
    # and the tools that look inside say so
    active = [kind == "active" for kind in variable_types(code.mean, code.variance, rule="mean_variance")]
    assert dto(decoder_gram(model.decoder, code.mean[:50]), active=active).score < 0.1
    assert traces(code.mean, code.variance).score == pytest.approx(float(optimum.variance.sum()), rel=0.05)
    assert regime(code.mean, code.variance).active.sum() == 2


@pytest.mark.slow
def test_a_trained_full_covariance_vae_is_ppca_up_to_rotation():
    data = gaussian_data([3.0, 1.0, 0.2, 0.1])
    model = trained(experiment(BetaVAEFull(1.0), 2, LearnedGaussian()), data)
    optimum = linear_optimum(torch.cov(data.store.double().T, correction=0), 2)
    weight = model.decoder.output.weight.double()
    assert float(model.log_noise.exp()) == pytest.approx(optimum.noise, rel=0.05)
    torch.testing.assert_close(weight @ weight.T, optimum.weight @ optimum.weight.T, atol=0.1, rtol=0.05)


@pytest.mark.slow
def test_equal_singular_values_turn_with_the_seed():
    """The degenerate square: every seed finds the plane, and each its own directions in it (Zietlow, §3.3.4)."""
    data = SynthLin(ratio=1.0).load()
    principal = torch.linalg.eigh(torch.cov(data.store.double().T)).eigenvectors[:, 1:]
    angles = []
    for seed in range(3):
        weight = trained(experiment(BetaVAE(1.0), 2, Gaussian(0.005), seed=seed), data, ((800, 1e-2), (400, 2e-3)))
        columns = weight.decoder.output.weight.double()
        inside = principal.T @ (columns / columns.norm(dim=0))
        assert (inside.norm(dim=0) > 0.999).all()
        angles.append(float(torch.atan2(inside[1, 0], inside[0, 0])) % (math.pi / 2))
    assert max(angles) - min(angles) > 0.1


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_whether_noise_can_be_learned_does_not_depend_on_units(scale: float) -> None:
    whole = torch.tensor([4.0, 2.0, 1e-14, 0.0], dtype=torch.float64) * scale
    with pytest.raises(ValueError, match="the noise cannot be learned: 2 latents explain all"):
        learned_noise(whole, 2)
    rest = torch.tensor([4.0, 2.0, 1e-9, 0.0], dtype=torch.float64) * scale
    assert learned_noise(rest, 2) == pytest.approx(5e-10 * scale)


@pytest.mark.parametrize("seed", range(40))
def test_a_direction_as_strong_as_the_noise_is_off_whatever_its_last_bits(seed):
    """Turned at random, the largest eigenvalue comes out a little above or below 4."""
    turn = torch.linalg.qr(torch.randn(4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)))[0]
    covariance = turn @ torch.diag(torch.tensor([4.0, 2.0, 1.0, 0.5], dtype=torch.float64)) @ turn.T
    assert linear_optimum(covariance, 2, noise=4.0).n_active == 0
    assert linear_optimum(covariance, 4, noise=2.0).n_active == 1
    assert linear_optimum(covariance, 4, noise=2.0 * (1 - 1e-9)).n_active == 2
