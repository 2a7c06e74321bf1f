"""The models of a search for a dimension: ordinary runs, trained when first asked for, judged and kept."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from unweave import rng
from unweave.algorithms.elbow import Elbow, elbow
from unweave.algorithms.fondue import METHODS
from unweave.data.world import Data
from unweave.metrics.dimension.mle import NEIGHBOURS, mle
from unweave.recipes.dimension_search import DimensionSearch, value_of
from unweave.runs.folder import RunFolder
from unweave.studies.measures.elbow import elbow_point
from unweave.studies.measures.fondue import read_latents
from unweave.training.experiment import Experiment
from unweave.training.loop import Manner, train
from unweave.training.run import Run

Prepare = Callable[[str], AbstractContextManager[Manner]]
"""Called with a few words for every model that is about to be trained: who watches it, and when to stop."""


class Models:
    """The models of a search: trained when they are first asked for, judged once by every criterion."""

    def __init__(self, base: Experiment, search: DimensionSearch, folder: Path, data: Data, prepare: Prepare) -> None:
        self.base, self.search, self.folder, self.data, self.prepare = base, search, folder, data, prepare
        self.steps, self.n_trained = 0, 0

    def run(self, n: int) -> Run:
        """The n-th model, trained now unless its folder says that it is done."""
        value, over = value_of(self.search, n), self.search.over
        chosen = replace(self.base, steps=self.steps)
        if over == "latents":
            chosen = replace(chosen, latents=n)
        else:
            chosen = replace(chosen, objective=replace(chosen.objective, **{over: value}))  # type: ignore[type-var]
        path = self.folder / f"{over}-{value:g}-steps-{self.steps}"
        if not RunFolder(path).has("model.safetensors"):
            with self.prepare(f"{over} {value:g}") as how:
                train(chosen, path, data=self.data, how=how)
            self.n_trained += 1
        run = Run(path, self.base.plan.device)
        run.data = self.data
        return run

    def judged(self, n: int) -> dict[str, Any]:
        """Reading and types of latents of the n-th model; kept in its folder, for each criterion."""
        criterion = METHODS[self.search.method].criterion
        return self.kept(n, criterion, lambda run: read_latents(run, criterion, self.search.examples))

    def kept(self, n: int, name: str, make: Callable[[Run], dict[str, Any]]) -> dict[str, Any]:
        """What ``make`` says of the n-th model, made once and then read from its folder."""
        run = self.run(n)
        file = f"dimension/{name}-{self.search.examples}.json"
        if not run.files.has(file):
            run.files.write_json(file, make(run))
        found: dict[str, Any] = run.files.read_json(file)
        return found


@dataclass(frozen=True)
class Curves:
    """Reconstruction loss, and downstream accuracy where there are factors or labels, over numbers of latents."""

    sizes: tuple[int, ...]
    values: dict[str, tuple[float, ...]]
    elbows: dict[str, Elbow]


def elbow_curves(models: Models, sizes: tuple[int, ...]) -> Curves:
    """Train a model for each of these numbers of latents; say where each curve bends."""
    chosen = tuple(sorted(set(sizes)))
    if len(chosen) < 3 or chosen[0] < 1:
        raise ValueError(f"elbow curves take three numbers of latents or more, all positive, given {list(sizes)}")
    points = [models.kept(n, "elbow", lambda run: elbow_point(run, models.search.examples)) for n in chosen]
    values = {name: tuple(point[name] for point in points) for name in points[0]}
    return Curves(chosen, values, {name: elbow(chosen, heights) for name, heights in values.items()})


def intrinsic_dimension(data: Data, n_examples: int, seed: int, device: str = "cpu") -> float:
    """Of up to so many examples, by maximum likelihood over the stable range of neighbours."""
    order = rng.words(seed, rng.Purpose.EVALUATE, 0, len(data), 1)[:, 0].argsort(stable=True)[:n_examples]
    points = data.examples(order.to(data.store.device), seed=seed).flatten(1).to(device)
    neighbours = [k for k in NEIGHBOURS if k < len(points)]
    if not neighbours:
        raise ValueError(f"{len(points)} examples are too few for an intrinsic dimension; say where to --start")
    return mle(points, neighbours=neighbours).score
