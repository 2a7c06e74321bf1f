"""How long a store of 20,000 runs takes to list, to ask in SQL, and to index from nothing. CPU seconds.

python benchmarks/store_listing.py [--runs 20000]

The run folders are as training leaves them (config, one measure, scores of six metrics), without the weights.
"""

import argparse
import hashlib
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import unweave as uw
from unweave.data.micro import Micro
from unweave.studies.store import Store
from unweave.training.experiment import experiment_to

CONFIG = experiment_to(uw.Experiment(Micro(), plan=uw.Plan("cpu", 1, "fp32")))


def make(root: Path, n: int) -> None:
    """One run folder."""
    config = CONFIG | {"seed": n, "objective": {"name": "beta_vae", "beta": float(n % 6)}}
    measure = {"n_active": n % 7, "kl": [0.1 * n] * 10, "kl_sum": 1.0 * n, "types": ["active"] * 10}
    scores = {f"metric_{k}": {"value": 0.1 * k, "draws": [0.1] * 5} for k in range(6)}
    files = {"config.json": config, "measures/polarised-01234567.json": measure, "model.safetensors": ""}
    files |= {"scores.json": {"mean": {"scores": scores}, "sampled": {"scores": scores}}}
    folder, lines = root / f"micro-beta_vae-{n:012x}", []
    (folder / "measures").mkdir(parents=True)
    for name, value in files.items():
        content = json.dumps(value)
        (folder / name).write_text(content)
        lines.append(f"{hashlib.sha256(content.encode()).hexdigest()}  {name}\n")
    (folder / "SHA256SUMS").write_text("".join(lines))


def timed(work: Callable[[], object], rounds: int = 1) -> tuple[float, float]:
    """The fastest round: CPU and wall seconds."""
    times = []
    for _ in range(rounds):
        cpu, wall = time.process_time(), time.perf_counter()
        work()
        times.append((time.process_time() - cpu, time.perf_counter() - wall))
    return min(times)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        store = Store(place)
        for number in range(given.runs):
            make(store.root, number)
        index = timed(store.table)
        listing = timed(store.table, 3)
        query = 'select "objective.beta", avg("scores.mean.metric_3"), count(*) from runs group by all'
        sql = timed(lambda: store.sql(query), 3)
        make(store.root, given.runs)
        one_more = timed(store.table)
        told = {"runs": given.runs, "columns": store.table().width}
    for name, (cpu, wall) in {"index": index, "list": listing, "sql": sql, "one_more": one_more}.items():
        told |= {f"{name}_cpu_s": round(cpu, 3), f"{name}_wall_s": round(wall, 3)}
    print(json.dumps(told))
