"""How the latents of a run lie to the factors: MIG of each, how many are in use, cartesian or polar (Z §4.3)."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from unweave.evaluation.encode import Encoded, factor_names
from unweave.evaluation.types import types_of
from unweave.metrics.geometry.coordinates import polar_or_cartesian
from unweave.metrics.supervised.mig import Mig, mig
from unweave.studies.measures.encoded import encoded
from unweave.studies.measures.measure import Measure
from unweave.training.run import Run


@dataclass(frozen=True)
class Alignment(Measure):
    """MIG with its part of every factor, latents in use (E[σ²] < 0.8), and the planes that hold two factors.

    ``over_pruned`` is the source's rule: fewer latents in use than there are factors. ``planes`` has one row a pair of
    factors, with the two latents that tell most about them, and ``polar`` is the largest of their scores.
    """

    name: ClassVar[str] = "alignment"
    n_samples: int = 10_000

    def __call__(self, run: Run) -> Mapping[str, Any]:
        code = encoded(run, self.n_samples)
        if code.factors is None:
            raise ValueError(f"{run.experiment.world.name} has no factors that latents could lie along")
        found = mig(code.mean, code.factors.to(torch.int64))
        names, planes = factor_names(run.data), _planes(code, found)
        n_active = types_of(code, "mean_variance").count("active")
        return {
            "mig": float(found.score),
            "per_factor": dict(zip(names, found.per_factor.tolist())),
            "n_active": n_active,
            "over_pruned": n_active < len(names),
            "polar": max((plane["score"] for plane in planes), default=None),
            "planes": [plane | {"factors": [names[one] for one in plane["factors"]]} for plane in planes],
        }


def _planes(code: Encoded, found: Mig) -> list[dict[str, Any]]:
    """For every two factors the plane of the two latents that tell most about them, and how it holds them."""
    assert code.factors is not None
    rows = []
    for pair in itertools.combinations(range(code.factors.shape[1]), 2):
        told = (found.mutual / found.denominator.clamp(min=1e-300))[:, list(pair)].sum(1)
        if len(told) < 2:
            continue
        latents = sorted(told.topk(2).indices.tolist())
        held = polar_or_cartesian(code.mean[:, latents], code.factors[:, list(pair)].to(torch.int64))
        shown = {"score": held.score, "polar": held.polar, "cartesian": held.cartesian, "rotation": held.rotation}
        rows.append({"factors": list(pair), "latents": latents} | shown)
    return rows
