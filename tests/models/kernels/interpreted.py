"""Run in a process of its own with Triton's interpreter: kernels on small shapes, their distance from PyTorch as JSON.

Every case compares all gradients of a stack of a few models with those of the portable engine, and no kernel may leave
its tensors meanwhile.
"""

import json
import os
import sys

os.environ["TRITON_INTERPRET"] = "1"

from copy import deepcopy
from typing import Any
from unittest.mock import patch

import torch
import triton.language as tl
from bounds import watched  # beside this file
from torch.func import functional_call
from torch.nn.functional import conv_transpose2d
from triton.runtime import interpreter

from unweave.data.micro import Micro
from unweave.data.world import Data
from unweave.models import LIKELIHOODS, OBJECTIVES
from unweave.models.kernels import (
    batch_norm,
    correlation,
    first_two,
    folding,
    last,
    mapped_layers,
    spectral,
    spectral_all,
)
from unweave.models.kernels.adam import adam_stack
from unweave.models.kernels.chosen import Chosen
from unweave.models.kernels.conv_stack import conv_stack
from unweave.models.kernels.convolutions import Join, Tiles, up
from unweave.models.kernels.first import ready, ready_chosen
from unweave.models.kernels.layout import layout_of
from unweave.models.kernels.mapped_layers import (
    MappedBatchNorm,
    MappedGenerator,
    MappedSpectralNorm,
    MappedTrunk,
    map_convolutions,
)
from unweave.models.kernels.pixels import BITS, MASKS, Frame
from unweave.models.kernels.posterior import Totals, coded, latent_statistics, mapped_code
from unweave.models.kernels.stacked_code import StackedCode
from unweave.models.kernels.weighed import weigh
from unweave.models.layers import fresh_of
from unweave.models.networks import Conv
from unweave.models.networks.conv import ConvDecoder
from unweave.models.networks.gan import SLOPE, Generator, PairDiscriminator, SpectralTrunk, generated_pair
from unweave.models.normalisation import BatchNorm, SpectralNorm
from unweave.models.objectives.annealed_vae import AnnealedVAE
from unweave.models.objectives.beta_vae import BetaVAE
from unweave.models.objectives.factor_vae import FactorVAE
from unweave.models.optimisers import Adam, StackedUpdate
from unweave.models.posteriors import Code, Diagonal
from unweave.training.batches import draw, images, source_of, stored
from unweave.training.engine import summary
from unweave.training.experiment import Experiment, Plan
from unweave.training.fleet import engine as fleet_engine
from unweave.training.fleet.engine import FleetEngine
from unweave.training.fleet.fleet import advance, new_fleet, template_of, total_loss_of
from unweave.training.fleet.members import arrange
from unweave.training.fleet.portable import portable

_plain_dot = interpreter.InterpreterBuilder.create_dot


def _dot(self: Any, a: Any, b: Any, *rest: Any) -> Any:
    """The interpreter keeps bf16 as the bits of whole numbers and would multiply those."""
    wide = [self.cast_impl(part, tl.float32) if part.dtype.scalar == tl.bfloat16 else part for part in (a, b)]
    return _plain_dot(self, *wide, *rest)


interpreter.InterpreterBuilder.create_dot = _dot

CASES = {
    "bits": ((16, 32), (4, 4), (1, 8, 8), "bits", "bernoulli", "beta_vae"),
    "tuned tiles": ((32, 32), (4, 4), (1, 8, 8), "bits", "bernoulli", "vae"),
    "colours": ((16, 16), (4, 4), (3, 8, 8), "bytes", "bernoulli", "vae"),
    "narrow kernels": ((16, 16, 32), (4, 2, 2), (1, 8, 8), "bytes", "bernoulli", "beta_tcvae"),
    "padded": ((16, 16), (4, 4), (1, 6, 10), "bytes", "bernoulli", "annealed_vae"),
    "padded bits": ((16, 16, 16), (4, 4, 4), (1, 12, 12), "bits", "bernoulli", "dip_vae_i"),
    "learned noise": ((16, 16), (4, 4), (1, 8, 8), "bytes", "gaussian_learned", "beta_vae"),
    "squared error": ((16, 16), (4, 4), (3, 8, 8), "bytes", "squared_error", "ae"),
    "full covariance": ((16, 16), (4, 4), (1, 8, 8), "bytes", "bernoulli", "beta_vae_full"),
    "floats": ((16, 32, 16), (4, 4, 2), (1, 8, 8), "floats", "bernoulli", "beta_tcvae"),
    "coloured floats": ((16, 16), (4, 4), (3, 8, 8), "floats", "bernoulli", "dip_vae_ii"),
    "narrow floats": ((16, 16), (2, 2), (3, 8, 12), "floats", "bernoulli", "ae"),
    "study": ((32, 32, 64, 64), (4, 4, 2, 2), (1, 64, 64), "floats", "bernoulli", "beta_vae"),
    "large colours": ((32, 32, 64, 64), (4, 4, 4, 4), (3, 64, 64), "bytes", "bernoulli", "vae"),
}
SIZES = {
    "floats": (3, 9),
    "coloured floats": (3, 10),
    "narrow floats": (2, 11),
    "study": (2, 1),
    "large colours": (1, 1),
}
"""Models and examples of each, where they are not 2 and 3: more examples than a program sums, and no multiple of it."""


def distances(name: str, precision: str) -> dict[str, float]:
    """‖g − g′‖ / ‖g′‖ of every parameter's gradient; buffers are poisoned, and few programs share many images."""
    channels, kernels, shape, packing, likelihood, objective = CASES[name]
    last.PROGRAMS = 3
    generator = torch.Generator().manual_seed(7)
    n_models, batch = SIZES.get(name, (2, 3))
    size = (shape[1] * shape[2] // 8,) if packing == "bits" else shape
    store = torch.randint(0, 256, (30, *size), generator=generator, dtype=torch.uint8)
    store = store / 255 if packing == "floats" else store
    data = Data(store, shape, packing)
    network = Conv(channels=channels, kernels=kernels, hidden=16)
    members = arrange(
        [
            Experiment(
                Micro(), OBJECTIVES[objective](), network, LIKELIHOODS[likelihood](),
                batch_size=batch, latents=3, seed=seed, init="pytorch", plan=Plan("cpu", 1),
            )
            for seed in range(n_models)
        ]
    )  # fmt: skip
    template, source = template_of(members, shape), source_of(members.experiments, data)
    draws = {key: drawn[0] for key, drawn in draw(source, torch.arange(1)).items()}
    gradients = []
    for engine in (portable(template), conv_stack(template, precision)):
        fleet = new_fleet(members, engine, len(data), shape)
        if engine.name == "kernels":
            engine.rows[(n_models, fleet.parameters.device)] = torch.full_like(fleet.parameters, float("nan"))
        seen = (stored if engine.reads_stored else images)(source, draws, "images")
        found, _ = engine.gradients(fleet.parameters, fleet.weights, seen, draws["noise"], total_loss_of(fleet, draws))
        gradients.append(engine.layout.views(found))
    expected, given = gradients
    return {key: ((given[key] - expected[key]).norm() / expected[key].norm().clamp(min=1e-9)).item() for key in given}


def discriminators(precision: str) -> dict[str, float]:
    """Two steps of FactorVAE by the kernels and by PyTorch: distances of moments (sums of slopes), weights, losses."""
    store = torch.randint(0, 256, (30, 8), generator=torch.Generator().manual_seed(7), dtype=torch.uint8)
    data = Data(store, (1, 8, 8), "bits")
    objective = FactorVAE(width=24, depth=3, learning_rate=1e-3)
    members = arrange(
        [
            Experiment(
                Micro(), objective, Conv((16, 16), (4, 4), 16), batch_size=4, latents=3, seed=seed, init="pytorch",
                plan=Plan("cpu", 1),
            )
            for seed in (0, 1, 2)
        ]
    )  # fmt: skip
    template, source = template_of(members, data.shape), source_of(members.experiments, data)
    draws, fleets = draw(source, torch.arange(2)), []
    for engine in (portable(template), conv_stack(template, precision)):
        fleet = new_fleet(members, engine, len(data), data.shape)
        fleet.failed_at[2] = 0  # frozen: nothing of it may move
        for step in (0, 1):
            advance(fleet, source, {key: drawn[step] for key, drawn in draws.items()}, record=True)
        fleets.append(fleet)
    expected, given = (fleet.groups[0].networks["discriminator"] for fleet in fleets)
    assert given.stack is not None
    found = {"loss": _far(*(fleet.groups[0].terms["discriminator"] for fleet in reversed(fleets)))}
    for moment in ("first", "second"):
        own, other = (one.layout.views(one.state[moment]) for one in (given, expected))
        found |= {f"{moment} {name}": _far(own[name][:2], other[name][:2]) for name in own}
    own, other = (one.layout.views(one.parameters) for one in (given, expected))
    weights = [torch.cat([part[:2].flatten() for part in views.values()]) for views in (own, other)]
    found["weights"] = _far(*weights)
    found["frozen"] = given.state["first"][2].abs().max().item()
    found["rounded"] = _far(given.weights.to(torch.float32), given.parameters)
    return found


def leaky(precision: str, channels: int) -> dict[str, float]:
    """A discriminator's convolutions under ``vmap`` and PyTorch's: images, and slopes by weights and by pixels."""
    torch.manual_seed(0)
    correlation.SPAN = 32  # several parts, of which the last is not full
    trunks = [SpectralTrunk((channels, 8, 8), (16, 64, 128), 8) for _ in range(2)]
    for parameter in (parameter for trunk in trunks for parameter in trunk.parameters()):
        torch.nn.init.normal_(parameter, 0.0, 0.1)
    names, images = [name for name, _ in trunks[0].named_parameters()], torch.rand(2, 3, channels, 8, 8)
    held = {name: torch.stack([one.get_parameter(name).detach() for one in trunks]) for name in names}
    mapped = deepcopy(trunks[0])
    mapped.product = MappedTrunk(mapped.convolutions, "tf32x3", precision, SLOPE)

    def seen(trunk: SpectralTrunk) -> list[torch.Tensor]:
        given = [one.clone().requires_grad_() for one in (images, *held.values())]
        stacked = dict(zip(names, given[1:]))
        out = torch.vmap(lambda one, x: functional_call(trunk, one, (x,)))(stacked, given[0])
        slope = torch.randn(out.shape, generator=torch.Generator().manual_seed(1))
        loss = (out * slope).sum()
        # by weights and pixels at once, by one or the other alone
        both = torch.autograd.grad(loss, given, retain_graph=True)
        pixels = torch.autograd.grad(loss, given[:1], retain_graph=True)
        return [out, *both, *pixels, *torch.autograd.grad(loss, given[1:])]

    keys = ["out", "pixels", *names, "pixels alone", *(f"{name} alone" for name in names)]
    return {key: _far(one, other) for key, one, other in zip(keys, seen(mapped), seen(trunks[0]), strict=True)}


def decoders(precision: str, channels: int) -> dict[str, float]:
    """Decoders under ``vmap`` by the kernels and by PyTorch: outputs, and slopes by codes and weights."""
    torch.manual_seed(0)
    last.PROGRAMS = 3
    made = [ConvDecoder(4, (channels, 14, 16), (16, 16, 32), 8) for _ in range(2)]
    for parameter in (parameter for one in made for parameter in one.parameters()):
        torch.nn.init.normal_(parameter, 0.0, 0.2)
    names, codes = [name for name, _ in made[0].named_parameters()], torch.randn(2, 5, 4)
    held = {name: torch.stack([one.get_parameter(name).detach() for one in made]) for name in names}
    mapped = deepcopy(made[0])
    map_convolutions(mapped, "tf32x3", precision)
    results = []
    for decoder in (mapped, made[0]):
        given = [one.clone().requires_grad_() for one in (codes, *held.values())]
        out = torch.vmap(lambda one, z, net=decoder: functional_call(net, one, (z,)))(
            dict(zip(names, given[1:])), given[0]
        )
        slope = torch.randn(out.shape, generator=torch.Generator().manual_seed(1))
        results.append([out, *torch.autograd.grad((out * slope).sum(), given)])
    assert mapped.product is not None
    return {key: _far(own, other) for key, own, other in zip(["out", "codes", *names], *results, strict=True)}


def taps() -> dict[str, float]:
    """Weight gradients by one tap a program and by several, in short parts: distances from double precision."""
    correlation.SPAN, correlation.LEAST_SPAN, correlation.PARTS = 64, 32, 3
    big, small = torch.randn(2, 3, 8, 12, 16).bfloat16(), torch.randn(2, 3, 4, 6, 32).bfloat16()
    patches = mapped_layers._patches(big.double(), 4).flatten(1, 3)
    wanted = (patches.transpose(1, 2) @ small.double().flatten(1, 3)).flatten(1)
    found = {}
    for run in (1, 2, 4):
        with patch.object(correlation, "TUNED", {(16, 32): Tiles(32, run, 4, 2)}):
            found[str(run)] = _far(correlation.correlate_taps(big, small, 4, "ieee").sum(1).double(), wanted)
    return found


def runs() -> dict[str, float]:
    """Slopes through leaky layers, a parity a program in runs of channels, and their sums, from double precision."""
    generator, found = torch.Generator().manual_seed(2), dict[str, float]()
    for big, small in ((64, 128), (128, 128)):
        join = Join(3, 5, big, small, 4, 64, 0)
        slope = torch.randn(2, 10, 3, 5, small, generator=generator).bfloat16()  # the last program is not full
        like = torch.randn(2, 10, 6, 10, big, generator=generator).bfloat16()
        weights = torch.randn(2, 64 + 16 * big * small, generator=generator).bfloat16()
        sums = torch.zeros(2, big)
        made = up(join, slope, weights, "ieee", like=like, leak=0.2, bias_gradient=sums)
        kernels = weights[:, 64:].double().view(2, 4, 4, big, small).permute(0, 4, 3, 1, 2)
        images = slope.double().movedim(-1, 2)
        plain = [conv_transpose2d(x, one, stride=2, padding=1) for x, one in zip(images, kernels)]
        wanted = torch.stack(plain).movedim(2, -1)
        wanted = torch.where(like > 0, wanted, 0.2 * wanted)
        found |= {f"out {big}": _far(made.double(), wanted), f"sum {big}": _far(sums.double(), wanted.sum((1, 2, 3)))}
    return found


def generators(precision: str) -> dict[str, float]:
    """Pairs of images under ``vmap`` by the kernels and by PyTorch in double precision: images, states, slopes."""
    torch.manual_seed(0)
    batch_norm.SPAN, batch_norm.ROWS, correlation.SPAN = 32, 16, 32  # several parts, of which the last is not full
    made = [Generator(4, (1, 14, 16), (32, 64, 64), 32) for _ in range(2)]
    for one in made:
        for name, parameter in one.named_parameters():
            torch.nn.init.normal_(parameter, float("norms" in name), 0.2)
    names, codes = [name for name, _ in made[0].named_parameters()], torch.randn(2, 2, 3, 4)
    held = {name: torch.stack([one.get_parameter(name).detach() for one in made]) for name in names}
    states = {name: torch.rand(2, *one.shape) for name, one in made[0].named_buffers()}
    mapped = deepcopy(made[0])
    map_convolutions(mapped, "tf32x3", precision)
    mapped.product = MappedGenerator(mapped, precision)
    results = []
    for generator, dtype in ((mapped, torch.float32), (made[0], torch.float64)):
        given = [one.to(dtype).requires_grad_() for one in (codes, *held.values())]
        moving = {name: one.to(dtype) for name, one in states.items()}

        def seen(tensors: Any, z: torch.Tensor, generator: Generator = generator) -> Any:
            pairs = functional_call(Pairs(generator), {f"generator.{name}": one for name, one in tensors.items()}, (z,))
            return pairs, fresh_of(generator)

        out, fresh = torch.vmap(seen)({**dict(zip(names, given[1:])), **moving}, given[0])
        slope = torch.randn(out.shape, generator=torch.Generator().manual_seed(1)).to(dtype)
        slopes = torch.autograd.grad((out * slope).sum(), given)
        results.append({"out": out, **fresh, **dict(zip(["codes", *names], slopes))})
    mine, exact = results
    # a bias before a norm alone moves nothing
    return {name: _far(mine[name], exact[name]) for name in exact if name not in ("dense.bias", "spread.bias")}


class Pairs(torch.nn.Module):
    """A generator that is called for pairs."""

    def __init__(self, generator: Generator) -> None:
        super().__init__()
        self.generator = generator

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        return torch.stack(generated_pair(self.generator, *z))


def norms() -> dict[str, float]:
    """Layers that normalise, under ``vmap``, by kernels and by PyTorch in double precision; two models in one stack."""
    generator = torch.Generator().manual_seed(3)
    spectral.COLUMNS, spectral.ROWS, spectral.BLOCK = 4, 2, 8  # several parts, of which the last is not full
    batch_norm.SPAN, batch_norm.ROWS = 8, 4
    found: dict[str, float] = {}
    for shape in ((5, 7), (6, 3, 4, 4)):
        layer, weight = SpectralNorm(torch.zeros(shape)), torch.randn(2, *shape, generator=generator)
        held = {name: torch.rand(2, *one.shape, generator=generator) for name, one in layer.named_buffers()}
        found |= _beside(layer, MappedSpectralNorm(), held, weight, f"spectral {len(shape)}")
    for n, (size, leak) in enumerate((((19, 32), 0.0), ((3, 32, 2, 5), 0.2), ((2, 64, 3, 3), 1.0))):
        batch_norm.MOST_AT_ONCE = 0 if n == 1 else 256  # of many parts the moments are joined one after the other
        layer, x = BatchNorm(size[1]), torch.randn(2, *size, generator=generator) + 0.7
        held = {name: torch.randn(2, size[1], generator=generator) for name, _ in layer.named_parameters()}
        held |= {name: torch.rand(2, size[1], generator=generator) for name, _ in layer.named_buffers()}
        found |= _beside(layer, MappedBatchNorm(), held, x, f"batch {n}", leak=leak)
    return found


def spectral_networks() -> dict[str, float]:
    """A discriminator of two models in rows, as in a fleet: by the kernels and by PyTorch in double precision."""
    torch.manual_seed(0)
    spectral_all.COLUMNS, spectral_all.ROWS, spectral_all.BLOCK = 16, 8, 256
    network = PairDiscriminator((1, 8, 8), 3, (16, 32), 8)
    layouts = layout_of(network, aligned=True), layout_of(network, aligned=True, buffers=True)
    rows = [torch.randn(2, layout.size) for layout in layouts]
    mapped = deepcopy(network)
    map_convolutions(mapped, "tf32x3", "fp32")
    images, told = torch.rand(2, 6, 2, 1, 8, 8), torch.eye(3)[torch.randint(0, 3, (2, 6))]
    results = []
    for net, dtype in ((mapped, torch.float32), (network, torch.float64)):
        weights = {name: one.detach().requires_grad_() for name, one in layouts[0].views(rows[0].to(dtype)).items()}
        held = {**weights, **layouts[1].views(rows[1].to(dtype))}

        def seen(tensors: Any, x: torch.Tensor, group: torch.Tensor, net: Any = net) -> Any:
            return functional_call(net, tensors, (x[:, 0], x[:, 1], group)), fresh_of(net)

        found, fresh = torch.vmap(seen)(held, images.to(dtype), told.to(dtype))
        slope = torch.randn(found.shape, generator=torch.Generator().manual_seed(1)).to(dtype)
        slopes = torch.autograd.grad((found * slope).sum(), list(weights.values()))
        results.append({"out": found, **fresh, **dict(zip(weights, slopes))})
    # a norm of a vector has no slope along it, and v of a single output is ±1
    return {name: _far(one, results[1][name]) for name, one in results[0].items() if not name.startswith("alone.n")}


def folds() -> dict[str, float]:
    """Pieces of transposed convolutions added up by the kernel and by PyTorch: 4×4 and 2×2, one channel and three."""
    folding.BLOCK = 64
    found = {}
    for kernel, channels in ((4, 1), (4, 3), (2, 1)):
        pieces = torch.randn(2, 3, 4, 5, kernel, kernel, channels)
        found[f"{kernel} {channels}"] = _far(folding.folded(pieces), mapped_layers._folded(pieces))
    return found


def _beside(layer: Any, product: Any, held: Any, x: torch.Tensor, name: str, **options: float) -> dict[str, float]:
    """What a layer makes, its next state, and its slopes: distances from those without the product."""
    results = []
    for own, dtype in ((product, torch.float32), (None, torch.float64)):
        layer.product = own
        learned = [part for part, _ in layer.named_parameters()]
        given = {part: one.to(dtype).requires_grad_(part in learned) for part, one in held.items()}
        seen = x.to(dtype).requires_grad_()

        def one(parts: Any, x: torch.Tensor) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
            made = functional_call(layer, parts, (x,), options)
            return made, dict(layer.fresh)

        made, fresh = torch.vmap(one)(given, seen)
        slope = torch.randn(made.shape, generator=torch.Generator().manual_seed(1)).to(dtype)
        slopes = torch.autograd.grad((made * slope).sum(), [seen, *(given[part] for part in learned)])
        results.append([made, *fresh.values(), *slopes])
    return {f"{name} {n}": _far(own, other) for n, (own, other) in enumerate(zip(*results, strict=True))}


def _far(given: torch.Tensor, expected: torch.Tensor) -> float:
    return ((given - expected).norm() / expected.norm().clamp(min=1e-9)).item()


def adam() -> dict[str, float]:
    """Two updates by the fused kernel and by PyTorch's operations, the second model frozen."""
    generator = torch.Generator().manual_seed(3)
    start, slopes = torch.randn(3, 300, generator=generator), torch.randn(2, 3, 300, generator=generator)
    good, rate = torch.tensor([True, False, True]), torch.tensor([1e-3, 1e-2, 1e-1])
    slow, fast, rounded = start.clone(), start.clone(), start.to(torch.float64)
    slow_state, fast_state = Adam().start_stack(slow), Adam().start_stack(fast)
    for count in (1, 2):
        given = StackedUpdate(slopes[count - 1], rate, torch.tensor(count), good)
        Adam().update_stack(slow, slow_state, given)
        bias, root = torch.tensor(1 - 0.9**count), torch.tensor((1 - 0.999**count) ** 0.5)
        for own in (slice(100, 300), slice(0, 100)):
            held = (fast, slopes[count - 1], fast_state["first"], fast_state["second"], rounded)
            adam_stack(*(one[:, own] for one in held), rate, bias, root, good, 0.9, 0.999, 1e-8)
    return {
        "parameters": (fast - slow).abs().max().item(),
        "moved": float(torch.equal(fast[0], start[0])),
        "frozen": (fast[1] - start[1]).abs().max().item(),
        "rounded": (rounded[[0, 2]] - fast[[0, 2]]).abs().max().item(),
    }


def company() -> dict[str, float]:
    """Two steps of models with few and with many latents, together and alone: how far every part of them is."""
    store = torch.randint(0, 256, (30, 8), generator=torch.Generator().manual_seed(7), dtype=torch.uint8)
    data, found = Data(store, (1, 8, 8), "bits"), {}
    given = [
        Experiment(
            Micro(), AnnealedVAE(rise=1) if n == 5 else BetaVAE(float(n)), Conv((16, 16), (4, 4), 16), batch_size=3,
            latents=n, seed=n, init="pytorch", warmup=3, plan=Plan("cpu", 1),
        )
        for n in (3, 20, 5)
    ]  # fmt: skip
    # in company of an annealed VAE losses are mapped and differentiated, alone those of β-VAEs are weighed
    engines = [_advanced(members, data) for members in (given, *([one] for one in given))]
    for place, alone in enumerate(engines[1:]):
        own, other = (Recorded(engine, member) for engine, member in ((engines[0], place), (alone, 0)))
        name = f"{given[place].latents} latents"
        found[f"{name}: columns"] = float(own.columns != other.columns)
        found[f"{name}: history"] = (own.row - other.row).abs().max().item()
        for part, weights in own.weights.items():
            found[f"{name}: {part}"] = (weights - other.weights[part]).abs().max().item()
    found["groups"] = float(len(engines[0].fleet.groups))
    return found


class Recorded:
    """What a member of a fleet recorded last, and its weights."""

    def __init__(self, engine: FleetEngine, member: int) -> None:
        number, place = engine.group_of(member)
        rows = engine.rows()[number]
        self.columns, self.row, self.weights = rows.columns, rows.values[place], engine.weights(member)


def _advanced(given: list[Experiment], data: Data) -> FleetEngine:
    """A fleet on the kernels after two steps, as on a GPU."""

    def arranged(experiments: list[Experiment], data: Data, say: Any) -> Any:
        members = arrange(experiments, least=1, totals=True)
        return members, conv_stack(template_of(members, data.shape), "fp32")

    with patch.object(fleet_engine, "arranged", arranged):
        engine = FleetEngine(given, data, print)
    for step in (0, 1):
        engine.advance(step, record=True)
    return engine


def codes() -> dict[str, float]:
    """Codes, slopes, totals and statistics by the kernels and by PyTorch in double precision; 70 rows of 20 latents."""
    generator = torch.Generator().manual_seed(3)
    mean, log_variance, noise, weight = (torch.randn(3, 70, 20, generator=generator) for _ in range(4))
    given = {"mean": mean.double().requires_grad_(), "log_variance": log_variance.double().requires_grad_()}
    exact = mapped_code(Diagonal(), given, noise.double())
    made = coded(Diagonal(), {"mean": mean, "log_variance": log_variance}, noise, torch.float64)
    found = {name: _far(own, other) for name, own, other in zip(exact._fields, made.code, exact)}

    def loss(code: StackedCode, kl: torch.Tensor) -> torch.Tensor:
        parts = code.mean * weight + code.log_variance.sin() + code.sampled * weight * 2
        return parts.sum() + (kl * weight[:, 0, 0]).sum()

    kl, reconstruction = Totals.apply(made.code.kl, mean[..., 0].clone().requires_grad_())
    found["total"] = _far(kl, exact.kl.sum(-1).mean(-1))
    found["reconstruction"] = _far(reconstruction, mean[..., 0].double().mean(-1))
    by_code, _ = made.slopes(lambda code, _: loss(code, kl), mean[..., 0], {})
    found["z"] = _far(made.z, made.code.sampled)
    slopes = made.backward(by_code, weight, torch.float32)
    total = loss(exact, exact.kl.sum(-1).mean(-1)) + (exact.sampled * weight).sum()
    wanted = dict(zip(given, torch.autograd.grad(total, list(given.values()))))
    found |= {f"slope by {name}": _far(slopes[name], wanted[name]) for name in given}
    statistics = latent_statistics(made.code)
    one = torch.stack([summary({"loss": exact.kl.sum()}, Code(*(p[i] for p in exact)))[1:] for i in range(3)])
    return found | {"statistics": _far(statistics.flatten(1), one)}


def weighed() -> dict[str, float]:
    """Losses from totals by the kernel and by PyTorch: three models are well, one is not finite any more."""
    generator = torch.Generator().manual_seed(3)
    kl, losses = torch.rand(5, 70, 20, generator=generator), torch.rand(5, 70, generator=generator) * 100
    losses[4, 3] = torch.inf
    beta, share, step = torch.tensor([1.0, 4.0, 0.5, 2.0, 3.0]), torch.tensor(0.25), torch.tensor(7)
    none = torch.full_like(beta, torch.nan)
    of_one, by_beta = torch.stack([torch.ones(5), none], 1), torch.stack([none, beta], 1)
    weights = torch.stack([torch.stack([torch.ones(5), beta], 1), of_one, by_beta], 1)
    failed_at, good = torch.tensor([-1, -1, -1, 2, -1]), torch.zeros(5, dtype=torch.bool)
    failed_terms, found = torch.zeros(5, 16), {}
    terms = weigh(kl, losses, weights, share, step, failed_at, failed_terms, good)
    total, mean = kl.double().sum((1, 2)) / 70, losses.double().mean(1)
    expected = torch.stack([mean + share * beta * total, mean, beta * total], 1)
    found["terms"] = _far(terms[:4], expected[:4])
    found["blamed"] = float(terms[4, :2].isfinite().any() or not terms[4, 2].isfinite())
    found["failed"] = (failed_at - torch.tensor([-1, -1, -1, 2, 7])).abs().max().item()
    found["good"] = float((good != torch.tensor([True, True, True, False, False])).any())
    found["kept"] = failed_terms[:4].abs().max().item() + float(not torch.equal(failed_terms[4, :3], terms[4]))
    return found


def known_slopes() -> dict[str, float]:
    """Two steps with losses that are weighed, and with losses that are differentiated: how far all bits are."""
    store = torch.randint(0, 256, (30, 1, 8, 8), generator=torch.Generator().manual_seed(7), dtype=torch.uint8)
    data, found = Data(store, (1, 8, 8), "bytes"), {}
    for objective, likelihood in (("ae", "squared_error"), ("beta_vae", "gaussian_learned"), ("vae", "bernoulli")):
        given = [
            Experiment(
                Micro(), OBJECTIVES[objective](), Conv((16, 16), (4, 4), 16), LIKELIHOODS[likelihood](), batch_size=3,
                latents=3, seed=seed, init="pytorch", warmup=3, plan=Plan("cpu", 1),
            )
            for seed in (0, 1)
        ]  # fmt: skip
        weighed = _advanced(given, data)
        assert all(group.weights is not None for group in weighed.fleet.groups)
        with patch("unweave.training.fleet.fleet.known_by_weights", lambda method: False):
            differentiated = _advanced(given, data)
        own, other = (Recorded(engine, 1) for engine in (weighed, differentiated))
        parts = {"history": (own.row, other.row)} | {
            name: (own.weights[name], other.weights[name]) for name in own.weights
        }
        found |= {f"{objective} {name}": (one - two).abs().max().item() for name, (one, two) in parts.items()}
    return found


def portions() -> dict[str, float]:
    """The first two convolutions' gradients with sums made by many programs and by few: how far all bits are."""
    generator, sides = torch.Generator().manual_seed(5), []
    first, second = Join(16, 16, 1, 32, 4, 0, 512), Join(8, 8, 32, 32, 4, 544, 544 + 16384)
    masks = torch.randint(0, 1 << 16, (2, 19, 256), generator=generator, dtype=torch.int32)
    slope, image = (torch.randn(2, 19, size, size, 32, generator=generator).bfloat16() for size in (8, 16))
    weights = torch.randn(2, 20000, generator=generator).bfloat16()
    for few in (0, 100):
        first_two.FEW, gradients = few, torch.zeros(2, 20000)
        seen = Frame(MASKS, 1, 32, 32, 0, 0), masks
        first_two.first_two_backward(first, second, *seen, slope, image, weights, gradients, "ieee")
        sides.append(gradients)
    few, many = sides
    return {"size": few.abs().mean().item(), "bits": (few - many).abs().max().item()}


def chosen() -> dict[str, float]:
    """Examples by their places in a store, and gathered before: as the first convolution reads them."""
    generator, join = torch.Generator().manual_seed(5), Join(6, 8, 1, 16, 4, 0, 0)
    store = torch.randint(0, 256, (30, 12 * 16 // 8), generator=generator, dtype=torch.uint8)
    places = torch.randint(0, 30, (3, 7), generator=generator)
    seen, shown = ready_chosen(join, Frame(BITS, 1, 12, 16, 0, 0), Chosen(store, places), torch.float32)
    gathered = ready(join, Frame(BITS, 1, 12, 16, 0, 0), store[places], torch.float32)
    return {"masks": float(not torch.equal(seen[1], gathered[1]) or seen != shown or seen[0] != gathered[0])}


if __name__ == "__main__":
    name, _, precision = sys.argv[1].partition(" in ")
    precise = precision or "fp32"
    others = {
        "adam": adam, "discriminators": lambda: discriminators(precise), "leaky": lambda: leaky(precise, 1),
        "leaky colours": lambda: leaky(precise, 3), "company": company, "codes": codes, "norms": norms, "folds": folds,
        "decoders": lambda: decoders(precise, 1), "colour decoders": lambda: decoders(precise, 3),
        "generators": lambda: generators(precise), "taps": taps, "runs": runs, "spectral": spectral_networks,
        "weighed": weighed, "known slopes": known_slopes, "portions": portions, "chosen": chosen,
    }  # fmt: skip
    with watched():
        found = others[name]() if name in others else distances(name, precise)
    print(json.dumps(found))
