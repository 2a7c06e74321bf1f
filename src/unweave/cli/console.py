"""What commands print: tables for people, JSON for machines."""

import contextlib
import json
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

COLOURS = {"active": "green", "mixed": "yellow", "passive": "bright_black"}

PATIENCE, AGAIN = 2.0, 10.0
"""Seconds without a word, and between two; what ends sooner needs no progress."""

BETWEEN = {"lines": 3, "spaces": 2}
"""What may stand between two columns, and how many characters that takes."""


def print_json(value: Any) -> None:
    """A value as JSON on standard output."""
    print(_writable(json.dumps(value, indent=2, allow_nan=False, ensure_ascii=False)))


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], note: str = "") -> None:
    """A table on standard output that breaks no word: with lines, else without, else one row below the other."""
    cells = [[_cell(value) for value in row] for row in rows]
    say(title)
    try:
        from rich.console import Console
    except ImportError:  # a machine that only trains
        _print_rows(columns, cells)
        return
    console = Console(highlight=False)
    for kind, between in BETWEEN.items():
        if widths := _widths(columns, cells, console.width - len(columns) * between - 1):
            right = [all(not isinstance(row[place], str) for row in rows) for place in range(len(columns))]
            console.print(_grid(columns, cells, right, widths, kind))
            break
    else:
        _print_rows(columns, cells)
    if note:
        say(note)


def _widths(columns: Sequence[str], cells: list[list[str]], most: int) -> list[int]:
    """Widths of columns that together are at most so much, none below its longest word; else nothing."""
    from rich.cells import cell_len

    texts = [[name, *(row[place] for row in cells)] for place, name in enumerate(columns)]
    widths = [max(cell_len(line) for text in one for line in text.split("\n")) for one in texts]
    least = [max((cell_len(word) for text in one for word in text.split()), default=0) for one in texts]
    if sum(least) > most:
        return []
    # what a row is about stays in one line, unless that breaks more lines elsewhere
    kept = [widths[0], *least[1:]]
    ways = [_shrunk(widths, low, most) for low in (kept, least) if sum(low) <= most]
    return min(ways, key=lambda way: sum(max(map(_n_lines, row, way)) for row in cells))


def _shrunk(widths: list[int], least: list[int], most: int) -> list[int]:
    """The widest columns narrowed until all fit."""
    found = list(widths)
    while sum(found) > most:
        slack = [width if width > low else 0 for width, low in zip(found, least)]
        found[slack.index(max(slack))] -= 1
    return found


def _n_lines(text: str, width: int) -> int:
    return max(1, len(textwrap.wrap(text, width)))


def _grid(columns: Sequence[str], cells: list[list[str]], right: list[bool], widths: list[int], kind: str) -> Any:
    """Numbers to the right, latent types in colour."""
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=box.HEAVY_HEAD if kind == "lines" else None, pad_edge=kind == "lines")
    for place, name in enumerate(columns):
        table.add_column(escape(name), justify="right" if right[place] else "left", width=widths[place])
    for row in cells:
        table.add_row(*(f"[{COLOURS[text]}]{text}[/]" if text in COLOURS else escape(text) for text in row))
    return table


def _print_rows(columns: Sequence[str], cells: list[list[str]]) -> None:
    width = max(map(len, columns))
    for row in cells:
        say("\n".join(f"  {name:<{width}}  {text}" for name, text in zip(columns, row) if text) + "\n")


@contextlib.contextmanager
def patiently(words: str | Callable[[], str], quiet: bool = False) -> Iterator[None]:
    """A line on standard error once something takes longer than two seconds, and every ten; in a log, every ten."""
    if quiet:
        yield
        return
    begin, ended = time.monotonic(), threading.Event()

    def tell() -> None:
        patience = PATIENCE if sys.stderr.isatty() else AGAIN
        while not ended.wait(patience):
            patience = AGAIN
            text = words if isinstance(words, str) else words()
            print(f"{text}: {time.monotonic() - begin:.0f} s so far", file=sys.stderr, flush=True)

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        ended.set()
        teller.join()


def say(text: str) -> None:
    """A line of plain words."""
    try:
        from rich.console import Console
    except ImportError:
        print(_writable(text))
        return
    Console(highlight=False, soft_wrap=True).print(_writable(text), markup=False)


def _writable(text: str) -> str:
    """Half characters, which files of strangers may hold, as JSON and Python write them."""
    return text.encode(errors="backslashreplace").decode()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else _writable(str(value))
