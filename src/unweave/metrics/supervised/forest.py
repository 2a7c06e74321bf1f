"""Regression trees of one depth, grown side by side: one on every column of residuals, over codes in bins.

A level's histograms are sums of rows over samples sorted by bin, for all trees in one pass. Only what goes right is
summed: the rest of its parent is on the left. Numbers that are summed lie sample × tree, so that a sample is one
stride. Which samples go right at a split is a row of bits, written down once for every threshold of every latent.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import torch

from unweave.shapes import Bool, Float, Int, Tensor, UInt8

DEPTH = 3
N_TOGETHER = 64
"""Trees grown at a time: as many as keep the rows that are summed in the cache."""
N_COLUMNS = 32
"""Up to so many columns a sum costs the same, so narrow tables are summed together."""
WIDE = 8
"""The number of bins is a multiple of it."""
APART = 64
PACKED = APART**2
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
"""A yes or no of every sample, eight in a byte: bit b of byte e is that of sample b · eighths + e."""
Mask = Bool[np.ndarray, "sample tree"]
Node = Float[Tensor, "latent bin #tree"]
"""Numbers of a node up to every bin."""
PLACES = (1 << np.arange(8, dtype=np.uint8))[:, None, None]


class Thresholds:
    """Which samples lie above every bin of every latent, as bits; so samples go down a tree eight at a time."""

    def __init__(self, binned: Int[np.ndarray, "latent sample"], n_bins: int) -> None:
        self.n_bins, self.n_samples = n_bins, binned.shape[1]
        self.above = np.concatenate([_above(row, n_bins) for row in binned])

    def right(self, splits: Splits) -> UInt8[np.ndarray, "node tree eighth"]:
        """Who would go right in every node, whoever stands there."""
        return self.above[splits.latent * self.n_bins + splits.threshold]

    def turn(self, right: UInt8[np.ndarray, "node tree eighth"], before: Sequence[Bits]) -> Bits:
        """Who goes right at the next level, given who went right at those before."""
        # of two nodes side by side, the turn before says in which of them a sample stands
        for turn in reversed(before):
            right = (right[0::2] & ~turn) | (right[1::2] & turn)
        return right[0]

    def inside(self, right: UInt8[np.ndarray, "node tree eighth"], before: Sequence[Bits]) -> list[Bits]:
        """Who stands in a node and goes right there, node by node."""
        inside = [*right]
        for depth, turn in enumerate(reversed(before)):
            for node in range(len(inside)):
                inside[node] = inside[node] & (turn if node >> depth & 1 else ~turn)
        return inside

    def descend(self, levels: Sequence[Splits]) -> UInt8[np.ndarray, "sample tree"]:
        """Each sample's leaf."""
        turns: list[Bits] = []
        for splits in levels:
            turns.append(self.turn(self.right(splits), turns))
        return leaf([self.mask(turn) for turn in turns])

    def mask(self, bits: Bits) -> Mask:
        found = (bits.T.copy() & PLACES) != 0
        return found.reshape(-1, len(bits))[: self.n_samples]


def leaf(turns: Sequence[Mask]) -> UInt8[np.ndarray, "sample tree"]:
    """The number of every sample's node: left is 0 and right is 1, the first turn foremost."""
    node = turns[0].view(np.uint8)
    for turn in turns[1:]:
        node = node + node
        node += turn.view(np.uint8)
    return node


def _above(row: Int[np.ndarray, " sample"], n_bins: int) -> UInt8[np.ndarray, "bin eighth"]:
    """Which samples lie above every bin, as bits."""
    n_eighths = -(-len(row) // 8)
    padded = np.full(8 * n_eighths, -1, row.dtype)
    padded[: len(row)] = row
    every = np.arange(n_bins, dtype=row.dtype)[:, None]
    above = np.zeros((n_bins, n_eighths), np.uint8)
    # not by packbits, which is slow across rows
    for bit, part in enumerate(padded.reshape(8, n_eighths)):
        above |= (part > every).view(np.uint8) << np.uint8(bit)
    return above


class Scratch:
    """Tables whose memory is used again: new memory would cost as much as what is done with it."""

    def __init__(self) -> None:
        self.kept: dict[Any, Any] = {}

    def take(self, name: str, shape: tuple[int, ...], dtype: type = np.float32) -> np.ndarray:
        """The table of this name and shape, with whatever it holds."""
        found: np.ndarray | None = self.kept.get((name, shape))
        if found is None:
            found = self.kept[name, shape] = np.empty(shape, dtype)
        return found

    def like(self, name: str, table: Tensor) -> Tensor:
        """The same for PyTorch."""
        found: Tensor | None = self.kept.get((name, table.shape))
        if found is None:
            found = self.kept[name, table.shape] = torch.empty_like(table)
        return found


class Forest:
    """Codes in bins, sorted once for any number of trees."""

    def __init__(self, binned: Int[np.ndarray, "latent sample"], n_bins: int) -> None:
        # empty bins at the end change nothing
        n_bins = -(-n_bins // WIDE) * WIDE
        self.binned, self.n_bins, self.n_latents = binned, n_bins, len(binned)
        self.thresholds, self.scratch = Thresholds(binned, n_bins), Scratch()
        counts = np.stack([np.bincount(row, minlength=n_bins) for row in binned])
        self.few = bool(counts.max() < PACKED)
        self.counts = torch.from_numpy(counts.cumsum(1)[:, :, None].astype(np.float32))
        self.starts = torch.from_numpy(counts.cumsum() - counts.flatten())
        self.rows = torch.from_numpy(binned.argsort(axis=1, kind="stable").flatten())

    def grow(
        self, residual: Float[np.ndarray, "sample tree"], order: Int[np.ndarray, " latent"]
    ) -> tuple[list[Splits], UInt8[np.ndarray, "sample tree"]]:
        """The splits of every level, and each sample's leaf. Of equal splits the first latent in ``order`` wins."""
        nodes: Iterable[tuple[Node, Node]] = [(_upto(self._bags(residual)), self.counts)]
        levels: list[Splits] = []
        turns: list[Bits] = []
        went: list[Mask] = []
        for level in range(DEPTH):
            splits, known = self._best_splits(nodes, order, 2**level, residual.shape[1])
            right = self.thresholds.right(splits)
            if level + 1 < DEPTH:
                masks = [self.thresholds.mask(bits) for bits in self.thresholds.inside(right, turns)]
                nodes = self._below(known, residual, masks)
                went.append(reduce(np.logical_or, masks))
            levels.append(splits)
            turns.append(self.thresholds.turn(right, turns))
        return levels, leaf([*went, self.thresholds.mask(turns[-1])])

    def _below(
        self, nodes: list[tuple[Node, Node]], residual: Float[np.ndarray, "sample tree"], masks: list[Mask]
    ) -> Iterator[tuple[Node, Node]]:
        """Sums and counts up to every bin one level below; what goes right under the masks is missing on the left."""
        counts = self._counts(masks)
        for (sums, n_all), part, n_right in zip(nodes, self._sums(residual, masks), counts):
            right = _upto(part)
            yield sums.sub_(right), n_all - n_right
            yield right, n_right

    def _counts(self, masks: list[Mask]) -> list[Node]:
        """Samples under every mask up to every bin."""
        if len(masks) == 1 or not self.few:
            return [_upto(self._bags(self._table(mask, np.float32(1)))) for mask in masks]
        return [count for low, high in zip(masks[::2], masks[1::2]) for count in self._two_counts(low, high)]

    def _two_counts(self, low: Mask, high: Mask) -> tuple[Node, Node]:
        """The same of two masks that share no sample: one sum counts both."""
        # 0, 1 or 64 in a byte, which squared are 0, 1 or PACKED
        mixed = high.view(np.uint8) * np.uint8(APART)
        mixed += low.view(np.uint8)
        table = self.scratch.take("table", mixed.shape)
        table[:] = mixed
        both = self._bags(np.multiply(table, table, out=table))
        if len(mixed) < PACKED:
            return _unpacked(_upto(both))
        n_low, n_high = _unpacked(both)
        return _upto(n_low), _upto(n_high)

    def _sums(self, residual: Float[np.ndarray, "sample tree"], masks: Sequence[Mask]) -> Iterator[Node]:
        """The sums of the residuals that every mask leaves, over the samples of every bin of every latent."""
        if 1 < len(masks) * residual.shape[1] <= N_COLUMNS:
            wide = self._bags(np.concatenate([residual * mask for mask in masks], axis=1))
            yield from (part.contiguous() for part in wide.chunk(len(masks), dim=2))
            return
        for mask in masks:
            yield self._bags(self._table(mask, residual))

    def _table(self, mask: Mask, numbers: np.ndarray | np.float32) -> Float[np.ndarray, "sample tree"]:
        return np.multiply(numbers, mask, out=self.scratch.take("table", mask.shape))

    def _bags(self, table: Float[np.ndarray, "sample tree"]) -> Node:
        sums = torch.embedding_bag(torch.from_numpy(table), self.rows, self.starts)[0]
        return sums.view(self.n_latents, self.n_bins, -1)

    def _best_splits(
        self, nodes: Iterable[tuple[Node, Node]], order: Int[np.ndarray, " latent"], n_nodes: int, n_trees: int
    ) -> tuple[Splits, list[tuple[Node, Node]]]:
        """From sums and counts up to every bin. Where no split gains anything, all samples stay together.

        And the nodes, which are looked at when they are made, while they lie in the cache.
        """
        known, trees = [], np.arange(n_trees)
        latent, threshold = np.empty((2, n_nodes, n_trees), np.int64)
        best, left, total, n_total = np.empty((4, n_nodes, n_trees), np.float32)
        for node, (sums, counts) in enumerate(nodes):
            known.append((sums, counts))
            gains = self._gain(sums, counts)
            # eight bins in a row first: PyTorch is slow at largest numbers across short rows
            most = gains.view(self.n_latents, -1, WIDE, n_trees).amax(1).amax(1).numpy()[order]
            first = most.argmax(0)
            own = latent[node] = order[first]
            after = threshold[node] = gains.numpy()[own, :, trees].argmax(1)
            best[node], left[node] = most[first, trees], sums.numpy()[own, after, trees]
            total[node], n_total[node] = sums.numpy()[0, -1], counts.numpy()[0, -1]
        gain = np.maximum(best - np.square(total) / np.maximum(n_total, 1), 0)
        return Splits(latent, threshold, gain, np.array([left, total - left])), known

    def _gain(self, sums: Node, counts: Node) -> Float[Tensor, "latent bin tree"]:
        """How much a split after every bin explains: L²/n_L + R²/n_R, less what is the same for all."""
        gain, other, n = (self.scratch.like(name, like) for name, like in (("gain", sums), ("R", sums), ("n", counts)))
        torch.mul(sums, sums, out=gain).div_(torch.clamp(counts, min=1, out=n))
        torch.sub(sums[0, -1], sums, out=other)
        torch.sub(counts[0, -1], counts, out=n)
        return gain.addcdiv_(other.mul_(other), n.clamp_(min=1))


def _unpacked(both: Node) -> tuple[Node, Node]:
    """The two counts that were summed as one number, the low one first."""
    n_high = both.mul(1 / PACKED).floor_()
    return both.sub_(n_high, alpha=PACKED), n_high


def _upto(sums: Node) -> Node:
    """Sums up to every bin in place of those of every bin."""
    return sums.cumsum_(1)
