"""Layer-by-layer similarity of runs, seeds and snapshots (Kornblith et al., 2019; Bonheme, 2023, ch. 7)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from unweave.config import fingerprint, to_plain
from unweave.data.world import called
from unweave.evaluation.activations import Activations, activations, own_noise
from unweave.metrics.similarity.cka import cka_matrix
from unweave.metrics.similarity.layers import centred
from unweave.metrics.similarity.matching import Matching, matching
from unweave.metrics.similarity.over_seeds import OverSeeds, over_seeds
from unweave.metrics.similarity.permutation import cka_test
from unweave.metrics.similarity.procrustes import procrustes_matrix
from unweave.metrics.similarity.svcca import svcca_matrix
from unweave.shapes import Bool, Float, Tensor
from unweave.training.experiment import Plan, resume_words
from unweave.training.run import Run
from unweave.words import number_of

N_TEST = 200
"""Examples behind the p-values: every shuffle goes through the Gram matrices of all layers."""

DROPPED = 1e-10
"""Share of a layer's variance that may be left out: similarities then change by 1e-5 at most."""


@dataclass(frozen=True)
class Member:
    """One trained model: a run at its end, or one of its snapshots. ``group`` is the same for all its seeds."""

    name: str
    group: str
    run: Run
    weights: str
    step: int


@dataclass(frozen=True)
class LayerComparison:
    """All layers of one group of models (rows) against all of another (columns), averaged over their seeds.

    ``p_values`` are of the first pair: the share of shuffles of the examples that look as similar.
    """

    left: str
    right: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    splits: tuple[int, int]
    n_pairs: int
    cka: Float[Tensor, "left right"]
    procrustes: Float[Tensor, "left right"]
    svcca: Float[Tensor, "left right"]
    averaged: OverSeeds
    p_values: Float[Tensor, "left right"]
    saturated: Bool[Tensor, "left right"]
    n_samples: int
    estimator: str


@dataclass(frozen=True)
class Matched:
    """The latents in use of two models, matched one to one."""

    left: str
    right: str
    matching: Matching
    identical: bool
    n_used: tuple[int, int] = (0, 0)
    """Latents that the left and the right model use."""
    alike: float = 0.0
    """The smaller of CKA and Procrustes between their mean codes."""

    @property
    def names(self) -> tuple[str, str]:
        return self.left, self.right


@dataclass(frozen=True)
class Similarity:
    """Every comparison of groups, and the matched latents of every two models at the end of their training."""

    members: tuple[str, ...]
    comparisons: tuple[LayerComparison, ...]
    matched: tuple[Matched, ...]
    n_examples: int

    def __repr__(self) -> str:
        """Whether they learnt the same, in one sentence."""
        from unweave.evaluation.learnt_same import learnt_same

        answer = learnt_same(self)
        return f"one run, {number_of(len(self.comparisons), 'comparison')}" if answer is None else answer.sentence


@dataclass(frozen=True)
class _Seen:
    """A member with its activations, every layer in its principal directions."""

    member: Member
    layers: Activations
    mean: Float[Tensor, "sample latent"]
    used: Bool[Tensor, " latent"]


def compare_runs(
    runs: Sequence[Run],
    *,
    n: int = 1000,
    seed: int = 0,
    snapshots: bool = False,
    estimator: str = "unbiased",
    n_permutations: int = 99,
    watch: Callable[[int, int, str], None] | None = None,
) -> Similarity:
    """Compare the layers of runs on the same ``n`` examples of their world.

    Runs that differ in nothing but their seed form a group. Every two groups are compared, over all pairs of their
    seeds; a group of several seeds with itself, over all pairs of different seeds; a single run with itself. With
    ``snapshots``, or for a single run that has some, each snapshot is compared with the end of its training.
    """
    if not runs:
        raise ValueError("give at least one run to compare")
    if n < 4:
        raise ValueError(f"a comparison needs at least 4 examples, not {n}; several times the latents is better")
    _check_worlds(runs)
    members = _members(runs, snapshots or len(runs) == 1)
    rows = runs[0].rows(n, seed)
    images = runs[0].data.examples(rows, seed=seed)
    seen = []
    for place, member in enumerate(members):
        if watch is not None:
            watch(place, len(members), member.name)
        seen.append(_look(member, images, member.run.labels(rows=rows), seed))
    pairs = _pairs(seen, single=len(runs) == 1)
    comparisons = []
    for place, (left, right) in enumerate(pairs):
        if watch is not None:
            watch(place, len(pairs), f"{left[0].member.group} and {right[0].member.group}")
        comparisons.append(_compare(left, right, estimator, n_permutations, seed))
    return Similarity(tuple(m.name for m in members), tuple(comparisons), tuple(_match(seen, estimator)), len(images))


def _check_worlds(runs: Sequence[Run]) -> None:
    for run in runs:
        run.require_codes()
        if run.state != "done":
            raise ValueError(f"{run.path} is {run.state}; finish it with: {resume_words(run.path, run.experiment)}")
    for other in runs[1:]:
        check_one_world(runs[0], other)


def check_one_world(first: Run, other: Run) -> None:
    """Two runs must have learned from the same examples, wherever the files of these lie."""
    worlds = first.experiment.world, other.experiment.world
    if _examples(to_plain(worlds[0], identity=True)) == _examples(to_plain(worlds[1], identity=True)):
        return
    names = [called(world) for world in worlds]
    what = f"{names[0]} and {names[1]}" if names[0] != names[1] else f"{names[0]} with different options or contents"
    raise ValueError(
        f"{first.path.name} and {other.path.name} learned {what}: models are compared on the same examples, so choose"
        " two runs of one world"
    )


def _examples(plain: Any) -> Any:
    """A world without the path of files that are known by their contents, also where another world is made of it."""
    if not isinstance(plain, dict):
        return plain
    return {name: _examples(value) for name, value in plain.items() if name != "path" or not plain.get("digest")}


def _members(runs: Sequence[Run], snapshots: bool) -> list[Member]:
    groups: dict[str, str] = {}
    members = []
    for place, run in enumerate(runs):
        same = fingerprint(replace(run.experiment, seed=0, plan=Plan(), snapshots=()))
        group = groups.setdefault(same, _title(run, len(groups)))
        name = f"{place + 1}: {run.path.name}"
        if snapshots:
            for step, weights in sorted(run.snapshots.items()):
                if step != run.experiment.n_updates:
                    members.append(Member(f"{name} @ {step}", f"{group} @ {step}", run, weights, step))
        members.append(Member(name, group, run, "model.safetensors", run.experiment.n_updates))
    return members


def _title(run: Run, place: int) -> str:
    """A, B, C … and what the runs of a group have in common."""
    letter = chr(ord("A") + place) if place < 26 else f"group {place + 1}"
    settings = {name: value for name, value in to_plain(run.experiment.objective).items() if name != "name"}
    words = ", ".join(f"{name} {value}" for name, value in settings.items())
    return f"{letter}: {run.experiment.objective.name}" + (f" ({words})" if words else "")


@torch.no_grad()
def _look(member: Member, images: Tensor, labels: Tensor | None, seed: int) -> _Seen:
    model = member.run.load_weights(member.weights)
    found = activations(model, images, labels, seed=own_noise(member.run, member.weights, seed))
    layers = tuple(compact(layer) for layer in found.layers)
    used = torch.tensor([kind != "passive" for kind in found.types()])
    return _Seen(member, Activations(found.names, layers, found.n_encoder), found["mean"].double(), used)


def compact(layer: Float[Tensor, "sample feature"]) -> Float[Tensor, "sample direction"]:
    """A layer in its principal directions, without those that together hold less than DROPPED of its variance.

    A rotation of the features changes none of the three measures. What is dropped has a Frobenius norm of at most
    √DROPPED, so a nuclear norm, and with it Procrustes, moves by no more than that: |‖Yᵀ(X − X′)‖_*| ≤ ‖Y‖‖X − X′‖.
    """
    table = centred(layer.double())
    wide = table.shape[1] > len(table)
    values, vectors = torch.linalg.eigh(table @ table.T if wide else table.T @ table)
    values, vectors = values.clamp(min=0.0).flip(0), vectors.flip(1)
    left = values.sum() - values.cumsum(0)
    kept = 1 + int((left > DROPPED * values.sum()).sum())
    return vectors[:, :kept] * values[:kept].sqrt() if wide else table @ vectors[:, :kept]


def _pairs(seen: list[_Seen], *, single: bool) -> list[tuple[list[_Seen], list[_Seen]]]:
    groups: dict[str, list[_Seen]] = {}
    for one in seen:
        groups.setdefault(one.member.group, []).append(one)
    ends = [group for name, group in groups.items() if "@" not in name]
    pairs = [(left, right) for place, left in enumerate(ends) for right in ends[place + 1 :]]
    pairs += [(group, group) for group in ends if len(group) > 1 or single]
    by_name = {group[0].member.group: group for group in ends}
    return pairs + [(group, by_name[name.split(" @ ")[0]]) for name, group in groups.items() if "@" in name]


def _compare(left: list[_Seen], right: list[_Seen], estimator: str, n_permutations: int, seed: int) -> LayerComparison:
    pairs = [(a, b) for a in left for b in right if left is not right or a is not b] or [(left[0], right[0])]
    scores = [_measure(a.layers.layers, b.layers.layers, estimator) for a, b in pairs]
    cka, procrustes, svcca = (torch.stack([score[place] for score in scores]) for place in range(3))
    first, second = pairs[0][0].layers, pairs[0][1].layers
    tested = cka_test(first.layers, second.layers, n_permutations=n_permutations, n_samples=N_TEST, seed=seed)
    averaged = over_seeds(cka[None], procrustes[None])
    return LayerComparison(
        left[0].member.group,
        right[0].member.group,
        first.names,
        second.names,
        (first.n_encoder, second.n_encoder),
        len(pairs),
        averaged.cka,
        procrustes.mean(0),
        svcca.mean(0),
        averaged,
        tested.p_values,
        torch.stack([score[3] for score in scores]).any(0),
        len(first.layers[0]),
        estimator,
    )


def _measure(
    left: tuple[Tensor, ...], right: tuple[Tensor, ...], estimator: str
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    canonical = svcca_matrix(left, right)
    cka = cka_matrix(left, right, estimator=estimator).scores
    return cka, procrustes_matrix(left, right).scores, canonical.scores, canonical.saturated


def _match(seen: list[_Seen], estimator: str) -> list[Matched]:
    ends = [one for one in seen if "@" not in one.member.group]
    return [
        Matched(
            a.member.name,
            b.member.name,
            matching(a.mean, b.mean, left_active=a.used, right_active=b.used),
            _identical(a.member, b.member),
            (int(a.used.sum()), int(b.used.sum())),
            _alike(a.layers["mean"], b.layers["mean"], estimator),
        )
        for place, a in enumerate(ends)
        for b in ends[place + 1 :]
    ]


def _alike(left: Tensor, right: Tensor, estimator: str) -> float:
    cka, procrustes, _, _ = _measure((left,), (right,), estimator)
    return min(float(cka), float(procrustes))


def _identical(left: Member, right: Member) -> bool:
    return left.run.files.sums()[left.weights] == right.run.files.sums()[right.weights]
