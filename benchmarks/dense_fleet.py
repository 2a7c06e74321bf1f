"""Small dense networks on one core: stacks of 8 and 32 seeds beside a plain loop and our own, by CPU time.

``python benchmarks/dense_fleet.py --widths 32`` prints µs of CPU time per model-step, medians of interleaved rounds.
"""

import argparse
import statistics
import time

import torch

from unweave.data.synthetic import SynthNonLin
from unweave.models.likelihoods import Gaussian
from unweave.models.networks import MLP
from unweave.train.experiment import Experiment, Plan
from unweave.train.fleet_bench import WAYS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--widths", type=int, nargs="+", default=[32])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=64)
    given = parser.parse_args()
    torch.set_num_threads(1)
    world, widths = SynthNonLin(), tuple(given.widths)
    base = Experiment(
        world, network=MLP(widths, widths), likelihood=Gaussian(), latents=3, steps=1_000_000, plan=Plan("cpu", 1)
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
        print(f"{widths} {name:12s} {value:8.1f} µs a model-step, {', '.join(ratios)}", flush=True)


if __name__ == "__main__":
    main()
