"""Progress of a fleet: one line with its models a day, redrawn on a terminal, repeated now and then elsewhere."""

import contextlib
import sys
import time
from collections.abc import Iterator
from typing import Any

from unweave.models.objectives import Terms
from unweave.training.loop import Watcher

DAY = 86400.0
REDRAWN_EVERY, REPEATED_EVERY = 0.5, 10.0


@contextlib.contextmanager
def fleet_progress(stream: Any = None) -> Iterator[Watcher]:
    """A watcher for :func:`unweave.training.fleet_run.train_fleet`, on standard error."""
    out = stream or sys.stderr
    line = _Line(out)
    try:
        yield line.watch
    finally:
        line.end()


def say(line: str) -> None:
    """A line about a fleet, where its progress goes."""
    print(line, file=sys.stderr, flush=True)


class _Line:
    def __init__(self, out: Any) -> None:
        self.out, self.live = out, out.isatty()
        self.begin, self.shown, self.first, self.total, self.width = 0.0, 0.0, -1, 0, 0

    def watch(self, done: int, total: int, terms: Terms, recorded: bool) -> None:
        now = time.monotonic()
        if self.first < 0 or done < self.first or total != self.total:  # the first call, or another fleet's
            self.begin, self.first, self.total, self.shown = now, done, total, now
            return
        if now - self.shown < (REDRAWN_EVERY if self.live else REPEATED_EVERY) and done < total:
            return
        if done == self.first:
            return
        self.shown = now
        rate = (done - self.first) / max(now - self.begin, 1e-9)
        text = words(done, total, rate, int(terms["models"].item()), terms["loss"].item())
        if self.live:
            self.out.write("\r" + text.ljust(self.width))
            self.width = len(text)
        else:
            self.out.write(text + "\n")
        self.out.flush()

    def end(self) -> None:
        if self.live and self.width:
            self.out.write("\n")


def words(done: int, total: int, rate: float, models: int, loss: float) -> str:
    """The line: how far, how fast, how long still."""
    left = (total - done) / rate if rate > 0 else float("inf")
    return (
        f"{models} models: step {done:,} of {total:,} · {models * rate:,.0f} model-steps/s ·"
        f" {models * rate * DAY / total:,.1f} models a day · {_duration(left)} left · mean loss {loss:.2f}"
    )


def _duration(seconds: float) -> str:
    if seconds == float("inf"):
        return "?"
    hours, minutes = divmod(int(seconds) // 60, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min" if minutes else f"{int(seconds)} s"
