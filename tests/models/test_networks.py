"""Networks: the reference implementation's own weights give its own outputs; sizes, shapes, and bad input."""

import math

import numpy as np
import pytest
import torch

from unweave.models import Architecture, Autoencoder
from unweave.models.initialise import initialise
from unweave.models.layers import Deconvolution
from unweave.models.networks import NETWORKS
from unweave.models.networks.conv import Conv, ConvStudy
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
