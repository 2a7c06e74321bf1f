"""Code of one's own: every template works, by command and from Python; what is installed has a short name."""

import importlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import unweave as uw
from unweave.cli import main
from unweave.cli.new import KINDS
from unweave.runs.folder import RunFolder

FEW = "--steps 3 --batch-size 8 --plan.threads 1 --quiet --json"
SMALL = "--network mlp --network.encoder-widths 8 --network.decoder-widths 8 --latents 2"
QUICK = {
    "method": f"{FEW} {SMALL}",
    "network": f"{FEW} --latents 2",
    "likelihood": f"{FEW} {SMALL}",
    "world": f"{FEW} --network.encoder-widths 8 --network.decoder-widths 8",
    "metric": "--samples 200 --seeds 0 --no-pictures --quiet --json",
    "measure": "--json",
    "study": "--executor here --quiet --json",
}
"""What makes the command of a template short."""


def answer(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> Any:
    capsys.readouterr()
    found = main(list(words))
    told = capsys.readouterr()
    assert found == code, told.err
    return json.loads(told.out) if code == 0 else told.err


@pytest.mark.parametrize("kind", KINDS)
def test_a_template_works(
    kind: str, fresh: Path, small_run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(small_run, "runs/demo")
    made = answer(capsys, "new", kind, "MyThing", "--json")
    assert made["files"] == ["my_thing.py", "test_my_thing.py"]
    assert "my_thing.py is there already" in answer(capsys, "new", kind, "my-thing", code=2)
    answer(capsys, *made["use"].split()[1:], *QUICK[kind].split())
    monkeypatch.setattr(sys, "path", [str(fresh), *sys.path])
    tests = vars(importlib.import_module("test_my_thing"))
    ran = [test(*[fresh / name] * test.__code__.co_argcount) for name, test in tests.items() if name[:5] == "test_"]
    assert ran


def test_names_of_templates_are_plain(fresh: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "unknown kind 'metod'. Did you mean method" in answer(capsys, "new", "metod", "x", code=2)
    assert "a name is made of small letters" in answer(capsys, "new", "metric", "../x", code=2)
    assert "there is a module json already" in answer(capsys, "new", "metric", "json", code=2)
    assert "class is a word of Python itself" in answer(capsys, "new", "method", "Class", code=2)
    assert not list(fresh.iterdir())


def test_measures_and_metrics_are_asked_for_one_after_the_other(
    small_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = answer(capsys, "evaluate", str(small_run), "--measures", "polarised", "--metrics", "mig", code=2)
    assert "--measures takes measures in place of metrics" in told


STUDY = """
from dataclasses import dataclass
from typing import ClassVar
import unweave as uw
from unweave.data.micro import Micro
from unweave.studies.measures import Measure, Scores
from unweave.studies.study import Study

@dataclass(frozen=True)
class Shrink(uw.BetaVAE):
    name: ClassVar[str] = "shrink"

@dataclass(frozen=True)
class Count(Measure):
    name: ClassVar[str] = "count"
    def __call__(self, run):
        return {"latents": run.experiment.latents}

def spread(codes, *, power: int = 2):
    return (abs(codes) ** power).mean()

def study(size):
    given = dict(network=uw.MLP((8,), (8,)), latents=2, steps=5, batch_size=8, plan=uw.Plan("cpu", 1))
    scores = Scores(("mig", "shrinking:spread", "beside:level"), n_samples=100, options=(("spread", "power", 4),))
    return Study("own", (uw.Experiment(Micro(), Shrink(2.0), **given),), (Count(), scores))
"""


def test_a_study_with_code_in_its_own_file_opens_again(
    fresh: Path,
    forget: Callable[[], None],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Path("shrinking.py").write_text(STUDY)
    words = ["study", "run", "shrinking.py", "--executor", "here", "--store", "store", "--quiet", "--json"]
    assert "cannot import the metric beside:level" in answer(capsys, *words, code=2)  # before anything is trained
    Path("beside.py").write_text("def level(codes):\n    return codes.max()\n")
    assert answer(capsys, *words)["done"] == 1
    assert main(["study", "export", "all.csv", "--store", "store"]) == 0
    columns = Path("all.csv").read_text().splitlines()[0].split(",")
    assert {"count.latents", "scores.mean.spread", "scores.mean.level", "scores.mean.mig"} <= set(columns)
    run = next(str(path) for path in Path("store").iterdir() if path.name.startswith("micro-shrink"))
    forget()
    assert "add --trust shrinking" in answer(capsys, "show", run, code=2)
    for named in ("shrinking", "shrinking.py", "store/.unweave/modules/shrinking.py"):
        sys.modules.pop("shrinking", None)
        forget()
        assert answer(capsys, "show", run, "--trust", named, "--examples", "50", "--json")["state"] == "done"
    elsewhere = fresh / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place != str(fresh)])
    sys.modules.pop("shrinking", None)
    forget()
    told = answer(capsys, "show", f"../{run}", "--trust", "shrinking", code=2)
    assert "name the file with --trust FOLDER/shrinking.py" in told
    kept = "../store/.unweave/modules/shrinking.py"
    assert answer(capsys, "show", f"../{run}", "--trust", kept, "--examples", "50", "--json")["state"] == "done"


def test_a_file_that_is_trusted_must_be_there(fresh: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "there is no file nowhere.py" in answer(capsys, "worlds", "micro", "--trust", "nowhere.py", code=2)
    Path("json.py").write_text("raise RuntimeError('it ran')")
    assert "a module named json is loaded already" in answer(capsys, "worlds", "micro", "--trust", "json.py", code=2)


SCRIPT = """
import sys
from unweave.cli import main

if __name__ == "__main__":
    import unweave as uw

    assert uw.Experiment("micro", "vae").resolve().objective == uw.VAE()  # by their names
    sys.exit(main())
"""


def test_the_installed_command_finds_the_working_folder_and_so_do_its_fleets(tmp_path: Path) -> None:
    script = tmp_path / "bin" / "unweave"
    script.parent.mkdir()
    script.write_text(SCRIPT)
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "mylib.py").write_text(STUDY)
    source = str(Path(uw.__file__).parents[1])
    words = f"train micro --objective mylib:Shrink --seed 0:2 {FEW} {SMALL}".split()
    done = subprocess.run(
        [sys.executable, str(script), *words], cwd=tmp_path / "work", capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": source},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert [one["state"] for one in json.loads(done.stdout)] == ["done", "done"]


PACKAGE = """
[unweave.methods]
shrink = plugged:Shrink
[unweave.networks]
wide = plugged:Wide
[unweave.likelihoods]
flat = plugged:Flat
[unweave.worlds]
bars = plugged:Bars
[unweave.metrics]
level = plugged:level
[unweave.measures]
count = plugged:Count
"""

CODE = """
from dataclasses import dataclass
from typing import ClassVar
import unweave as uw
from unweave.data.micro import Micro
from unweave.studies.measures import Measure

@dataclass(frozen=True)
class Shrink(uw.BetaVAE):
    name: ClassVar[str] = "shrink"

@dataclass(frozen=True)
class Wide(uw.MLP):
    name: ClassVar[str] = "wide"

@dataclass(frozen=True)
class Flat(uw.Bernoulli):
    name: ClassVar[str] = "flat"

@dataclass(frozen=True)
class Bars(Micro):
    name: ClassVar[str] = "bars"

@dataclass(frozen=True)
class Count(Measure):
    name: ClassVar[str] = "count"
    def __call__(self, run):
        return {"latents": run.experiment.latents}

def level(codes):
    return codes.max()
"""


def test_an_installed_package_offers_its_things_by_short_names(
    fresh: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    site = fresh / "site"
    (site / "plugged-1.0.dist-info").mkdir(parents=True)
    (site / "plugged-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: plugged\nVersion: 1.0\n")
    (site / "plugged-1.0.dist-info" / "entry_points.txt").write_text(PACKAGE)
    (site / "plugged.py").write_text(CODE)
    monkeypatch.setattr(sys, "path", [str(site), *sys.path])
    importlib.invalidate_caches()
    chosen = "--objective shrink --network wide --likelihood flat --network.encoder-widths 8"
    few = f"{FEW} --latents 2 --network.decoder-widths 8"
    run = answer(capsys, *f"train bars {chosen} {few} --folder run".split())["folder"]
    config = RunFolder(run).read_json("config.json")
    names = {part: config[part]["name"] for part in ("world", "objective", "network", "likelihood")}
    assert set(names.values()) == {"plugged:Bars", "plugged:Shrink", "plugged:Wide", "plugged:Flat"}
    assert answer(capsys, "show", run, "--examples", "50", "--json")["state"] == "done"  # without a word of trust
    found = answer(capsys, *f"evaluate {run} --metrics level {QUICK['metric']}".split())
    assert "level" in found["mean"]["scores"]
    assert answer(capsys, "evaluate", run, "--measures", "count", "--json")["count"] == {"latents": 2}
    assert "bars" in uw.worlds()
    assert "of installed packages: bars" in (main(["worlds"]), capsys.readouterr().out)[1]
    assert "Did you mean bars?" in answer(capsys, "train", "barz", code=2)
    assert answer(capsys, *"intrinsic bars --seeds 1 --examples 50 --json".split())["bars"]["n_points"] == 2048


def test_a_metric_is_any_function_of_arrays(small_run: Path) -> None:
    import numpy as np

    def level(codes: Any, factors: Any, *, power: int = 1) -> float:
        assert isinstance(codes, np.ndarray)
        return float(codes.max()) ** power

    options = {"level": {"power": 3}}
    found = uw.evaluate(small_run, metrics=["mig", level], options=options, n_samples=100, seeds=0)
    once = uw.evaluate(small_run, metrics=level, n_samples=100, seeds=0)
    assert found.scores["mean"]["level"].value == pytest.approx(once.scores["mean"]["level"].value ** 3)
    row = uw.own_metric(level, range=(0, 1), better="more")
    assert uw.measure(np.eye(3), np.eye(3), metrics=[row], seeds=0)["level"].higher_is_better is True
    for strange, words in ((lambda images: 0.0, "takes images: arguments before the star"), (lambda: 0, "no array")):
        with pytest.raises(ValueError, match=words):
            uw.own_metric(strange)
    with pytest.raises(ValueError, match="two of the metrics are called level"):
        uw.measure(np.eye(3), np.eye(3), metrics=[row, level], seeds=0)
    with pytest.raises(TypeError, match="a metric gives one number"):
        uw.measure(np.eye(3), metrics=[uw.own_metric(lambda codes: codes)], seeds=0)


def test_a_class_is_named_by_its_file_too(
    fresh: Path, forget: Callable[[], None], capsys: pytest.CaptureFixture[str]
) -> None:
    Path("lab").mkdir()
    answer(capsys, "new", "method", "shrink", "--json")
    answer(capsys, "new", "method", "shrunk", "--folder", "lab", "--json")
    for number, (given, named) in enumerate(
        {"shrink.py:Shrink": "shrink", "lab/shrunk.py:Shrunk": "lab/shrunk.py"}.items()
    ):
        words = f"train micro --objective {given} {FEW} {SMALL} --folder runs/{number}".replace("--json", "")
        assert main(words.split()) == 0
        assert f"unweave show runs/{number} --trust {named} " in capsys.readouterr().out
        forget()
        assert main(["show", f"runs/{number}", "--trust", named, "--quiet"]) == 0
        capsys.readouterr()
        forget()


def test_a_file_that_was_meant_is_named(fresh: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer(capsys, "new", "method", "shrink", "--json")
    for given in ("shrink", "shrink.py"):
        told = answer(capsys, "train", "micro", "--objective", given, code=2)
        assert "shrink.py is here: write shrink:NAME, the class in it." in told
    assert "There is no file or folder 'photos' here either." in answer(capsys, "train", "photos", code=2)
