"""Activations against the same layers called one by one."""

import pytest
import torch

from unweave import rng
from unweave.evaluation.activations import activations
from unweave.models import Architecture, Autoencoder
from unweave.models.layers import flatten
from unweave.models.networks import MLP, Conv, Linear
from unweave.models.posteriors import Deterministic


@pytest.fixture
def images() -> torch.Tensor:
    return torch.rand(7, 1, 8, 8, generator=torch.Generator().manual_seed(0))


def test_conv_layers_one_by_one(images: torch.Tensor) -> None:
    model = Autoencoder(Architecture((1, 8, 8), 3, Conv((2, 3), (4, 4), 5)), "pytorch", 1)
    found = activations(model, images, seed=4)
    assert found.names == (
        "input", "encoder 1", "encoder 2", "encoder 3", "mean", "variance", "sampled",
        "decoder 1", "decoder 2", "decoder 3", "output",
    )  # fmt: skip
    assert found.n_encoder == 7
    trunk = model.encoder.trunk
    with torch.no_grad():
        first = torch.relu(trunk.convolutions[0](images))
        second = torch.relu(trunk.convolutions[1](first))
        third = torch.relu(trunk.dense(flatten(second)))
        code = model.code(images, rng.normal(4, rng.Purpose.EVALUATE, 0, 7, 3))
        after = torch.relu(model.decoder.dense(code.sampled))
        output = model.decoder(code.sampled)
    layers = dict(zip(found.names, found.layers))
    torch.testing.assert_close(layers["encoder 1"], first.flatten(1))
    torch.testing.assert_close(layers["encoder 2"], flatten(second))
    torch.testing.assert_close(layers["encoder 3"], third)
    torch.testing.assert_close(layers["mean"], code.mean)
    torch.testing.assert_close(layers["variance"], code.variance)
    torch.testing.assert_close(layers["sampled"], code.sampled)
    torch.testing.assert_close(layers["decoder 1"], after)
    torch.testing.assert_close(layers["output"], output.flatten(1))


def test_a_deterministic_mlp(images: torch.Tensor) -> None:
    network = MLP((6, 5), (4,))
    found = activations(Autoencoder(Architecture((1, 8, 8), 3, network, Deterministic())), images)
    assert found.names == ("input", "encoder 1", "encoder 2", "mean", "decoder 1", "output")
    assert [layer.shape[1] for layer in found.layers] == [64, 6, 5, 3, 4, 64]


def test_a_linear_model_has_no_hidden_layer(images: torch.Tensor) -> None:
    found = activations(Autoencoder(Architecture((1, 8, 8), 3, Linear())), images)
    assert found.names == ("input", "mean", "variance", "sampled", "output")


def test_batches_and_hooks_leave_no_trace(images: torch.Tensor) -> None:
    model = Autoencoder(Architecture((1, 8, 8), 3, Conv((2, 3), (4, 4), 5)))
    whole, parts = activations(model, images), activations(model, images, batch_size=3)
    torch.testing.assert_close(whole.layers[3], parts.layers[3])
    assert not any(module._forward_pre_hooks for module in model.modules())
