"""Tables 4.2 to 4.5 of Zietlow (2022) on a card that one has for minutes: the chain in portions, without polars.

    python benchmarks/bias_card.py train --store STORE --seconds 540                          # the same call goes on
    python benchmarks/bias_card.py train --store STORE --methods PCL --seconds 540     # beside the call with the β-VAE
    python benchmarks/bias_card.py measure --store STORE --processes 14
    python benchmarks/bias_card.py pack --store STORE --out "$OUT"                # a few files of at most 16 MiB each
    python benchmarks/bias_card.py unpack --store STORE --out FOLDER                # at home, or on the next machine

``train`` goes through the stages in order: models to choose from, those on original and noisy images; MIG of the first;
the manipulation and its controls; models on what these make. It stops after ``--seconds``, everything saved. A call
without the β-VAE waits for the manipulations that the call with it makes. Weights stay behind, but for those of
manipulations and of the models on their sides (of all models to choose from while there is no manipulation). At home:
unpack, then `unweave reproduce z-table-4.2 --size small --folder STORE`.
"""

import argparse
import os
import tarfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

MOST_BYTES = 15 << 20


@dataclass(frozen=True)
class Rows:
    """What the chain reads of a table, from the folders themselves."""

    rows: list[dict[str, Any]]

    def to_dicts(self) -> list[dict[str, Any]]:
        return self.rows


@dataclass(frozen=True)
class Known:
    """What the chain asks of results."""

    store: Any
    experiments: Sequence[Any]
    table: Rows


def train(size: str, store: str, methods: tuple[str, ...], seconds: float, processes: int) -> None:
    from unweave.recipes.zietlow2022.bias import FIRST_CANDIDATE, TABLE, bias_study, follow, method_of
    from unweave.studies.measures.alignment import Alignment

    begin = time.monotonic()
    asked = replace(TABLE, methods=methods)
    study = bias_study("card", size, "", asked)
    leads = "β-VAE" in methods
    first = [one for one in study.experiments if leads or one.seed < FIRST_CANDIDATE]
    if not _stage("to choose from, original, noisy", first, store, seconds, begin):
        return
    if leads:
        choose = [one.resolve().id for one in first if one.seed >= FIRST_CANDIDATE]
        (aligned,) = (one for one in study.measures if isinstance(one, Alignment))
        _measure(store, choose, (aligned,), processes)
        wanted = follow(size, asked, _known(store, study.measures))
        made = [one for one in wanted if not one.objective.encodes]
        if not _stage("manipulations", made, store, seconds, begin):
            return
    while len(_manipulations(store)) < 1 + len(asked.controls):
        if time.monotonic() - begin > seconds:
            return
        time.sleep(2)
    wanted = follow(size, asked, _known(store, study.measures))
    mine = [one for one in wanted if one.objective.encodes and method_of(one.objective) in methods]
    _stage("on what they make", mine, store, seconds, begin)


def _manipulations(store: str) -> list[str]:
    from unweave.models.objectives import Perturbation
    from unweave.studies.store import Store

    home = Store(store)
    return [one for one in finished(store) if isinstance(home.run(one).experiment.objective, Perturbation)]


def _stage(words: str, experiments: Sequence[Any], store: str, seconds: float, begin: float) -> bool:
    from unweave.recipes.train_only import train_only
    from unweave.studies.study import Study

    left = seconds - (time.monotonic() - begin)
    found = train_only([Study("card", tuple(experiments))], store, seconds=max(0.0, left))
    missing = set(found.left) - set(finished(store))
    taken = f"{found.seconds:.0f} s, {time.monotonic() - begin:.0f} s since the start"
    print(f"{words}: {len(experiments)} models, {len(missing)} of them left; {taken}", flush=True)
    return not missing


def _known(store: str, measures: Sequence[Any]) -> Known:
    from unweave.runs.columns import shown_names
    from unweave.runs.row import raw_row_of
    from unweave.studies.store import Store

    home, rows, experiments = Store(store), [], []
    for run_id in finished(store):
        raw = raw_row_of(home.folder(run_id)) or {}
        names = shown_names(raw, [measure.file for measure in measures])
        rows.append({shown: raw[name] for name, shown in names.items()})
        experiments.append(home.run(run_id).experiment)
    return Known(home, experiments, Rows(rows))


def measure(size: str, store: str, processes: int) -> None:
    from unweave.recipes.zietlow2022.bias import TABLE, bias_study

    _measure(store, finished(store), bias_study("card", size, "", TABLE).measures, processes)


def _measure(store: str, ids: Sequence[str], measures: Sequence[Any], processes: int) -> None:
    begin = time.monotonic()
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        taken = list(pool.map(_measure_one, [(store, one, tuple(measures)) for one in ids]))
    print(f"{len(taken)} measured in {time.monotonic() - begin:.0f} s, {sum(taken):.0f} s in all", flush=True)


def _measure_one(told: tuple[str, str, tuple[Any, ...]]) -> float:
    os.environ["OMP_NUM_THREADS"] = "1"
    import torch

    from unweave.studies.store import Store
    from unweave.studies.train_and_measure import take_measures

    torch.set_num_threads(1)
    begin = time.monotonic()
    while True:
        try:
            take_measures(told[2], told[1], Store(told[0]))
            break
        except BlockingIOError:  # somebody else measures this run
            time.sleep(0.5)
    return time.monotonic() - begin


def finished(store: str) -> list[str]:
    """Runs that are trained, also those whose weights stayed behind."""
    ends = {
        path.parent.name for name in ("model.safetensors", "weights.json") for path in Path(store).glob(f"*/{name}")
    }
    return sorted(ends)


def pack(store: str, out: str) -> None:
    """What was found, without weights; whole are manipulations, and runs that one was or can be made from."""
    from unweave.models.objectives import Perturbation
    from unweave.recipes.portions import write_portion
    from unweave.recipes.zietlow2022.bias import FIRST_CANDIDATE
    from unweave.studies.store import Store

    home = Store(store)
    made = {one: home.run(one).experiment for one in finished(store)}
    attacks = {one: given.objective for one, given in made.items() if isinstance(given.objective, Perturbation)}
    sides = {Path(given.run).name for method in attacks.values() for given in (*method.foster, *method.diminish)}
    whole = {*attacks, *(sides or {one for one, given in made.items() if given.seed >= FIRST_CANDIDATE})}
    left_out = write_portion(out, home, [one for one in made if one not in whole])
    parts: list[list[str]] = []
    size = MOST_BYTES
    for run_id in sorted(whole):
        held = sum(file.stat().st_size for file in (home.root / run_id).rglob("*") if "checkpoints" not in file.parts)
        if size + held > MOST_BYTES:
            parts, size = [*parts, []], 0
        parts[-1].append(run_id)
        size += held
    for number, ids in enumerate(parts):
        with tarfile.open(Path(out) / f"whole-{number}.tar", "w") as file:
            for run_id in ids:
                file.add(home.root / run_id, run_id, filter=lambda one: None if "checkpoints" in one.name else one)
    print(
        f"{len(made)} runs, {len(whole)} of them whole, {left_out} left out; {len(os.listdir(out))} files", flush=True
    )


def unpack(store: str, folder: str) -> None:
    """Take what was packed into a store, at home or on the next machine."""
    from unweave.recipes.portions import take_in
    from unweave.studies.store import Store

    home = Store(store).prepare()
    for path in sorted(Path(folder).glob("whole-*.tar")):
        with tarfile.open(path) as file:
            file.extractall(home.root, filter="data")
    print(f"{take_in(folder, home)} runs taken in beside the whole ones", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("train", "measure", "pack", "unpack"))
    parser.add_argument("--size", default="small")
    parser.add_argument("--methods", default="AE,β-VAE,FactorVAE,TC-VAE,SlowVAE")
    parser.add_argument("--store", required=True)
    parser.add_argument("--seconds", type=float, default=540.0)
    parser.add_argument("--processes", type=int, default=14)
    parser.add_argument("--out", default=".")
    given = parser.parse_args()
    if given.what == "train":
        train(given.size, given.store, tuple(given.methods.split(",")), given.seconds, given.processes)
    elif given.what == "measure":
        measure(given.size, given.store, given.processes)
    elif given.what == "pack":
        pack(given.store, given.out)
    else:
        unpack(given.store, given.out)
