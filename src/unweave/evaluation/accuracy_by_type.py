"""Accuracy of a linear model on each combination of variable types (Bonheme, 2023, §6.4.1 and Figure 6.4)."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

from unweave.metrics.downstream.learning import downstream
from unweave.metrics.estimators.arrays import as_factors
from unweave.metrics.polarised.types import Type
from unweave.shapes import Tensor

ALL: tuple[Type, ...] = ("active", "mixed", "passive")


@dataclass(frozen=True)
class TypeAccuracy:
    """Mean test accuracy over factors from the latents of some types; ``chance`` guesses uniformly."""

    representation: Literal["mean", "sampled"]
    types: tuple[Type, ...]
    n_latents: int
    accuracy: float
    chance: float


def accuracy_by_type(
    mean: Tensor, sampled: Tensor, factors: Any, types: Sequence[Type], *, n_train: int | None = None, seed: int = 0
) -> tuple[TypeAccuracy, ...]:
    """What a cross-validated logistic regression gets out of every combination of types that occur.

    Where types are told apart well, active latents alone nearly reach all of them, and passive ones are at chance in
    the sampled codes; in the mean codes passive ones may know something though their values are tiny. The source uses
    10,000 examples to learn from and 5,000 to test; here two thirds of what is given, unless told.
    """
    present = [kind for kind in ALL if kind in types]
    chosen = [kinds for size in range(1, len(present) + 1) for kinds in combinations(present, size)]
    sizes = as_factors(factors).sizes
    chance = sum(1.0 / size for size in sizes) / len(sizes)
    n_rows = n_train or 2 * len(mean) // 3
    tables: dict[Literal["mean", "sampled"], Tensor] = {"mean": mean, "sampled": sampled}
    found = []
    for name, table in tables.items():
        for kinds in chosen:
            latents = [place for place, kind in enumerate(types) if kind in kinds]
            scored = downstream(table[:, latents], factors, sizes=(n_rows,), seed=seed)
            found.append(TypeAccuracy(name, kinds, len(latents), scored.score, chance))
    return tuple(found)
