"""Rows of numbers as text. Run as a script, a process that does it for others, and imports next to nothing."""

import sys
from array import array


def as_text(steps: bytes, values: bytes) -> bytes:
    """A line a row: its step, then its values, as Python writes them. ``steps`` are int64, ``values`` float64."""
    numbers, counts = array("d", values).tolist(), array("q", steps).tolist()
    width = len(numbers) // max(len(counts), 1)
    rows = ((step, *numbers[row * width : (row + 1) * width]) for row, step in enumerate(counts))
    return "".join(f"{','.join(map(repr, row))}\n" for row in rows).encode()


def serve() -> None:
    """Answer every table of the standard input: two lengths in a line, then steps and values."""
    given, answer = sys.stdin.buffer, sys.stdout.buffer
    while head := given.readline():
        n_steps, n_values = map(int, head.split())
        text = as_text(given.read(n_steps), given.read(n_values))
        answer.write(b"%d\n" % len(text))
        answer.write(text)
        answer.flush()


if __name__ == "__main__":
    serve()
