"""iVAE: the original's values and gradients, a slow version of its formula, and what its networks see of labels."""

import json

import numpy as np
import pytest
import torch
from torch.distributions import Normal, kl_divergence
from torch.nn import functional

from unweave.models.autoencoder import Architecture
from unweave.models.initialise import initialise
from unweave.models.labels import encode_labels, label_columns
from unweave.models.likelihoods import Gaussian
from unweave.models.method import Context
from unweave.models.networks import MLP, Conv, Linear
from unweave.models.objectives.beta_vae import VAE
from unweave.models.objectives.ivae import IVAE, sampled_kl
from unweave.models.posteriors import Diagonal, under_prior

CASES = ("seed0", "seed1", "small_posterior_variance")
NETWORKS = {
    "conv": (Conv((4, 4), (4, 4), 8), (1, 8, 8)),
    "mlp": (MLP((7, 6), (5,)), (3,)),
    "linear": (Linear(), (3,)),
}


@pytest.fixture(scope="module")
def stored(reference):
    return np.load(reference / "weak_ivae.npz"), json.loads((reference / "weak_ivae.json").read_text())


@pytest.mark.parametrize("case", CASES)
def test_the_original_s_values_and_gradients(stored, case):
    """Its four networks with its weights, and our code, prior, terms and likelihood on what they say."""
    arrays, numbers = stored
    named = {key.removeprefix(f"{case}/"): torch.from_numpy(arrays[key]) for key in arrays if key.startswith(case)}
    weights = {key.removeprefix("state/"): w.clone().requires_grad_() for key, w in named.items() if "state/" in key}
    both = torch.cat([named["x"], named["u"]], dim=1)
    heads = {"mean": original_mlp(weights, "g", both), "log_variance": original_mlp(weights, "logv", both)}
    log_variance = original_mlp(weights, "logl", named["u"])
    code = under_prior(Diagonal().code(heads, named["eps"]), torch.zeros_like(log_variance), log_variance)
    for name, found in (("posterior_mean", code.mean), ("posterior_variance", code.variance), ("z", code.sampled)):
        near(found, named[name])
    near(code.prior_variance, named["prior_variance"])
    reconstructions = Gaussian(0.01).loss(named["x"], original_mlp(weights, "f", code.sampled))
    near(reconstructions, -named["log_px_z"])
    batch = {"images": named["x"], "noise": named["eps"], "labels": named["u"]}
    context = Context(networks={"model": lambda *_: (code, reconstructions)})
    terms, _ = IVAE(elbo="monte_carlo").loss(batch, context)
    near(terms["regulariser"], (named["log_qz_xu"] - named["log_pz_u"]).mean())
    assert terms["loss"].item() == pytest.approx(-numbers[case]["elbo"], rel=1e-5)
    for name, gradient in zip(weights, torch.autograd.grad(terms["loss"], list(weights.values()))):
        near(gradient, named[f"grad_of_minus_elbo/{name}"])


def original_mlp(weights, name, x):
    """Three layers, leaky rectifiers of slope 0.1 between them."""
    for layer in range(3):
        x = functional.linear(x, weights[f"{name}.fc.{layer}.weight"], weights[f"{name}.fc.{layer}.bias"])
        x = functional.leaky_relu(x, 0.1) if layer < 2 else x
    return x


def near(found, expected):
    torch.testing.assert_close(found.detach(), expected, rtol=0, atol=1e-5 * float(expected.abs().max()))


def made(network="mlp", sizes=(4, 0, 2), **settings):
    built, shape = NETWORKS[network]
    architecture = Architecture(shape, 3, built, likelihood=Gaussian(), labels=sizes)
    model = IVAE(**settings).model(architecture)
    initialise(model, "pytorch", 1)
    generator = torch.Generator().manual_seed(0)
    labels = torch.stack(
        [torch.tensor([0.0, 3, 1, 2, 3]), torch.rand(5, generator=generator), torch.tensor([1.0, 0, 0, 1, 0])], 1
    )
    return model, torch.rand(5, *shape, generator=generator), torch.randn(5, 3, generator=generator), labels


@pytest.mark.parametrize("prior_mean", ["zero", "learned"])
@pytest.mark.parametrize("network", NETWORKS)
def test_the_kl_is_the_textbook_one_to_the_learned_prior(network, prior_mean):
    model, images, noise, labels = made(network, prior_mean=prior_mean)
    code, _ = model(images, noise, labels)
    mean, log_variance = model.prior_of(labels)
    assert bool((mean == 0).all()) == (prior_mean == "zero")
    prior = Normal(mean, (0.5 * log_variance).exp())
    exact = kl_divergence(Normal(code.mean, code.variance.sqrt()), prior)
    torch.testing.assert_close(code.kl, exact, rtol=1e-5, atol=1e-6)
    slow = 0.0
    for row in range(5):
        for latent in range(3):
            posterior = Normal(code.mean[row, latent], code.variance[row, latent].sqrt())
            here = Normal(mean[row, latent], (0.5 * log_variance[row, latent]).exp())
            drawn = code.sampled[row, latent]
            slow += (posterior.log_prob(drawn) - here.log_prob(drawn)).item() / 5
    assert sampled_kl(code).item() == pytest.approx(slow, rel=1e-5)


def test_the_estimate_from_samples_has_the_closed_form_as_its_mean():
    model, images, _, labels = made(prior_mean="learned")
    many = [
        model.code(images, torch.randn(5, 3, generator=torch.Generator().manual_seed(n)), labels) for n in range(1000)
    ]
    estimates = torch.stack([sampled_kl(code) for code in many]).detach()
    error = float(estimates.std() / len(many) ** 0.5)
    assert float(estimates.mean()) == pytest.approx(many[0].kl.sum(-1).mean().item(), abs=4 * error)


@pytest.mark.parametrize("network", NETWORKS)
def test_labels_reach_encoder_and_prior(network):
    model, images, noise, labels = made(network)
    code = model.code(images, noise, labels)
    other = labels.clone()
    other[2, 0] = 0.0
    changed = model.code(images, noise, other)
    rows = (code.mean != changed.mean).any(1) & (code.prior_log_variance != changed.prior_log_variance).any(1)
    assert rows.tolist() == [False, False, True, False, False]


def test_a_standard_prior_gives_the_vae():
    model, images, noise, labels = made()
    with torch.no_grad():
        for parameter in model.prior.parameters():
            parameter.zero_()
    context = Context(networks={"model": model})
    found, _ = IVAE().loss({"images": images, "noise": noise, "labels": labels}, context)
    plain, _ = VAE().loss(
        {"images": images, "noise": noise}, Context(networks={"model": lambda x, e: model(x, e, labels)})
    )
    assert found["loss"].item() == pytest.approx(plain["loss"].item(), rel=1e-6)
    code = model.code(images, noise, labels)
    torch.testing.assert_close(
        code.kl, Diagonal().code({"mean": code.mean, "log_variance": code.log_variance}, noise).kl
    )


def test_without_labels_one_sentence():
    model, images, _, _ = made()
    with pytest.raises(ValueError, match="together with their 3 labels, and got none"):
        model.encode(images)
    with pytest.raises(ValueError, match="ivae needs data with labels"):
        IVAE().model(Architecture((3,), 2, Linear()))


def test_labels_as_columns():
    labels = torch.tensor([[2.0, 0.3, 1.0], [0.0, -7.0, 0.0]])
    assert label_columns((3, 0, 2), "one_hot") == 6
    assert label_columns((3, 0, 2), "values") == 3
    expected = torch.tensor([[0, 0, 1, 0.3, 0, 1], [1, 0, 0, -7.0, 1, 0]])
    assert torch.equal(encode_labels(labels, (3, 0, 2), "one_hot"), expected)
    expected = torch.tensor([[1.0, 0.3, 1.0], [0.0, -7.0, 0.0]])
    assert torch.equal(encode_labels(labels, (3, 0, 2), "values"), expected)


def test_a_linear_model_has_another_slope_for_every_label():
    model, images, _, labels = made("linear")
    zero = torch.zeros(1, 3)

    def slope(label):
        return torch.stack(
            [
                model.encode(zero + row, label[None]).mean[0] - model.encode(zero, label[None]).mean[0]
                for row in torch.eye(3)
            ]
        )

    steps = [slope(label) for label in labels[:2]]
    assert not torch.allclose(*steps)
    for label, step in zip(labels, steps):
        twice = model.encode(2 * images[:1], label[None]).mean[0] - model.encode(zero, label[None]).mean[0]
        torch.testing.assert_close(twice, 2 * images[0] @ step)


def test_standardised_codes_have_a_standard_prior():
    model, images, noise, labels = made(prior_mean="learned")
    code = model.code(images, noise, labels)
    plain = code.standardised()
    assert plain.prior_mean is None
    textbook = Diagonal().code({"mean": plain.mean, "log_variance": plain.log_variance}, noise)
    torch.testing.assert_close(textbook.kl, code.kl)
    torch.testing.assert_close(textbook.sampled, plain.sampled)
    assert textbook.standardised() is textbook
