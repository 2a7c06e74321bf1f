"""Similarity of all layers of two groups of models, pair by pair of seeds (Bonheme, 2023, eq. 7.9)."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from unweave.plots.matrices import heat_map
from unweave.studies.identity import identity_of_asked
from unweave.studies.measures.layer_similarity import LayerSimilarity
from unweave.studies.results import Results
from unweave.training.experiment import Experiment

if TYPE_CHECKING:
    import matplotlib.figure

CODES = ("mean", "variance", "sampled")
CKA, PROCRUSTES = "CKA", "Procrustes"

Weights = tuple[str, str]
"""Of the models in the rows and in the columns."""


@dataclass(frozen=True)
class LayerMap:
    """``scores`` [left seed, right seed, row, column] by measure; rows are layers of the left models."""

    left: str
    right: str
    seeds: tuple[int, ...]
    """Of the left models."""
    names: tuple[str, ...]
    n_encoder: int
    scores: dict[str, np.ndarray]

    @property
    def encoder(self) -> list[int]:
        """Hidden layers of the encoder: neither the input nor the code."""
        return [place for place, name in enumerate(self.names) if name.startswith("encoder")]

    @property
    def decoder(self) -> list[int]:
        """Layers of the decoder with its output."""
        return [place for place, name in enumerate(self.names) if name.startswith("decoder") or name == "output"]

    def places(self, *names: str) -> list[int]:
        """Layers by name."""
        return [self.names.index(name) for name in names if name in self.names]

    def diagonal(self, places: Sequence[int], measure: str = CKA) -> dict[int, float]:
        """Mean similarity of each of these layers with itself in the other model, by seed of the left model."""
        return self._by_seed(lambda one: float(np.mean([one[:, place, place].mean() for place in places])), measure)

    def block(self, rows: Sequence[int], columns: Sequence[int], measure: str = CKA) -> dict[int, float]:
        """Mean similarity of all pairs of these rows and columns, by seed of the left model."""
        return self._by_seed(lambda one: float(one[:, rows][:, :, columns].mean()), measure)

    def mean(self, measure: str = CKA) -> np.ndarray:
        """The heat map: the mean over all pairs of seeds."""
        return np.asarray(self.scores[measure].mean(axis=(0, 1)))

    def figure(self, measure: str = CKA) -> "matplotlib.figure.Figure":
        """The heat map, with lines where encoders end."""
        return heat_map(
            self.mean(measure),
            self.names,
            self.names,
            f"{measure}, mean over pairs of seeds",
            limits=(0.0, 1.0),
            splits=((self.n_encoder,), (self.n_encoder,)),
            row_label=self.left,
            column_label=self.right,
        )

    def _by_seed(self, pick: Callable[[np.ndarray], float], measure: str) -> dict[int, float]:
        return {seed: pick(self.scores[measure][place]) for place, seed in enumerate(self.seeds)}


@dataclass(frozen=True)
class Learned:
    """Two settings after training, and what was there before it: what training adds is the difference.

    Untrained encoders are alike, untrained decoders are not: a similarity says nothing of training by itself.
    """

    after: LayerMap
    before: LayerMap
    """Of two untrained networks; of an untrained one with the end of training, where snapshots are compared."""
    end: LayerMap | None = None
    """Of two ends of training, where snapshots are compared."""

    def gain(self, places: Sequence[int], measure: str = CKA) -> dict[int, float]:
        """By how much training has made layers more alike, by seed."""
        after, before = self.after.diagonal(places, measure), self.before.diagonal(places, measure)
        return {seed: after[seed] - before[seed] for seed in after if seed in before}

    def share(self, places: Sequence[int], measure: str = CKA) -> dict[int, float]:
        """How much of the way from their first weights to their end layers have gone, by seed.

        Not a number where the way is shorter than 0.02.
        """
        assert self.end is not None
        after, before, end = (one.diagonal(places, measure) for one in (self.after, self.before, self.end))
        ways = {seed: end[seed] - before[seed] for seed in after if seed in before and seed in end}
        return {s: (after[s] - before[s]) / way if abs(way) >= 0.02 else math.nan for s, way in ways.items()}


@dataclass(frozen=True)
class Wanted:
    """A map that is asked for: two groups of experiments, with which weights, on how many examples."""

    left: tuple[Experiment, ...]
    right: tuple[Experiment, ...]
    weights: Weights
    n_samples: int
    procrustes: tuple[str, ...] = ()
    """The beginnings of the names of layers that Procrustes is taken of too."""

    def among(self, experiments: Sequence[Experiment]) -> "Wanted":
        """The same of those that a part of the study has."""
        left, right = (tuple(one for one in group if one in experiments) for group in (self.left, self.right))
        return Wanted(left, right, self.weights, self.n_samples, self.procrustes)

    def measures(self) -> dict[str, LayerSimilarity]:
        """What is taken of the runs together, by its name; the first run of the rows keeps it."""
        left, right = (tuple(map(identity_of_asked, group)) for group in (self.left, self.right))
        cka = LayerSimilarity(left, right, self.weights, self.n_samples)
        procrustes = LayerSimilarity(left, right, self.weights, self.n_samples, self.procrustes)
        return {CKA: cka} | ({PROCRUSTES: procrustes} if self.procrustes else {})


def between(wanted: Sequence[Wanted], experiments: Sequence[Experiment]) -> list[tuple[Experiment, LayerSimilarity]]:
    """What is taken of runs together for some maps, each once, with the run that keeps it; Procrustes last."""
    here = [found for one in wanted if (found := one.among(experiments)).left and found.right]
    asked = dict.fromkeys((one.left[0], measure) for one in here for measure in one.measures().values())
    return sorted(asked, key=lambda pair: bool(pair[1].procrustes))


def layer_map(wanted: Wanted, results: Results, left: str, right: str) -> LayerMap | None:
    """All pairs of layers of all pairs of seeds, under these titles; None where it was not taken.

    A model is never held against itself.
    """
    here = wanted.among(results.study.experiments)
    if not here.left or not here.right:
        return None
    taken = {name: results.found(here.left[0], measure) for name, measure in here.measures().items()}
    cka = taken[CKA]
    if cka is None:
        return None
    seeds, names = tuple(one.seed for one in here.left), tuple(cka["names"])
    found = {name: _filled(one["scores"], len(names)) for name, one in taken.items() if one is not None}
    return LayerMap(left, right, seeds, names, cka["n_encoder"], found)


def _filled(scores: Sequence[Sequence[Sequence[Sequence[float | None]] | None]], size: int) -> np.ndarray:
    """Scores as an array, not numbers where they were not taken.

    A model with itself gets the mean of its row of seeds, so that means over seeds are means over pairs.
    """
    empty = np.full((size, size), np.nan)
    array = np.array([[empty if pair is None else np.array(pair, float) for pair in row] for row in scores])
    for place, row in enumerate(scores):
        missing = np.array([pair is None for pair in row])
        if missing.any() and not missing.all():
            array[place, missing] = array[place, ~missing].mean(0)
    return array
