"""TensorBoard, for those who watch their runs there. Imported only when asked for."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from unweave.models.objectives import Terms
from unweave.train.loop import Watcher


@contextlib.contextmanager
def tensorboard(folder: Path) -> Iterator[Watcher]:
    """A watcher that writes every term as a TensorBoard scalar below ``folder/tensorboard``."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise ImportError("TensorBoard is not installed; run: pip install 'unweave[trackers]'") from error

    writer = SummaryWriter(str(folder / "tensorboard"))

    def watch(done: int, total: int, terms: Terms, recorded: bool) -> None:
        if recorded:
            for name, value in terms.items():
                writer.add_scalar(name, value.item(), done - 1)

    try:
        yield watch
    finally:
        writer.close()
