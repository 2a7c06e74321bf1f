"""Several small fleets on one card: one after the other, or side by side in processes (with MPS where it runs).

python benchmarks/side_by_side.py 1      # one fleet of 16, alone
python benchmarks/side_by_side.py 3      # three at once: µs a model-step of each, while all run
"""

import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context


def one(number: int, seconds: float) -> float:
    from dataclasses import replace

    import torch

    from unweave.data.micro import Micro
    from unweave.data.world import Data
    from unweave.models.networks.conv import ConvStudy
    from unweave.models.objectives import BetaVAE
    from unweave.training.experiment import Experiment, Plan
    from unweave.training.fleet.engine import FleetEngine

    store = torch.randint(0, 256, (4096, 1, 64, 64), dtype=torch.uint8, device="cuda")
    data = Data(store, shape=(1, 64, 64), packing="bytes")
    first = Experiment(Micro(), BetaVAE(4.0), network=ConvStudy(), latents=5, plan=Plan("cuda")).resolve()
    engine = FleetEngine([replace(first, seed=seed) for seed in range(16)], data, print)
    for step in range(20):
        engine.advance(step, record=False)
    engine.wait()
    time.sleep(max(0.0, START + 25 - time.time()))
    begin, step = time.perf_counter(), 20
    while time.perf_counter() - begin < seconds:
        for _ in range(100):
            engine.advance(step, record=False)
            step += 1
        engine.wait()
    return (time.perf_counter() - begin) / (step - 20) * 1e6


def _set(start: float) -> None:
    global START
    START = start


if __name__ == "__main__":
    n = int(sys.argv[1])
    with ProcessPoolExecutor(n, get_context("spawn"), _set, (time.time(),)) as pool:
        each = list(pool.map(one, range(n), [4.0] * n))
    rate = sum(16 / us for us in each)
    print(f"{n} fleets of 16: {[round(us) for us in each]} µs a fleet step; {1 / rate:.1f} µs a model-step in all")
