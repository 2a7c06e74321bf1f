"""One thing that stands out in a model: what it is, what to do about it, and where that is known from."""

from dataclasses import dataclass
from typing import Literal

from unweave.words import number_of

Weight = Literal["problem", "advice", "note"]

NOTABLE, STRONG = 0.2, 0.5
"""Correlations of latents that stand out (Bonheme, 2023, Figure 6.10), and that mean the same thing twice."""

ENOUGH = 1000
"""Examples from which binned mutual information and correlations can be trusted."""


@dataclass(frozen=True)
class Finding:
    """One thing that stands out. ``name`` is for machines; a ``problem`` should be mended before the model is used."""

    name: str
    weight: Weight
    text: str
    advice: str
    reference: str


@dataclass(frozen=True)
class Expected:
    """What the data need: one latent for each factor at least, and ``most`` where rings and categories take several."""

    n_factors: int
    most: int


def named(latents: list[int]) -> str:
    """The words "latent 3", or "latents 3, 5"."""
    return f"latent {latents[0]}" if len(latents) == 1 else f"latents {', '.join(map(str, latents))}"


def counted(count: int, total: int) -> str:
    """The words "1 of 10 latents is", or "3 of 10 latents are"."""
    return f"{count} of {number_of(total, 'latent')} {'is' if count == 1 else 'are'}"
