"""Similarity of all layers of two groups of models, pair by pair of seeds (Bonheme, 2023, eq. 7.9)."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch

from unweave.evaluation.activations import Activations, activations, own_noise
from unweave.evaluation.similarity import compact
from unweave.metrics.similarity.cka import cka_matrix
from unweave.metrics.similarity.procrustes import procrustes_matrix
from unweave.plots.matrices import heat_map
from unweave.training.run import Run

if TYPE_CHECKING:
    import matplotlib.figure

CODES = ("mean", "variance", "sampled")
CKA, PROCRUSTES = "CKA", "Procrustes"


@dataclass(frozen=True)
class Group:
    """All seeds of one setting, with every layer in its principal directions."""

    name: str
    seeds: tuple[int, ...]
    layers: tuple[Activations, ...]


@dataclass(frozen=True)
class LayerMap:
    """``scores`` [left seed, right seed, row, column] by measure; rows are layers of the left models."""

    left: Group
    right: Group
    scores: dict[str, np.ndarray]

    @cached_property
    def names(self) -> tuple[str, ...]:
        return self.left.layers[0].names

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
        return np.asarray(np.nanmean(self.scores[measure], axis=(0, 1)))

    def figure(self, measure: str = CKA) -> "matplotlib.figure.Figure":
        """The heat map, with lines where encoders end."""
        split = self.left.layers[0].n_encoder, self.right.layers[0].n_encoder
        return heat_map(
            self.mean(measure),
            self.names,
            self.right.layers[0].names,
            f"{measure}, mean over pairs of seeds",
            limits=(0.0, 1.0),
            splits=((split[0],), (split[1],)),
            row_label=self.left.name,
            column_label=self.right.name,
        )

    def _by_seed(self, pick: Callable[[np.ndarray], float], measure: str) -> dict[int, float]:
        return {seed: pick(self.scores[measure][place]) for place, seed in enumerate(self.left.seeds)}


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


def group_of(name: str, runs: Sequence[Run], n: int, at: float | None = None) -> Group:
    """The layers of all seeds of one setting at their end, or at the snapshot nearest to a share of training."""
    seen = tuple(_look(run, n, at) for run in runs)
    return Group(name, tuple(run.experiment.seed for run in runs), seen)


def layer_map(left: Group, right: Group, *, procrustes: bool = False) -> LayerMap:
    """All pairs of layers of all pairs of seeds; a model is never held against itself."""
    measures = [CKA, *([PROCRUSTES] if procrustes else [])]
    size = len(left.layers[0].names), len(right.layers[0].names)
    scores = {name: np.full((len(left.seeds), len(right.seeds), *size), np.nan) for name in measures}
    for i, one in enumerate(left.layers):
        for j, other in enumerate(right.layers):
            if one is other:
                continue
            scores[CKA][i, j] = cka_matrix(one.layers, other.layers, estimator="biased").scores.cpu().numpy()
            if procrustes:
                scores[PROCRUSTES][i, j] = procrustes_matrix(one.layers, other.layers).scores.cpu().numpy()
    return LayerMap(left, right, {name: _filled(one) for name, one in scores.items()})


def _filled(scores: np.ndarray) -> np.ndarray:
    """Pairs that were left out get the mean of their row of seeds, so that means over seeds are means over pairs."""
    for row in scores:
        missing = np.isnan(row).all((1, 2))
        if missing.any() and not missing.all():
            row[missing] = row[~missing].mean(0)
    return scores


@torch.no_grad()
def _look(run: Run, n: int, at: float | None) -> Activations:
    weights = "model.safetensors" if at is None else _snapshot(run, at)
    found = activations(run.load_weights(weights), run.images(n), run.labels(n), seed=own_noise(run, weights, 0))
    return Activations(found.names, tuple(compact(layer) for layer in found.layers), found.n_encoder)


def _snapshot(run: Run, at: float) -> str:
    steps = run.snapshots
    return steps[min(steps, key=lambda step: abs(step - at * run.experiment.n_updates))]
