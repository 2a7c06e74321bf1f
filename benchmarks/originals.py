"""The models of Zietlow (2022), Tables 4.2 to 4.5, on original dSprites at the published length, in portions.

For a card that one has for minutes: train, measure there, and bring back small files.

    python benchmarks/originals.py train AE,β-VAE,TC-VAE --store STORE --seconds 500     # the same call goes on
    python benchmarks/originals.py measure --store STORE --processes 14
    python benchmarks/originals.py pack --store STORE --out FOLDER      # weights of 16 bits, tar files

Several calls of `train` side by side share a card best under NVIDIA's MPS.
"""

import argparse
import os
import tarfile
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

MOST_BYTES = 15 << 20


def chosen(methods: list[str], seeds: int = 10):  # type: ignore[no-untyped-def]
    from unweave.recipes.zietlow2022.bias import FIRST_CANDIDATE, ORIGINAL, Asked, bias_study, method_of

    asked = Asked(conditions=(ORIGINAL,), places=("dsprites",))
    study = bias_study("z-table-4.2", "paper", "", asked)
    compared = [one for one in study.experiments if one.seed < min(seeds, FIRST_CANDIDATE)]
    models = [one for one in compared if method_of(one.objective) in methods]
    return replace(study, experiments=tuple(models), follow_up=None)


def train(methods: list[str], seeds: int, store: str, seconds: float) -> None:
    from unweave.recipes.train_only import train_only

    study = chosen(methods, seeds)
    found = train_only([study], store, seconds=seconds)
    print(f"{methods}: {len(found.done)} trained, {len(found.left)} left, {found.seconds:.0f} s", flush=True)


def measure_one(store: str, run_id: str) -> tuple[str, float]:
    os.environ["OMP_NUM_THREADS"] = "1"
    import torch

    from unweave.studies.store import Store
    from unweave.studies.train_and_measure import take_measures

    torch.set_num_threads(1)
    begin = time.monotonic()
    take_measures(chosen([]).measures, run_id, Store(store))
    return run_id, time.monotonic() - begin


def finished(store: str) -> list[str]:
    return sorted(path.parent.name for path in Path(store).glob("*/model.safetensors"))


def measure(store: str, processes: int) -> None:
    begin = time.monotonic()
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        jobs = [pool.submit(measure_one, store, run_id) for run_id in finished(store)]
        taken = [job.result()[1] for job in as_completed(jobs)]
    print(f"{len(taken)} measured in {time.monotonic() - begin:.0f} s, {sum(taken):.0f} s in all", flush=True)


def pack(store: str, out: str) -> None:
    from unweave.recipes.train_only import make_compact
    from unweave.runs.folder import RunFolder

    parts: list[list[str]] = []
    size = MOST_BYTES
    for run_id in finished(store):
        folder = Path(store) / run_id
        make_compact(RunFolder(folder))
        held = sum(path.stat().st_size for path in folder.rglob("*") if "checkpoints" not in path.parts)
        if size + held > MOST_BYTES:
            parts, size = [*parts, []], 0
        parts[-1].append(run_id)
        size += held
    for number, ids in enumerate(parts):
        with tarfile.open(Path(out) / f"runs-{number}.tar", "w") as file:
            for run_id in ids:
                file.add(Path(store) / run_id, run_id, filter=lambda one: None if "checkpoints" in one.name else one)
    print(f"{len(parts)} files", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("train", "measure", "pack"))
    parser.add_argument("methods", nargs="?", default="")
    parser.add_argument("--store", required=True)
    parser.add_argument("--seeds", type=int, default=10, help="train the first so many seeds of each method")
    parser.add_argument("--seconds", type=float, default=500.0)
    parser.add_argument("--processes", type=int, default=14)
    parser.add_argument("--out", default=".")
    given = parser.parse_args()
    if given.what == "train":
        train(given.methods.split(","), given.seeds, given.store, given.seconds)
    elif given.what == "measure":
        measure(given.store, given.processes)
    else:
        pack(given.store, given.out)
