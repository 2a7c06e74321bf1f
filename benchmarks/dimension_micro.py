"""Does `unweave dimension micro` find the three factors of the micro-world, for every seed and from every start?

python benchmarks/dimension_micro.py                                     # seeds 0–9, starts 1, 5, 20, 100
python benchmarks/dimension_micro.py --seeds 0 --starts 1 --folder runs  # goes on with what is there

The threshold is the published one. Models of one seed are shared by its starts and kept below --folder, so that the
check can be interrupted. The smallest margin is how far the trace difference of the nearest model, in use or not, is
from the threshold.
"""

import argparse
import json
import os
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"

N_FACTORS = 3


def one(seed: int, starts: list[int], folder: str) -> list[dict[str, Any]]:
    import torch

    from unweave.recipes.dimension import dimension
    from unweave.recipes.dimension_micro import experiment, search

    torch.set_num_threads(1)
    rows = []
    for start in starts:
        begin = time.process_time()
        found = dimension(experiment(seed), search(float(start)), Path(folder) / f"seed-{seed}")
        path = {row["latents"]: round(row["difference"], 3) for row in found.rows}
        row = {"seed": seed, "start": start, "answer": found.answer, "path": path}
        rows.append(row | {"models": found.n_trained, "cpu_s": round(time.process_time() - begin, 1)})
        print(rows[-1], flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0,1,2,3,4,5,6,7,8,9")
    parser.add_argument("--starts", default="1,5,20,100")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--folder", help="where models are kept; without it they are thrown away")
    parser.add_argument("--out")
    given = parser.parse_args()
    seeds, starts = ([int(word) for word in text.split(",")] for text in (given.seeds, given.starts))
    place = nullcontext(given.folder) if given.folder else tempfile.TemporaryDirectory()
    with place as folder, ProcessPoolExecutor(given.workers) as pool:
        jobs = [pool.submit(one, seed, starts, str(folder)) for seed in seeds]
        rows = [row for job in jobs for row in job.result()]
    _say(rows)
    if given.out:
        Path(given.out).write_text(json.dumps(rows, indent=1))


def _say(rows: list[dict[str, Any]]) -> None:
    right = sum(row["answer"] == N_FACTORS for row in rows)
    n_models, cpu = (sum(row[name] for row in rows) for name in ("models", "cpu_s"))
    margin = min(abs(difference - 1.0) for row in rows for difference in row["path"].values())
    print(f"{right} of {len(rows)} answer {N_FACTORS}; margin {margin:.2f}; {n_models} models, {cpu:.0f} CPU-s")


if __name__ == "__main__":
    main()
