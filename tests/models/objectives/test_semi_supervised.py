"""Semi-supervised regularisers: disentanglement_lib's values and gradients, and loops for what is mended."""

import json
import math

import numpy as np
import pytest
import torch
from torch import nn

from unweave.models.autoencoder import Architecture
from unweave.models.likelihoods import Bernoulli
from unweave.models.method import Context, new_networks
from unweave.models.networks import Linear
from unweave.models.objectives.beta_vae import BetaVAE
from unweave.models.objectives.semi_supervised import (
    MODEL,
    SUPERVISION,
    SemiVAE,
    Supervision,
    covariance_penalty,
    embedding_loss,
)
from unweave.models.posteriors import Diagonal

SIZES = (3, 6, 4, 5)
CASES = ("seed0_d6", "seed1_d6", "seed2_d4", "saturated_d6", "constant_labels_d6")
DSPRITES = (3, 6, 40, 32, 32)


@pytest.fixture(scope="module")
def stored(reference):
    return np.load(reference / "weak_semi_supervised.npz"), json.loads(
        (reference / "weak_semi_supervised.json").read_text()
    )


def supervision(sizes=SIZES, latents=6, **settings):
    return Supervision(SemiVAE(**settings), Architecture((4,), latents, Linear(), labels=sizes))


def study(variant):
    regulariser, _, rest = variant.partition("_")
    settings = {"learned_scale": rest != "no_learned_scale"} if regulariser == "l2" else {}
    return {"regulariser": regulariser, "protocol": "study"} | settings


@pytest.mark.parametrize("variant", ["l2", "l2_b0.37", "l2_no_learned_scale", "xent", "cov"])
@pytest.mark.parametrize("case", CASES)
def test_the_study_s_values_and_gradients(stored, case, variant):
    arrays, numbers = stored
    means = torch.from_numpy(arrays[f"{case}/representation"]).requires_grad_()
    labels = torch.from_numpy(arrays[f"{case}/labels"]).float()
    network = supervision(latents=means.shape[1], **study(variant))
    learned = f"{case}/{variant}/var/b" in arrays
    if learned:
        with torch.no_grad():
            network.scale_offset.copy_(torch.from_numpy(arrays[f"{case}/{variant}/var/b"]) - 1.0)
    found = network(means, labels)
    assert found.item() == pytest.approx(numbers[case][variant], rel=1e-5, abs=1e-6)
    found.backward()
    near(means.grad, arrays[f"{case}/{variant}/grad_representation"])
    if learned:
        near(network.scale_offset.grad, arrays[f"{case}/{variant}/grad_var/b"])


@pytest.mark.parametrize("variant", ["embed_sigma1", "embed_sigma2.5", "embed_sigma_learned", "embed_ordered_sigma1"])
@pytest.mark.parametrize("case", CASES)
def test_the_embedding_s_values_and_gradients(stored, case, variant):
    arrays, numbers = stored
    means = torch.from_numpy(arrays[f"{case}/representation"]).requires_grad_()
    labels = torch.from_numpy(arrays[f"{case}/labels"]).float()
    prefix = f"{case}/{variant}/var/"
    known = {
        key.removeprefix(prefix): torch.tensor(arrays[key]).requires_grad_() for key in arrays if key.startswith(prefix)
    }
    sigma = {"embed_sigma2.5": 2.5}.get(variant, 1.0)
    sigmas = torch.cat([known.get(f"{label}/sigma", torch.tensor([sigma])) for label in range(4)])
    if "ordered" in variant:
        places = [torch.arange(n) * known[f"{k}/slope"] + known[f"{k}/bias"] for k, n in enumerate(SIZES)]
    else:
        places = [known[f"{label}/embedding"] for label in range(4)]
    found = embedding_loss(means[:, :4], labels, places, sigmas)
    assert found.item() == pytest.approx(numbers[case][variant], rel=1e-5)
    slopes = torch.autograd.grad(found, [means, *known.values()])
    near(slopes[0], arrays[f"{case}/{variant}/grad_representation"])
    for name, slope in zip(known, slopes[1:]):
        near(slope, arrays[f"{case}/{variant}/grad_var/{name}"], scale=float(slopes[0].abs().max()))


def near(found, expected, scale=0.0):
    """To 1e-5 of the largest entry; a number that is a sum of both signs, of what it is summed from."""
    expected = torch.from_numpy(np.asarray(expected))
    allowed = 1e-5 * max(float(expected.abs().max()), scale)
    torch.testing.assert_close(found.reshape(expected.shape), expected, rtol=0, atol=allowed)


@pytest.mark.parametrize(
    ("key", "settings"),
    [
        ("s2_vae/l2", {"regulariser": "l2"}),
        ("s2_vae/l2_noscale", {"regulariser": "l2", "learned_scale": False}),
        ("s2_vae/cov", {"regulariser": "cov"}),
        ("s2_vae/embed", {"regulariser": "embed"}),
        ("s2_vae/xent/fixed", {"regulariser": "xent"}),
        ("s2_vae/xent/anneal", {"regulariser": "xent", "annealing": "linear", "threshold": 50_000}),
        ("s2_vae/xent/fine_tune", {"regulariser": "xent", "annealing": "fine_tuning", "threshold": 50_000}),
    ],
)
def test_the_whole_loss_agrees_with_the_reference(reference, key, settings):
    inputs = np.load(reference / "loss_inputs.npz")
    expected = json.loads((reference / "loss_outputs.json").read_text())[key]
    tensor = {name: torch.from_numpy(inputs[name]) for name in inputs if inputs[name].ndim}
    method = SemiVAE(beta=4.0, gamma=7.0, protocol="study", **settings)
    code = Diagonal().code({"mean": tensor["mean"], "log_variance": tensor["logvar"]}, tensor["eps"])
    reconstructions = Bernoulli().loss(tensor["images"], tensor["logits"])
    network = supervision(DSPRITES, code.mean.shape[1], protocol="study", **settings)
    if key == "s2_vae/embed":
        places = [expected["_extra_values"][f"supervised_loss/{label}/embedding:0"] for label in range(5)]
        network.places = lambda: [torch.tensor(place) for place in places]
    model = Passed(code, reconstructions, tensor["mean2"])
    batch = {"images": tensor["images"], "noise": tensor["eps"], "labelled_images": tensor["images"]}
    batch["labelled_labels"] = tensor["labels"].float()
    context = Context(int(inputs["step"]), networks={MODEL: model, SUPERVISION: network})
    terms, _ = method.loss(batch, context)
    assert terms["supervision"].item() == pytest.approx(expected["supervised_loss"], rel=1e-5)
    assert terms["loss"].item() == pytest.approx(expected["loss"], rel=1e-5)


class Passed(nn.Module):
    """A model whose passes are known."""

    def __init__(self, code, reconstructions, labelled):
        super().__init__()
        self.architecture = Architecture((64, 64), code.mean.shape[1], labels=DSPRITES)
        self.known, self.labelled = (code, reconstructions), labelled

    def forward(self, images, noise):
        return self.known

    def encode(self, images):
        return Diagonal().code({"mean": self.labelled, "log_variance": self.labelled}, self.labelled)


def test_annealing_is_the_reference_s(stored):
    _, numbers = stored
    rows = next(value for key, value in numbers.items() if key.startswith("annealers"))
    for step, *expected in rows:
        for kind, value in zip(("fixed", "linear", "fine_tuning"), expected):
            method = SemiVAE(gamma=7.0, annealing=kind, threshold=1000)
            assert float(method.weight(step)) == pytest.approx(value, rel=1e-6)
            assert float(method.weight(torch.tensor(step))) == pytest.approx(value, rel=1e-6)


def examples(n=7, latents=6, seed=0):
    generator = torch.Generator().manual_seed(seed)
    means = torch.randn(n, latents, generator=generator, dtype=torch.float64)
    labels = torch.stack([torch.randint(size, (n,), generator=generator) for size in SIZES], dim=1)
    return means, labels.double()


@pytest.mark.parametrize("variant", ["l2", "l2_no_learned_scale", "xent"])
def test_what_is_mended_by_loops(variant):
    means, labels = examples()
    settings = study(variant) | {"protocol": "paper"}
    expected = 0.0
    for row in range(7):
        for label, size in enumerate(SIZES):
            z, y = float(means[row, label]), float(labels[row, label]) / (size - 1)
            share = 1.0 / (1.0 + math.exp(-z))
            distance = {
                "l2": (z - y) ** 2,
                "l2_no_learned_scale": (share - y) ** 2,
                "xent": -y * math.log(share) - (1 - y) * math.log(1 - share),
            }
            expected += distance[variant] / 7
    assert supervision(**settings).double()(means, labels).item() == pytest.approx(expected, rel=1e-9)


def test_covariance_by_loops():
    means, labels = examples()
    expected = 0.0
    for latent in range(6):
        for label in range(4):
            pairs = [(float(m[latent]), float(y[label])) for m, y in zip(means, labels)]
            averages = [sum(column) / 7 for column in zip(*pairs)]
            covariance = sum(z * y for z, y in pairs) / 7 - averages[0] * averages[1]
            expected += covariance**2 if latent != label else 0.0
    assert covariance_penalty(means, labels).item() == pytest.approx(expected, rel=1e-9)


def test_mended_regularisers_do_not_know_the_size_of_the_batch():
    means, labels = examples()
    for regulariser in ("l2", "xent", "cov", "embed"):
        network = supervision(regulariser=regulariser).double()
        once, twice = network(means, labels), network(means.repeat(2, 1), labels.repeat(2, 1))
        torch.testing.assert_close(once, twice)


def test_without_weight_it_is_the_beta_vae():
    method, plain = SemiVAE(gamma=0.0), BetaVAE(4.0)
    networks = new_networks(method, Architecture((4,), 6, Linear(), labels=SIZES), "glorot", 3)
    means, labels = examples(latents=4)
    batch = {"images": torch.rand(7, 4), "noise": torch.randn(7, 6), "labelled_images": means.float()}
    batch["labelled_labels"] = labels.float()
    found, expected = (one.loss(batch, Context(networks=networks))[0]["loss"] for one in (method, plain))
    assert found.item() == pytest.approx(expected.item())


@pytest.mark.parametrize("scheme", ["glorot", "pytorch"])
@pytest.mark.parametrize("ordered", [False, True])
def test_learned_parts_start_in_order(scheme, ordered):
    method = SemiVAE(regulariser="embed", ordered=ordered, learned_sigma=True, sigma=2.0)
    network = new_networks(method, Architecture((4,), 6, Linear(), labels=SIZES), scheme, 0)[SUPERVISION]
    for size, places in zip(SIZES, network.places()):
        torch.testing.assert_close(places, torch.linspace(-1, 1, size))
    assert network.sigmas().tolist() == [2.0] * 4


@pytest.mark.parametrize(
    ("settings", "sizes", "latents", "words"),
    [
        ({}, (), 6, "needs data with labels"),
        ({}, SIZES, 3, "4 labels need at least as many latents, not 3"),
        ({"regulariser": "embed"}, (3, 0), 6, "label 2 of 2 is a continuous number"),
        ({"regulariser": "xent"}, (0, 3), 6, "label 1 of 2 is a continuous number"),
    ],
)
def test_what_cannot_be_is_said(settings, sizes, latents, words):
    with pytest.raises(ValueError, match=words):
        SemiVAE(**settings).networks(Architecture((4,), latents, Linear(), labels=sizes))


def test_learned_places_are_offsets_from_an_even_spacing():
    free = supervision((3,), regulariser="embed", ordered=False)
    line = supervision((3,), regulariser="embed", ordered=True)
    with torch.no_grad():
        free.place_offsets[0].copy_(torch.tensor([0.5, -0.25, 0.125]))
        line.place_offsets[0].copy_(torch.tensor([0.5, 0.25]))  # of the slope, and of where it begins
    assert free.places()[0].tolist() == [-0.5, -0.25, 1.125]
    assert line.places()[0].tolist() == [-0.75, 0.75, 2.25]
