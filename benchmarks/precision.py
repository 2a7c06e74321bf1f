"""Do bf16 and fp32 fleets of the same seeds agree? MIG, reconstruction and active latents of 32 seeds of each.

``PYTHONPATH=src python benchmarks/precision.py`` trains on the micro-world and prints means, spreads, the mean paired
difference with its standard error, and the two-sample Kolmogorov-Smirnov distance with its permutation p.
"""

import argparse
import json
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from unweave import rng
from unweave.data import WORLDS
from unweave.metrics.supervised.mig import mig
from unweave.models.kernels.conv_stack import conv_stack
from unweave.models.objectives.beta_vae import BetaVAE
from unweave.models.optimisers import Adam
from unweave.training.batches import source_of
from unweave.training.experiment import Experiment, Plan
from unweave.training.fleet.fleet import Fleet, new_fleet, template_of
from unweave.training.fleet.members import arrange
from unweave.training.fleet.stepper import Stepper


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--world", default="micro")
    parser.add_argument("--seeds", type=int, default=32)
    parser.add_argument("--steps", type=int, default=8000)
    parser.add_argument("--beta", type=float, default=2.0)
    parser.add_argument("--precisions", nargs="+", default=["bf16", "fp32"])
    given = parser.parse_args()
    results = {name: trained(name, given) for name in given.precisions}
    for quantity in ("mig", "reconstruction", "active"):
        for name, result in results.items():
            values = torch.tensor(result[quantity], dtype=torch.float64)
            quartiles = values.quantile(torch.tensor([0.25, 0.5, 0.75], dtype=torch.float64)).tolist()
            shown = ", ".join(f"{q:.4f}" for q in quartiles)
            print(f"{quantity:15s} {name}: mean {values.mean():.4f}, sd {values.std():.4f}, quartiles {shown}")
        print(f"{quantity:15s} {compared(*(torch.tensor(result[quantity]) for result in results.values()))}")
    if "OUT" in os.environ:
        Path(os.environ["OUT"], f"precision-{given.world}.json").write_text(json.dumps(results))


def compared(one: torch.Tensor, other: torch.Tensor) -> str:
    """The paired difference and how far the two distributions lie apart."""
    difference = (one - other).double()
    error = difference.std() / len(one) ** 0.5
    pooled, n = torch.cat([one, other]), len(one)
    generator = torch.Generator().manual_seed(0)
    shuffles = (pooled[torch.randperm(2 * n, generator=generator)] for _ in range(5000))
    apart = distance(one, other)
    p = sum(distance(s[:n], s[n:]) >= apart - 1e-9 for s in shuffles) / 5000
    return f"difference {difference.mean():+.4f} ± {error:.4f} (standard error), KS {apart:.3f}, p {p:.2f}"


def distance(one: torch.Tensor, other: torch.Tensor) -> float:
    """Kolmogorov and Smirnov's: the largest gap between two empirical distribution functions."""
    places = torch.cat([one, other])
    shares = [(sample[None, :] <= places[:, None]).double().mean(1) for sample in (one, other)]
    return float((shares[0] - shares[1]).abs().max())


def trained(precision: str, given: Any) -> dict[str, Any]:
    """Train all seeds in one fleet and measure every model on the whole world."""
    world = WORLDS[given.world]()
    base = Experiment(
        world, BetaVAE(given.beta), optimiser=Adam(5e-4), steps=given.steps, plan=Plan("cuda", 1, precision)
    )
    data = world.load().to("cuda")
    members = arrange([replace(base, seed=seed) for seed in range(given.seeds)], least=16)
    fleet = new_fleet(members, conv_stack(template_of(members, data.shape), precision), len(data), data.shape)
    stepper = Stepper(fleet, source_of(members.experiments, data), print)
    begin, losses = time.monotonic(), []
    for step in range(given.steps):
        stepper(step, record=False)
        if step >= given.steps - 200:
            losses.append(fleet.groups[0].terms["reconstruction"].clone())
    torch.cuda.synchronize()
    print(f"{precision}: {given.steps} steps of {given.seeds} models in {time.monotonic() - begin:.1f} s", flush=True)
    measured = measure(fleet, data)
    return measured | {"reconstruction": torch.stack(losses).mean(0).tolist()}


@torch.no_grad()
def measure(fleet: Fleet, data: Any) -> dict[str, Any]:
    """MIG of the mean codes over all cells (or 10,000 of them), and latents with a KL above 0.1 nats."""
    n, means, kls = len(fleet.parameters), [], []
    chosen = torch.arange(len(data)) if len(data) <= 10_000 else rng.integers(len(data), 0, 0, 0, 10_000, 1)[:, 0]
    for rows in chosen.to("cuda").split(256):
        pictures = data.images(data.store[rows]).expand(n, *([-1] * 4)).contiguous()
        noise = torch.zeros(n, len(rows), fleet.members.latents, device="cuda")
        code = fleet.backend.code(fleet.weights, pictures, noise)
        means.append(code.mean)
        kls.append(code.kl)
    factors = data.factors(chosen).cpu()
    codes = torch.cat(means, dim=1).cpu()
    scores = [float(mig(code, factors).score) for code in codes]
    return {"mig": scores, "active": (torch.cat(kls, dim=1).mean(1) > 0.1).sum(1).tolist()}


if __name__ == "__main__":
    main()
