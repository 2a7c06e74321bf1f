"""QLAE: quantiser, losses and gradients against what the authors' code gave."""

import json

import numpy as np
import pytest
import torch

from unweave.models.autoencoder import Architecture
from unweave.models.initialise import initialise
from unweave.models.method import Context
from unweave.models.networks import MLP, Linear
from unweave.models.objectives.qlae import QLAE, Quantiser, straight_through

CASES = ["linspace10_seed0", "linspace10_seed1", "ties5", "learned_unsorted_duplicates"]


@pytest.fixture(scope="module")
def given(reference):
    stored = np.load(reference / "weak_qlae.npz")
    return {name: torch.from_numpy(stored[name]) for name in stored}


def close(found, wanted, at_most=1e-5):
    assert (found - wanted).abs().max().item() <= at_most * max(1e-12, wanted.abs().max().item())


def quantiser_of(given, case):
    size = len(given[f"{case}/values_per_latent"])
    n_values = int(given[f"{case}/values_per_latent"][0])
    quantiser = Quantiser(size, n_values).to(given[f"{case}/values"].dtype)
    with torch.no_grad():
        quantiser.values.copy_(given[f"{case}/values"].view(size, n_values))
    return quantiser


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("precision", ["", "f64/"])
def test_the_quantiser_agrees_with_the_reference(given, case, precision):
    case = precision + case if precision else case
    plain = case.removeprefix("f64/")
    values = given[f"{case}/values"]
    quantiser = quantiser_of({**given, f"{case}/values_per_latent": given[f"{plain}/values_per_latent"]}, case)
    codes = given[f"{case}/codes"].clone().requires_grad_()
    quantised = quantiser(codes)
    close(quantised.detach(), given[f"{case}/quantized"], 1e-6)
    passed = straight_through(codes, quantised)
    close(passed.detach(), given[f"{case}/z_hat"], 1e-6)
    both = [codes, quantiser.values]
    slopes = torch.autograd.grad((passed * given[f"{case}/cotangent"]).sum(), both, allow_unused=True)
    close(slopes[0], given[f"{case}/st_grad_codes"])
    assert slopes[1] is None
    losses = {
        "quantization": (codes.detach() - quantised).square().mean(-1),
        "commitment": (codes - quantised.detach()).square().mean(-1),
    }
    for name, loss in losses.items():
        close(loss.detach(), given[f"{case}/{name}_loss"])
        slopes = torch.autograd.grad(loss.mean(), both, allow_unused=True, materialize_grads=True, retain_graph=True)
        close(slopes[0], given[f"{case}/{name}_grad_codes"])
        close(slopes[1].flatten(), given[f"{case}/{name}_grad_values"].view_as(values))


def test_ties_go_to_the_lower_index(given):
    quantiser = quantiser_of(given, "ties5")
    found = quantiser(given["ties5/codes"])
    indices = given["ties5/indices"].long()
    expected = torch.gather(quantiser.values.expand(len(found), -1, -1), 2, indices[..., None])[..., 0]
    assert torch.equal(found, expected)


@pytest.mark.parametrize("precision", ["", "f64/"])
def test_the_whole_loss_agrees_with_the_reference(given, reference, precision):
    case = f"{precision}model"
    architecture = Architecture((1, 4, 4), 6, Linear(), QLAE.posterior)
    model = QLAE().model(architecture).to(given[f"{case}/x"].dtype)
    ours = {
        "We": model.encoder.heads["mean"].weight, "be": model.encoder.heads["mean"].bias,
        "Wd": model.decoder.output.weight, "bd": model.decoder.output.bias, "values": model.quantiser.values,
    }  # fmt: skip
    with torch.no_grad():
        for name, parameter in ours.items():
            parameter.copy_(given[f"{case}/{name}"])
    terms, code = QLAE().loss({"images": given[f"{case}/x"]}, Context(networks={"model": model}))
    expected = json.loads((reference / "weak_qlae.json").read_text())["f64" if precision else "f32"]["model"]
    assert terms["loss"].item() == pytest.approx(expected["loss"], rel=1e-5)
    assert terms["reconstruction"].item() / 16 == pytest.approx(expected["binary_cross_entropy_loss_mean"], rel=1e-5)
    assert terms["quantisation"].item() == pytest.approx(expected["quantization_loss_mean"], rel=1e-5)
    assert terms["commitment"].item() == pytest.approx(expected["commitment_loss_mean"], rel=1e-5)
    close(code.mean.detach(), given[f"{case}/z_quantized"], 1e-6)
    for name, slope in zip(ours, torch.autograd.grad(terms["loss"], list(ours.values()))):
        close(slope, given[f"{case}/grad/{name}"])


def test_in_use_the_code_is_one_of_the_values():
    model = QLAE(values=4).model(Architecture((1, 8, 8), 3, MLP((8,), (8,)), QLAE.posterior))
    initialise(model, "glorot", 0)
    code = model.encode(torch.rand(20, 1, 8, 8))
    allowed = torch.linspace(-0.5, 0.5, 4)
    assert bool((code.mean[..., None] == allowed).any(-1).all())
    assert torch.equal(code.mean, code.sampled)
    assert code.variance.sum() == 0
    assert model.decode(code.mean).shape == (20, 1, 8, 8)


def test_reconstructions_count_by_all_values_of_an_image_colours_too():
    architecture = Architecture((3, 2, 4), 2, Linear())
    method, images = QLAE(values=3, quantisation=0.0, commitment=0.0), torch.rand(5, 3, 2, 4)
    model = method.networks(architecture)["model"]
    terms, _ = method.loss({"images": images}, Context(networks={"model": model}))
    assert terms["loss"].item() == pytest.approx(terms["reconstruction"].item() / 24, rel=1e-5)
