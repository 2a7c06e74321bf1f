"""How long a study's report takes: ten thousand synthetic runs, from their folders to the page.

python benchmarks/study_report.py [--runs 10000]
"""

import argparse
import functools
import hashlib
import json
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from unweave.recipes.reproductions.k_grid import METRICS, grid

from unweave.pages.study import write_study_page
from unweave.studies.record import Record
from unweave.studies.store import Store
from unweave.training.experiment import Experiment, experiment_to


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=10_000)
    n_runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as folder:
        store = Store(folder).prepare()
        clocks = time.perf_counter(), time.process_time()
        ids = [write_run(Path(folder), number) for number in range(n_runs)]
        told("writing the synthetic runs", *clocks)
        clocks = time.perf_counter(), time.process_time()
        print(f"{store.table().height} runs")
        told("building the index", *clocks)
        clocks = time.perf_counter(), time.process_time()
        page = write_study_page(store, Record("synthetic", "Synthetic", tuple(ids)))
        told("the report, page, CSVs and figures", *clocks)
        total = sum(file.stat().st_size for file in page.parent.rglob("*") if file.is_file())
        print(f"page {page.stat().st_size / 1e6:.2f} MB, folder {total / 1e6:.1f} MB")


def write_run(root: Path, number: int) -> str:
    """A finished run with a config, eight measured numbers and weights of no size."""
    experiments = resolved_grid()
    experiment = replace(experiments[number % len(experiments)], seed=number)
    plain = experiment_to(experiment)
    generator = np.random.default_rng(number)
    scores: dict = {}
    for name in METRICS.values():
        place = scores
        *outer, last = name.split(".")[1:]
        for part in outer:
            place = place.setdefault(part, {})
        place[last] = float(generator.random() + number % 7 / 7)
    name = experiment.id
    files = {
        "config.json": json.dumps(plain),
        "model.safetensors": "",
        "measures/scores-00000000.json": json.dumps(scores),
        "measures/codes-00000000.json": json.dumps({"mean": {"tc": float(generator.random())}, "n": number % 11}),
    }
    (root / name / "measures").mkdir(parents=True)
    for file, content in files.items():
        (root / name / file).write_text(content)
    sums = "".join(f"{hashlib.sha256(text.encode()).hexdigest()}  {file}\n" for file, text in sorted(files.items()))
    (root / name / "SHA256SUMS").write_text(sums)
    return name


@functools.cache
def resolved_grid() -> list[Experiment]:
    return [one.resolve() for one in grid("small", ("dsprites",))]


def told(what: str, clock: float, cpu: float) -> None:
    spent = time.perf_counter() - clock, time.process_time() - cpu
    print(f"{what}: {spent[0]:.1f} s by the clock, {spent[1]:.1f} s of CPU", flush=True)


if __name__ == "__main__":
    main()
