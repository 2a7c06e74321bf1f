"""Intrinsic dimension of a run's codes, and of all its layers over snapshots (Bonheme, 2023, §8.8.1)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from unweave.evaluation.activations import activations
from unweave.evaluation.types import types_of
from unweave.metrics.dimension.mle import mle
from unweave.shapes import Float, Tensor
from unweave.studies.measures.encoded import encoded
from unweave.studies.measures.measure import Measure
from unweave.training.run import Run

N_NEIGHBOURS = 20
"""With which the source starts its searches."""


@dataclass(frozen=True)
class IntrinsicDimensions(Measure):
    """Of mean and sampled codes; with ``layers``, of the activations of every layer at every snapshot and at the end.

    Beside them the numbers of active, mixed and passive latents.
    """

    name: ClassVar[str] = "intrinsic"
    n_samples: int = 10_000
    n_neighbours: int = N_NEIGHBOURS
    layers: bool = False

    def __call__(self, run: Run) -> Mapping[str, Any]:
        code = encoded(run, self.n_samples)
        types = types_of(code)
        found: dict[str, Any] = {f"n_{kind}": types.count(kind) for kind in ("active", "mixed", "passive")}
        found |= {"mean": self._dimension(code.mean), "sampled": self._dimension(code.sampled)}
        if self.layers:
            images, labels = run.data.examples(code.rows), run.labels(rows=code.rows)
            files = {step: run.snapshots[step] for step in sorted(run.snapshots)}
            files[run.experiment.n_updates] = "model.safetensors"
            found["layers"] = {str(step): self._layers(run, images, labels, name) for step, name in files.items()}
        return found

    @torch.no_grad()
    def _layers(self, run: Run, images: Tensor, labels: Tensor | None, name: str) -> dict[str, float | None]:
        seen = activations(run.load_weights(name), images, labels)
        return {layer: self._dimension(table) for layer, table in zip(seen.names, seen.layers)}

    def _dimension(self, table: Float[Tensor, "sample feature"]) -> float | None:
        neighbours = min(self.n_neighbours, len(table) - 1)
        if 1 < len(torch.unique(table, dim=0)) <= neighbours:
            # a layer that is nearly dead: too few points that differ
            return None
        return round(mle(table, neighbours=(neighbours,)).score, 6)
