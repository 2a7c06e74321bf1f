"""Normalising layers: against PyTorch's own and against what the original implementations gave."""

import numpy as np
import pytest
import torch
from torch.func import functional_call

from unweave.models.initialise import initialise
from unweave.models.layers import fresh_of
from unweave.models.networks.gan import PairDiscriminator, RankDiscriminator, deviation
from unweave.models.normalisation import BatchNorm, SpectralConvolution, SpectralDense, SpectralNorm, _unit


@pytest.fixture(scope="module")
def gan(reference):
    stored = np.load(reference / "weak_wsgan.npz")
    return {name: torch.from_numpy(stored[name]) for name in stored}


def settle(network):
    """What who trains does after a phase."""
    buffers = dict(network.named_buffers())
    for name, value in fresh_of(network).items():
        buffers[name].copy_(value)


@pytest.mark.parametrize("shape", [(16, 3), (6, 3, 4, 5)])
def test_batch_norm_is_pytorchs(shape):
    generator = torch.Generator().manual_seed(0)
    ours, theirs = BatchNorm(3), (torch.nn.BatchNorm1d if len(shape) == 2 else torch.nn.BatchNorm2d)(3)
    with torch.no_grad():
        for layer in (ours, theirs):
            layer.weight.copy_(torch.tensor([1.0, -2.0, 0.5]))
            layer.bias.copy_(torch.tensor([0.1, 0.0, 3.0]))
    for _ in range(3):
        x = 2.0 * torch.randn(shape, generator=generator) + 1.0
        torch.testing.assert_close(ours(x), theirs(x))
        settle(ours)
    torch.testing.assert_close(ours.running_mean, theirs.running_mean)
    torch.testing.assert_close(ours.running_variance, theirs.running_var)
    x = torch.randn(shape, generator=generator)
    torch.testing.assert_close(ours.eval()(x), theirs.eval()(x))
    assert fresh_of(ours) == {}


def test_batch_norm_keeps_a_variance_as_small_as_its_epsilon():
    layer, x = BatchNorm(3, momentum=1.0), 3e-3 * torch.randn(500, 3, generator=torch.Generator().manual_seed(1))
    layer(x)
    settle(layer)
    torch.testing.assert_close(layer.running_variance, x.var(0), rtol=1e-3, atol=0.0)


def test_batch_norm_begins_neutral_whatever_the_scheme():
    for scheme in ("glorot", "pytorch"):
        layer = BatchNorm(4)
        initialise(layer, scheme, 3)
        assert torch.equal(layer.weight, torch.ones(4))
        assert torch.equal(layer.bias, torch.zeros(4))


def test_forward_writes_no_state():
    layer = SpectralDense(5, 4)
    initialise(layer, "glorot", 0)
    before = {name: buffer.clone() for name, buffer in layer.named_buffers()}
    layer(torch.randn(3, 5))
    assert all(torch.equal(buffer, before[name]) for name, buffer in layer.named_buffers())
    assert set(fresh_of(layer)) == {"norm.u", "norm.v"}


def test_spectral_norm_agrees_with_the_reference(gan):
    # theirs: (rows · columns · inputs) × outputs; ours: outputs × (inputs · rows · columns)
    def ours(kernel):
        return kernel.permute(3, 2, 0, 1).contiguous()

    def vector(v):
        return ours(v.reshape(4, 4, 3, 1)).flatten()

    norm = SpectralNorm(ours(gan["sn/kernel"]))
    norm.u.copy_(gan["sn/u0"][:, 0])
    norm.v.copy_(vector(gan["sn/v0"]))
    close = {"rtol": 0, "atol": 1e-5 * float(gan["sn/kernel"].abs().max())}
    torch.testing.assert_close(norm.eval()(ours(gan["sn/kernel"])), ours(gan["sn/eval0"]), **close)
    norm.train()
    for turn in (1, 2, 3):
        torch.testing.assert_close(norm(ours(gan["sn/kernel"])), ours(gan[f"sn/train{turn}"]), **close)
        settle(norm)
        torch.testing.assert_close(norm.u, gan[f"sn/u{turn}"][:, 0], rtol=0, atol=1e-5)
        torch.testing.assert_close(norm.v, vector(gan[f"sn/v{turn}"]), rtol=0, atol=1e-5)


def test_many_iterations_find_the_largest_singular_value():
    layer = SpectralConvolution(3, 6)
    initialise(layer, "glorot", 1)
    for _ in range(300):
        layer(torch.zeros(1, 3, 4, 4))
        settle(layer)
    weight = layer.eval().norm(layer.weight)
    assert torch.linalg.matrix_norm(weight.flatten(1), 2).item() == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("case", ["head_seed0", "head_seed1", "head_zero_features"])
def test_the_projection_head_agrees_with_the_reference(gan, case):
    given = {name.partition("/")[2]: array for name, array in gan.items() if name.startswith(case + "/")}
    network = PairDiscriminator((1, 4, 4), 3, (2, 2), 8)
    with torch.no_grad():
        network.alone.weight.copy_(given["kernel_uncond"].T)
        network.given.weight.copy_(given["kernel_cond"])
        network.alone.norm.u.copy_(given["u_before"][:, 0])
        network.alone.norm.v.copy_(given["v_before"][:, 0])
    first, second = given["h1"].requires_grad_(), given["h2"].requires_grad_()
    group = torch.nn.functional.one_hot(given["y"].long(), 3).float()
    logits = network.judge(torch.cat([first, second], dim=-1), group)
    learned = [network.alone.weight, network.given.weight]
    slopes = torch.autograd.grad(logits.sum(), [first, second, *learned])
    settle(network)
    expected = {
        "logit_train": (logits[:, None], given["logit_train"]),
        "u": (network.alone.norm.u, given["u_after"][:, 0]),
        "v": (network.alone.norm.v, given["v_after"][:, 0]),
        "h1": (slopes[0], given["grad_h1"]),
        "h2": (slopes[1], given["grad_h2"]),
        "alone": (slopes[2], given["grad_kernel_uncond"].T),
        "given": (slopes[3], given["grad_kernel_cond"]),
        "eval": (network.eval().judge(torch.cat([first, second], dim=-1), group)[:, None], given["logit_eval"]),
    }
    for name, (found, wanted) in expected.items():
        scale = max(1.0, float(wanted.abs().max()))
        assert (found - wanted).abs().max().item() <= 1e-5 * scale, name


def test_deviations_agree_with_the_reference(gan):
    raw = gan["enc/raw"]
    torch.testing.assert_close(deviation(raw[:, 3:]), gan["enc/stddev"], rtol=1e-5, atol=1e-12)


def test_the_rank_discriminator_by_its_formula():
    network = RankDiscriminator((1, 8, 8), 2, (3, 3), 5)
    initialise(network, "glorot", 0)
    network(torch.rand(2, 1, 8, 8), torch.rand(2, 1, 8, 8), torch.zeros(2, 2))
    settle(network)
    network.eval()
    first, second = torch.rand(4, 1, 8, 8), torch.rand(4, 1, 8, 8)
    greater = torch.tensor([[0.0, 1.0], [1.0, 1.0], [0.0, 0.0], [1.0, 0.0]])

    def outputs(x):
        features = network.trunk(x)
        for layer in network.neck:
            features = torch.nn.functional.leaky_relu(layer(features), 0.2)
        return network.output(features)

    one, other = outputs(first), outputs(second)
    for row, logit in enumerate(network(first, second, greater)):
        expected = (one[row, 0] + other[row, 0]).item()
        for factor in range(2):
            difference = (one[row, 1 + factor] - other[row, 1 + factor]).item()
            expected += difference if greater[row, factor] else -difference
        assert logit.item() == pytest.approx(expected, abs=1e-5)


def test_layers_with_a_state_can_be_mapped():
    layers = []
    for seed in range(3):
        layer = torch.nn.Sequential(SpectralDense(4, 3), BatchNorm(3))
        initialise(layer, "glorot", seed)
        layers.append(layer)
    stacked = {
        name: torch.stack([{**dict(one.named_parameters()), **dict(one.named_buffers())}[name] for one in layers])
        for name in [*dict(layers[0].named_parameters()), *dict(layers[0].named_buffers())]
    }
    x = torch.randn(3, 6, 4)

    def one(tensors, x):
        out = functional_call(layers[0], tensors, (x,))
        return out, fresh_of(layers[0])

    found, fresh = torch.vmap(one)(stacked, x)
    for place, layer in enumerate(layers):
        torch.testing.assert_close(found[place], layer(x[place]))
        for name, value in fresh_of(layer).items():
            torch.testing.assert_close(fresh[name][place], value)


def test_a_vector_shorter_than_a_millionth_is_not_blown_up_to_length_one():
    # as TensorFlow's l2_normalize: x / sqrt(max(|x|², 1e-12))
    for length, wanted in ((3e-7, 0.3), (1e-6, 1.0), (5.0, 1.0), (0.0, 0.0)):
        x = torch.tensor([0.6 * length, 0.8 * length], dtype=torch.float64)
        assert float(_unit(x).norm()) == pytest.approx(wanted, rel=1e-6)


def test_groups_of_a_batch_are_normalised_by_themselves() -> None:
    layer, x = BatchNorm(3), torch.randn(8, 3, 2, 2) + 1.0
    parts = [(layer(part, leak=0.2), dict(layer.fresh)) for part in x.chunk(2)]
    found = layer(x, leak=0.2, groups=2)
    assert torch.equal(found, torch.cat([made for made, _ in parts]))
    assert not torch.allclose(found, layer(x, leak=0.2))
    layer(x, leak=0.2, groups=2)
    assert all(torch.equal(layer.fresh[name], one) for name, one in parts[1][1].items())  # the last group's
