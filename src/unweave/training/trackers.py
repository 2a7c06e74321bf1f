"""TensorBoard, MLflow and Weights & Biases, for those who watch their runs there. Imported only when asked for.

Every model is a run of its own there, with its own terms, however many train together.
"""

import contextlib
import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from unweave.training.engine import Engine
from unweave.training.experiment import Experiment, experiment_to
from unweave.training.running import StepReport, Watcher

Tell = Callable[[int, Mapping[str, float]], None]
"""Takes a step and its terms."""


LIBRARIES = {
    "tensorboard": ("torch.utils.tensorboard", "TensorBoard", "trackers"),
    "mlflow": ("mlflow", "MLflow", "mlflow"),
    "wandb": ("wandb", "Weights & Biases", "wandb"),
}
"""What each is imported as, what people call it, and the extra that brings it."""


def check_trackers(names: Sequence[str]) -> None:
    """Refuse trackers that are not installed, before anything of a run is written."""
    for module, title, extra in (LIBRARIES[name] for name in names):
        try:
            importlib.import_module(module)
        except ImportError as error:
            raise ImportError(f"{title} is not installed; run: pip install 'unweave[{extra}]'") from error


@contextlib.contextmanager
def tracked(names: Sequence[str], engine: Engine, folders: Sequence[Path]) -> Iterator[Watcher]:
    """A watcher that passes on what the history keeps, to every tracker asked for, as every member's own run."""
    check_trackers(names)
    with contextlib.ExitStack() as opened:
        members = [
            [opened.enter_context(TRACKERS[name](folder, experiment)) for name in names]
            for folder, experiment in zip(folders, engine.experiments)
        ]

        def watch(report: StepReport) -> None:
            if names and report.recorded:
                well = [tells for member, tells in enumerate(members) if engine.failure(member) is None]
                for tells, terms in zip(well, report.terms()):
                    for tell in tells:
                        tell(report.done - 1, terms)

        yield watch


@contextlib.contextmanager
def tensorboard(folder: Path, experiment: Experiment) -> Iterator[Tell]:
    """Every term as a TensorBoard scalar below ``folder/tensorboard``."""
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(str(folder / "tensorboard"))

    def tell(step: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            writer.add_scalar(name, value, step)

    try:
        yield tell
    finally:
        writer.close()


@contextlib.contextmanager
def mlflow(folder: Path, experiment: Experiment) -> Iterator[Tell]:
    """Every term as an MLflow metric, on the tracking server that MLflow itself is set to."""
    import mlflow as tracker

    # opened and left: only one run can be the active one, and several models may train together
    run = tracker.start_run(run_name=folder.name).info.run_id
    tracker.log_params(_flat(experiment))
    tracker.end_run()
    yield lambda step, values: tracker.log_metrics(dict(values), step=step, run_id=run)


@contextlib.contextmanager
def wandb(folder: Path, experiment: Experiment) -> Iterator[Tell]:
    """Every term on Weights & Biases; offline, below the run's folder, unless WANDB_MODE is set."""
    import os

    import wandb as tracker

    folder.mkdir(parents=True, exist_ok=True)
    mode = os.environ.get("WANDB_MODE", "offline")
    run = tracker.init(
        project="unweave", name=folder.name, dir=str(folder), mode=mode, config=_flat(experiment), reinit="create_new"
    )
    try:
        yield lambda step, values: run.log(dict(values), step=step)
    finally:
        run.finish()


TRACKERS: dict[str, Callable[[Path, Experiment], contextlib.AbstractContextManager[Tell]]] = {
    "tensorboard": tensorboard,
    "mlflow": mlflow,
    "wandb": wandb,
}
"""By the name of their option on the command line."""


def _flat(experiment: Experiment) -> dict[str, Any]:
    def parts(plain: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
        for key, value in plain.items():
            if isinstance(value, Mapping):
                yield from parts(value, f"{prefix}{key}.")
            else:
                yield f"{prefix}{key}", value

    return dict(parts(experiment_to(experiment)))
