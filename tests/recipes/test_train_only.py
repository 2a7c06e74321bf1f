"""Training on a machine that has PyTorch alone, judging on another."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from unweave.data.micro import Micro
from unweave.models.networks.mlp import MLP
from unweave.models.objectives import BetaVAE, FactorVAE
from unweave.recipes.train_only import train_only
from unweave.runs.folder import RunFolder
from unweave.studies.failures import record
from unweave.studies.measure_only import measure_only, missing
from unweave.studies.measures.codes import Codes
from unweave.studies.study import Study
from unweave.training.checkpoint import from_bytes
from unweave.training.experiment import Experiment, Plan

BARE = """
import sys
from importlib.machinery import PathFinder

HIDDEN = {"polars", "scipy", "sklearn", "matplotlib", "plotly", "lightgbm", "h5py", "PIL", "rich", "duckdb", "ray",
          "pandas", "threadpoolctl"}

class Finder:
    find_distributions = PathFinder.find_distributions
    invalidate_caches = PathFinder.invalidate_caches

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in HIDDEN else PathFinder.find_spec(name, path, target)

sys.meta_path[:] = [Finder if one is PathFinder else one for one in sys.meta_path]
try:
    import polars
    raise SystemExit("polars is not hidden")
except ModuleNotFoundError:
    pass
from unweave.cli import main
from unweave.recipes.locatello2019 import settings

settings.EXTENTS["smoke"] = settings.Extent(1, steps=4, n_samples=64)
settings.MODELS["smoke"] = settings.Model((0, 5), 8, settings.MLP((4,), (4,)), 2, 1e-3, (4, 2))
sys.exit(main(sys.argv[1:]))
"""


def tiny(seed: int, objective: object = BetaVAE(2.0), threads: int = 1) -> Experiment:
    return Experiment(
        Micro(),
        objective,  # type: ignore[arg-type]
        MLP((8,), (8,)),
        latents=3,
        steps=6,
        batch_size=8,
        seed=seed,
        plan=Plan("cpu", threads),
        history_every=2,
    )


def tiny_study() -> Study:
    factor = FactorVAE(10.0, "study", width=8, depth=2)
    return Study("tiny", (tiny(0), tiny(1), tiny(0, factor)), (Codes(64),))


def test_what_was_trained_elsewhere_is_measured_and_found(tmp_path: Path) -> None:
    study = tiny_study()
    # the other machine computed with two threads: other ids, the same experiments
    other = replace(study, experiments=tuple(replace(e, plan=Plan("cpu", 2)) for e in study.experiments))
    found = train_only([other, other], tmp_path)
    assert len(set(found.done)) == 3
    assert found.left == ()
    results = measure_only(study, tmp_path)
    assert sorted(results.table["id"].to_list()) == sorted(set(found.done))
    assert results.table["codes.mean.total_correlation"].null_count() == 0
    wanted = replace(study, experiments=(*study.experiments, tiny(7)))
    partial = measure_only(wanted, tmp_path)
    assert partial.table.height == 3
    assert missing(study, results) == 0
    assert missing(wanted, partial) == 1
    record(RunFolder(tmp_path / tiny(7).resolve().id), tiny(7).resolve(), ValueError("it blew up"))
    assert missing(wanted, partial) == 0


def test_time_that_is_up_leaves_a_study_that_goes_on(tmp_path: Path) -> None:
    study = tiny_study()
    stopped = train_only([study], tmp_path, seconds=0)
    assert stopped.done == ()
    assert len(stopped.left) == 3
    assert len(train_only([study], tmp_path).done) == 3


def test_compact_weights_are_the_same_to_a_thousandth(tmp_path: Path) -> None:
    study = Study("one", (tiny(0),))
    name = train_only([study], tmp_path / "full").done[0]
    train_only([study], tmp_path / "compact", compact=True)
    train_only([study], tmp_path / "compact", compact=True)
    full, compact = (RunFolder(tmp_path / kind / name) for kind in ("full", "compact"))
    before, after = (from_bytes(folder.read("model.safetensors"))[0] for folder in (full, compact))
    assert all(torch.allclose(before[key], after[key].float(), rtol=1e-3, atol=1e-6) for key in before)
    assert {one.dtype for one in after.values()} == {torch.float16}
    assert "float16" in compact.read_json("environment.json")["weights"]
    measured = measure_only(replace(study, measures=(Codes(64),)), tmp_path / "compact")
    assert measured.table["codes.mean.total_correlation"].null_count() == 0


@pytest.mark.slow
def test_a_machine_with_pytorch_alone_trains_a_reproduction(tmp_path: Path) -> None:
    words = ["reproduce", "k-1", "k-2", "--size", "smoke", "--store", str(tmp_path / "store"), "--train-only"]
    done = subprocess.run([sys.executable, "-c", BARE, *words], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["trained"] == 12
    folders = [path for path in (tmp_path / "store").iterdir() if (path / "model.safetensors").exists()]
    assert len(folders) == 12
    assert all((path / "history.csv").exists() for path in folders)
