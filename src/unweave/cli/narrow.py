"""Help that fits the terminal: long lines are broken where a person would, commands so that they can be pasted."""

import argparse
import re
import textwrap
from collections.abc import Iterable, Iterator


class NarrowHelp(argparse.RawDescriptionHelpFormatter):
    """Descriptions and examples line by line, none wider than the terminal."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return narrow(text, width)


def narrow(text: str, width: int = 80) -> str:
    """A text whose lines fit."""
    return "\n".join(part for line in _paragraphs(text.splitlines()) for part in fitted(line, width))


def fitted(line: str, width: int) -> list[str]:
    """A line as it is where it fits, else in parts: a command above its comment, an entry below itself."""
    if len(line) <= width:
        return [line]
    if line.startswith("  unweave "):
        return _fitted_command(line, width)
    entry = re.match(r" *(?:\S+(?: \S+)* {2,})?", line)
    return _wrapped(line, width, " " * (entry.end() if entry else 0))


def _fitted_command(line: str, width: int) -> list[str]:
    command, _, comment = re.sub(r" {3,}", "\0", line.strip()).partition("\0")
    *first, last = _wrapped(f"  {command}", width - 2, " " * 4)
    told = _wrapped(" " * 6 + comment, width, " " * 6) if comment else []
    return [*(f"{part} \\" for part in first), last, *told]


def _wrapped(text: str, width: int, indent: str) -> list[str]:
    return textwrap.wrap(text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _paragraphs(lines: Iterable[str]) -> Iterator[str]:
    """Lines of prose that follow each other as one; indented ones, titles and empty ones as they are."""
    prose = list[str]()
    for line in lines:
        if line and line[0] != " " and not line.endswith(":"):
            prose.append(line)
            continue
        if prose:
            yield " ".join(prose)
        prose.clear()
        yield line
    if prose:
        yield " ".join(prose)
