"""Rectifiers that work in place beside PyTorch's own."""

import pytest
import torch

from unweave.data import Micro
from unweave.models.layers import Convolution, rectify_in_place
from unweave.models.networks import Conv
from unweave.models.networks.conv import ConvDecoder, ConvTrunk
from unweave.models.objectives import BetaVAE
from unweave.training.alone import Alone
from unweave.training.experiment import Experiment, Plan


def gradients(trunk: ConvTrunk, x: torch.Tensor, joined: torch.Tensor | None) -> list[torch.Tensor]:
    return list(torch.autograd.grad(trunk(x, joined).square().sum(), list(trunk.parameters())))


@pytest.mark.parametrize("memory", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("n_joined", [0, 3])
def test_gradients_of_a_trunk_are_those_of_plain_rectifiers_to_the_last_bit(
    memory: torch.memory_format, n_joined: int
) -> None:
    torch.manual_seed(0)
    trunk = ConvTrunk((1, 16, 16), (4, 6), (4, 4), 8, n_joined)
    for parameter in trunk.parameters():
        parameter.data.normal_(std=0.3)
    trunk.to(memory_format=memory)  # type: ignore[call-overload]
    x, joined = torch.rand(5, 1, 16, 16), torch.rand(5, n_joined) if n_joined else None
    plain = gradients(trunk, x, joined)
    trunk.rectify = rectify_in_place
    assert all(torch.equal(one, other) for one, other in zip(plain, gradients(trunk, x, joined)))


def test_gradients_of_gradients_and_spread_gradients_are_right_too() -> None:
    torch.manual_seed(0)
    layer, x = Convolution(1, 2, 4), torch.rand(3, 1, 8, 8, requires_grad=True)
    layer.weight.data.normal_()
    found = []
    for rectify in (torch.relu, rectify_in_place):
        (slope,) = torch.autograd.grad(rectify(layer(x)).square().sum(), x, create_graph=True)
        found.append(torch.autograd.grad(slope.square().sum(), layer.weight)[0])
        # the gradient of a plain sum is one number seen everywhere, which must not be written to
        found.append(torch.autograd.grad(rectify(layer(x)).sum(), layer.weight)[0])
    assert torch.equal(found[0], found[2])
    assert torch.equal(found[1], found[3])


def test_a_model_trained_alone_on_a_cpu_rectifies_in_place_and_one_that_is_opened_does_not() -> None:
    world = Micro()
    network = Conv((4, 4), (4, 4), 8)
    experiment = Experiment(world, BetaVAE(), network=network, latents=2, plan=Plan("cpu", 1))
    engine = Alone(experiment, world.load())
    model = engine.networks["model"]
    held = [part for part in model.modules() if isinstance(part, ConvTrunk | ConvDecoder)]
    assert [part.rectify for part in held] == [rectify_in_place] * 2
    assert ConvTrunk((1, 16, 16), (4,), (4,), 8).rectify is torch.relu
