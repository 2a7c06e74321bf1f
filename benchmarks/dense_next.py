"""Dense kernels that wait for a card beside those that they would replace (benchmarks/dense_next.sh calls all of it).

python benchmarks/dense_next.py wide --way "three 64,64,4,3,32"   # one way: away from float64, bits
python benchmarks/dense_next.py small --way "4 three"         # the same of small models: gradients of a step, bits
python benchmarks/dense_next.py fleet --way three             # two wide models trained beside the usual ones
python benchmarks/dense_next.py times-wide                    # kernels alone, then whole steps, in turns
python benchmarks/dense_next.py times-small                   # µs a fleet step, in turns

Settings are those of ``dense.py --set``. A gradient's distance is ‖g − g′‖ / ‖g′‖, g′ in float64.
"""

import argparse
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from dense import advance, begun, change, timed  # beside this file

from unweave.data.micro import Micro
from unweave.models import Autoencoder
from unweave.models.kernels.dense import (
    AdaGradStack,
    AdamStack,
    dense_forward,
    dense_input_gradient,
    dense_update,
    dense_weight_gradient,
)
from unweave.models.kernels.dense_stack import dense_kernels
from unweave.models.likelihoods import Bernoulli
from unweave.models.networks import MLP
from unweave.models.objectives.beta_vae import BetaVAE
from unweave.recipes.pace import pictures
from unweave.training.experiment import Experiment
from unweave.training.fleet.whole_steps import BLOCK

SMALL_USUAL = "small.KNOWN=0 small.WARPS=4 small.TILE=64 small.LIMIT=0 small.SHARED=0 small.PRODUCT=tf32x3"
SMALL = {
    "usual": "",
    "4": "small.KNOWN=1",
    "8": "small.KNOWN=1 small.WARPS=8",
    "narrow": "small.KNOWN=1 small.TILE=32",
    "tight": "small.KNOWN=1 small.WARPS=8 small.TILE=32 small.LIMIT=128",
    "4 three": "small.KNOWN=1 small.PRODUCT=three",
    "4 three shared": "small.KNOWN=1 small.PRODUCT=three small.SHARED=1",
    "8 three shared": "small.KNOWN=1 small.PRODUCT=three small.SHARED=1 small.WARPS=8",
    "narrow three": "small.KNOWN=1 small.PRODUCT=three small.TILE=32",
}
"""Ways of small models, by what they change of the usual one."""

USUAL = (
    "dense_stack.INSIDE=0 dense.OWN= dense.AHEAD=1 dense.through=64,64,4,3,64 dense.gradient=64,64,4,1,64"
    " dense.update=64,64,8,2,64"
)
PRODUCTS = {"tf32x3": "", "three": "three", "six": "six"}
THROUGH = ("64,64,4,3,64", "64,64,4,3,32", "64,64,4,4,32", "64,128,4,3,32")
"""Rows, columns, warps, stages and inner portion of forward passes and input gradients; the usual ones first."""
GRADIENT = ("64,64,4,1,64", "64,128,4,1,64")
UPDATE = ("64,64,8,2,64 1", "64,64,8,1,64 0", "64,64,4,1,64 0", "64,32,4,1,64 0")
"""The same of updates, and whether moments are asked for ahead."""

BATCH = 64
Call = Callable[[], object]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["wide", "fleet", "small", "times-wide", "times-small"])
    parser.add_argument("--way", default="usual")
    parser.add_argument("--models", type=int, default=64, help="of wide ones, for trying it out")
    given = parser.parse_args()
    if given.what == "small":
        small(given.way)
    elif given.what == "wide":
        wide(given.way)
    elif given.what == "fleet":
        fleet(given.way)
    else:
        found = times_small() if given.what == "times-small" else times_wide(given.models)
        if "OUT" in os.environ:
            Path(os.environ["OUT"], f"{given.what}.json").write_text(json.dumps(found, indent=1))


def ways_of_wide() -> dict[str, str]:
    """Every product with every division of the three kernels, by name."""
    ways = {}
    for name, own in PRODUCTS.items():
        # each division at least once
        for through, gradient, update in zip(THROUGH, GRADIENT * 2, UPDATE):
            tiles, ahead = update.split()
            ways[f"{name} {through}"] = (
                f"dense.OWN={own} dense.through={through} dense.gradient={gradient} dense.update={tiles}"
                f" dense.AHEAD={ahead}"
            )
    return ways


def set_wide(settings: str) -> None:
    change([*USUAL.split(), *settings.split()])


class Wide:
    """The wide layers of some models: parameters, examples, slopes, moments; and what the kernels make of them."""

    def __init__(self, n: int, device: str = "cuda", network: MLP | None = None) -> None:
        generator, size = torch.Generator(device).manual_seed(5), self._structure(network or MLP())

        def drawn(*shape: int) -> torch.Tensor:
            return torch.randn(shape, device=device, generator=generator)

        self.parameters = drawn(n, size).mul_(0.03)
        self.seen = [drawn(n, BATCH, layer.n_inputs).tanh_() for layer in self.layers]
        self.slopes = [drawn(n, BATCH, layer.n_outputs).mul_(1e-2) for layer in self.layers]
        self.first, self.second = torch.zeros_like(self.parameters), torch.zeros_like(self.parameters)
        self.gradients = torch.zeros_like(self.parameters)
        self.rates = torch.full((n,), 1e-4, device=device)
        self.good = torch.ones(n, dtype=torch.bool, device=device)
        self.root = torch.tensor(0.0316, device=device)
        moments = self.parameters, self.first, self.second, None, self.rates, self.root, self.good
        self.adam = AdamStack(*moments, 0.9, 0.999, 1e-8)
        self.adagrad = AdaGradStack(self.parameters, self.second, None, self.rates, self.good, 1e-10)

    def of(self, n: int) -> "Wide":
        """The first models, with tensors of their own."""
        own = object.__new__(Wide)
        own.layers, own.kinds = self.layers, self.kinds
        own.parameters, own.first, own.second, own.gradients = (
            tensor[:n].clone() for tensor in (self.parameters, self.first, self.second, self.gradients)
        )
        own.seen, own.slopes = ([part[:n].clone() for part in parts] for parts in (self.seen, self.slopes))
        own.rates, own.good, own.root = self.rates[:n].clone(), self.good[:n].clone(), self.root
        moments = own.parameters, own.first, own.second, None, own.rates, own.root, own.good
        own.adam = AdamStack(*moments, 0.9, 0.999, 1e-8)
        own.adagrad = AdaGradStack(own.parameters, own.second, None, own.rates, own.good, 1e-10)
        return own

    def _structure(self, network: MLP) -> int:
        """The wide layers where they lie in a row; whether and how each is curved; values of a row."""
        shape = pictures(1).shape
        experiment = Experiment(Micro(), BetaVAE(4.0), network, Bernoulli(), latents=5)
        with torch.device("meta"):
            engine = dense_kernels(Autoencoder(experiment.architecture(shape), None), "fp32")
        self.layers = (*engine.trunk, *engine.hidden[1:], engine.output)
        n_trunk, n_hidden = len(engine.trunk), len(engine.hidden) - 1
        self.kinds = (*(("relu",) * n_trunk), *(("tanh",) * n_hidden), "none")
        return engine.layout.size

    def forward(self) -> list[torch.Tensor]:
        return [
            dense_forward(
                layer, x, self.parameters, "tf32", activate=kind != "none", dtype=torch.float32, curved=kind == "tanh"
            )
            for layer, x, kind in zip(self.layers, self.seen, self.kinds)
        ]

    def by_inputs(self) -> list[torch.Tensor]:
        """Slopes by what went into all layers but the first, through the curve of the layer below."""
        return [
            dense_input_gradient(
                layer, slope, self.parameters, "tf32", dtype=torch.float32, like=x, curved=kind != "relu"
            )
            for layer, slope, x, kind in list(zip(self.layers, self.slopes, self.seen, self.kinds))[1:]
        ]

    def by_weights(self) -> list[torch.Tensor]:
        for layer, slope, x in zip(self.layers, self.slopes, self.seen):
            dense_weight_gradient(layer, slope, x, self.gradients, "tf32")
        return [self.gradients]

    def by_adam(self) -> list[torch.Tensor]:
        return self._updated(self.adam)

    def by_adagrad(self) -> list[torch.Tensor]:
        return self._updated(self.adagrad)

    def _updated(self, state: AdamStack | AdaGradStack) -> list[torch.Tensor]:
        for layer, slope, x in zip(self.layers, self.slopes, self.seen):
            dense_update(layer, slope, x, state, "tf32")
        return [self.first, self.second, self.parameters]

    def exactly(self) -> dict[str, list[torch.Tensor]]:
        """The same in float64; of updates by Adam the first moment, by AdaGrad the second."""
        rows = self.parameters.double()
        found: dict[str, list[torch.Tensor]] = {"forward": [], "by_inputs": []}
        gradients = torch.zeros_like(rows)
        for place, (layer, slope, x, kind) in enumerate(zip(self.layers, self.slopes, self.seen, self.kinds)):
            begin, size = layer.weight_at, layer.n_outputs * layer.n_inputs
            weights = rows[:, begin : begin + size].unflatten(1, (layer.n_outputs, layer.n_inputs))
            biases = slice(layer.bias_at, layer.bias_at + layer.n_outputs)
            y, x, slope = x.double() @ weights.mT + rows[:, None, biases], x.double(), slope.double()
            found["forward"].append({"none": y, "relu": y.relu(), "tanh": y.tanh()}[kind])
            if place:
                found["by_inputs"].append(slope @ weights * ((x > 0) if kind == "relu" else 1 - x**2))
            gradients[:, begin : begin + size] = (slope.mT @ x).flatten(1)
            gradients[:, biases] = slope.sum(1)
        found["by_weights"] = [gradients]
        return found


def far(own: torch.Tensor, other: torch.Tensor) -> float:
    return ((own.double() - other).norm() / other.norm()).item()


PARTS = ("forward", "by_inputs", "by_weights", "by_adam", "by_adagrad")


def wide(way: str, network: MLP | None = None, device: str = "cuda") -> None:
    """How far every kernel is from float64, and whether 1 and 2 models have the bits that they have among 7."""
    many = Wide(7, device, network)
    exact = many.of(2).exactly()
    exact["by_adam"], exact["by_adagrad"] = exact["by_weights"], [exact["by_weights"][0] ** 2]
    set_wide(ways_of_wide()[way])
    made = all_parts(many.of(2))
    told = ", ".join(f"{part} {max(map(far, made[part], exact[part])):.1e}" for part in PARTS)
    print(f"wide, {way}: same bits at 1, 2 and 7: {same_bits(many, (1, 2))}; from float64: {told}")


def all_parts(own: Wide) -> dict[str, list[torch.Tensor]]:
    """What all kernels make of these models; of updates the first step's: m = 0.1 g, s = g²."""
    made = {part: getattr(own, part)() for part in PARTS[:3]}
    own.first.zero_()
    own.second.zero_()
    start = own.parameters.clone()
    made["by_adam"] = [own.by_adam()[0] / 0.1, own.parameters.clone()]
    own.second.zero_()
    own.parameters.copy_(start)
    made["by_adagrad"] = [own.by_adagrad()[1], own.parameters.clone()]
    own.parameters.copy_(start)
    return made


def same_bits(many: Wide, sizes: tuple[int, ...]) -> bool:
    """Whether some models give among few what they give among all."""
    some = {n: all_parts(many.of(n)) for n in sizes}
    made = all_parts(many)
    return all(
        torch.equal(whole[: len(part)], part)
        for few in some.values()
        for name in PARTS
        for part, whole in zip(few[name], made[name])
    )


def fleet(name: str, steps: int = 6) -> None:
    """Two models trained by the usual kernels and by others with the usual tiles: how far they went from each other."""
    shown, own = [], f"dense.OWN={PRODUCTS[name]}"
    plain = (own,) if name == "three" else ()
    for case, changes in (
        ("wide-adam", (*plain, f"{own} dense_stack.INSIDE=1")),
        ("wide", (f"{own} dense_stack.INSIDE=1",)),
    ):
        moved = []
        for settings in ("", *changes):
            set_wide(settings)
            engine = begun("wide", case, 2, "kernels", "")
            assert engine.name == "kernels"
            start = engine.fleet.parameters.clone()
            for step in range(steps):
                engine.advance(step, record=False)
            moved.append((engine.fleet.parameters - start).double())
            assert bool(engine.fleet.alive.all())
            engine.close()
        shown += [f"{case}, {way} {far(one, moved[0]):.1e}" for way, one in zip(changes, moved[1:])]
    print(f"fleet, {name}: from the usual after {steps} steps, of the way: {'; '.join(shown)}")


def small(way: str, steps: int = 40) -> None:
    """Gradients of a first step beside float64, and bits of fleets of 1, 7 and 64 after some steps."""
    from unweave.models.kernels.layout import layout_of
    from unweave.training.batches import draw, images
    from unweave.training.fleet.fleet import template_of, total_loss_of
    from unweave.training.fleet.portable import Portable

    change([*SMALL_USUAL.split(), *SMALL[way].split()])
    fleets = {n: begun("tanh", "tanh-epochs", n, "usual", "") for n in (1, 7, 64)}
    stepper = fleets[7].stepper
    fleet, source = stepper.fleet, stepper.source
    start = fleet.parameters.double()
    template = template_of(fleet.members, fleet.members.experiments[0].world.load().shape)
    draws = {key: drawn[0] for key, drawn in draw(source, torch.arange(1, device="cuda")).items()}
    noise = fleet.groups[0].method.posterior_noise(draws).double()
    with torch.device("cuda"):
        exact, _ = Portable(template, layout_of(template)).gradients(
            start, start, images(source, draws, "images").double(), noise, total_loss_of(fleet, draws)
        )
    advance(fleets[7], 0, 1)
    stepper.catch_up()
    # m = 0.1 g
    away = far(fleet.optimiser_state["first"] / 0.1, exact)
    for n, engine in fleets.items():
        advance(engine, int(n == 7), steps - int(n == 7))
        engine.stepper.catch_up()
    parameters = {n: engine.stepper.fleet.parameters for n, engine in fleets.items()}
    same = all(torch.equal(parameters[n][:n], parameters[64][:n]) for n in (1, 7))
    alive = all(bool(engine.stepper.fleet.alive.all()) for engine in fleets.values())
    kind = type(stepper).__name__
    print(
        f"small, {way}: same bits at 1, 7, 64: {same}; gradients from float64: {away:.1e}; all alive: {alive} ({kind})"
    )


def times_small(sizes: tuple[int, ...] = (64, 256), rounds: int = 3) -> dict[str, dict[str, list[float]]]:
    """µs a fleet step, in turns: blocks of steps that are drawn together, their draws included."""
    report: dict[str, dict[str, list[float]]] = {}
    for n in sizes:
        engines, first = {}, {}
        for way, settings in SMALL.items():
            change([*SMALL_USUAL.split(), *settings.split()])
            engines[way] = begun("tanh", "tanh-epochs", n, "usual", "")
            first[way] = advance(engines[way], BLOCK - 60, 60)
        report[str(n)] = {way: [] for way in SMALL}
        for _ in range(rounds):
            for way, engine in engines.items():
                change([*SMALL_USUAL.split(), *SMALL[way].split()])
                report[str(n)][way].append(1e6 * timed(engine, first[way], BLOCK))
                first[way] += BLOCK
        told = ", ".join(f"{way} {min(spans):.1f}" for way, spans in report[str(n)].items())
        print(f"{n} small models, µs a fleet step, least of {rounds}: {told}", flush=True)
    return report


def times_wide(n: int) -> dict[str, Any]:
    """ms of every kernel by every division, then of whole steps by the quickest."""
    alone = kernels_alone(n)
    best = {name: quickest(alone, own) for name, own in PRODUCTS.items()}
    ways = {"usual": "", "three": best["three"]}
    ways |= {f"{name} inside": f"{settings} dense_stack.INSIDE=1" for name, settings in best.items()}
    report: dict[str, Any] = {"kernels": alone, "ways": ways}
    of_adagrad = {
        way: settings for way, settings in ways.items() if way == "usual" or way in ("three inside", "six inside")
    }
    for case, asked in (("wide-adam", ways), ("wide", of_adagrad)):
        report[case] = whole_steps(case, n, asked)
        for way, spans in report[case].items():
            print(f"  {case:9s} {min(spans):6.2f} ms  {way:20s} {ways[way]}", flush=True)
    return report


def kernels_alone(n: int, rounds: int = 4) -> dict[str, dict[str, float]]:
    """Least ms of all wide layers' passes, gradients and updates, by product and division."""
    layers = Wide(n)
    for way, settings in ways_of_wide().items():
        set_wide(settings)
        if not same_bits(layers, (1, 7)):
            print(f"OTHER BITS at 1 and 7 models than at {n}: {way}", flush=True)
    found: dict[str, dict[str, float]] = {}
    parts: dict[str, tuple[tuple[str, ...], str]] = {
        "forward": (THROUGH, "through"),
        "by_inputs": (THROUGH, "through"),
        "by_weights": (GRADIENT, "gradient"),
        "by_adam": (UPDATE, "update"),
        "by_adagrad": (UPDATE, "update"),
    }
    for part, (divisions, place) in parts.items():
        calls: dict[str, tuple[str, Call]] = {}
        for name, own in PRODUCTS.items():
            for division in divisions:
                tiles, _, ahead = division.partition(" ")
                settings = f"dense.OWN={own} dense.{place}={tiles} dense.AHEAD={ahead or 1}"
                calls[f"{name} {division}"] = settings, getattr(layers, part)
        spans: dict[str, list[float]] = {way: [] for way in calls}
        for turn in range(rounds + 1):
            for way, (settings, call) in calls.items():
                set_wide(settings)
                begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                try:
                    begin.record()
                    call()
                    end.record()
                    end.synchronize()
                    spans[way] += [begin.elapsed_time(end)] if turn else []
                except Exception as error:
                    print(f"{part} {way}: {type(error).__name__}", flush=True)
                    spans[way].append(float("inf"))
        found[part] = {way: min(times) for way, times in spans.items()}
        shown = sorted(found[part].items(), key=lambda item: item[1])
        usual = found[part][f"tf32x3 {divisions[0]}"]
        print(f"{part:10s} usual {usual:.2f} ms; " + "; ".join(f"{way} {ms:.2f}" for way, ms in shown[:6]), flush=True)
    return found


def quickest(alone: dict[str, dict[str, float]], own: str) -> str:
    """The settings of the quickest divisions with one kind of product."""
    name = own or "tf32x3"
    through = min(THROUGH, key=lambda way: sum(alone[part][f"{name} {way}"] for part in ("forward", "by_inputs")))
    gradient = min(GRADIENT, key=lambda way: alone["by_weights"][f"{name} {way}"])
    update = min(UPDATE, key=lambda way: sum(alone[part][f"{name} {way}"] for part in ("by_adam", "by_adagrad")))
    tiles, ahead = update.split()
    return f"dense.OWN={own} dense.through={through} dense.gradient={gradient} dense.update={tiles} dense.AHEAD={ahead}"


def whole_steps(case: str, n: int, ways: dict[str, str], rounds: int = 3, count: int = 15) -> dict[str, list[float]]:
    """ms a fleet step of one fleet that goes on by one way after the other, each with graphs of its own."""
    engine, place = begun("wide", case, n, "kernels", ""), 0
    found: dict[str, list[float]] = {way: [] for way in ways}
    graphs: dict[str, Any] = {way: {} for way in ways}
    for turn in range(rounds + 1):
        for way, settings in ways.items():
            set_wide(settings)
            engine.stepper.graphs = graphs[way]
            if not turn:  # captured here
                engine.advance(place, record=False)
                place += 1
                continue
            torch.cuda.synchronize()
            begin = time.perf_counter()
            for _ in range(count):
                engine.advance(place, record=False)
                place += 1
            torch.cuda.synchronize()
            found[way].append((time.perf_counter() - begin) / count * 1e3)
    alive = int(engine.stepper.fleet.alive.sum())
    loss = sum(terms["loss"] for terms in engine.terms()) / n
    print(f"whole steps, {case}, {n} models, {place} steps: {alive} alive, loss {loss:.5g}")
    for held in graphs.values():
        for graph, _ in held.values():
            graph.reset()
    engine.stepper.graphs = {}
    return found


if __name__ == "__main__":
    main()
