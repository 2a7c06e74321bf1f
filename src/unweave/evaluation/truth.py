"""The factors of a table, checked and relabelled once, for every metric and every representation."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from unweave.metrics.estimators.arrays import as_factors, as_numbers, check_count
from unweave.metrics.estimators.bins import discretise
from unweave.shapes import Shaped, Tensor


@dataclass(frozen=True)
class Truth:
    """Factors as numbers. Words are numbered in the order of the alphabet, and have no other order."""

    numbers: Shaped[Tensor, "sample factor"]
    words: bool


def as_truth(factors: Any, n_bins: int | None = None) -> Truth:
    """Integers stay as they are, words become numbers, fractions stay or are put into ``n_bins`` equal bins."""
    if not isinstance(factors, Tensor):
        factors = np.asarray(factors)
        if factors.dtype.kind in "OUS":
            return Truth(as_factors(factors).values, words=True)
    numbers = as_numbers(factors)
    if n_bins is not None:
        check_count(n_bins, "factor_bins", least=2)
        fractional = (numbers != numbers.round()).any(0)
        numbers = torch.where(fractional, discretise(numbers, n_bins).to(numbers.dtype), numbers)
    whole = bool((numbers == numbers.round()).all()) and bool((numbers.abs() < 2**53).all())
    return Truth(numbers.to(torch.int64) if whole else numbers, words=False)
