"""What commands print: tables for people, JSON for machines."""

import json
from collections.abc import Sequence
from typing import Any

COLOURS = {"active": "green", "mixed": "yellow", "passive": "bright_black"}


def print_json(value: Any) -> None:
    """A value as JSON on standard output."""
    print(_writable(json.dumps(value, indent=2, allow_nan=False, ensure_ascii=False)))


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], note: str = "") -> None:
    """A table on standard output; numbers to the right, latent types in colour."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    title, note = escape(_writable(title)), escape(_writable(note))
    table = Table(title=title, title_justify="left", caption=note or None, caption_justify="left")
    numeric = [all(not isinstance(row[i], str) for row in rows) for i in range(len(columns))]
    for place, (name, right) in enumerate(zip(columns, numeric)):
        table.add_column(escape(name), justify="right" if right else "left", overflow="fold", no_wrap=place == 0)
    for row in rows:
        table.add_row(*(_cell(value) for value in row))
    Console().print(table)


def say(text: str) -> None:
    """A line of plain words."""
    from rich.console import Console

    Console(highlight=False, soft_wrap=True).print(_writable(text), markup=False)


def _writable(text: str) -> str:
    """Half characters, which files of strangers may hold, as JSON and Python write them."""
    return text.encode(errors="backslashreplace").decode()


def _cell(value: Any) -> str:
    from rich.markup import escape

    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}"
    text = escape(_writable(str(value)))
    return f"[{COLOURS[text]}]{text}[/]" if text in COLOURS else text
