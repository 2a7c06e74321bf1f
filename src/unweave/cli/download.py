"""A progress bar for files that are fetched or checked."""

import contextlib
from collections.abc import Iterator

from unweave.data.files import Progress


@contextlib.contextmanager
def shown() -> Iterator[Progress]:
    """A callback that draws how far a download is, on standard error."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn
    from rich.progress import Progress as Bar

    parts = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Bar(*parts, console=Console(stderr=True)) as bar:
        tasks: dict[str, object] = {}

        def show(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what, total=total or None)
            bar.update(tasks[what], completed=done)  # type: ignore[arg-type]

        yield show
