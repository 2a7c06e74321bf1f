"""Convolutions of many models under vmap are PyTorch's own, forward and backward."""

import copy

import pytest
import torch
from torch import nn
from torch.func import functional_call
from torch.nn import functional

from unweave.models.kernels.mapped_layers import Mapped, MappedTrunk, map_convolutions
from unweave.models.networks.conv import ConvTrunk
from unweave.models.networks.gan import SLOPE, SpectralTrunk

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU"))]
CASES = [(1, 32, 4), (3, 16, 4), (16, 32, 4), (32, 64, 2), (64, 128, 4), (5, 7, 4), (1, 16, 2)]


@pytest.fixture(autouse=True)
def exact_products() -> None:
    """Other tests may have allowed PyTorch to round its factors."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("big", "small", "kernel"), CASES)
@pytest.mark.parametrize("way", ["down", "up"])
def test_mapped_convolution_is_pytorchs(device: str, big: int, small: int, kernel: int, way: str) -> None:
    if device == "cpu" and big * small > 512:
        pytest.skip("the same code as with few channels")
    torch.manual_seed(0)
    size = (8, 12) if way == "down" else (4, 6)
    n_inputs, n_outputs = (big, small) if way == "down" else (small, big)
    x, weight = torch.randn(3, 5, n_inputs, *size), torch.randn(3, small, big, kernel, kernel) / 8
    given = [one.to(device).requires_grad_() for one in (x, weight, torch.randn(3, n_outputs))]
    layer = Mapped("tf32x3", way)  # type: ignore[arg-type]
    found = torch.vmap(layer)(*given)
    slope = torch.randn_like(found)
    slopes = torch.autograd.grad((found * slope).sum(), given)

    exact = [one.detach().double().cpu().requires_grad_() for one in given]
    plain = functional.conv2d if way == "down" else functional.conv_transpose2d
    wanted = torch.stack([plain(*one, stride=2, padding=(kernel - 2) // 2) for one in zip(*exact)])
    wanted_slopes = torch.autograd.grad((wanted * slope.double().cpu()).sum(), exact)
    for one, other in zip((found, *slopes), (wanted, *wanted_slopes)):
        assert one.shape == other.shape
        assert (one.cpu() - other).norm() <= 1e-5 * other.norm()


def test_gradients_that_are_not_asked_for_are_not_made() -> None:
    x, weight, bias = torch.randn(2, 3, 1, 8, 8), torch.randn(2, 4, 1, 4, 4, requires_grad=True), torch.zeros(2, 4)
    found = torch.vmap(Mapped("tf32", "down"))(x, weight, bias)
    (slope,) = torch.autograd.grad(found.sum(), [weight])
    assert slope.shape == weight.shape


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize("shape", [(1, 16, 16), (3, 32, 32)])
@pytest.mark.parametrize("through", [False, True])
def test_a_mapped_trunk_is_the_layers_of_every_model(shape: tuple[int, int, int], through: bool) -> None:
    torch.manual_seed(0)
    made = [ConvTrunk(shape, (16, 16, 32), (4, 4, 2), 8, 2) for _ in range(3)]
    for one in made:
        for parameter in one.parameters():
            nn.init.normal_(parameter, 0.0, 0.1)
    x, joined = torch.rand(3, 5, *shape), torch.rand(3, 5, 2)
    wanted = torch.stack([one.double()(*given) for one, *given in zip(made, x.double(), joined.double())])
    slope = torch.randn(wanted.shape)
    slopes = torch.autograd.grad((wanted * slope).sum(), [p for one in made for p in one.parameters()])

    mapped = copy.deepcopy(made[0]).float().requires_grad_(False)
    map_convolutions(mapped, "tf32x3", "fp32")
    names = [name for name, _ in made[0].named_parameters()]
    stacked = {n: torch.stack([one.get_parameter(n).detach() for one in made]).float().cuda() for n in names}
    stacked = {name: held.requires_grad_() for name, held in stacked.items()}
    images = x.cuda().requires_grad_(through)  # what needs gradients goes layer by layer
    found = torch.vmap(lambda *given: functional_call(mapped, given[0], given[1:]))(stacked, images, joined.cuda())
    assert (found.cpu() - wanted).norm() <= 1e-5 * wanted.norm()
    for place, one in enumerate(torch.autograd.grad((found * slope.cuda()).sum(), list(stacked.values()))):
        exact = torch.stack(slopes[place :: len(names)])
        assert (one.cpu() - exact).norm() <= 1e-5 * exact.norm(), names[place]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_a_mapped_discriminator_is_that_of_every_model() -> None:
    torch.manual_seed(0)
    made = [SpectralTrunk((1, 64, 64), (64, 64, 128, 128), 16) for _ in range(3)]
    for parameter in (parameter for one in made for parameter in one.parameters()):
        nn.init.normal_(parameter, 0.0, 0.1)
    names, images = [name for name, _ in made[0].named_parameters()], torch.rand(3, 70, 1, 64, 64)
    held = [torch.stack([one.get_parameter(name).detach() for one in made]) for name in names]
    mapped = copy.deepcopy(made[0])
    mapped.product = MappedTrunk(mapped.convolutions, "tf32x3", "bf16", SLOPE)
    found: list[list[torch.Tensor]] = []
    plain = copy.deepcopy(made[0])
    for trunk, dtype in ((mapped, torch.float32), (plain, torch.float32), (made[0].double(), torch.float64)):
        given = [one.to("cuda", dtype).requires_grad_() for one in (images, *held)]
        called = torch.vmap(lambda one, x, trunk=trunk.cuda(): functional_call(trunk, one, (x,)))
        with torch.autocast("cuda", torch.bfloat16, enabled=trunk is plain):
            out = called(dict(zip(names, given[1:])), given[0])
        slope = torch.randn(out.shape, generator=torch.Generator().manual_seed(1)).to("cuda", dtype)
        found.append([out, *torch.autograd.grad((out * slope).sum(), given)])
    # a number near 0 that rounding takes to the rectifier's other side changes a slope: PyTorch's bf16 knows that too
    for name, one, rounded, exact in zip(["out", "pixels", *names], *found):
        assert (one - exact).norm() <= 1.5 * (rounded - exact).norm() + 0.005 * exact.norm(), name
