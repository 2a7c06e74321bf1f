"""Compiled GPU kernels: kept in a folder of ours by version and card, and said to be compiling while they are."""

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from unweave.data.files import data_folder

EVERY = 10.0
"""Seconds between two lines about kernels that are being compiled."""


@contextlib.contextmanager
def kept_kernels(device: str, say: Callable[[str], None]) -> Iterator[None]:
    """Inside, Triton finds the kernels of earlier trainings, and says what it compiles anew. On a CPU, nothing."""
    if not device.startswith("cuda"):
        yield
        return
    try:
        import triton
    except ImportError:
        yield
        return
    card = torch.cuda.get_device_name(device)
    folder = choose_folder(triton.__version__, card)
    with _listening(triton, _Compiling(card, folder, say)):
        yield


def choose_folder(version: str, card: str) -> str:
    """Where Triton keeps kernels: as ``TRITON_CACHE_DIR`` says, else ours, else its own where ours cannot be made."""
    folder = data_folder() / "kernels" / f"triton-{version}-{card.replace(' ', '-').replace('/', '-')}"
    if "TRITON_CACHE_DIR" not in os.environ and _is_usable(folder):
        os.environ["TRITON_CACHE_DIR"] = str(folder)
    return os.environ.get("TRITON_CACHE_DIR", "~/.triton/cache")


def _is_usable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)


class _Compiling:
    """Counts kernels, and says so now and then."""

    def __init__(self, card: str, folder: str, say: Callable[[str], None]) -> None:
        self.card, self.folder, self.say = card, folder, say
        self.count, self.begun, self.said = 0, 0.0, 0.0

    def __call__(self, *, cache_hit: bool = False, **_: Any) -> None:
        """Triton tells of a kernel that it has compiled, or found."""
        if cache_hit:
            return
        now = time.monotonic()
        self.count += 1
        if self.count == 1:
            self.begun = self.said = now
            self.say(f"compiling kernels for {self.card}, about a minute; later trainings find them in {self.folder}")
        elif now - self.said >= EVERY:
            self.said = now
            self.say(f"{self.count} kernels compiled in {now - self.begun:.0f} s")


@contextlib.contextmanager
def _listening(triton: Any, listener: _Compiling) -> Iterator[None]:
    knobs: Any = getattr(getattr(triton, "knobs", None), "compilation", None)
    if not hasattr(knobs, "listener"):  # an older Triton compiles in silence
        yield
        return
    before, knobs.listener = knobs.listener, listener
    try:
        yield
    finally:
        knobs.listener = before
