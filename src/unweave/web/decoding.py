"""Decoding in a worker: codes that wait for the same model are decoded together, so many hands cost little more."""

import threading
from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass, field

import numpy as np
import torch

from unweave.shapes import Float, Tensor, UInt8
from unweave.web.open_runs import OpenRun

MOST_TOGETHER = 128
"""Codes of one pass through a decoder; more would make the first in the queue wait for the last."""

Pixels = UInt8[np.ndarray, "sample height width channel"]


@dataclass
class Job:
    """Codes that someone waits for."""

    opened: OpenRun
    codes: Float[Tensor, "sample latent"]
    answer: "Future[Pixels]" = field(default_factory=Future)


class Decoding:
    """One thread that decodes; PyTorch lets go of the interpreter while it computes, so nothing else waits for it."""

    def __init__(self) -> None:
        self._waiting: deque[Job] = deque()
        self._wake = threading.Condition()
        self._ended = False
        self._thread = threading.Thread(target=self._work, daemon=True, name="decoding")
        self._thread.start()

    def ask(self, opened: OpenRun, codes: Float[Tensor, "sample latent"]) -> "Future[Pixels]":
        """The pictures of some codes, later."""
        job = Job(opened, codes)
        with self._wake:
            self._waiting.append(job)
            self._wake.notify()
        return job.answer

    def end(self) -> None:
        """Stop when nothing is waiting any more."""
        with self._wake:
            self._ended = True
            self._wake.notify()
        self._thread.join(timeout=5.0)

    def _work(self) -> None:
        while jobs := self._next():
            try:
                pictures = pixels(jobs[0].opened.decode(torch.cat([job.codes for job in jobs])))
                for job, part in zip(jobs, np.split(pictures, np.cumsum([len(job.codes) for job in jobs])[:-1])):
                    job.answer.set_result(part)
            except BaseException as error:
                for job in jobs:
                    if not job.answer.done():
                        job.answer.set_exception(error)

    def _next(self) -> list[Job]:
        """The first job that waits, and those behind it that ask the same model; none at the end."""
        with self._wake:
            self._wake.wait_for(lambda: self._waiting or self._ended)
            if not self._waiting:
                return []
            first = self._waiting.popleft()
            chosen, others, size = [first], deque[Job](), len(first.codes)
            for job in self._waiting:
                if job.opened is first.opened and size + len(job.codes) <= MOST_TOGETHER:
                    chosen.append(job)
                    size += len(job.codes)
                else:
                    others.append(job)
            self._waiting = others
            return chosen


def pixels(images: Float[Tensor, "sample channel height width"]) -> Pixels:
    """Images in [0, 1] as bytes, the way a canvas wants them; what overshoots is cut off."""
    bounded = images.nan_to_num(0.0).clamp(0.0, 1.0)
    return (255.0 * bounded).round().to(torch.uint8).permute(0, 2, 3, 1).contiguous().numpy()
