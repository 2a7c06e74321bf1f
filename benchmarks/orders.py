"""What ``order=epochs`` costs beside ``iid``: µs of a fleet step of linear models on Synth-Lin, and of its draws alone.

``python benchmarks/orders.py`` on a CPU (CPU time) or ``--device cuda`` on a GPU. Rounds of
both orders are interleaved; medians. ``--sources OLD/src`` measures another version instead.
"""

import argparse
import statistics
import sys
import time
from typing import Any


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--models", type=int, nargs="+", default=[32])
    parser.add_argument("--steps", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sources", help="a src folder to measure instead of this one")
    given = parser.parse_args()
    if given.sources:
        sys.path.insert(0, given.sources)
    import torch

    torch.set_num_threads(1)
    for n_models in given.models:
        ways = {order: begun(order, n_models, given.device) for order in ("iid", "epochs")}
        spent: dict[str, list[tuple[float, float]]] = {order: [] for order in ways}
        for turn in range(given.rounds + 1):
            for order, way in ways.items():
                times = timed(way, given.steps, turn * given.steps, given.device)
                if turn:  # the first round warms up
                    spent[order].append(times)
        for order, times in spent.items():
            step, drawn = (statistics.median(column) for column in zip(*times))
            print(
                f"{n_models:4d} models, {order:6s}: {step:8.1f} µs a fleet step; draws alone {drawn:8.1f} µs",
                flush=True,
            )


def begun(order: str, n_models: int, device: str) -> Any:
    from unweave.data.synthetic import SynthLin
    from unweave.models.likelihoods import SquaredError
    from unweave.models.networks import Linear
    from unweave.training.batches import source_of
    from unweave.training.experiment import Experiment, Plan
    from unweave.training.fleet.engine import FleetEngine

    experiments = [
        Experiment(
            SynthLin(), network=Linear(), likelihood=SquaredError("identity"), latents=2, steps=1_000_000, seed=seed,
            order=order, holdout=0.2, plan=Plan(device, 1, "fp32"),
        ).resolve()
        for seed in range(n_models)
    ]  # fmt: skip
    data = SynthLin().load().to(device)
    return FleetEngine(experiments, data, print), source_of(experiments, data)


def timed(way: Any, steps: int, first: int, device: str) -> tuple[float, float]:
    """µs of a step with all, and of its draws alone."""
    import torch

    from unweave.training.batches import Drawing

    engine, source = way
    clock = time.process_time if device == "cpu" else time.perf_counter

    def span(function: Any) -> float:
        begin = clock()
        function()
        if device != "cpu":
            torch.cuda.synchronize()
        return (clock() - begin) * 1e6 / steps

    drawing = Drawing(source)
    whole = span(lambda: [engine.advance(step, record=step % 50 == 0) for step in range(first, first + steps)])
    return whole, span(lambda: [drawing.block_of(step) for step in range(first, first + steps)])


if __name__ == "__main__":
    main()
