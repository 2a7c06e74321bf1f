"""Nonlinear eigenfaces: how far each latent moves the mean image, by its noise (Zietlow, 2022, §3.3.5)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from unweave.evaluation.describe import describe
from unweave.evaluation.traversal import by_deviation, eigenfaces
from unweave.studies.measures.measure import Measure
from unweave.training.run import Run


@dataclass(frozen=True)
class Eigenfaces(Measure):
    """Of every latent, the least noisy first: the mean of σ, and the squared change of the image from −α to α."""

    name: ClassVar[str] = "eigenfaces"
    n_samples: int = 2048
    width: float = 2.5

    def __call__(self, run: Run) -> Mapping[str, Any]:
        found = describe(run, n=self.n_samples)
        order = by_deviation(found)
        strips = eigenfaces(run, found, n_latents=len(order), width=self.width)
        change = (strips.images[:, 2] - strips.images[:, 0]).double().square().flatten(1).sum(1)
        deviation = found.code.variance.sqrt().mean(0)[torch.tensor(order)]
        return {"latents": order, "deviation": deviation.tolist(), "change": change.tolist()}
