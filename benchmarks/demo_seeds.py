"""How many latents does the demo's model use? All seeds, side by side in single-threaded processes.

python benchmarks/demo_seeds.py --seeds 10 --workers 2
python benchmarks/demo_seeds.py --beta 4,6,8 --warmup 0,500     # a grid of settings
"""

import argparse
import itertools
import json
import os
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace

os.environ["OMP_NUM_THREADS"] = "1"


def one(setting: dict, seed: int) -> dict:
    import torch

    from unweave.metrics.polarised.types import variable_types
    from unweave.models.objectives import BetaVAE
    from unweave.models.optimisers import Adam
    from unweave.recipes.demo import experiment
    from unweave.training.experiment import Plan
    from unweave.training.loop import train
    from unweave.training.run import Run

    torch.set_num_threads(1)
    base = experiment(seed)
    chosen = replace(
        base,
        objective=BetaVAE(setting.get("beta", base.objective.beta)),
        warmup=int(setting.get("warmup", base.warmup)),
        steps=int(setting.get("steps", base.steps)),
        optimiser=Adam(setting.get("rate", base.optimiser.learning_rate)),
        batch_size=int(setting.get("batch", base.batch_size)),
        plan=Plan("cpu", 1),
    )
    begin = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        run = Run(train(chosen, folder))
        code = run.encode(run.data.examples(torch.arange(len(run.data))))
        types = variable_types(code.mean, code.variance)
        loss = run.history.column("reconstruction")[-10:].mean().item()
    counts = {kind: types.count(kind) for kind in ("active", "mixed", "passive")}
    variances = [round(v, 3) for v in code.variance.mean(0).tolist()]
    return setting | counts | {"seed": seed, "loss": loss, "cpu_s": time.process_time() - begin, "variance": variances}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    for name in ("beta", "warmup", "steps", "rate", "batch"):
        parser.add_argument(f"--{name}", default="")
    parser.add_argument("--out")
    given = parser.parse_args()
    grid = {
        n: [float(v) for v in getattr(given, n).split(",")]
        for n in ("beta", "warmup", "steps", "rate", "batch")
        if getattr(given, n)
    }
    settings = [dict(zip(grid, values)) for values in itertools.product(*grid.values())]
    jobs = [(setting, seed) for setting in settings for seed in range(given.seeds)]
    with ProcessPoolExecutor(given.workers) as pool:
        rows = []
        for row in pool.map(one, *zip(*jobs)):
            print({name: row[name] for name in ("seed", "active", "mixed", "passive", "cpu_s", "variance")}, flush=True)
            rows.append(row)
    for setting in settings:
        mine = [row for row in rows if all(row[k] == v for k, v in setting.items())]
        shown = " ".join(f"{row['active']}/{row['mixed']}/{row['passive']}" for row in mine)
        loss, cpu = (sum(row[name] for row in mine) / len(mine) for name in ("loss", "cpu_s"))
        about = f"{setting or 'the demo itself'}: active/mixed/passive {shown}"
        print(f"{about}  loss {loss:.1f}  {cpu:.0f} CPU-s a run", flush=True)
    if given.out:
        with open(given.out, "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
