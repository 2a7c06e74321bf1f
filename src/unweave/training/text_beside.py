"""Many tables as text at once, in processes: a number takes half a microsecond, and Python's threads take turns."""

import contextlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import IO

from unweave.training import rows_as_text
from unweave.training.experiment import usable_cores
from unweave.training.rows_as_text import as_text

AsText = Callable[[bytes, bytes], bytes]
"""What :func:`as_text` does, here or elsewhere."""

WORTH_IT = 200_000
"""Numbers that take as long here as some processes take to start."""
PROCESSES = 16


@contextlib.contextmanager
def beside(count: int) -> Iterator[AsText]:
    """:func:`as_text` for ``count`` numbers in all, called by many threads: few are written here, many beside."""
    n_processes = min(PROCESSES, usable_cores())
    if count < WORTH_IT or n_processes < 2 or not sys.executable:
        yield as_text
        return
    free: SimpleQueue[subprocess.Popen[bytes] | None] = SimpleQueue()
    started: list[subprocess.Popen[bytes]] = []
    for _ in range(n_processes):
        free.put(None)

    def elsewhere(steps: bytes, values: bytes) -> bytes:
        process = free.get()
        try:
            if process is None:
                process = _started()
                started.append(process)
            return _answer(process, steps, values)
        except (OSError, ValueError):  # there is no room for it, or somebody ended it
            return as_text(steps, values)
        finally:
            free.put(process)

    try:
        yield elsewhere
    finally:
        for process in started:
            _closed(process)
        for process in started:
            with process:  # until it has ended
                pass


def _started() -> "subprocess.Popen[bytes]":
    # nothing of this process's surroundings; Ctrl-C is for this process alone
    command = [sys.executable, "-I", "-S", rows_as_text.__file__]
    pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=nowhere, start_new_session=True)


def _closed(process: "subprocess.Popen[bytes]") -> None:
    """It ends where its input does; bytes for one that somebody ended are nobody's."""
    given, _ = _pipes(process)
    with contextlib.suppress(OSError):
        given.close()


def _answer(process: "subprocess.Popen[bytes]", steps: bytes, values: bytes) -> bytes:
    given, answer = _pipes(process)
    given.write(b"%d %d\n" % (len(steps), len(values)))
    given.write(steps)
    given.write(values)
    given.flush()
    size = int(answer.readline())
    text = answer.read(size)
    if len(text) != size:
        raise ValueError("the answer is cut short")
    return text


def _pipes(process: "subprocess.Popen[bytes]") -> tuple[IO[bytes], IO[bytes]]:
    assert process.stdin is not None
    assert process.stdout is not None
    return process.stdin, process.stdout
