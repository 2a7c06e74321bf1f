"""What the machinery of a study costs: the same models on the micro-world, trained by it and without it.

python benchmarks/study_overhead.py

Both sides train the same packs with the same engines in one process, in interleaved rounds. With it: planning,
checking, leases with heartbeats, records, costs. Without: the bare calls of train and train_many. No measures on
either side. The cost does not depend on the number of steps, so it is measured with few steps and many runs, and set
against the CPU time of training --full steps, which is measured from the difference of two lengths.
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
from unweave.studies.plan import plan
from unweave.studies.run import run_study
from unweave.studies.study import Study
from unweave.studies.train_and_measure import loaded
from unweave.training.fleet.choice import side_by_side
from unweave.training.loop import train
from unweave.training.many import train_many


def studied(n_conv: int, n_dense: int, n_steps: int) -> Study:
    """The demo's small convolutional models, and dense ones that are stacked."""
    given = {"latents": 6, "steps": n_steps, "plan": uw.Plan("cpu", 1)}
    conv = [uw.Experiment(Micro(), network=uw.Conv((16, 32), (4, 4), 64), seed=s, **given) for s in range(n_conv)]
    dense = [uw.Experiment(Micro(), network=uw.MLP((64,), (64,)), seed=s, **given) for s in range(n_dense)]
    return Study("overhead", (*conv, *dense))


def bare(study: Study, root: Path) -> None:
    """The same work without a study."""
    data = loaded(Micro())
    for each in pack(list(plan(study.experiments).values())):
        if side_by_side(each.experiments[0]):
            for experiment in each.experiments:
                train(experiment, root / experiment.id, data=data)
        else:
            train_many(each.experiments, root, data=data)


def timed(work: Callable[[Path], object]) -> tuple[float, float]:
    """CPU seconds and wall seconds of one round in a fresh folder."""
    with tempfile.TemporaryDirectory() as place:
        cpu, wall = time.process_time(), time.perf_counter()
        work(Path(place))
        return time.process_time() - cpu, time.perf_counter() - wall


def seconds_a_step(kind: tuple[int, int], n_steps: int) -> float:
    """CPU seconds of one more step of all models of a kind."""
    short, long = (timed(lambda root, n=n: bare(studied(*kind, n), root))[0] for n in (5, 5 + n_steps))
    return (long - short) / n_steps


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--conv", type=int, default=8)
    parser.add_argument("--dense", type=int, default=32)
    parser.add_argument("--full", type=int, default=2000, help="steps of a whole training: the demo's are 2000")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    torch.set_num_threads(1)
    timed(lambda root: bare(studied(1, 1, 5), root))
    told = {}
    for name, kind, steps in (("conv", (given.conv, 0), 20), ("dense", (0, given.dense), 40)):
        study = studied(*kind, 5)
        extra = [
            timed(lambda root, s=study: run_study(s, root))[0] - timed(lambda root, s=study: bare(s, root))[0]
            for _ in range(given.rounds)
        ]
        a_run = statistics.median(extra) / sum(kind)
        training = given.full * seconds_a_step((min(kind[0], 2), kind[1]), steps) / (min(kind[0], 2) + kind[1])
        told[name] = {
            "runs": sum(kind),
            "overhead_ms_a_run": round(1000 * a_run, 1),
            "training_s_a_run": round(training, 2),
            "overhead": round(a_run / training, 4),
        }
    print(json.dumps(told))
