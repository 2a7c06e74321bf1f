"""Entropies and mutual information in nats, of codes in bins and of factors, by counting.

The plug-in estimates are biased upwards: by about (bins − 1)(values − 1) / 2N for two independent variables.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

from unweave.metrics.estimators.arrays import as_codes, as_codes_and_factors
from unweave.metrics.estimators.bins import discretise
from unweave.shapes import Bool, Float, Int, Tensor

LIMIT = 2**22
"""Entries of the largest table built at once (32 MiB each): what bounds memory however many samples and latents."""


@dataclass(frozen=True)
class Information:
    """What binned codes tell about factors, in nats."""

    mutual: Float[Tensor, "*model latent factor"]
    joint_entropy: Float[Tensor, "*model latent factor"]
    code_entropy: Float[Tensor, "*model latent"]
    factor_entropy: Float[Tensor, " factor"]
    factor_counts: Float[Tensor, "factor value"]
    """How often every value of every factor occurs; rows are filled up with zeros."""
    n_bins: int

    @property
    def varies(self) -> Bool[Tensor, "*model latent"]:
        """Latents that are not constant: their smallest and largest value lie in the first and the last bin."""
        return self.code_entropy > 0

    @cached_property
    def ceiling(self) -> Float[Tensor, " factor"]:
        """What an ideal code, the factor's own rank, tells once it is in bins: H(v), less beyond n_bins values."""
        return _entropy_of(torch.stack([_merge(counts, self.n_bins) for counts in self.factor_counts]))


def information(codes: Any, factors: Any, n_bins: int = 20) -> Information:
    """Mutual information, joint and single entropies of every code with every factor."""
    table, truth = as_codes_and_factors(codes, factors, batched=True)
    bins = discretise(table, n_bins)
    left = _rows(bins)
    right = _rows(truth.values)
    shape = (*table.shape[:-2], table.shape[-1])
    mutual = _pairwise(left, right, n_bins, max(truth.sizes)).reshape(*shape, len(truth.sizes))
    code_entropy = _entropy_of(_counts(left, n_bins)).reshape(shape)
    counts = _counts(right, max(truth.sizes))
    factor_entropy = _entropy_of(counts)
    # H(z, v) = H(z) + H(v) − I(z; v)
    joint = code_entropy[..., None] + factor_entropy - mutual
    return Information(mutual, joint, code_entropy, factor_entropy, counts, n_bins)


def informed(codes: Any, factors: Any, n_bins: int) -> Information:
    """The counts a metric starts from: computed here, or handed in so that several metrics share them."""
    if isinstance(codes, Information):
        return codes
    if factors is None:
        raise ValueError("factors must be given beside codes; only a ready Information stands alone")
    return information(codes, factors, n_bins)


def code_information(codes: Any, n_bins: int = 20) -> Float[Tensor, "*model latent latent"]:
    """Mutual information of every code with every code of the same model; the diagonal holds the entropies."""
    table = as_codes(codes, batched=True)
    models = discretise(table, n_bins).reshape(-1, *table.shape[-2:])
    each = [_pairwise(_rows(bins), _rows(bins), n_bins, n_bins) for bins in models]
    return torch.stack(each).reshape(*table.shape[:-2], table.shape[-1], table.shape[-1])


def mutual_information(
    left: Int[Tensor, "sample left"], right: Int[Tensor, "sample right"]
) -> Float[Tensor, "left right"]:
    """Mutual information of every column of one table of labels (0, 1, 2 …) with every column of another."""
    return _pairwise(_rows(left), _rows(right), int(left.max()) + 1, int(right.max()) + 1)


def entropy(labels: Int[Tensor, "sample column"]) -> Float[Tensor, " column"]:
    """Entropy of every column of labels (0, 1, 2 …)."""
    return _entropy_of(_counts(_rows(labels), int(labels.max()) + 1))


def _rows(table: Int[Tensor, "*model sample column"]) -> Int[Tensor, "row sample"]:
    # models lie side by side: the factors are the same for all, so a fleet is one wide representation
    return table.transpose(-1, -2).reshape(-1, table.shape[-2])


def _pairwise(
    left: Int[Tensor, "left sample"], right: Int[Tensor, "right sample"], n_left: int, n_right: int
) -> Float[Tensor, "left right"]:
    mutual = torch.empty(len(left), len(right), dtype=torch.float64, device=left.device)
    for columns in _blocks(len(right), LIMIT // (n_left * n_right)):
        width = columns.stop - columns.start
        for rows in _blocks(len(left), LIMIT // (n_left * n_right * width)):
            counts = _contingency(left[rows], right[columns], n_left, n_right)
            mutual[rows, columns] = _mutual(counts, left.shape[1])
    return mutual


def _contingency(
    left: Int[Tensor, "left sample"], right: Int[Tensor, "right sample"], n_left: int, n_right: int
) -> Float[Tensor, "left right n_left n_right"]:
    """How often every pair of labels occurs together, for all pairs of columns by one bincount."""
    shape = (len(left), len(right), n_left, n_right)
    n_cells, n_pairs = n_left * n_right, len(left) * len(right)
    # the cell of a pair is a sum of one part from each side, so that only their outer sum is as long as all pairs;
    # no table has more than LIMIT cells or one pair's, and half the width is half the time
    narrow = torch.int32 if n_pairs * n_cells < 2**31 else torch.int64
    left = (left * n_right + torch.arange(len(left), device=left.device)[:, None] * (len(right) * n_cells)).to(narrow)
    right = (right + torch.arange(len(right), device=left.device)[:, None] * n_cells).to(narrow)
    counts = torch.zeros(n_pairs * n_cells, dtype=torch.int64, device=left.device)
    for some in _blocks(left.shape[1], LIMIT // n_pairs):
        cell = left[:, None, some] + right[None, :, some]
        counts += torch.bincount(cell.flatten(), minlength=len(counts))
    return counts.view(shape).to(torch.float64)


def _mutual(counts: Float[Tensor, "left right n_left n_right"], n_samples: int) -> Float[Tensor, "left right"]:
    both = counts.sum(-1, keepdim=True) * counts.sum(-2, keepdim=True)
    # I = Σ n_ij/N log(n_ij N / n_i n_j): products of whole numbers, so independence gives 0 and not 1e-17
    ratio = (counts * n_samples).div_(both.clamp_(min=1.0))
    return (torch.xlogy(counts, ratio).sum((-1, -2)) / n_samples).clamp_(min=0.0)


def _merge(counts: Float[Tensor, " value"], n_bins: int) -> Float[Tensor, " n_bins"]:
    ranks = torch.arange(int((counts > 0).sum()), dtype=torch.float64, device=counts.device)
    bins = discretise(ranks[:, None], n_bins)[:, 0]
    return torch.zeros(n_bins, dtype=torch.float64, device=counts.device).index_add_(0, bins, counts[: len(ranks)])


def _counts(labels: Int[Tensor, "column sample"], n_labels: int) -> Float[Tensor, "column n_labels"]:
    column = torch.arange(len(labels), device=labels.device)[:, None] * n_labels
    counts = torch.bincount((labels + column).flatten(), minlength=len(labels) * n_labels)
    return counts.view(len(labels), n_labels).to(torch.float64)


def _entropy_of(counts: Float[Tensor, "column label"]) -> Float[Tensor, " column"]:
    n_samples = counts.sum(-1)
    # H = Σ n_i/N log(N / n_i)
    return torch.xlogy(counts, n_samples[:, None] / counts.clamp(min=1.0)).sum(-1) / n_samples


def _blocks(length: int, size: int) -> Iterator[slice]:
    size = max(1, size)
    return (slice(start, min(start + size, length)) for start in range(0, length, size))
