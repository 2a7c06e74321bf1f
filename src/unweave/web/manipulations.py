"""What the page of a manipulation shows: an image before and after, and what both sides' models make of it."""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from unweave.data.altered import Manipulated, Perturbed, fold
from unweave.data.factors import FactorSpace
from unweave.data.world import Data
from unweave.models.method import Given
from unweave.models.objectives import Perturbation
from unweave.runs.folder import WEIGHTS, RunFolder, signature
from unweave.runs.state import state_of
from unweave.shapes import Float, Int, Tensor
from unweave.training.run import Run
from unweave.web.open_runs import NotReady, OpenRuns
from unweave.web.schema import FactorChoice, ManipulationAnswer, SeenCode, Side
from unweave.web.store import NotHere, ReadOnlyStore

MOST = 4
"""Manipulations that stay in memory."""


@dataclass(frozen=True)
class OpenManipulation:
    """A finished manipulation with its base world loaded."""

    signature: str
    method: Perturbation
    originals: Data
    alteration: Manipulated

    @property
    def space(self) -> FactorSpace:
        return self.alteration.space

    def row(self, values: Sequence[int]) -> Int[Tensor, " one"]:
        """The row that shows these factors, the middle ones where none are given; hidden ones at their first."""
        chosen = list(values) or [factor.size // 2 for factor in self.space.factors]
        if len(chosen) != len(self.space.factors):
            raise ValueError(f"give a value for each of {', '.join(self.space.names)}, not {len(chosen)} values")
        columns = iter(chosen)
        return self.space.rows(torch.tensor([[0 if axis.hidden else next(columns) for axis in self.space.axes]]))

    @torch.no_grad()
    def images(self, row: Int[Tensor, " one"], epsilon: float) -> Float[Tensor, "3 channel height width"]:
        """The original, m on [0, 1] with grey where nothing changes, and the altered image."""
        original, change = self.originals.examples(row), self.alteration.change(row)
        return torch.cat([original, 0.5 + 0.5 * change, fold(original + epsilon * change)])


class Manipulations:
    """The manipulations of a store, opened when first asked for."""

    def __init__(self, store: ReadOnlyStore, open_runs: OpenRuns) -> None:
        self.store, self.open_runs = store, open_runs
        self._open: OrderedDict[str, OpenManipulation] = OrderedDict()
        self._lock = threading.Lock()

    def open(self, run_id: str) -> OpenManipulation:
        """A manipulation by its id, read again when its folder has changed."""
        path = self.store.run(run_id)
        with self._lock:
            known = self._open.get(run_id)
            if known is None or known.signature != signature(path):
                known = self._open[run_id] = _opened(path)
            self._open.move_to_end(run_id)
            while len(self._open) > MOST:
                self._open.popitem(last=False)
            return known

    def pixels(self, run_id: str, values: Sequence[int], epsilon: float | None) -> Float[Tensor, "3 c h w"]:
        """The three pictures of an example."""
        opened = self.open(run_id)
        return opened.images(opened.row(values), _strength(opened, epsilon))

    def answer(self, run_id: str, values: Sequence[int], epsilon: float | None) -> ManipulationAnswer:
        """An example, and its codes before and after from the models that the manipulation was made from."""
        opened, prefix = self.open(run_id), self.store.inside(run_id)[0].prefix
        row, strength = opened.row(values), _strength(opened, epsilon)
        images = opened.images(row, strength)
        sides: dict[Side, tuple[Given, ...]] = {"foster": opened.method.foster, "diminish": opened.method.diminish}
        return ManipulationAnswer(
            epsilon=strength,
            trained_epsilon=opened.alteration.epsilon,
            farthest=float((images[2] - images[0]).abs().max()),
            factors=[
                FactorChoice(name=factor.name, size=factor.size, value=int(value))
                for factor, value in zip(opened.space.factors, opened.space.values(row)[0])
            ],
            row=int(row),
            models=[self._seen(prefix, side, one, images) for side, runs in sides.items() for one in runs],
        )

    def _seen(self, prefix: str, side: Side, given: Given, images: Tensor) -> SeenCode:
        name = prefix + Path(given.run).name
        try:
            if RunFolder(self.store.run(name)).sums().get(WEIGHTS) != given.checksum:
                raise NotHere(f"the run {name} of this store is not the one that the manipulation was made from")
            code = self.open_runs.open(name).run.encode(images[[0, 2]])
        except (NotHere, NotReady, OSError, ValueError) as problem:  # damaged, untrusted, of other layers
            return SeenCode(id=name, side=side, before=[], after=[], deviation=[], missing=str(problem))
        before, after = code.mean.tolist()
        return SeenCode(id=name, side=side, before=before, after=after, deviation=code.variance[0].sqrt().tolist())


def _opened(path: Path) -> OpenManipulation:
    run = Run(path)
    if not isinstance(run.experiment.objective, Perturbation):
        raise NotReady(f"this is a run of {run.experiment.objective.name}, and no manipulation of images")
    state = state_of(run.files)
    if state.word != "done":
        raise NotReady(f"this manipulation is {state.column}: there is nothing to look at yet")
    data = Perturbed(str(path)).load()
    assert isinstance(data.alteration, Manipulated)
    originals = replace(data, alteration=data.alteration.before)
    return OpenManipulation(signature(path), run.experiment.objective, originals, data.alteration)


def _strength(opened: OpenManipulation, epsilon: float | None) -> float:
    return opened.alteration.epsilon if epsilon is None else epsilon
