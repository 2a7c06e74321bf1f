"""Small dense networks on one core: stacks of 8 and 32 seeds beside a plain loop and our own, by CPU time.

``python benchmarks/dense_fleet.py`` prints µs of CPU time per model-step, medians of interleaved rounds, for the
networks that Zietlow (2022) used on the synthetic worlds; ``--widths 32`` for a network of your own.
"""

import argparse
import statistics
import time

import torch

from unweave.data.synthetic import SynthLin, SynthNonLin
from unweave.data.world import World
from unweave.models.likelihoods import Gaussian
from unweave.models.networks import MLP, Linear, Network
from unweave.recipes.pace import WAYS
from unweave.training.experiment import Experiment, Plan


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--widths", type=int, nargs="+", help="hidden layers on SynthNonLin")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=64)
    given = parser.parse_args()
    torch.set_num_threads(1)
    if given.widths:
        widths = tuple(given.widths)
        compare(f"hidden {widths}", SynthNonLin(), MLP(widths, widths), 3, given)
    else:
        compare("linear", SynthLin(), Linear(), 2, given)
        compare("tanh 60, 40, 20", SynthNonLin(), MLP((60, 40, 20), (60, 40, 20), "tanh", "tanh"), 2, given)


def compare(title: str, world: World, network: Network, latents: int, given: argparse.Namespace) -> None:
    base = Experiment(
        world, network=network, likelihood=Gaussian(), latents=latents, steps=1_000_000, plan=Plan("cpu", 1)
    ).resolve()
    data = world.load()
    begun = {"plain loop": WAYS["eager"](base, data, 1), "our loop": WAYS["alone"](base, data, 1)}
    begun |= {f"stack of {n}": WAYS["fleet"](base, data, n) for n in (8, 32)}
    spent: dict[str, list[float]] = {name: [] for name in begun}
    for turn in range(given.rounds + 1):
        for name, way in begun.items():
            begin = time.process_time()
            done = way.advance(given.steps)
            if turn:  # the first round warms up
                spent[name].append((time.process_time() - begin) * 1e6 / done)
    middle = {name: statistics.median(times) for name, times in spent.items()}
    for name, value in middle.items():
        ratios = (f"{middle[other] / value:.1f}× the {other}" for other in ("plain loop", "our loop"))
        print(f"{title}: {name:12s} {value:8.1f} µs a model-step, {', '.join(ratios)}", flush=True)


if __name__ == "__main__":
    main()
