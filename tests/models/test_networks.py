"""Networks: the reference implementation's own weights give its own outputs; sizes, shapes, and bad input."""

import math

import numpy as np
import pytest
import torch

from unweave.models import Architecture, Autoencoder
from unweave.models.initialise import initialise
from unweave.models.layers import Deconvolution
from unweave.models.networks import NETWORKS, Maxout
from unweave.models.networks.conv import Conv, ConvStudy, coarse_size, margins
from unweave.models.networks.mlp import MLP, Linear
from unweave.models.objectives.factor_vae import CodeDiscriminator


def n_parameters(module):
    return sum(p.numel() for p in module.parameters())


def set_layer(layer, kernel, bias):
    with torch.no_grad():
        layer.weight.copy_(torch.from_numpy(kernel))
        layer.bias.copy_(torch.from_numpy(bias))


def test_conv_encoder_reproduces_the_reference(reference):
    stored = np.load(reference / "arch_conv_encoder_c1.npz")
    encoder = Autoencoder(Architecture((1, 64, 64), 10, ConvStudy())).encoder
    for number, layer in enumerate(encoder.trunk.convolutions, 1):
        # kernels are stored height, width, in, out
        set_layer(layer, stored[f"e{number}.kernel"].transpose(3, 2, 0, 1), stored[f"e{number}.bias"])
    set_layer(encoder.trunk.dense, stored["e5.kernel"].T, stored["e5.bias"])
    for head, name in (("mean", "means"), ("log_variance", "log_var")):
        set_layer(encoder.heads[head], stored[f"{name}.kernel"].T, stored[f"{name}.bias"])
    heads = encoder(torch.from_numpy(stored["x"]).permute(0, 3, 1, 2))
    torch.testing.assert_close(heads["mean"], torch.from_numpy(stored["out0"]), rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(heads["log_variance"], torch.from_numpy(stored["out1"]), rtol=1e-4, atol=1e-6)


def test_conv_decoder_reproduces_the_reference(reference):
    stored = np.load(reference / "arch_deconv_decoder_c1.npz")
    decoder = ConvStudy().decoder(10, (1, 64, 64))
    set_layer(decoder.dense, stored["dense.kernel"].T, stored["dense.bias"])
    set_layer(decoder.spread, stored["dense_1.kernel"].T, stored["dense_1.bias"])
    for layer, name in zip(decoder.deconvolutions, ("", "_1", "_2", "_3")):
        # kernels are stored height, width, out, in
        kernel = stored[f"conv2d_transpose{name}.kernel"].transpose(3, 2, 0, 1)
        set_layer(layer, kernel, stored[f"conv2d_transpose{name}.bias"])
    outputs = decoder(torch.from_numpy(stored["x"])).permute(0, 2, 3, 1)
    torch.testing.assert_close(outputs, torch.from_numpy(stored["out0"]), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("network", "channels", "expected"),
    [  # the reference implementation's own counts for ten latents
        (ConvStudy(), 1, 309_204 + 381_313),
        (ConvStudy(), 3, 310_228 + 382_339),
        (Conv(), 1, 764_245),
        (MLP(), 1, 6_381_620 + 7_814_896),
    ],
)
def test_sizes(network, channels, expected):
    assert n_parameters(Autoencoder(Architecture((channels, 64, 64), 10, network))) == expected


def test_discriminator_size():
    assert n_parameters(CodeDiscriminator(10, 1000, 6)) == 5_018_002


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("shape", [(1, 64, 64), (3, 28, 28), (1, 32, 48)])
def test_every_network_takes_every_image_size(name, shape):
    model = Autoencoder(Architecture(shape, 4, NETWORKS[name]()))
    x = torch.rand(2, *shape)
    code, losses = model(x, torch.randn(2, 4))
    assert code.mean.shape == (2, 4)
    assert losses.shape == (2,)
    assert model.decode(code.mean).shape == x.shape


def test_vectors_go_through_dense_networks_only():
    assert Autoencoder(Architecture((3,), 2, Linear())).decode(torch.zeros(5, 2)).shape == (5, 3)
    with pytest.raises(ValueError, match="needs images"):
        Autoencoder(Architecture((3,), 2, Conv()))


@pytest.mark.parametrize(
    ("network", "shape", "message"),
    [
        (Conv(kernels=(4, 4)), (1, 64, 64), "network.kernels must be 4 numbers"),
        (Conv(kernels=(4, 4, 4, 3)), (1, 64, 64), "each 2 or 4"),
        (Conv(), (1, 4, 4), "too small"),
    ],
)
def test_bad_architectures(network, shape, message):
    with pytest.raises(ValueError, match=message):
        Autoencoder(Architecture(shape, 2, network))


def test_the_fast_last_layer_is_the_transposed_convolution():
    layer = Deconvolution(8, 1)
    initialise(layer, "pytorch", 3)
    x = torch.randn(2, 8, 5, 7)
    slow = torch.nn.functional.conv_transpose2d(x, layer.weight, layer.bias, stride=2, padding=1)
    torch.testing.assert_close(layer(x), slow)


@pytest.mark.parametrize("scheme", ["glorot", "pytorch"])
def test_initial_weights_have_the_right_spread(scheme):
    model = Autoencoder(Architecture((1, 64, 64), 10, Conv()), scheme, 5)
    weight, bias = model.encoder.trunk.dense.weight, model.encoder.trunk.dense.bias
    limit = math.sqrt(6 / (1024 + 256)) if scheme == "glorot" else 1 / math.sqrt(1024)
    assert weight.abs().max() <= limit
    assert weight.std().item() == pytest.approx(limit / math.sqrt(3), rel=0.01)
    assert bool((bias == 0).all()) == (scheme == "glorot")


def test_initial_weights_depend_on_the_seed_alone_and_not_on_the_latent_size():
    one, two, other = (Autoencoder(Architecture((1, 64, 64), n), "glorot", s) for n, s in ((10, 1), (5, 1), (10, 2)))
    assert torch.equal(one.encoder.trunk.convolutions[1].weight, two.encoder.trunk.convolutions[1].weight)
    assert not torch.equal(one.encoder.trunk.dense.weight, other.encoder.trunk.dense.weight)


def test_the_spread_of_a_kernel_counts_its_pixels_on_both_sides():
    weight = Autoencoder(Architecture((1, 64, 64), 10, Conv()), "glorot", 5).encoder.trunk.convolutions[3].weight
    limit = math.sqrt(6 / (16 * (weight.shape[0] + weight.shape[1])))
    assert weight.abs().max() <= limit
    assert weight.std().item() == pytest.approx(limit / math.sqrt(3), rel=0.02)


def test_a_trunk_is_as_wide_as_its_last_layer():
    assert MLP((9, 7, 5), (4,)).trunk((1, 3, 3))[1] == 5
    assert MLP((), (4,)).trunk((1, 3, 3))[1] == 9


@pytest.mark.parametrize("shape", [(1, 4, 64), (1, 64, 4)])
def test_the_shorter_side_decides_how_many_convolutions_fit(shape):
    with pytest.raises(ValueError, match="too small for 4 convolutions"):
        Autoencoder(Architecture(shape, 2, Conv()))


def test_one_latent_is_enough_and_none_is_not():
    assert Autoencoder(Architecture((3,), 1, Linear())).encode(torch.zeros(2, 3)).mean.shape == (2, 1)
    with pytest.raises(ValueError, match="a model needs at least one latent, given 0"):
        Autoencoder(Architecture((3,), 0, Linear()))


@pytest.mark.parametrize(
    ("shape", "n", "coarse", "margin"),
    [
        ((1, 28, 28), 4, (2, 2), (2, 2, 2, 2)),
        ((1, 32, 48), 4, (2, 3), (0, 0, 0, 0)),
        ((1, 5, 8), 2, (2, 2), (0, 0, 1, 2)),
        ((1, 8, 5), 2, (2, 2), (1, 2, 0, 0)),
        ((3, 4, 4), 2, (1, 1), (0, 0, 0, 0)),
    ],
)
def test_images_are_padded_to_sizes_that_halve_evenly(shape, n, coarse, margin):
    assert coarse_size(shape, n) == coarse
    assert margins(shape, n) == margin
    network = Conv((2,) * n, (4,) * n, 4)
    decoder = network.decoder(2, shape)
    whole = decoder(torch.zeros(3, 2))
    assert whole.shape == (3, *shape)
    trunk, n_features = network.trunk(shape)
    assert n_features == 4
    assert trunk(torch.zeros(3, *shape)).shape == (3, 4)


def test_what_is_cropped_away_is_the_margin():
    network, shape = Conv((2, 2), (4, 4), 4), (1, 5, 6)
    decoder = network.decoder(2, shape)
    initialise(decoder, "glorot", 3)
    seen = []
    decoder.deconvolutions[-1].register_forward_hook(lambda module, inputs, made: seen.append(made))
    code = torch.tensor([[0.5, -1.0]])
    found = decoder(code)
    # 5 × 6 of 8 × 8: one row above and two below, one column on each side
    assert torch.equal(found, seen[0][:, :, 1:6, 1:7])


def test_images_as_large_as_their_convolutions_need_are_taken_and_smaller_ones_are_not():
    for side, fits in ((8, True), (7, False)):
        for shape in ((1, side, 9), (1, 9, side)):
            network = Conv((2, 2, 2), (4, 4, 4), 4)
            if fits:
                network.check(shape)
            else:
                with pytest.raises(ValueError, match="too small for 3 convolutions"):
                    network.check(shape)


def test_a_maxout_unit_is_the_larger_of_two_neighbours():
    trunk, n = Maxout((2,)).trunk((3,))
    initialise(trunk, "pytorch", 1)
    x = torch.randn(4, 3)
    plain = x @ trunk.layers[0].weight.T + trunk.layers[0].bias
    assert n == 2
    torch.testing.assert_close(trunk(x), torch.stack([plain[:, :2].amax(1), plain[:, 2:].amax(1)], 1))
    assert Maxout(()).trunk((2, 3), 4)[1] == 10
    deep, n = Maxout((5, 3, 4)).trunk((2,))
    assert [tuple(layer.weight.shape) for layer in deep.layers] == [(10, 2), (6, 5), (8, 3)]
    assert (n, deep(torch.zeros(3, 2)).shape) == (4, (3, 4))
    mirror = Maxout((5, 3, 4)).decoder(2, (1, 6))
    assert [tuple(layer.weight.shape) for layer in mirror.hidden.layers] == [(4, 2), (3, 4), (5, 3)]


def test_what_is_joined_stands_beside_the_example():
    x, told = torch.randn(4, 2, 3), torch.randn(4, 2)
    for network in (MLP((5,), ()), Maxout((5,)), Linear()):
        trunk, n = network.trunk((2, 3), 2)
        initialise(trunk, "pytorch", 1)
        flat = torch.cat([x.flatten(1), told], 1)
        if isinstance(network, Linear):
            products = torch.stack([x.flatten(1)[:, i] * told[:, j] for i in range(6) for j in range(2)], 1)
            torch.testing.assert_close(trunk(x, told), torch.cat([flat, products], 1))
            assert n == 6 + 2 + 12
        else:
            first = flat @ trunk.layers[0].weight.T + trunk.layers[0].bias
            wanted = torch.relu(first) if isinstance(network, MLP) else first.view(4, 5, 2).amax(2)
            torch.testing.assert_close(trunk(x, told), wanted)
            assert n == 5
