"""Progress of training, of one model or of many: a bar where there is a terminal, one line that changes in a notebook,
plain lines elsewhere."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from unweave.training.running import StepReport, Watcher
from unweave.words import number_of

DAY = 86400.0
REDRAWN_EVERY, REWRITTEN_EVERY, REPEATED_EVERY = 0.2, 1.0, 10.0


@contextlib.contextmanager
def progress(title: str, stream: Any = None) -> Iterator[Watcher]:
    """A watcher that shows how far training is, on standard error."""
    out = stream or sys.stderr
    try:
        from rich.console import Console
    except ImportError:
        yield _Shown(REPEATED_EVERY, lambda report, rate: _say(out, title, report, rate)).watch
        return
    console = Console(file=out)
    if console.is_jupyter and out is sys.stderr:
        yield _Shown(REWRITTEN_EVERY, _in_a_notebook(title)).watch
        return
    if not console.is_terminal:
        yield _Shown(REPEATED_EVERY, lambda report, rate: _say(out, title, report, rate)).watch
        return
    with _bar(console) as bar:
        task = bar.add_task(title, total=None, text="")
        yield _Shown(REDRAWN_EVERY, lambda report, rate: _move(bar, task, report, rate)).watch


def words(report: StepReport, rate: float) -> str:
    """How fast, and how good: steps a second of one model; of many, models a day as well."""
    loss, begun = report.mean_loss()
    models = report.members or begun
    if models == 1:
        return f"{rate:.1f} steps/s, loss {loss:.2f}"
    a_day = models * rate * DAY / report.total
    pace = f"{models * rate:,.0f} model-steps/s, {a_day:,.1f} models a day"
    return f"{number_of(models, 'model')}, {pace}, mean loss {loss:.2f}"


def duration(seconds: float) -> str:
    """A time for a person: seconds, minutes or hours."""
    if seconds == float("inf"):
        return "?"
    hours, minutes = divmod(int(seconds) // 60, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min" if minutes else f"{int(seconds)} s"


class _Shown:
    """Shows now and then, and at the end, with the rate since the first step seen."""

    def __init__(self, every: float, show: Callable[[StepReport, float], None]) -> None:
        self.every, self.show = every, show
        self.begin = self.last = 0.0
        self.first, self.total = -1, 0

    def watch(self, report: StepReport) -> None:
        now = time.monotonic()
        if self.first < 0 or report.done < self.first or report.total != self.total:  # the first, or another fleet's
            self.begin, self.first, self.total, self.last = now, report.done, report.total, now
            if report.done < report.total:
                return
        if now - self.last >= self.every or report.done == report.total:
            self.last = now
            # a resumed run does not count what was done before
            self.show(report, (report.done - self.first) / max(now - self.begin, 1e-9))


def _say(out: Any, title: str, report: StepReport, rate: float) -> None:
    print(_line(title, report, rate), file=out, flush=True)


def _line(title: str, report: StepReport, rate: float) -> str:
    left = (report.total - report.done) / rate if rate > 0 else float("inf") if report.done < report.total else 0.0
    return f"{title}: step {report.done:,} of {report.total:,}, {words(report, rate)}, {duration(left)} left"


def _in_a_notebook(title: str) -> Callable[[StepReport, float], None]:
    """Shows a line below the cell, and writes it anew; rich's bar would ask for ipywidgets there."""
    from IPython.display import display  # the notebook brings it

    handles: list[Any] = []

    def show(report: StepReport, rate: float) -> None:
        line = {"text/plain": _line(title, report, rate)}
        if handles:
            handles[0].update(line, raw=True)
        else:
            handles.append(display(line, raw=True, display_id=True))

    return show


def _move(bar: Any, task: Any, report: StepReport, rate: float) -> None:
    bar.update(task, completed=report.done, total=report.total, text=words(report, rate))


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
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[text]}"),
        console=console,
    )
