"""The things that cases spoil: small finished, interrupted and failed runs, a store, tables and pictures. Made once."""

import contextlib
import io
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from PIL import Image

import unweave as uw
from unweave.cli import main
from unweave.data.altered import Perturbed
from unweave.data.micro import Micro
from unweave.models.objectives import WSGAN, Perturbation
from unweave.runs.folder import RunFolder
from unweave.sealed import sealed, unsealed
from unweave.studies.executors.here import Here
from unweave.studies.measures import Polarised
from unweave.studies.run import run_study
from unweave.studies.study import Study
from unweave.training.given import given_run
from unweave.training.loop import train
from unweave.training.many import train_many
from unweave.training.results import claim
from unweave.training.running import Interrupted, RunOptions

TINY = "--network mlp --network.encoder-widths 8 --network.decoder-widths 8 --latents 3 --batch-size 8".split()
TINY += "--plan.threads 1 --plan.device cpu --quiet --history-every 5 --steps 20".split()

STUDY = """
import unweave as uw
from unweave.data.micro import Micro
from unweave.studies.measures import Polarised
from unweave.studies.study import Study


def study(size):
    network, plan = uw.MLP((8,), (8,)), uw.Plan("cpu", 1)
    given = [uw.Experiment(Micro(), network=network, latents=2, steps=3, seed=n, plan=plan) for n in range(2)]
    return Study("mine", tuple(given), (Polarised(32),))
"""


def make_pool(place: Path) -> None:
    """Everything, below one folder."""
    place.mkdir(parents=True)
    (place / "mine.py").write_text(STUDY)
    sys.argv = ["unweave"]  # records keep it, and a case is the same every time
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        _runs(place / "runs")
        _store(place / "store")
        main(["export", str(place / "runs" / "done"), str(place / "exported")])
    _tables(place)
    _pictures(place / "pictures")
    _films(place / "films")
    shutil.copy(place / "runs" / "done" / "config.json", place / "config.json")


def _runs(place: Path) -> None:
    done = str(place / "done")
    assert main(["train", "micro", *TINY, "--snapshots", "0,10", "--folder", done]) == 0
    assert main(["train", "micro", *TINY, "--seed", "1", "--folder", str(place / "other")]) == 0
    scored = ["--samples", "150", "--seeds", "2", "--metrics", "mig", "--interventions", "table", "--no-pictures"]
    assert main(["evaluate", done, *scored, "--quiet"]) == 0
    with contextlib.suppress(Interrupted):
        train(_tiny(2), place / "half", how=RunOptions((), 0.0, after(7)))
    _methods(place)
    failed = RunFolder(place / "failed")
    claim(failed, _tiny(3).resolve())
    failed.write_json("failure.json", {"step": 7, "term": "kl", "value": "nan"})
    with contextlib.suppress(Interrupted):
        train_many([_tiny(4), _tiny(5)], place, how=RunOptions((), 0.0, after(7)))


def _methods(place: Path) -> None:
    """Runs that have more than one network, know labels, begin with other runs, or learn from altered images."""
    train(replace(_tiny(6), objective=uw.IVAE(prior_widths=(4,)), steps=8), place / "ivae")
    change = Perturbation(*((given_run(str(place / name)),) for name in ("done", "other")), samples=2)
    bent = train(replace(_tiny(7), objective=change, steps=6), place / "bent")
    train(replace(_tiny(8), world=Perturbed(str(bent)), steps=6), place / "altered")
    gan = replace(_tiny(9), objective=WSGAN(hidden=5), network=uw.Conv((3, 4, 4), (4, 4, 4), 6))
    with contextlib.suppress(Interrupted):
        train(gan, place / "gan", how=RunOptions((), 0.0, after(3)))


def _tiny(seed: int) -> uw.Experiment:
    return uw.Experiment(
        Micro(), network=uw.MLP((8,), (8,)), latents=3, steps=20, batch_size=8, seed=seed, plan=uw.Plan("cpu", 1)
    )


def after(n: int) -> Callable[[], bool]:
    """True from the n-th time it is asked."""
    asked = iter(range(1, 10**9))
    return lambda: next(asked) >= n


def _store(place: Path) -> None:
    run_study(Study("small", tuple(_tiny(seed) for seed in range(3)), (Polarised(32),)), place, execute=Here())
    assert (
        main(["study", "run", str(place.parent / "mine.py"), "--store", str(place), "--executor", "here", "--quiet"])
        == 0
    )
    words = [word for word in TINY if word not in ("--latents", "3")]
    searched = ["--start", "2", "--most", "3", "--threshold", "9", "--examples", "40", "--executor", "here"]
    assert main(["dimension", "micro", *words, *searched, "--folder", str(place)]) == 0
    comparison = {"what": "KL", "column": "polarised.n_active", "published": 0.3, "ours": 0.1, "verdict": "differs"}
    record = place / ".unweave" / "studies" / "small.json"
    other = unsealed(record.read_bytes()) | {"name": "pair", "comparisons": [comparison]}
    (record.parent / "pair.json").write_text(sealed(other))
    assert main(["study", "status", "--store", str(place), "--json"]) == 0


def _tables(place: Path) -> None:
    draw = np.random.default_rng(0)
    factors = draw.integers(0, 3, (120, 2))
    codes = np.c_[factors + draw.normal(0, 0.1, (120, 2)), draw.normal(size=120)]
    np.savez(place / "codes.npz", codes=codes, factors=factors)
    np.savez(place / "posterior.npz", mean=codes, variance=np.full_like(codes, 0.1), sampled=codes + 0.1)
    np.save(place / "points.npy", codes)
    names = [*(f"z{n}" for n in range(3)), "factor_x", "factor_y"]
    rows = [",".join(names), *(",".join(f"{value:.4f}" for value in row) for row in np.c_[codes, factors])]
    (place / "codes.csv").write_text("\n".join(rows) + "\n")
    np.savez(place / "pictures.npz", images=draw.integers(0, 255, (40, 16, 16, 3), dtype=np.uint8))


def _pictures(place: Path) -> None:
    place.mkdir()
    draw = np.random.default_rng(1)
    lines = ["file,size,word"]
    for number in range(12):
        name = f"{number}.png"
        Image.fromarray(draw.integers(0, 255, (16, 16, 3), dtype=np.uint8)).save(place / name)
        lines.append(f"{name},{number % 3},{'ab'[number % 2]}")
    (place / "labels.csv").write_text("\n".join(lines) + "\n")
    (place / "pairs.csv").write_text("first,second\n0.png,1.png\n2.png,5.png\n7.png,3.png\n")


def _films(place: Path) -> None:
    draw = np.random.default_rng(2)
    for number in range(8):
        path = place / f"film{number % 2}" / f"frame{number // 2}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(draw.integers(0, 255, (8, 8), dtype=np.uint8)).save(path)
