"""Factors told through a channel: a slow version of the formula, and what is refused."""

import math

import pytest
import torch

from unweave.models.autoencoder import Architecture
from unweave.models.initialise import initialise
from unweave.models.likelihoods import Bernoulli
from unweave.models.method import Context
from unweave.models.networks import MLP
from unweave.models.objectives import KnownFactors

SIZES = (4, 0, 1)
LABELS = torch.tensor([[0.0, 0.3, 0.0], [3.0, -2.0, 0.0], [1.0, 0.5, 0.0]])


def made(**settings):
    method = KnownFactors(**settings)
    model = method.model(Architecture((5,), 3, MLP((6,), (6,)), labels=SIZES))
    initialise(model, "pytorch", 1)
    with torch.no_grad():
        model.encoder.scale.copy_(torch.tensor([1.5, -0.5, 2.0]))
        model.encoder.log_variance.copy_(torch.tensor([-1.0, 0.25, -3.0]))
    generator = torch.Generator().manual_seed(0)
    return method, model, torch.rand(3, 5, generator=generator), torch.randn(3, 3, generator=generator)


def test_the_loss_is_the_formula_written_out():
    method, model, x, noise = made(gamma=7.0, capacity=12.0, rise=100)
    terms, code = method.loss({"images": x, "noise": noise, "labels": LABELS}, Context(25, networks={"model": model}))
    # values 0 … 3 are −1 … 1, a number stays what it is, and a single value is −1
    told = [[-1.0, 0.3, -1.0], [1.0, -2.0, -1.0], [-1.0 + 2.0 / 3.0, 0.5, -1.0]]
    scale, spread = [1.5, -0.5, 2.0], [-1.0, 0.25, -3.0]
    total, reconstruction = 0.0, 0.0
    for row in range(3):
        sampled = []
        for j in range(3):
            mean = scale[j] * told[row][j]
            assert code.mean[row, j].item() == pytest.approx(mean, rel=1e-6)
            total += 0.5 * (mean**2 + math.exp(spread[j]) - spread[j] - 1.0) / 3
            sampled.append(mean + math.exp(spread[j] / 2) * noise[row, j].item())
        reconstruction += Bernoulli().loss(x[row : row + 1], model.decoder(torch.tensor([sampled]))).item() / 3
    assert terms["kl"].item() == pytest.approx(total, rel=1e-6)
    assert terms["capacity"].item() == pytest.approx(3.0)
    assert terms["loss"].item() == pytest.approx(reconstruction + 7.0 * abs(total - 3.0), rel=1e-5)


def test_a_factor_begins_with_scale_and_noise_of_one_whatever_the_seed():
    model = KnownFactors().model(Architecture((5,), 3, MLP((6,), (6,)), labels=SIZES))
    initialise(model, "pytorch", 3)
    assert model.encoder.scale.tolist() == [1.0] * 3
    assert model.encoder.log_variance.tolist() == [0.0] * 3


def test_examples_are_not_looked_at():
    _, model, x, noise = made()
    first, second = model.code(x, noise, LABELS), model.code(torch.rand_like(x), noise, LABELS)
    assert torch.equal(first.sampled, second.sampled)
    assert torch.equal(model.encode(x, LABELS).sampled, first.mean)


def test_codes_of_chosen_factors_have_the_channels_mean_and_noise():
    _, model, x, noise = made()
    mean, log_variance = model.prior_of(LABELS)
    assert torch.equal(mean, model.code(x, noise, LABELS).mean)
    assert log_variance[0].tolist() == model.encoder.log_variance.tolist()


def test_a_latent_too_many_is_refused_and_factors_are_asked_for():
    with pytest.raises(ValueError, match="this data has 3, and 4 latents were given; take --latents 3"):
        KnownFactors().model(Architecture((5,), 4, MLP((6,), (6,)), labels=SIZES))
    _, model, x, noise = made()
    with pytest.raises(ValueError, match="together with their 3 labels, and got none"):
        model.code(x, noise)
