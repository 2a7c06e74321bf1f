"""How much of a card a fleet uses: what its steps must move at the least, beside what the card can copy meanwhile."""

import time

import torch

from unweave.shapes import Tensor
from unweave.training.experiment import Experiment, Form
from unweave.training.fleet.choice import size_of

PASSES = 7
"""A value between two layers is written and read, read again for a weight's slope; its slope written and read twice."""
N_COPIED = 1 << 28
"""Bytes of the copy that is timed: more than a cache holds."""


def share_of_card(experiment: Experiment, form: Form, seconds: float) -> float:
    """Of a model that took so many seconds of a card for all of its steps."""
    return experiment.n_updates * least_bytes(experiment, form) / (copy_rate(experiment.plan.device) * seconds)


def least_bytes(experiment: Experiment, form: Form) -> int:
    """What one step of one model moves when every layer is fused with its neighbours' elementwise work."""
    size = size_of(experiment, form)
    # weights and two moments read and written, and the rounded copy
    return PASSES * size.stored * size.n_activations + (24 + size.stored) * size.n_parameters


def copy_rate(device: str, n_bytes: int = N_COPIED) -> float:
    """Bytes that a device reads and writes in a second: the best of a few times eight copies."""
    source = torch.ones(n_bytes, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    return 2 * 8 * n_bytes / min(_seconds(source, target) for _ in range(4))


def _seconds(source: Tensor, target: Tensor) -> float:
    wait = torch.cuda.synchronize if source.is_cuda else lambda: None
    wait()
    begin = time.perf_counter()
    for _ in range(8):
        target.copy_(source)
    wait()
    return time.perf_counter() - begin
