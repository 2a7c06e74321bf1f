"""Total correlation, mutual information and effective rank with and without passive latents (Bonheme, 2023, §6.4)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from unweave.metrics.estimators.arrays import as_codes, check_lengths
from unweave.metrics.polarised.types import Type
from unweave.metrics.unsupervised.averaged_mi import averaged_mi
from unweave.metrics.unsupervised.effective_rank import effective_rank
from unweave.metrics.unsupervised.total_correlation import total_correlation
from unweave.shapes import Tensor

Subset = Literal["all", "without passive", "active", "mixed", "passive"]
SUBSETS: dict[Subset, tuple[Type, ...]] = {
    "all": ("active", "mixed", "passive"),
    "without passive": ("active", "mixed"),
    "active": ("active",),
    "mixed": ("mixed",),
    "passive": ("passive",),
}


@dataclass(frozen=True)
class Dependence:
    """How much the latents of one subset of one representation share. All three are None for an empty subset.

    ``total_correlation`` is infinite for a singular covariance; ``pseudo`` leaves out its empty directions.
    """

    representation: Literal["mean", "sampled"]
    subset: Subset
    n_latents: int
    total_correlation: float | None
    pseudo: float | None
    averaged_mi: float | None
    effective_rank: float | None


def by_type(mean: Any, sampled: Any, types: Sequence[Type], *, n_bins: int = 20) -> tuple[Dependence, ...]:
    """One row for each representation and each subset of the latents: all, without passive, and every type alone.

    Passive latents add nothing in the sampled codes, being independent noise, and much in the mean codes, where
    nothing keeps their tiny values from following the others. The effective rank of a single type is only
    relative to that type; the thesis does not use it.
    """
    tables: dict[Literal["mean", "sampled"], Tensor] = {
        "mean": as_codes(mean, "mean"),
        "sampled": as_codes(sampled, "sampled"),
    }
    check_lengths(tables["mean"], tables["sampled"], ("mean", "sampled"))
    for name, table in tables.items():
        if table.shape[1] != len(types):
            raise ValueError(f"types must name each of the {table.shape[1]} latents of {name}, given {len(types)}")
    return tuple(
        _dependence(table, name, subset, [place for place, kind in enumerate(types) if kind in kinds], n_bins)
        for name, table in tables.items()
        for subset, kinds in SUBSETS.items()
    )


def _dependence(
    codes: Tensor, name: Literal["mean", "sampled"], subset: Subset, latents: list[int], n_bins: int
) -> Dependence:
    if not latents:
        return Dependence(name, subset, 0, None, None, None, None)
    chosen = codes[:, latents]
    together = total_correlation(chosen)
    mutual, rank = averaged_mi(chosen, n_bins=n_bins), effective_rank(chosen)
    return Dependence(
        name,
        subset,
        len(latents),
        float(together.score),
        float(together.pseudo),
        float(mutual.score),
        float(rank.score),
    )
