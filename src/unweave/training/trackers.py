"""TensorBoard, MLflow and Weights & Biases, for those who watch their runs there. Imported only when asked for."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from unweave.models.objectives import Terms
from unweave.training.experiment import Experiment, experiment_to
from unweave.training.loop import Watcher


@contextlib.contextmanager
def tensorboard(folder: Path, experiment: Experiment | None = None) -> Iterator[Watcher]:
    """A watcher that writes every term as a TensorBoard scalar below ``folder/tensorboard``."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise ImportError("TensorBoard is not installed; run: pip install 'unweave[trackers]'") from error

    writer = SummaryWriter(str(folder / "tensorboard"))

    def tell(step: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            writer.add_scalar(name, value, step)

    try:
        yield _watcher(tell)
    finally:
        writer.close()


@contextlib.contextmanager
def mlflow(folder: Path, experiment: Experiment | None = None) -> Iterator[Watcher]:
    """A watcher that logs every term as an MLflow metric, to the tracking server that MLflow itself is set to."""
    try:
        import mlflow as tracker
    except ImportError as error:
        raise ImportError("MLflow is not installed; run: pip install 'unweave[mlflow]'") from error

    with tracker.start_run(run_name=folder.name):
        tracker.log_params(_flat(experiment))
        yield _watcher(lambda step, values: tracker.log_metrics(dict(values), step=step))


@contextlib.contextmanager
def wandb(folder: Path, experiment: Experiment | None = None) -> Iterator[Watcher]:
    """A watcher that logs every term to Weights & Biases; offline, below the run's folder, unless WANDB_MODE is set."""
    import os

    try:
        import wandb as tracker
    except ImportError as error:
        raise ImportError("Weights & Biases is not installed; run: pip install 'unweave[wandb]'") from error

    folder.mkdir(parents=True, exist_ok=True)
    mode = os.environ.get("WANDB_MODE", "offline")
    run = tracker.init(project="unweave", name=folder.name, dir=str(folder), mode=mode, config=_flat(experiment))
    try:
        yield _watcher(lambda step, values: run.log(dict(values), step=step))
    finally:
        run.finish()


TRACKERS = {"tensorboard": tensorboard, "mlflow": mlflow, "wandb": wandb}
"""By the name of their option on the command line."""


def _watcher(tell: Callable[[int, Mapping[str, float]], None]) -> Watcher:
    """Passes the terms of every step that the history keeps on."""

    def watch(done: int, total: int, terms: Terms, recorded: bool) -> None:
        if recorded:
            tell(done - 1, {name: value.item() for name, value in terms.items()})

    return watch


def _flat(experiment: Experiment | None) -> dict[str, Any]:
    def parts(plain: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
        for key, value in plain.items():
            if isinstance(value, Mapping):
                yield from parts(value, f"{prefix}{key}.")
            else:
                yield f"{prefix}{key}", value

    return {} if experiment is None else dict(parts(experiment_to(experiment)))
