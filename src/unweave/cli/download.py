"""A progress bar for data that is rendered, fetched, converted or checked."""

import contextlib
from collections.abc import Iterator

from unweave.data.files import Progress


@contextlib.contextmanager
def shown() -> Iterator[Progress]:
    """A callback that draws how far rendering, fetching or checking is, on standard error."""
    from rich.console import Console
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    parts = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Bar(*parts, console=Console(stderr=True)) as bar:
        tasks: dict[str, object] = {}

        def show(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what, total=total or None)
            bar.update(tasks[what], completed=done)  # type: ignore[arg-type]

        yield show
