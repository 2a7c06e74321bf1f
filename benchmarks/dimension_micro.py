"""Does `unweave dimension` find the three factors of the micro-world, for every seed and from every start?

python benchmarks/dimension_micro.py --seeds 0,1,2,3,4,5,6,7,8,9 --starts 1,5,20,100 --workers 2
python benchmarks/dimension_micro.py --seeds 0 --starts 1 --folder runs     # goes on with what is there

Models of one seed are shared by its starts and kept below --folder, so that the check can be interrupted. The answer
under the published threshold of 1 stands beside; it asks further models only where its path leaves the other's.
"""

import argparse
import json
import os
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"

N_FACTORS = 3


def one(seed: int, starts: list[int], thresholds: list[float], folder: str) -> list[dict]:
    from dataclasses import replace

    import torch

    from unweave.recipes.demo import experiment
    from unweave.recipes.dimension import dimension
    from unweave.recipes.dimension_search import MICRO, DimensionSearch
    from unweave.train.experiment import Plan

    torch.set_num_threads(1)
    base, rows = replace(experiment(seed), plan=Plan("cpu", 1)), []
    for threshold in thresholds:
        for start in starts:
            begin = time.process_time()
            search = DimensionSearch(start=float(start), threshold=threshold, steps=MICRO["steps"])
            found = dimension(base, search, Path(folder) / f"dimension-micro-seed-{seed}")
            path = {row["latents"]: round(row["difference"], 3) for row in found.rows}
            row = {"seed": seed, "start": start, "threshold": threshold, "answer": found.answer, "path": path}
            rows.append(row | {"models": found.n_trained, "cpu_s": round(time.process_time() - begin, 1)})
            print(rows[-1], flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", default="0,1,2,3,4,5,6,7,8,9")
    parser.add_argument("--starts", default="1,5,20,100")
    parser.add_argument("--thresholds", default="0.5,1")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--folder", default="runs")
    parser.add_argument("--out")
    given = parser.parse_args()
    seeds, starts = ([int(word) for word in text.split(",")] for text in (given.seeds, given.starts))
    thresholds = [float(word) for word in given.thresholds.split(",")]
    with ProcessPoolExecutor(given.workers) as pool:
        jobs = [pool.submit(one, seed, starts, thresholds, given.folder) for seed in seeds]
        rows = [row for job in jobs for row in job.result()]
    for threshold in thresholds:
        mine = [row for row in rows if row["threshold"] == threshold]
        right = sum(row["answer"] == N_FACTORS for row in mine)
        n_models, cpu = (sum(row[name] for row in mine) for name in ("models", "cpu_s"))
        said = f"threshold {threshold:g}: {right} of {len(mine)} searches answer {N_FACTORS}"
        print(f"{said}; {n_models} models, {cpu:.0f} CPU-s")
    if given.out:
        Path(given.out).write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
