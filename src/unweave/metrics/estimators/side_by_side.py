"""Independent pieces of one computation, each on a thread of its own."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")


def side_by_side(
    work: Callable[[Item], Result], items: Sequence[Item], size: Callable[[Item], float] | None = None
) -> list[Result]:
    """``work`` of every item, as many at a time as PyTorch may use threads; the largest by ``size`` begin first.

    Two threads that share one loop wait for each other at its end, thousands of times; two that share nothing do not.
    """
    allowed = torch.get_num_threads()
    n_threads = min(allowed, len(items))
    if n_threads < 2:
        return [work(item) for item in items]
    order = sorted(range(len(items)), key=lambda place: -size(items[place]) if size else 0)
    try:
        with ThreadPoolExecutor(n_threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            jobs = {place: pool.submit(work, items[place]) for place in order}
            return [jobs[place].result() for place in range(len(items))]
    finally:
        # a worker's own setting is also the default of threads to come
        torch.set_num_threads(allowed)
