"""Steps of a fleet without host work: on a GPU the whole step is one CUDA graph, elsewhere it is a plain call."""

import contextlib
from collections.abc import Callable

import torch

from unweave.shapes import Shaped, Tensor
from unweave.training.fleet import Fleet, advance, set_state, state_tensors
from unweave.training.fleet_batches import Source, draw

Outputs = list[tuple[dict[str, Tensor], list[str], Tensor | None]]


class Stepper:
    """Advances a fleet step by step. Draws are made for a block of steps at once and stay on the device."""

    def __init__(self, fleet: Fleet, source: Source, say: Callable[[str], None], *, graph: bool | None = None) -> None:
        self.fleet, self.source, self.say = fleet, source, say
        self.device = fleet.parameters.device
        self.graphed = self.device.type == "cuda" if graph is None else graph
        self.first, self.n_drawn = 0, 0
        self.drawn: dict[str, Shaped[Tensor, "step ..."]] = {}
        self.place = torch.zeros(1, dtype=torch.int64, device=self.device)
        self.graphs: dict[bool, tuple[torch.cuda.CUDAGraph, Outputs]] = {}

    def __call__(self, step: int, *, record: bool) -> None:
        """One step; with ``record`` every group holds a row for the history afterwards."""
        if not self.first <= step < self.first + self.n_drawn:
            self._draw(step)
        if not self.graphed:
            self._advance({name: drawn[step - self.first] for name, drawn in self.drawn.items()}, record)
            return
        self.place.fill_(step - self.first)
        if record not in self.graphs:
            self._capture(record)
        if not self.graphed:  # the capture failed, and said so
            return self(step, record=record)
        graph, outputs = self.graphs[record]
        graph.replay()
        for group, kept in zip(self.fleet.groups, outputs):
            group.terms, group.columns, group.row = kept

    def _draw(self, step: int) -> None:
        block = self.source.block
        self.first = step - step % block
        steps = torch.arange(self.first, self.first + block, device=self.device)
        fresh = draw(self.source, steps)
        self.n_drawn = block
        if self.graphed and self.drawn:
            for name, drawn in self.drawn.items():
                drawn.copy_(fresh[name])
        else:
            self.drawn = fresh

    def _advance(self, draws: dict[str, Tensor], record: bool) -> None:
        # constants that an objective makes must be made on a GPU, not copied there; on a CPU this only costs time
        with self.device if self.device.type == "cuda" else contextlib.nullcontext():
            advance(self.fleet, self.source, draws, record=record)

    def _advance_placed(self, record: bool) -> None:
        self._advance({n: drawn.index_select(0, self.place)[0] for n, drawn in self.drawn.items()}, record)

    def _capture(self, record: bool) -> None:
        before = {name: tensor.clone() for name, tensor in state_tensors(self.fleet).items()}
        try:
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                self._advance_placed(record)
            torch.cuda.current_stream().wait_stream(side)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                self._advance_placed(record)
            self.graphs[record] = graph, [(group.terms, group.columns, group.row) for group in self.fleet.groups]
        except torch.cuda.OutOfMemoryError:
            raise
        except RuntimeError as error:
            self.graphed = False
            self.say(f"stepping without a CUDA graph ({str(error).splitlines()[0]})")
        finally:
            set_state(self.fleet, before)
