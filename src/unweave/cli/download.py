"""How far data is that is rendered, fetched, converted or checked, once that takes a while."""

import contextlib
import importlib.util
import sys
import time
from collections.abc import Iterator

from unweave.cli.console import PATIENCE, patiently
from unweave.data.files import Progress


@contextlib.contextmanager
def shown() -> Iterator[Progress]:
    """A callback that shows on standard error how far it is: a bar in a terminal, a line every ten seconds in a log."""
    if not sys.stderr.isatty() or importlib.util.find_spec("rich") is None:
        at = ["reading the data"]
        with patiently(lambda: at[0]):
            yield lambda what, done, total: at.__setitem__(0, f"{what}: {done:,} of {total:,}" if total else what)
        return
    from rich.console import Console
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    begun = time.monotonic()
    parts = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Bar(*parts, console=Console(stderr=True), transient=True) as bar:
        tasks: dict[str, object] = {}

        def show(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what, total=total or None, visible=False)
            late = time.monotonic() - begun > PATIENCE
            bar.update(tasks[what], completed=done, visible=late)  # type: ignore[arg-type]

        yield show
