"""What the machinery of a study costs: the same models on the micro-world, trained by it and without it.

python benchmarks/study_overhead.py

Both sides train the same packs with the same engines in one process, in interleaved rounds. With it: planning,
checking, claims with heartbeats, records, costs. Without: the bare calls of train and train_fleet. No measures on
either side. CPU time is compared; the wall clock is given beside it.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch

import unweave as uw
from unweave.data.micro import Micro
from unweave.studies.pack import pack
from unweave.studies.perform import held
from unweave.studies.plan import plan
from unweave.studies.run import run_study
from unweave.studies.study import Study
from unweave.train.fleet_engine import side_by_side
from unweave.train.fleet_run import train_fleet
from unweave.train.loop import train


def studied(n_conv: int, n_dense: int, n_steps: int) -> Study:
    """The demo's small convolutional models, and dense ones that are stacked."""
    given = {"latents": 6, "steps": n_steps, "plan": uw.Plan("cpu", 1)}
    conv = [uw.Experiment(Micro(), network=uw.Conv((16, 32), (4, 4), 64), seed=s, **given) for s in range(n_conv)]
    dense = [uw.Experiment(Micro(), network=uw.MLP((64,), (64,)), seed=s, **given) for s in range(n_dense)]
    return Study("overhead", (*conv, *dense))


def bare(study: Study, root: Path) -> None:
    """The same work without a study."""
    data = held(Micro())
    for each in pack(list(plan(study.experiments).values())):
        if side_by_side(each.experiments[0]):
            for experiment in each.experiments:
                train(experiment, root / experiment.id, data=data)
        else:
            train_fleet(each.experiments, root, data=data)


def timed(work: Callable[[Path], object]) -> tuple[float, float]:
    """CPU seconds and wall seconds of one round in a fresh folder."""
    with tempfile.TemporaryDirectory() as place:
        cpu, wall = time.process_time(), time.perf_counter()
        work(Path(place))
        return time.process_time() - cpu, time.perf_counter() - wall


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--conv", type=int, default=3)
    parser.add_argument("--dense", type=int, default=8)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    torch.set_num_threads(1)
    study = studied(given.conv, given.dense, given.steps)
    timed(lambda root: bare(studied(1, 1, 5), root))
    rounds = [
        (timed(lambda root: bare(study, root)), timed(lambda root: run_study(study, root))) for _ in range(given.rounds)
    ]
    n_runs = given.conv + given.dense
    extra = [with_it[0] - without[0] for without, with_it in rounds]
    told = {
        "runs": n_runs,
        "steps": given.steps,
        "cpu_s_without": [round(without[0], 2) for without, _ in rounds],
        "cpu_s_with": [round(with_it[0], 2) for _, with_it in rounds],
        "wall_s_without": [round(without[1], 2) for without, _ in rounds],
        "wall_s_with": [round(with_it[1], 2) for _, with_it in rounds],
        "overhead_ms_a_run": round(1000 * statistics.median(extra) / n_runs, 1),
        "overhead": round(statistics.median(with_it[0] / without[0] for without, with_it in rounds) - 1, 4),
    }
    print(json.dumps(told))
