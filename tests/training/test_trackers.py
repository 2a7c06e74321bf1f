"""Trackers are told what the history keeps. MLflow and W&B are stood in for by modules that record their calls."""

import sys
import types
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import unweave as uw
from unweave.data.micro import Micro
from unweave.training.loop import train
from unweave.training.many import train_many
from unweave.training.run import Run
from unweave.training.running import RunOptions
from unweave.training.trackers import TRACKERS

TINY = uw.Experiment(
    Micro(), network=uw.MLP((4,), (4,)), latents=2, steps=5, batch_size=4, history_every=2, plan=uw.Plan("cpu", 1)
)


def stand_in_mlflow(calls: list[Any]) -> types.ModuleType:
    module = types.ModuleType("mlflow")

    def start_run(run_name: str) -> Any:
        calls.append(("start", run_name))
        return types.SimpleNamespace(info=types.SimpleNamespace(run_id=run_name))

    module.start_run = start_run  # type: ignore[attr-defined]
    module.log_params = lambda given: calls.append(("params", given))  # type: ignore[attr-defined]
    module.end_run = lambda: None  # type: ignore[attr-defined]
    module.log_metrics = lambda given, step, run_id: calls.append(("metrics", step, given, run_id))  # type: ignore[attr-defined]
    return module


def stand_in_wandb(calls: list[Any]) -> types.ModuleType:
    class Logged:
        def __init__(self, name: str) -> None:
            self.name = name

        def log(self, given: dict[str, float], step: int) -> None:
            calls.append(("metrics", step, given, self.name))

        def finish(self) -> None:
            pass

    def init(*, project: str, name: str, dir: str, mode: str, config: dict[str, Any], reinit: str) -> Logged:
        assert reinit == "create_new"
        assert mode == "offline"
        assert Path(dir).is_dir()
        calls.extend([("start", name), ("params", config)])
        return Logged(name)

    module = types.ModuleType("wandb")
    module.init = init  # type: ignore[attr-defined]
    return module


@pytest.mark.parametrize(("name", "stand_in"), [("mlflow", stand_in_mlflow), ("wandb", stand_in_wandb)])
def test_a_tracker_is_told_the_config_and_every_kept_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, stand_in: Any
) -> None:
    calls: list[Any] = []
    monkeypatch.delenv("WANDB_MODE", raising=False)
    monkeypatch.setitem(sys.modules, name, stand_in(calls))
    train(TINY, tmp_path / "run", how=RunOptions(trackers=(name,)))
    assert calls[0] == ("start", "run")
    assert calls[1][1]["objective.name"] == "beta_vae"
    history = Run(tmp_path / "run").history
    told = [call for call in calls if call[0] == "metrics"]
    assert [call[1] for call in told] == history.steps == [0, 2, 4]
    assert [call[2]["loss"] for call in told] == pytest.approx(history.column("loss").tolist())


@pytest.mark.parametrize(("name", "stand_in"), [("mlflow", stand_in_mlflow), ("wandb", stand_in_wandb)])
def test_every_model_of_a_fleet_is_a_run_of_its_own_with_its_own_terms(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, stand_in: Any
) -> None:
    calls: list[Any] = []
    monkeypatch.delenv("WANDB_MODE", raising=False)
    monkeypatch.setitem(sys.modules, name, stand_in(calls))
    paths = train_many([replace(TINY, seed=seed) for seed in (0, 1)], tmp_path, how=RunOptions(trackers=(name,)))
    for path in paths:
        told = [call[2] for call in calls if call[0] == "metrics" and call[3] == path.name]
        assert [terms["kl"] for terms in told] == pytest.approx(Run(path).history.column("kl").tolist())


def test_tensorboard_is_told_of_every_model_of_a_fleet(tmp_path: Path) -> None:
    paths = train_many(
        [replace(TINY, seed=seed) for seed in (0, 1)], tmp_path, how=RunOptions(trackers=("tensorboard",))
    )
    assert all(list((path / "tensorboard").glob("events.*")) for path in paths)


MISSING = {
    "tensorboard": ("torch.utils.tensorboard", "trackers"),
    "mlflow": ("mlflow", "mlflow"),
    "wandb": ("wandb", "wandb"),
}


@pytest.mark.parametrize("name", TRACKERS)
def test_a_tracker_that_is_missing_says_what_to_install_and_leaves_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    module, extra = MISSING[name]
    monkeypatch.setitem(sys.modules, module, None)
    asked = RunOptions(trackers=(name,))
    with pytest.raises(ImportError, match=rf"not installed; run: pip install 'unweave\[{extra}\]'"):
        train(TINY, tmp_path / "run", how=asked)
    with pytest.raises(ImportError, match=rf"unweave\[{extra}\]"):
        train_many([TINY, replace(TINY, seed=1)], tmp_path / "runs", how=asked)
    assert list(tmp_path.iterdir()) == []


def test_trackers_are_not_imported_unless_asked_for() -> None:
    assert "mlflow" not in sys.modules
    assert "wandb" not in sys.modules
