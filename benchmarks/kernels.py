"""Check the fleet's GPU kernels against float64 and time them, in one call.

``PYTHONPATH=src python benchmarks/kernels.py`` prints the relative error of every kernel for each precision, whether a
model's bits depend on its partners, and how long each kernel takes per model. Full numbers go to ``$OUT`` where set.
"""

import argparse
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

from unweave.data.micro import Micro
from unweave.data.world import Data
from unweave.models import OBJECTIVES
from unweave.models.kernels.conv_stack import conv_stack
from unweave.models.kernels.convolutions import PRECISIONS, Precision, correlate, down, up
from unweave.models.kernels.copies import SWITCH
from unweave.models.kernels.dense import (
    AdamStack,
    Affine,
    dense_forward,
    dense_input_gradient,
    dense_update,
    dense_weight_gradient,
)
from unweave.models.kernels.first import first_forward, ready
from unweave.models.kernels.first_two import first_two_backward
from unweave.models.kernels.join import Join
from unweave.models.kernels.last import last_backward, last_forward
from unweave.models.kernels.pixels import BITS, BYTES, MASKS, Frame
from unweave.models.kernels.resident import up_forward
from unweave.models.networks import NETWORKS
from unweave.training.batches import Source, draw, source_of
from unweave.training.experiment import Experiment, Plan
from unweave.training.fleet.choice import LEAST_ON_GPU
from unweave.training.fleet.fleet import Fleet, advance, new_fleet, template_of
from unweave.training.fleet.members import arrange
from unweave.training.fleet.stepper import Stepper


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, nargs="+", default=[64, 128, 256])
    parser.add_argument("--skip", nargs="*", default=[], help="errors, bits, profile, steps")
    parser.add_argument("--cases", action="store_true", help="also three channels, tf32 and FactorVAE")
    parser.add_argument("--channels", type=int, default=1, help="of the profile")
    parser.add_argument("--objective", default="beta_vae", help="of the profile")
    parser.add_argument("--precisions", nargs="+", default=["bf16", "tf32", "fp32"])
    chosen = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = True
    report: dict[str, Any] = {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
    parts: dict[str, Callable[[], Any]] = {
        "errors": lambda: errors(chosen.precisions),
        "bits": bits,
        "profile": lambda: profile(chosen.models[-1], chosen.objective, chosen.channels),
        "steps": lambda: steps(chosen.models, chosen.cases),
    }
    for name, part in parts.items():
        if name not in chosen.skip:
            begin = time.monotonic()
            report[name] = part()
            print(f"[{name}: {time.monotonic() - begin:.1f} s]", flush=True)
    if "OUT" in os.environ:
        Path(os.environ["OUT"], f"kernels-{'-'.join(chosen.precisions)}.json").write_text(json.dumps(report, indent=1))


def experiments(n: int, *, objective: str = "beta_vae", network: str = "conv", steps: int = 1000) -> list[Experiment]:
    """n seeds of the standard model."""
    return [
        Experiment(Micro(), OBJECTIVES[objective](), NETWORKS[network](), seed=seed, steps=steps, plan=Plan("cuda", 1))
        for seed in range(n)
    ]


def examples(channels: int = 1, n: int = 20_000) -> Data:
    """Random pictures of 64×64, as bits (one channel) or bytes: their content does not matter for time."""
    generator = torch.Generator().manual_seed(0)
    shape = (n, 512) if channels == 1 else (n, channels, 64, 64)
    store = torch.randint(0, 256, shape, generator=generator, dtype=torch.uint8)
    return Data(store.cuda(), (channels, 64, 64), "bits" if channels == 1 else "bytes")


def fleet_of(given: list[Experiment], data: Data, precision: str) -> tuple[Fleet, Source]:
    """A fleet on the kernels, before its first step."""
    members = arrange(given, least=LEAST_ON_GPU)
    engine = conv_stack(template_of(members, data.shape), precision)
    return new_fleet(members, engine, len(data), data.shape), source_of(members.experiments, data)


def errors(precisions: list[str]) -> dict[str, float]:
    """‖out − out64‖ / ‖out64‖ of every kernel on random inputs, per precision; outputs are poisoned first.

    Where images come by a card's copy engine, the kernels without are checked too.
    """
    found: dict[str, float] = {}
    for name, precision in ((name, PRECISIONS[name]) for name in precisions):
        for sizes in ((16, 32, 32, 4), (8, 32, 64, 4), (4, 64, 64, 4), (4, 64, 64, 2)):
            found |= {f"{name} {sizes} {what}": e for what, e in inner_errors(precision, *sizes).items()}
            if name == "bf16":
                with patch.dict(os.environ, {SWITCH: "0"}):
                    plain = inner_errors(precision, *sizes)
                found |= {f"{name} {sizes} {what} without copies": e for what, e in plain.items()}
        for channels, packing in ((1, BITS), (3, BYTES)):
            ends = end_errors(precision, channels, packing)
            found |= {f"{name} {channels} channels {what}": e for what, e in ends.items()}
        found |= {f"{name} {what}": e for what, e in (dense_errors(precision) | update_errors(precision)).items()}
        mine = {what: e for what, e in found.items() if what.startswith(name)}
        worst = max(mine, key=lambda what: mine[what] if mine[what] == mine[what] else float("inf"))
        print(f"{name}: {len(mine)} checks, worst {mine[worst]:.2e} in {worst}", flush=True)
        for what, e in mine.items():
            if not e < {"bf16": 5e-3, "tf32": 2e-3, "fp32": 1e-5}[name]:
                print("   too far:", what, e)
    return found


def inner_errors(precision: Precision, height: int, n_big: int, n_small: int, kernel: int) -> dict[str, float]:
    """A convolution and a transposed one of the same sizes: outputs and both gradients."""
    join = Join(height, height, n_big, n_small, kernel, 64, 0)
    weight, bias_small, bias_big = normal(2, n_small, n_big, kernel, kernel), normal(2, n_small), normal(2, n_big)
    big = normal(2, 8, n_big, 2 * height, 2 * height).relu()
    small = normal(2, 8, n_small, height, height).relu()
    stored, product = precision.stored, precision.product
    weight, bias_small, bias_big, big, small = (t.to(stored) for t in (weight, bias_small, bias_big, big, small))
    found = {}
    for bias, what in ((bias_small, "convolution"), (bias_big, "transposed")):
        convolve = torch.nn.functional.conv2d if what == "convolution" else torch.nn.functional.conv_transpose2d
        given, slope = (big, small) if what == "convolution" else (small, big)
        rows = torch.zeros(2, 64 + weight[0].numel(), device="cuda", dtype=stored)
        rows[:, : bias.shape[1]], rows[:, 64:] = bias, weight.permute(0, 3, 4, 2, 1).flatten(1)
        gradients = torch.full_like(rows, float("nan"), dtype=torch.float32)
        back = up if what == "convolution" else down
        summed = torch.full((2, given.shape[2]), float("nan"), device="cuda")
        outputs = {
            "out": last(
                down(join, first(given), rows, product, activate=True)
                if what == "convolution"
                else up_forward(join, first(given), rows, product)
            ),
            "input": last(back(join, first(slope), rows, product, like=first(given), bias_gradient=summed)),
            "sum": summed,
        }
        pair = (given, slope) if what == "convolution" else (slope, given)
        correlate(join, first(pair[0]), first(pair[1]), gradients, product)
        outputs["weight"] = gradients[:, 64:].unflatten(1, (kernel, kernel, n_big, n_small)).permute(0, 4, 3, 1, 2)
        for model in range(2):
            leaves = [t[model].double().requires_grad_() for t in (given, weight, bias)]
            result = convolve(*leaves, stride=2, padding=(kernel - 2) // 2)
            slopes = torch.autograd.grad(result, leaves, slope[model].double())
            inward = slopes[0] * (leaves[0] > 0)
            truth = {"out": result.relu(), "input": inward, "weight": slopes[1], "sum": inward.sum((0, 2, 3))}
            for name, exact in truth.items():
                error = _distance(outputs[name][model], exact)
                found[f"{what} {name}"] = max(error, found.get(f"{what} {name}", 0.0))
    return found


def end_errors(precision: Precision, channels: int, packing: int) -> dict[str, float]:
    """The first convolution under a second one, and the last transposed one with the Bernoulli loss."""
    stored, product, kernels = precision.stored, precision.product, torch.nn.functional
    data = examples(channels, 64)
    numbers = data.examples(torch.arange(16, device="cuda")).unflatten(0, (2, 8))
    join, second = Join(32, 32, channels, 32, 4, 64, 0), Join(16, 16, 32, 32, 4, 4096, 32)
    frame, pictures = Frame(packing, channels, 64, 64, 0, 0), data.store[:16].unflatten(0, (2, 8))
    seen = ready(join, frame, pictures, stored)
    shown = seen if seen[0].packing == MASKS else (frame, pictures)
    weight, inner = 0.1 * normal(2, 32, channels, 4, 4), 0.1 * normal(2, 32, 32, 4, 4)
    weight, inner, bias, out_bias = (t.to(stored) for t in (weight, inner, normal(2, 32), normal(2, channels)))
    small, slope = normal(2, 8, 32, 32, 32).relu().to(stored), normal(2, 8, 32, 16, 16).to(stored)
    rows = torch.zeros(2, 4096 + inner[0].numel(), device="cuda", dtype=stored)
    rows[:, 64 : 64 + weight[0].numel()] = weight.permute(0, 3, 4, 2, 1).flatten(1)
    rows[:, 4096:] = inner.permute(0, 3, 4, 2, 1).flatten(1)
    gradients, late = (torch.full_like(rows, float("nan"), dtype=torch.float32) for _ in range(2))
    rows[:, :32] = bias
    out = first_forward(join, *seen, rows, stored, product)
    first_two_backward(join, second, *seen, first(slope), out, rows, gradients, product)
    rows[:, :channels] = out_bias
    loss, pixels, _ = last_forward(join, *shown, first(small), rows, product)
    scale, summed = torch.rand(2, 8, device="cuda"), torch.full((2, 32), float("nan"), device="cuda")
    back = last(last_backward(join, channels, pixels, scale, first(small), rows, late, product, bias_gradient=summed))
    found: dict[str, float] = {}
    for model in range(2):
        w, v, b, c, x, d = (t[model].double().requires_grad_() for t in (weight, inner, bias, out_bias, numbers, small))
        result = kernels.conv2d(x, w, b, stride=2, padding=1)
        # the mask of the stored output, so that a value rounded to 0 counts as one
        between = (result * (last(out)[model] > 0)).requires_grad_()
        slopes = torch.autograd.grad(kernels.conv2d(between, v, stride=2, padding=1), (w, b), slope[model].double())
        seen_by_second = kernels.conv2d(last(out)[model].double(), v, stride=2, padding=1)
        upper = torch.autograd.grad(seen_by_second, v, slope[model].double())[0]
        logits = kernels.conv_transpose2d(d, w, c, stride=2, padding=1)
        costs = kernels.binary_cross_entropy_with_logits(logits, x, reduction="none").flatten(1).sum(1)
        lasts = torch.autograd.grad(costs, (w, d), scale[model].double())
        inward = lasts[1] * (d > 0)
        pairs = {
            "first out": (last(out)[model], result.relu()),
            "first weight": (_weight(gradients, channels)[model], slopes[0]),
            "first bias": (gradients[model, :32], slopes[1]),
            "second weight": (gradients[model, 4096:], upper.permute(2, 3, 1, 0).flatten()),
            "loss": (loss[model], costs),
            "last weight": (_weight(late, channels)[model], lasts[0]), "last input": (back[model], inward),
            "last sum": (summed[model], inward.sum((0, 2, 3))),
        }  # fmt: skip
        found |= {name: max(_distance(*pair), found.get(name, 0.0)) for name, pair in pairs.items()}
    return found


def dense_errors(precision: Precision) -> dict[str, float]:
    """A dense layer's output and gradients."""
    stored, product = precision.stored, precision.product
    found: dict[str, float] = {}
    for n_inputs, n_outputs in ((1024, 256), (256, 10), (10, 256)):
        layer = Affine(n_inputs, n_outputs, 1024, 0)
        x, slope = normal(2, 64, n_inputs).relu().to(stored), normal(2, 64, n_outputs).to(stored)
        rows = (normal(2, 1024 + n_inputs * n_outputs)).to(stored)
        gradients = torch.full_like(rows, float("nan"), dtype=torch.float32)
        weight, bias = rows[:, 1024:].unflatten(1, (n_outputs, n_inputs)).double(), rows[:, :n_outputs].double()
        out = dense_forward(layer, x, rows, product, activate=True, dtype=stored)
        back = dense_input_gradient(layer, slope, rows, product, dtype=stored, like=x)
        dense_weight_gradient(layer, slope, x, gradients, product)
        pairs = {
            "out": (out, (x.double() @ weight.mT + bias[:, None]).relu()),
            "input": (back, (slope.double() @ weight) * (x > 0)),
            "weight": (gradients[:, 1024:].unflatten(1, (n_outputs, n_inputs)), slope.double().mT @ x.double()),
            "bias": (gradients[:, :n_outputs], slope.double().sum(1)),
        }
        found |= {f"dense {n_inputs}→{n_outputs} {name}": _distance(*pair) for name, pair in pairs.items()}
    return found


def update_errors(precision: Precision) -> dict[str, float]:
    """The fused update of a wide layer: parameters, moments and the rounded copy after one step of Adam."""
    stored, product = precision.stored, precision.product
    layer = Affine(1000, 1000, 1024, 0, 0.2)
    x, slope = normal(2, 128, 1000).to(stored), normal(2, 128, 1000).to(stored)
    rows, moments = normal(2, 1024 + 1_000_000), [torch.rand(2, 1024 + 1_000_000, device="cuda") for _ in range(2)]
    old = [t.double() for t in (rows, *moments)]
    rounded, rates = rows.to(stored), torch.tensor([0.1, 0.2], device="cuda")
    root, good = torch.tensor(0.5, device="cuda"), torch.ones(2, dtype=torch.bool, device="cuda")
    out = dense_forward(layer, x, rows.to(stored), product, activate=True, dtype=stored)
    weight = rows.to(stored)[:, 1024:].unflatten(1, (1000, 1000)).double()
    truth = torch.nn.functional.leaky_relu(x.double() @ weight.mT + rows.to(stored)[:, None, :1000].double(), 0.2)
    dense_update(layer, slope, x, AdamStack(rows, *moments, rounded, rates, root, good, 0.5, 0.9, 1e-8), product)
    exact = torch.zeros_like(old[0])
    exact[:, 1024:] = (slope.double().mT @ x.double()).flatten(1)
    exact[:, :1000] = slope.double().sum(1)
    used = torch.cat([torch.arange(1000), torch.arange(1024, rows.shape[1])])
    first_moment, second_moment = 0.5 * old[1] + 0.5 * exact, 0.9 * old[2] + 0.1 * exact.square()
    moved = old[0] - rates[:, None].double() * first_moment / (second_moment.sqrt() / 0.5 + 1e-8)
    pairs = {"parameters": (rows, moved), "first": (moments[0], first_moment), "second": (moments[1], second_moment)}
    pairs["rounded"] = (rounded, moved)
    found = {f"update {name}": _distance(a[:, used], b[:, used]) for name, (a, b) in pairs.items()}
    return found | {"leaky forward": _distance(out, truth)}


def normal(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, device="cuda")


def first(images: torch.Tensor) -> torch.Tensor:
    """Channels to the end, as the kernels have them."""
    return images.permute(0, 1, 3, 4, 2).contiguous()


def last(images: torch.Tensor) -> torch.Tensor:
    return images.permute(0, 1, 4, 2, 3)


def _weight(rows: torch.Tensor, channels: int) -> torch.Tensor:
    return rows[:, 64 : 64 + 512 * channels].unflatten(1, (4, 4, channels, 32)).permute(0, 4, 3, 1, 2)


def bits() -> dict[str, bool]:
    """Whether seed 0 comes out the same, bit for bit, in fleets of several sizes, after 5 steps."""
    found = {}
    data = examples()
    for objective in ("beta_vae", "beta_tcvae", "dip_vae_i", "factor_vae", "beta_vae_full"):
        results = {}
        for n in (1, 2, 7, 64):
            fleet, source = fleet_of(experiments(n, objective=objective)[::-1], data, "bf16")
            draws = draw(source, torch.arange(5, device="cuda"))
            for place in range(5):
                with torch.device("cuda"):
                    advance(fleet, source, {name: d[place] for name, d in draws.items()}, record=True)
            mine = fleet.members.given.index(n - 1)
            row = fleet.groups[0].row
            assert row is not None
            results[n] = (fleet.parameters[mine].clone(), row[mine].clone())
        for part, place in (("weights", 0), ("history", 1)):
            same = all(torch.equal(result[place], results[64][place]) for result in results.values())
            found[f"{objective} {part}"] = same
        print(
            f"{objective}: same bits in fleets of 1, 2, 7, 64:",
            found[f"{objective} weights"],
            found[f"{objective} history"],
        )
    return found


def profile(n: int, objective: str = "beta_vae", channels: int = 1) -> dict[str, float]:
    """µs per model and step of every kernel."""
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as profiler

    fleet, source = fleet_of(experiments(n, objective=objective), examples(channels), "bf16")
    stepper = Stepper(fleet, source, print, graph=False)
    for step in range(3):
        stepper(step, record=False)
    torch.cuda.synchronize()
    with profiler(activities=[ProfilerActivity.CUDA]) as seen:
        for step in range(3, 6):
            stepper(step, record=False)
        torch.cuda.synchronize()
    spent = {}
    for event in seen.key_averages():
        spent[event.key] = (event.device_time_total / (3 * n), event.count // 3)
    print(f"µs per model and step of {sum(t for t, _ in spent.values()):.1f} in all, {n} models")
    for name, (time_each, count) in sorted(spent.items(), key=lambda item: -item[1][0])[:30]:
        print(f"{time_each:8.3f}  ×{count:<3d} {name[:110]}")
    calls = [(e.name, e.device_time / n) for e in seen.events() if e.name.startswith("_")]
    print("calls of one step:", [(name, round(t, 2)) for name, t in calls[: len(calls) // 3]])
    return {name: t for name, (t, _) in spent.items()}


def steps(sizes: list[int], more: bool) -> dict[str, float]:
    """µs per model and step of the whole step as a CUDA graph, draws included."""
    found = {}
    cases = [("beta_vae", 1, n, "bf16") for n in sizes]
    last = sizes[-1]
    if more:
        cases += [
            ("beta_vae", 3, last, "bf16"),
            ("beta_vae", 1, last, "tf32"),
            ("factor_vae", 1, min(last, 128), "bf16"),
        ]
    for objective, channels, n, precision in cases:
        fleet, source = fleet_of(experiments(n, objective=objective), examples(channels), precision)
        stepper = Stepper(fleet, source, print)
        each = time_steps(stepper, n)
        found[f"{objective} {channels} {n} {precision}"] = each
        memory = torch.cuda.max_memory_allocated() / 2**30
        print(f"{objective}, {channels} channels, {n} models, {precision}: {each:.1f} µs a model-step = "
              f"{86400e6 / (300_000 * each):.0f} models a day; {memory:.1f} GiB", flush=True)  # fmt: skip
        del fleet, source, stepper
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    return found


def time_steps(stepper: Stepper, n: int, count: int = 64) -> float:
    """The median of three rounds, in µs per model and step, with a history row every 50 steps."""
    for step in range(3):
        stepper(step, record=step == 0)
    torch.cuda.synchronize()
    rounds = []
    for turn in range(3):
        begin = time.perf_counter()
        for step in range(turn * count, (turn + 1) * count):
            stepper(step, record=step % 50 == 0)
        torch.cuda.synchronize()
        rounds.append((time.perf_counter() - begin) / (count * n) * 1e6)
    return sorted(rounds)[1]


def _distance(given: torch.Tensor, truth: torch.Tensor) -> float:
    return ((given.double() - truth).norm() / truth.norm()).item()


if __name__ == "__main__":
    main()
