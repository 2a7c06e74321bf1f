"""A worker process: ``python -m unweave.studies.worker STORE``. Packs come in as lines of text, answers go out.

It ends when its input does: when the parent is killed, the work is saved and stopped.
"""

import faulthandler
import json
import os
import queue
import signal
import sys
import threading
from typing import IO, Any

from unweave.training.memory import keep_freed_memory

PARENT_GONE = 10.0
"""Seconds to save the work after the parent has died; a measure cannot be interrupted, and is done again."""


def main() -> None:
    """Perform packs until there are no more."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever prints goes to the log
    faulthandler.enable()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; the parent says what it means
    stop, packs = threading.Event(), queue.SimpleQueue[str | None]()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    save_every = float(sys.argv[2])
    keep_freed_memory()
    threading.Thread(target=_listen, args=(sys.stdin, packs, stop), daemon=True).start()
    while (text := packs.get()) is not None:
        answer = {"state": "stopped"} if stop.is_set() else _perform(text, sys.argv[1], save_every, stop)
        print(json.dumps(answer), file=answers, flush=True)


def _perform(text: str, root: str, save_every: float, stop: threading.Event) -> dict[str, Any]:
    from unweave.studies.failures import is_full
    from unweave.studies.pack import pack_from
    from unweave.studies.train_and_measure import train_and_measure
    from unweave.training.running import Interrupted, RunOptions

    try:
        train_and_measure(pack_from(text), root, RunOptions((), save_every, stop.is_set))
    except Interrupted:
        return {"state": "stopped"}
    except OSError as error:
        if is_full(error):
            return {"state": "full", "errno": error.errno, "file": str(error.filename or root)}
        raise
    return {"state": "ended"}


def _listen(lines: IO[str], packs: "queue.SimpleQueue[str | None]", stop: threading.Event) -> None:
    for line in lines:
        if line.strip() == "stop":
            stop.set()
        elif line.strip():
            packs.put(line)
    stop.set()
    packs.put(None)
    threading.Timer(PARENT_GONE, os._exit, (1,)).start()


if __name__ == "__main__":
    main()
