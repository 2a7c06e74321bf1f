"""Two runs side by side: their layers by CKA and Procrustes, and which latent of one is which of the other."""

from dataclasses import dataclass

import torch

from unweave import rng
from unweave.evaluation.activations import activations
from unweave.evaluation.learnt_same import learnt_two
from unweave.evaluation.similarity import Matched, check_one_world, compact
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
    check_one_world(left.run, right.run)
    rows = left.with_data().rows(N_EXAMPLES)
    images = left.with_data().data.examples(rows)
    first, second = (look(opened, images, opened.with_data().labels(rows=rows)) for opened in (left, right))
    matched = matching(first.mean, second.mean, left_active=first.used, right_active=second.used)
    pairs = [(i, int(partner)) for i, partner in enumerate(matched.partner) if partner >= 0]
    cka = cka_matrix(first.layers, second.layers).scores
    procrustes = procrustes_matrix(first.layers, second.layers).scores
    means = first.names.index("mean"), second.names.index("mean")
    both = Matched(
        left.name,
        right.name,
        matched,
        left.checksum == right.checksum,
        (int(first.used.sum()), int(second.used.sum())),
        min(float(cka[means]), float(procrustes[means])),
    )
    return CompareAnswer(
        left=left.name,
        right=right.name,
        rows=list(first.names),
        columns=list(second.names),
        splits=[first.n_encoder, second.n_encoder],
        cka=matrix(cka),
        procrustes=matrix(procrustes),
        matches=[MatchAnswer(left=i, right=j, correlation=float(matched.correlation[i])) for i, j in pairs],
        score=matched.score if pairs else None,
        left_types=first.types,
        right_types=second.types,
        correlation=matrix(matched.matrix),
        n_examples=len(images),
        identical=both.identical,
        answer=learnt_two(both).sentence,
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
