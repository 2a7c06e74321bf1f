"""PCL: the regression, its gradients and the whole network against what the authors' code gave."""

import json

import numpy as np
import pytest
import torch
from torch.nn import functional

from unweave.models.autoencoder import Architecture
from unweave.models.initialise import initialise
from unweave.models.layers import fresh_of
from unweave.models.method import Context, new_networks
from unweave.models.networks import MLP, Maxout
from unweave.models.objectives.pcl import PCL, Comparison


@pytest.fixture(scope="module")
def given(reference):
    stored = np.load(reference / "weak_pcl.npz")
    return {name: torch.from_numpy(stored[name]) for name in stored}


@pytest.fixture(scope="module")
def losses(reference):
    return {name: case["loss"] for name, case in json.loads((reference / "weak_pcl.json").read_text()).items()}


def close(found, wanted, at_most=1e-5):
    assert (found - wanted).abs().max().item() <= at_most * max(1e-12, wanted.abs().max().item())


def fill(comparison, w, b, a, m):
    with torch.no_grad():
        comparison.weight.copy_(w[:, 0])
        comparison.bias.copy_(b)
        comparison.square.copy_(a[0])
        comparison.offset.copy_(m[0])


@pytest.mark.parametrize("case", ["seed0", "seed1", "zero_kink", "large"])
def test_the_regression_agrees_with_the_reference(given, losses, case):
    comparison = Comparison(5, learns_square=True).double()
    fill(comparison, *(given[f"{case}/{name}"] for name in "wbam"))
    h = given[f"{case}/h"].clone().requires_grad_()
    logits = comparison(h[:, 0], h[:, 1])
    close(logits.detach(), given[f"{case}/logits"])
    loss = functional.binary_cross_entropy_with_logits(logits, given[f"{case}/labels"])
    assert loss.item() == pytest.approx(losses[case], rel=1e-9)
    learned = [h, comparison.weight, comparison.bias, comparison.square, comparison.offset]
    slopes = torch.autograd.grad(loss, learned)
    close(slopes[0], given[f"{case}/grad_h"])
    close(slopes[1], given[f"{case}/grad_w"][:, 0])
    close(slopes[2], given[f"{case}/grad_b"])
    close(slopes[3], given[f"{case}/grad_a"][0])
    close(slopes[4], given[f"{case}/grad_m"][0])


def whole(given):
    architecture = Architecture((5,), 5, Maxout((10, 10)), PCL.posterior)
    networks = PCL(protocol="original").networks(architecture)
    model, comparison = (networks[name].double() for name in ("model", "comparison"))
    state = {name.removeprefix("net/state/"): value for name, value in given.items() if name.startswith("net/state/")}
    with torch.no_grad():
        for place, layer in enumerate(model.encoder.trunk.layers):
            layer.weight.copy_(state[f"h.{place}.weight"])
            layer.bias.copy_(state[f"h.{place}.bias"])
        model.encoder.heads["mean"].weight.copy_(state["h.2.weight"])
        model.norm.weight.copy_(state["bn.weight"])
        model.norm.bias.copy_(state["bn.bias"])
        model.norm.running_mean.copy_(state["bn.running_mean"])
        model.norm.running_variance.copy_(state["bn.running_var"])
    fill(comparison, state["w.weight"], state["w.bias"], state["a"], state["m"])
    return model, comparison


def test_the_whole_network_agrees_with_the_reference(given, losses):
    model, comparison = whole(given)
    x, labels = given["net/x"], given["net/labels"]
    h = model(x.flatten(0, 1)).unflatten(0, (16, 2))
    close(h.detach(), given["net/h"])
    logits = comparison(h[:, 0], h[:, 1])
    close(logits.detach(), given["net/logits"])
    loss = functional.binary_cross_entropy_with_logits(logits, labels)
    assert loss.item() == pytest.approx(losses["net"], rel=1e-9)
    ours = {
        **{f"h.{n}.{part}": getattr(layer, part) for n, layer in enumerate(model.encoder.trunk.layers)
           for part in ("weight", "bias")},
        "h.2.weight": model.encoder.heads["mean"].weight, "bn.weight": model.norm.weight, "bn.bias": model.norm.bias,
        "w.bias": comparison.bias,
    }  # fmt: skip
    for name, slope in zip(ours, torch.autograd.grad(loss, list(ours.values()))):
        close(slope, given[f"net/grad/{name}"])
    moved = fresh_of(model)
    close(moved["norm.running_mean"], given["net/after/bn.running_mean"])
    close(moved["norm.running_variance"], given["net/after/bn.running_var"])
    with torch.no_grad():
        model.norm.running_mean.copy_(moved["norm.running_mean"])
        model.norm.running_variance.copy_(moved["norm.running_variance"])
    h = model.eval()(x.flatten(0, 1)).unflatten(0, (16, 2))
    close(h.detach(), given["net/eval_h"])
    close(comparison(h[:, 0], h[:, 1]).detach(), given["net/eval_logits"])


@pytest.mark.parametrize("protocol", ["images", "original"])
def test_a_batch_by_a_loop(protocol):
    method = PCL(protocol=protocol)
    networks = new_networks(method, Architecture((6,), 3, MLP((8,), ()), PCL.posterior), "pytorch", 0)
    generator = torch.Generator().manual_seed(0)
    images, others = torch.randn(8, 6, generator=generator), torch.randn(4, 6, generator=generator)
    batch = {"images": images, "second_images": others, "order": torch.tensor([[2], [0], [3], [1]])}
    terms, code = method.loss(batch, Context(networks=networks))
    model, compare = networks["model"], networks["comparison"]
    h = model(images if protocol == "images" else torch.cat([images, others])).detach()
    weight, bias, offset = (getattr(compare, name).detach() for name in ("weight", "bias", "offset"))

    def logit(later, earlier):
        apart = sum(abs(w1 * a + w2 * b + c) for (w1, w2), a, b, c in zip(weight, later, earlier, bias))
        return float(-apart + later.square().sum() + offset)

    total, right = 0.0, 0
    for row in range(4):
        false = h[[2, 0, 3, 1][row]] if protocol == "images" else h[8 + row]
        for logit_, true in ((logit(h[4 + row], h[row]), True), (logit(h[4 + row], false), False)):
            total += np.log1p(np.exp(-logit_ if true else logit_)) / 8
            right += ((logit_ > 0) == true) / 8
    assert terms["loss"].item() == pytest.approx(total, rel=1e-5)
    assert terms["accuracy"].item() == pytest.approx(right)
    assert code.mean.shape == (8, 3)


def test_a_negative_square_counts_as_zero_and_can_come_back():
    comparison = Comparison(2, learns_square=True)
    with torch.no_grad():
        comparison.square.fill_(-0.5)
    later = torch.tensor([[1.0, 2.0]])
    logit = comparison(later, later)
    assert logit.item() == 0.0
    (slope,) = torch.autograd.grad(logit.sum(), [comparison.square])
    assert slope.item() == 5.0


def test_it_begins_as_the_authors_do():
    comparison = Comparison(500, learns_square=True)
    initialise(comparison, "pytorch", 0)
    assert torch.equal(comparison.weight, torch.tensor([1.0, -1.0]).repeat(500, 1))
    assert comparison.square.item() == 1.0
    assert comparison.offset.item() == 0.0
    assert comparison.bias.abs().max().item() == pytest.approx(2**-0.5, rel=0.02)
