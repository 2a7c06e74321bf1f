"""The weakly supervised GAN of Zietlow (2022), Tables 4.2 to 4.5, on original dSprites: its scores as it trains.

Its rate never changes, so that what it is after n steps is what a training of n steps gives. For a card that one has
for minutes: how far it comes shows in the table.

    python benchmarks/gan_over_training.py train --store STORE --seeds 4 --seconds 540       # the same call goes on
    python benchmarks/gan_over_training.py measure --store STORE --table scores.csv --processes 14
"""

import argparse
import csv
import os
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

METRICS = ("mig", "dci", "factor_vae_score", "sap_score")


def experiments(seeds: int, every: int):  # type: ignore[no-untyped-def]
    """The published models, with their weights kept on the way."""
    from originals import chosen  # beside this file

    from unweave.models.objectives import WSGAN

    WSGAN.at_once = seeds  # all in one portion: fewer than the usual eight would be filled up with doubles
    models = chosen(["WS-GAN"], seeds).experiments
    return [replace(one, snapshots=tuple(range(every, one.steps, every))) for one in models]


def train(given: argparse.Namespace) -> None:
    from unweave.training.many import train_many
    from unweave.training.running import Interrupted, RunOptions

    begin = time.monotonic()
    how = RunOptions(stop=lambda: time.monotonic() - begin > given.seconds, save_every=30.0)
    try:
        train_many(experiments(given.seeds, given.every), given.store, how=how)
    except Interrupted as stopped:
        print(f"{stopped} ({time.monotonic() - begin:.0f} s)", flush=True)


def measured(path: str, name: str) -> dict[str, float | int | str]:
    """The scores of one file of weights, as the published table takes them."""
    import torch
    from originals import chosen

    from unweave.training.run import Run

    torch.set_num_threads(1)
    run = Run(path)
    run.__dict__["model"] = run.load_weights(name)
    step = int(name.split("step-")[1].split(".")[0])
    (found,) = (measure(run)["mean"] for measure in chosen([]).measures if measure.name == "scores")
    scores = {name: found[name] for name in METRICS} | {"dci": found["dci"]["disentanglement"]}
    return {"seed": run.experiment.seed, "step": step, **scores}


def measure(given: argparse.Namespace) -> None:
    os.environ["OMP_NUM_THREADS"] = "1"
    files = sorted(Path(given.store).glob("*/snapshots/step-*.safetensors"))
    files = [file for file in files if int(file.stem.split("-")[1]) % given.every == 0]
    rows: list[dict[str, float | int | str]] = []
    with ProcessPoolExecutor(given.processes, get_context("spawn")) as pool:
        jobs = [pool.submit(measured, str(file.parents[1]), f"snapshots/{file.name}") for file in files]
        for job in as_completed(jobs):
            rows.append(job.result())
            write(given.table, rows)  # whatever stops this, what was measured stays
    print(f"{len(rows)} measured", flush=True)


def write(table: str, rows: list[dict[str, float | int | str]]) -> None:
    rows = sorted(rows, key=lambda row: (row["seed"], row["step"]))
    with open(table, "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("train", "measure"))
    parser.add_argument("--store", required=True)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--every", type=int, default=50_000, help="steps between weights that are kept, or measured")
    parser.add_argument("--seconds", type=float, default=500.0)
    parser.add_argument("--processes", type=int, default=14)
    parser.add_argument("--table", default="scores.csv")
    given = parser.parse_args()
    train(given) if given.what == "train" else measure(given)
