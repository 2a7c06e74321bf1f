"""Steps of a fleet without host work: on a GPU the whole step is one CUDA graph, elsewhere it is a plain call."""

import contextlib
from collections.abc import Callable
from itertools import accumulate

import torch

from unweave.shapes import Int, Tensor
from unweave.training.batches import Drawing, Draws, Source
from unweave.training.fleet.fleet import Fleet
from unweave.training.fleet.mapped import MappedFleet

WORD, ALIGNED = 8, 512
"""Bytes of a whole number, and what PyTorch's own memory on a GPU begins at multiples of."""

Outputs = list[tuple[dict[str, Tensor], list[str], Tensor | None]]


class Packed:
    """The draws of a block side by side in one tensor of whole numbers, so that those of a step are picked at once.

    Every part begins where memory of its own would begin: libraries choose by the alignment of their numbers.
    """

    def __init__(self, drawn: Draws) -> None:
        self.kinds = {name: (part.dtype, part.shape[1:]) for name, part in drawn.items()}
        words = [-(-part[0].numel() * part.element_size() // ALIGNED) * ALIGNED // WORD for part in drawn.values()]
        self.places = [slice(end - n, end) for n, end in zip(words, accumulate(words))]
        n_steps, device = len(next(iter(drawn.values()))), next(iter(drawn.values())).device
        self.rows = torch.zeros(n_steps, sum(words), dtype=torch.int64, device=device)

    def fill(self, drawn: Draws) -> None:
        """Write the draws of another block over these."""
        for name, held in self._views(self.rows).items():
            held.copy_(drawn[name])

    def at(self, place: Int[Tensor, " one"]) -> Draws:
        """The draws of one step, by its place in the block."""
        return {name: held[0] for name, held in self._views(self.rows.index_select(0, place)).items()}

    def _views(self, rows: Int[Tensor, "step word"]) -> Draws:
        views = {}
        for (name, (dtype, shape)), place in zip(self.kinds.items(), self.places):
            values = rows[:, place].view(dtype)[:, : shape.numel()]
            views[name] = values.unflatten(1, tuple(shape)) if shape else values[:, 0]
        return views


class Stepper:
    """Advances a fleet step by step. The draws of a block of steps lie on the device, where a graph finds them."""

    def __init__(
        self, fleet: Fleet | MappedFleet, source: Source, say: Callable[[str], None], *, graph: bool | None = None
    ) -> None:
        self.fleet, self.source, self.say = fleet, source, say
        self.device = fleet.device
        self.graphed = self.device.type == "cuda" if graph is None else graph
        self.drawing = Drawing(source)
        self.packed: Packed | None = None
        self.packed_at = -1
        self.place = torch.zeros(1, dtype=torch.int64, device=self.device)
        self.graphs: dict[tuple[bool, ...], tuple[torch.cuda.CUDAGraph, Outputs]] = {}

    def __call__(self, step: int, *, record: bool) -> None:
        """One step; with ``record`` every group holds a row for the history afterwards."""
        if not self.graphed:
            self._advance(self.drawing(step), step, record)
            return
        self._pack(step)
        self.place.fill_(step - self.drawing.first)
        kind = self._kind(step, record)
        if kind not in self.graphs:
            self._capture(step, record)
        if not self.graphed:  # the capture failed, and said so
            return self(step, record=record)
        graph, outputs = self.graphs[kind]
        graph.replay()
        for group, kept in zip(self.fleet.groups, outputs):
            group.terms, group.columns, group.row = kept

    def catch_up(self) -> None:
        """Nothing waits here: every step is made when it is asked for."""

    def close(self) -> None:
        """Drop the graphs once nothing of them runs any more, and before the memory that they point into is let go."""
        if self.graphs:
            torch.cuda.synchronize(self.device)
        for graph, _ in self.graphs.values():
            graph.reset()
        self.graphs.clear()

    def _kind(self, step: int, record: bool) -> tuple[bool, ...]:
        """Steps of one kind do the same: they keep a row or not, and the same phases are due."""
        due = (phase.due(step) for group in self.fleet.groups for phase in group.method.phases())
        return record, *due

    def _advance(self, draws: Draws, step: int, record: bool) -> None:
        # constants that an objective makes must be made on a GPU, not copied there; on a CPU this only costs time
        with self.device if self.device.type == "cuda" else contextlib.nullcontext():
            self.fleet.advance(self.source, draws, record=record, step=step)

    def _advance_placed(self, step: int, record: bool) -> None:
        assert self.packed is not None
        self._advance(self.packed.at(self.place), step, record)

    def _pack(self, step: int) -> None:
        """Let the graphs find the draws of the block with this step."""
        drawn = self.drawing.block_of(step)
        if self.packed is None:
            self.packed = Packed(drawn)
        if self.packed_at != self.drawing.first:
            self.packed.fill(drawn)
            self.packed_at = self.drawing.first

    def _capture(self, step: int, record: bool) -> None:
        before = {name: tensor.clone() for name, tensor in self.fleet.state_tensors().items()}
        try:
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                self._advance_placed(step, record)
            torch.cuda.current_stream().wait_stream(side)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                self._advance_placed(step, record)
            kept = [(group.terms, group.columns, group.row) for group in self.fleet.groups]
            self.graphs[self._kind(step, record)] = graph, kept
        except torch.cuda.OutOfMemoryError:
            raise
        except RuntimeError as error:
            self.graphed = False
            self.say(f"stepping without a CUDA graph ({str(error).splitlines()[0]})")
        finally:
            self.fleet.set_state(before)
