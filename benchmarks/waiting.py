"""How long should threads spin while they wait for each other? Two threads, interleaved, on a quiet or a busy machine.

    python benchmarks/waiting.py --rounds 3                # nothing else running
    python benchmarks/waiting.py --rounds 3 --busy 8       # beside eight loops that never rest

Every turn is a process of its own, for the thread library reads its settings once. On a machine that is not quiet,
`chrt -f 10` before the command (as root) gives the models the cores whenever they want them.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

WAYS = {
    "300,000 turns (the library's)": {"GOMP_SPINCOUNT": "300000"},
    "50,000 turns": {"GOMP_SPINCOUNT": "50000"},
    "20,000 turns (ours)": {},
    "no turn": {"OMP_WAIT_POLICY": "passive"},
    "one thread": {"OMP_NUM_THREADS": "1"},
}
MODELS = {"conv": 24, "mlp": 60, "linear": 200}
"""Networks, and their steps in one timing."""


def steps_of(network: str, n_steps: int) -> float:
    """Milliseconds a step on the micro-world, the median of three timings."""
    import unweave as uw
    from unweave.data import WORLDS
    from unweave.models import NETWORKS
    from unweave.training.alone import Alone
    from unweave.training.experiment import Plan

    plan = Plan("cpu").resolve()
    experiment = uw.Experiment(WORLDS["micro"](), uw.BetaVAE(), network=NETWORKS[network](), plan=plan)
    engine, times = Alone(experiment, experiment.world.load()), []
    for turn in range(4):
        start = time.perf_counter()
        for step in range(turn * n_steps, (turn + 1) * n_steps):
            engine.advance(step, record=False)
        times.append((time.perf_counter() - start) / n_steps)
    return 1000 * statistics.median(times[1:])


def turn_of(settings: dict[str, str]) -> dict[str, float]:
    """All models in a process with these settings."""
    known = {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "GOMP_"))}
    command = [sys.executable, __file__, "--inside"]
    answer = subprocess.run(command, env=known | settings, capture_output=True, text=True, check=True)
    return json.loads(answer.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--busy", type=int, default=0, help="loops that run beside the models")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.inside:
        print(json.dumps({network: steps_of(network, n_steps) for network, n_steps in MODELS.items()}))
        return
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(given.busy)]
    try:
        rounds = [{way: turn_of(settings) for way, settings in WAYS.items()} for _ in range(given.rounds)]
    finally:
        for loop in loops:
            loop.kill()
    print(f"ms a step, medians of {given.rounds} rounds, {given.busy} loops beside; load {os.getloadavg()[0]:.1f}")
    print("| way | " + " | ".join(MODELS) + " |\n|---|" + "---|" * len(MODELS))
    for way in WAYS:
        cells = [f"{statistics.median(one[way][network] for one in rounds):.2f}" for network in MODELS]
        print(f"| {way} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
