"""Work of a step that nobody waits for before its end, beside the chain that everything waits for.

Weight gradients are such work: while the slope goes on to the next layer, they fill what a small fleet leaves idle of
a GPU. Nothing that is computed changes by it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

Later = Callable[..., None]
"""Calls a function with arguments, now or a little later."""

MOST = 64
"""Models up to which a fleet leaves a part of the card idle (benchmarks/dense.py)."""

STREAMS = 4
"""Streams beside the main one: weight gradients need not wait for each other either."""

_MADE: dict[torch.device, list[torch.cuda.Stream]] = {}


def in_turn(function: Callable[..., Any], *given: Any, **named: Any) -> None:
    """Now, in its turn."""
    function(*given, **named)


@dataclass
class Aside:
    """Other streams, in turn. What they were given stays alive until all meet again, so no memory is reused early."""

    streams: list[torch.cuda.Stream]
    kept: list[Any] = field(default_factory=list)

    def __call__(self, function: Callable[..., Any], *given: Any, **named: Any) -> None:
        stream = self.streams[len(self.kept) % len(self.streams)]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            function(*given, **named)
        self.kept.append((given, named))

    def after_all(self, function: Callable[..., Any], *given: Any) -> None:
        """Once all that was given so far is done, beside what follows."""
        last = self.streams[len(self.kept) % len(self.streams)]
        for stream in self.streams[: len(self.kept)]:
            if stream is not last:
                last.wait_stream(stream)
        self(function, *given)

    def join(self) -> None:
        """From here on everyone waits for them."""
        for stream in self.streams[: len(self.kept)]:
            torch.cuda.current_stream().wait_stream(stream)
        self.kept.clear()


def aside(n_models: int, device: torch.device) -> Aside | None:
    """Streams beside the main one, where they are worth it."""
    if device.type != "cuda" or n_models > MOST:
        return None
    if device not in _MADE:
        _MADE[device] = [torch.cuda.Stream(device) for _ in range(STREAMS)]
    return Aside(_MADE[device])
