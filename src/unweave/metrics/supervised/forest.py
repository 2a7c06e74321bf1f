"""Regression trees of one depth, grown side by side: one on every column of residuals, over codes in bins.

A level's histograms are sums of rows over samples sorted by bin, for all trees in one pass. Only what goes right is
summed: the rest of its parent is on the left. Numbers that are summed lie sample × tree, so that a sample is one
stride. Which samples go right at a split is a row of bits, written down once for every threshold of every latent.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch

from unweave.shapes import Float, Int, UInt8

DEPTH = 3
N_TOGETHER = 64
"""Trees grown at a time: as many as keep the rows that are summed in the cache."""
N_COLUMNS = 32
"""Up to so many columns a sum costs the same, so narrow tables are summed together."""
PACKED = 4096
"""Two counts below it fit into one number of single precision."""


class Splits(NamedTuple):
    """The best split of every node of a level in every tree."""

    latent: Int[np.ndarray, "node tree"]
    threshold: Int[np.ndarray, "node tree"]
    """Bins above it go right."""
    gain: Float[np.ndarray, "node tree"]
    sums: Float[np.ndarray, "side node tree"]
    """Residuals on the left and on the right."""


Bits = UInt8[np.ndarray, "tree eighth"]
"""A yes or no of every sample, eight in a byte."""


class Thresholds:
    """Which samples lie above every bin of every latent, as bits; so samples go down a tree eight at a time."""

    def __init__(self, binned: Int[np.ndarray, "latent sample"], n_bins: int) -> None:
        self.n_bins, self.n_samples = n_bins, binned.shape[1]
        every = np.arange(n_bins, dtype=binned.dtype)[:, None]
        self.above = np.concatenate([np.packbits(row > every, axis=1, bitorder="little") for row in binned])

    def turns(self, splits: Splits, before: Sequence[Bits]) -> Bits:
        """Who goes right at the next level, given who went right at those before."""
        right = self.above[splits.latent * self.n_bins + splits.threshold]
        # of two nodes side by side, the turn before says in which of them a sample stands
        for turn in reversed(before):
            right = (right[0::2] & ~turn) | (right[1::2] & turn)
        return right[0]

    def leaf(self, turns: Sequence[Bits]) -> UInt8[np.ndarray, "sample tree"]:
        """The number of every sample's node: left is 0 and right is 1, the first turn foremost."""
        node = self._unpacked(turns[0])
        for turn in turns[1:]:
            node = (node << 1) | self._unpacked(turn)
        return node.T.copy()

    def descend(self, levels: Sequence[Splits]) -> UInt8[np.ndarray, "sample tree"]:
        """Each sample's leaf."""
        turns: list[Bits] = []
        for splits in levels:
            turns.append(self.turns(splits, turns))
        return self.leaf(turns)

    def _unpacked(self, bits: Bits) -> UInt8[np.ndarray, "tree sample"]:
        return np.unpackbits(bits, axis=1, count=self.n_samples, bitorder="little")


class Forest:
    """Codes in bins, sorted once for any number of trees."""

    def __init__(self, binned: Int[np.ndarray, "latent sample"], n_bins: int) -> None:
        self.binned, self.n_bins, self.n_latents = binned, n_bins, len(binned)
        self.thresholds = Thresholds(binned, n_bins)
        counts = np.stack([np.bincount(row, minlength=n_bins) for row in binned])
        self.few = bool(counts.max() < PACKED)
        self.counts = counts.cumsum(1)[None, :, :, None].astype(np.float32)
        self.starts = torch.from_numpy(counts.cumsum() - counts.flatten())
        self.rows = torch.from_numpy(binned.argsort(axis=1, kind="stable").flatten())

    def grow(
        self, residual: Float[np.ndarray, "sample tree"], order: Int[np.ndarray, " latent"]
    ) -> tuple[list[Splits], UInt8[np.ndarray, "sample tree"]]:
        """The splits of every level, and each sample's leaf. Of equal splits the first latent in ``order`` wins."""
        sums, counts = _upto(self._sum([residual])), self.counts
        levels: list[Splits] = []
        turns: list[Bits] = []
        for level in range(DEPTH):
            levels.append(_best_splits(sums, counts, order))
            turns.append(self.thresholds.turns(levels[-1], turns))
            if level + 1 < DEPTH:
                node = self.thresholds.leaf(turns)
                right = [node == 2 * parent + 1 for parent in range(2**level)]
                part, n_part = self._sum_and_count(residual, right)
                sums, counts = _children(sums, part), _children(counts, n_part)
        return levels, self.thresholds.leaf(turns)

    def _sum_and_count(
        self, residual: Float[np.ndarray, "sample tree"], masks: list[np.ndarray]
    ) -> tuple[Float[np.ndarray, "node latent bin tree"], Float[np.ndarray, "node latent bin tree"]]:
        """Residuals and samples of every bin under every mask."""
        n = len(masks)
        kept = [residual * mask for mask in masks]
        if n == 1 or not self.few:
            found = self._sum([*kept, *(mask.astype(np.float32) for mask in masks)])
            return found[:n], found[n:]
        # two masks in one table, so that one sum counts both
        both = [np.float32(PACKED) * high + low for low, high in zip(masks[::2], masks[1::2])]
        found = self._sum([*kept, *both])
        high = np.floor(found[n:] / PACKED)
        counted = np.stack([found[n:] - PACKED * high, high], axis=1)
        return found[:n], counted.reshape(n, *found.shape[1:])

    def _sum(self, tables: list[Float[np.ndarray, "sample tree"]]) -> Float[np.ndarray, "table latent bin tree"]:
        """Of every table the sums over the samples of every bin of every latent."""
        n_tables, n_trees = len(tables), tables[0].shape[1]
        if n_tables > 1 and n_tables * n_trees <= N_COLUMNS:
            wide = self._bags(np.concatenate(tables, axis=1)).reshape(-1, n_tables, n_trees).swapaxes(0, 1)
        else:
            wide = np.stack([self._bags(table) for table in tables])
        return wide.reshape(n_tables, self.n_latents, self.n_bins, n_trees)

    def _bags(self, table: Float[np.ndarray, "sample column"]) -> Float[np.ndarray, "bag column"]:
        return torch.embedding_bag(torch.from_numpy(table), self.rows, self.starts)[0].numpy()


def _best_splits(
    sums: Float[np.ndarray, "node latent bin tree"],
    counts: Float[np.ndarray, "node latent bin #tree"],
    order: Int[np.ndarray, " latent"],
) -> Splits:
    # node by node, so that what a node needs stays in the cache
    each = zip(*(_best_split(*node, order) for node in zip(sums, counts)))
    latent, threshold, gain, left, right = (np.stack(part) for part in each)
    return Splits(latent, threshold, gain, np.stack([left, right]))


def _best_split(
    sums: Float[np.ndarray, "latent bin tree"],
    counts: Float[np.ndarray, "latent bin #tree"],
    order: Int[np.ndarray, " latent"],
) -> tuple[np.ndarray, ...]:
    """From the sums and counts up to every bin. Where no split gains anything, all samples stay together."""
    total, n_total = sums[0, -1], counts[0, -1]
    # variance reduction = L²/n_L + R²/n_R − (L + R)²/n
    gain = np.square(sums)
    gain /= np.maximum(counts, 1)
    other = total - sums
    np.square(other, out=other)
    other /= np.maximum(n_total - counts, 1)
    gain += other
    best = torch.from_numpy(gain).amax(1).numpy()
    latent, tree = order[best[order].argmax(0)], np.arange(len(total))
    threshold = gain[latent, :, tree].argmax(1)
    left = sums[latent, threshold, tree]
    gained = best[latent, tree] - np.square(total) / np.maximum(n_total, 1)
    return latent, threshold, np.maximum(gained, 0), left, total - left


def _children(
    both: Float[np.ndarray, "node latent bin #tree"], right: Float[np.ndarray, "node latent bin tree"]
) -> Float[np.ndarray, "child latent bin tree"]:
    """Sums up to every bin in the nodes below, left and right in turn; what is not on the right is on the left."""
    right = _upto(right)
    below = np.empty((len(right), 2, *right.shape[1:]), np.float32)
    np.subtract(both, right, out=below[:, 0])
    below[:, 1] = right
    return below.reshape(-1, *right.shape[1:])


def _upto(sums: Float[np.ndarray, "node latent bin tree"]) -> Float[np.ndarray, "node latent bin tree"]:
    return torch.from_numpy(sums).cumsum(2).numpy()
