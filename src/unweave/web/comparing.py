"""Two runs side by side: their layers by CKA and Procrustes, and which latent of one is which of the other."""

from dataclasses import dataclass

import torch

from unweave import rng
from unweave.config import to_plain
from unweave.evaluation.activations import activations
from unweave.evaluation.similarity import compact
from unweave.metrics.polarised.types import Type
from unweave.metrics.similarity.cka import cka_matrix
from unweave.metrics.similarity.matching import matching
from unweave.metrics.similarity.procrustes import procrustes_matrix
from unweave.shapes import Bool, Float, Tensor
from unweave.web.numbers import matrix
from unweave.web.open_runs import OpenRun
from unweave.web.schema import CompareAnswer, MatchAnswer

N_EXAMPLES = 300
"""Fewer than `unweave compare` takes: someone is waiting, and the nuclear norms of all pairs of layers cost most."""


@dataclass(frozen=True)
class Seen:
    """A model's answers to the common examples: its layers in their principal directions, its mean codes."""

    names: tuple[str, ...]
    layers: tuple[Float[Tensor, "sample _"], ...]
    n_encoder: int
    mean: Float[Tensor, "sample latent"]
    types: list[Type]

    @property
    def used(self) -> Bool[Tensor, " latent"]:
        return torch.tensor([kind != "passive" for kind in self.types])


def compare_answer(left: OpenRun, right: OpenRun) -> CompareAnswer:
    """Compare two runs of one world on the same examples."""
    _check_worlds(left, right)
    rows = left.with_data().rows(N_EXAMPLES)
    images = left.with_data().data.examples(rows)
    first, second = (look(opened, images, opened.with_data().labels(rows=rows)) for opened in (left, right))
    matched = matching(first.mean, second.mean, left_active=first.used, right_active=second.used)
    pairs = [(i, int(partner)) for i, partner in enumerate(matched.partner) if partner >= 0]
    return CompareAnswer(
        left=left.name,
        right=right.name,
        rows=list(first.names),
        columns=list(second.names),
        splits=[first.n_encoder, second.n_encoder],
        cka=matrix(cka_matrix(first.layers, second.layers).scores),
        procrustes=matrix(procrustes_matrix(first.layers, second.layers).scores),
        matches=[MatchAnswer(left=i, right=j, correlation=float(matched.correlation[i])) for i, j in pairs],
        score=matched.score if pairs else None,
        left_types=first.types,
        right_types=second.types,
        correlation=matrix(matched.matrix),
        n_examples=len(images),
        identical=left.checksum == right.checksum,
    )


def look(
    opened: OpenRun, images: Float[Tensor, "sample ..."], labels: Float[Tensor, "sample label"] | None = None
) -> Seen:
    """What every layer of a run's model answers to some images."""
    # noise of its own for every model, or codes that are mostly noise would look alike; equal weights draw equal noise
    own = rng.derive(0, rng.Purpose.RESAMPLE, int(opened.checksum[:10], 16))
    found = activations(opened.model, images, labels, seed=own)
    layers = tuple(compact(layer) for layer in found.layers)
    return Seen(found.names, layers, found.n_encoder, found["mean"].double(), found.types())


def _check_worlds(left: OpenRun, right: OpenRun) -> None:
    worlds = [opened.run.experiment.world for opened in (left, right)]
    if to_plain(worlds[0]) != to_plain(worlds[1]):
        raise ValueError(
            f"one run learned {worlds[0].name} and the other {worlds[1].name}, or with other options: models are"
            " compared on the same examples, so choose two runs of one world"
        )
