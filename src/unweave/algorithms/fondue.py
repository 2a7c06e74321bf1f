"""FONDUE and its kin: how many latents a model can put to use (Bonheme, 2023, chapter 8 and appendix D).

A model is trained briefly for each number of latents that is tried. Once there are more latents than it has use for,
the spare ones turn passive, and mean and sampled codes part: in the traces of their covariances (FONDUE, BS_FONDUE)
and in their intrinsic dimensions (FONDUE_IDE). FONDUE_IB and IB (Boquet et al., 2021) compare the entropy of the code
with the information between images and reconstructions. Both are as the source has them; what version 0.1.0 had in
their place is kept by other names.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from unweave.algorithms.search import Found, bisection, doubling
from unweave.config import unknown
from unweave.metrics.dimension.mle import NEIGHBOURS, mle
from unweave.metrics.entropy.renyi import renyi, renyi_entropy
from unweave.metrics.polarised.traces import traces
from unweave.shapes import Float, Tensor

IB_BATCH, IB_SMALL_BATCH = 1000, 100
"""Examples of one kernel matrix: in the author's configuration, and in version 0.1.0."""

IDE_NEIGHBOURS = 20
"""As in the source, which calls stability more important than a dimension that is not too large."""

ROUNDING = 1e-9
"""Averages of values with two decimals miss their threshold by less than this."""


@dataclass(frozen=True)
class Reading:
    """What a criterion found for one model: it passes when first − second ≤ threshold."""

    first: float
    second: float

    @property
    def difference(self) -> float:
        return self.first - self.second


Batch = tuple[Float[Tensor, "batch latent"], Tensor, Tensor]
"""Sampled codes of a few examples, their images, and the reconstructions from those codes."""


@dataclass(frozen=True)
class Evidence:
    """Codes of a trained model over examples; ``batches``, of a size, is called where a criterion asks for images."""

    mean: Float[Tensor, "sample latent"]
    variance: Float[Tensor, "sample latent"]
    sampled: Float[Tensor, "sample latent"]
    batches: Callable[[int], Iterable[Batch]] = lambda size: ()


@dataclass(frozen=True)
class Criterion:
    """A difference that stays at or below its threshold up to the right number of latents and exceeds it after."""

    read: Callable[[Evidence], Reading]
    threshold: float
    first: str
    second: str


@dataclass(frozen=True)
class Method:
    """A published algorithm: which difference, and how numbers are tried."""

    criterion: str
    search: Literal["doubling", "bisection"]
    title: str


@dataclass(frozen=True)
class Fondue:
    """The number of latents, the way to it, and the reading of every model on the way."""

    n: int
    method: str
    threshold: float
    found: Found
    readings: dict[int, Reading]


def fondue(
    measure: Callable[[int], Reading],
    *,
    method: str = "fondue",
    start: int = 1,
    least: int = 1,
    most: int = 200,
    threshold: float | None = None,
) -> Fondue:
    """The largest n for which the model that ``measure`` trains passes; ``measure`` is asked once for each n.

    ``start`` is for methods that double, ``least`` for those that bisect. For a threshold below 1 the trace allows
    active latents only; from 1 on it allows mixed ones too (Theorem 8.3.3).
    """
    if method not in METHODS:
        raise unknown("method", method, METHODS)
    chosen = METHODS[method]
    limit = CRITERIA[chosen.criterion].threshold if threshold is None else threshold
    readings: dict[int, Reading] = {}

    def passes(n: int) -> bool:
        readings[n] = measure(n)
        if not math.isfinite(readings[n].difference):
            raise ValueError(f"{chosen.title} cannot judge n = {n}: {chosen.criterion} gave {readings[n]}")
        return readings[n].difference <= limit + ROUNDING

    found = doubling(passes, start, most) if chosen.search == "doubling" else bisection(passes, least, most)
    return Fondue(found.n, method, limit, found, readings)


def trace_reading(evidence: Evidence) -> Reading:
    """Tr Var[Z] and Tr Var[M]; the first in expectation over the noise, Var[Z] = Var[M] + E[σ²]."""
    found = traces(evidence.mean, evidence.variance)
    return Reading(found.sampled, found.mean)


def ide_reading(evidence: Evidence) -> Reading:
    """Intrinsic dimension of sampled and of mean codes, by maximum likelihood with 20 neighbours."""
    return _dimensions(evidence, [min(IDE_NEIGHBOURS, len(evidence.mean) - 1)])


def stable_ide_reading(evidence: Evidence) -> Reading:
    """The same, each over the range of neighbours in which it is stable."""
    return _dimensions(evidence, [k for k in NEIGHBOURS if k < len(evidence.mean)])


def ib_reading(evidence: Evidence) -> Reading:
    """H(z) and I(x, x̂) in bits: means over batches of 1,000, truncated to two decimals afterwards as published."""
    entropies, shared = [], []
    for codes, images, rebuilt in evidence.batches(IB_BATCH):
        tables = codes.double(), images.flatten(1).double(), rebuilt.flatten(1).double()
        widths = [_width(table) for table in tables]
        entropies.append(renyi_entropy(tables[0], width=widths[0]))
        shared.append(renyi(tables[1], tables[2], widths=(widths[1], widths[2])).mutual)
    return Reading(_truncated(_mean(entropies)), _truncated(_mean(shared)))


def batchwise_ib_reading(evidence: Evidence) -> Reading:
    """The same with batches of 100, each truncated before the mean is taken, and kernels by the spread of a column."""
    entropies, shared = [], []
    for codes, images, rebuilt in evidence.batches(IB_SMALL_BATCH):
        entropies.append(_truncated(renyi_entropy(codes)))
        shared.append(_truncated(renyi(images.flatten(1), rebuilt.flatten(1)).mutual))
    return Reading(_mean(entropies), _mean(shared))


def _dimensions(evidence: Evidence, neighbours: list[int]) -> Reading:
    return Reading(mle(evidence.sampled, neighbours=neighbours).score, mle(evidence.mean, neighbours=neighbours).score)


def _width(table: Float[Tensor, "sample feature"]) -> float:
    """Silverman's width by the deviation of all entries together: s = σ(X) h^(−1/(4+m)), equation D.5."""
    n_samples, n_columns = table.shape
    return float(table.std(correction=0)) * n_samples ** (-1.0 / (4.0 + n_columns)) or 1.0


def _mean(values: list[float]) -> float:
    if not values:
        raise ValueError("the information criterion needs images and their reconstructions, given none")
    return sum(values) / len(values)


def _truncated(value: float) -> float:
    return math.trunc(value * 100.0) / 100.0


CRITERIA: dict[str, Criterion] = {
    "trace": Criterion(trace_reading, 1.0, "Tr Var[Z]", "Tr Var[M]"),
    "ide_20": Criterion(ide_reading, 1.0, "dimension of Z", "dimension of M"),
    "ib_1000": Criterion(ib_reading, -0.01, "H(z)", "I(x, x̂)"),
    "ide": Criterion(stable_ide_reading, 1.0, "dimension of Z", "dimension of M"),
    "ib": Criterion(batchwise_ib_reading, -0.01, "H(z)", "I(x, x̂)"),
}
"""``ide`` and ``ib`` are those of version 0.1.0, whose readings lie in stores by these names."""

METHODS: dict[str, Method] = {
    "fondue": Method("trace", "doubling", "FONDUE"),
    "fondue_ide": Method("ide_20", "doubling", "FONDUE_IDE"),
    "fondue_ib": Method("ib_1000", "doubling", "FONDUE_IB"),
    "bs_fondue": Method("trace", "bisection", "BS_FONDUE"),
    "ib": Method("ib_1000", "bisection", "IB"),
    "fondue_ide_stable": Method("ide", "doubling", "FONDUE_IDE, stable neighbours"),
    "fondue_ib_100": Method("ib", "doubling", "FONDUE_IB, batches of 100"),
}
