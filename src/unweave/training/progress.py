"""Progress of a training run: a bar with rate and remaining time where there is a terminal, plain lines elsewhere."""

import contextlib
import sys
import time
from collections.abc import Iterator
from typing import Any

from unweave.models.objectives import Terms
from unweave.training.loop import Watcher

PLAIN_EVERY = 10.0


@contextlib.contextmanager
def progress(title: str) -> Iterator[Watcher]:
    """A watcher that shows how far training is, on standard error."""
    try:
        from rich.console import Console
    except ImportError:
        yield _plain(title)
        return
    console = Console(stderr=True)
    if not (console.is_terminal or console.is_jupyter):
        yield _plain(title)
        return
    with _bar(console) as bar:
        yield _rich(bar, title)


def _bar(console: Any) -> Any:
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    return Progress(
        TextColumn("[bold]{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[loss]}"),
        console=console,
    )


def _rich(bar: Any, title: str) -> Watcher:
    task = bar.add_task(title, total=None, rate="", loss="")
    clock = _Clock()

    def watch(done: int, total: int, terms: Terms, recorded: bool) -> None:
        if clock.due(0.2) or done == total:
            rate = f"{clock.rate(done):.1f} steps/s"
            bar.update(task, completed=done, total=total, rate=rate, loss=f"loss {terms['loss'].item():.2f}")

    return watch


def _plain(title: str) -> Watcher:
    clock = _Clock()

    def watch(done: int, total: int, terms: Terms, recorded: bool) -> None:
        rate = clock.rate(done)
        if clock.due(PLAIN_EVERY) or done == total:
            left = (total - done) / rate if rate else 0.0
            loss = terms["loss"].item()
            line = f"{title}: step {done} of {total}, {rate:.1f} steps/s, {left:.0f} s left, loss {loss:.2f}"
            print(line, file=sys.stderr, flush=True)

    return watch


class _Clock:
    def __init__(self) -> None:
        self.begin = self.shown = time.monotonic()
        self.first: int | None = None

    def rate(self, done: int) -> float:
        """Steps a second since the first one seen, so that a resumed run does not count what was done before."""
        if self.first is None:
            self.first, self.begin = done, time.monotonic()
        return (done - self.first) / max(time.monotonic() - self.begin, 1e-9)

    def due(self, every: float) -> bool:
        if time.monotonic() - self.shown < every:
            return False
        self.shown = time.monotonic()
        return True
