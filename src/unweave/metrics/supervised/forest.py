"""Regression trees of one depth, grown side by side: one on every column of residuals, over codes in bins.

A level's histograms are sums of rows over samples sorted by bin, for all trees in one pass. Only what goes right is
summed: the rest of its parent is on the left. Numbers that are summed lie sample × tree, so that a sample is one
stride. Which samples go right at a split is a row of bits, written down once for every threshold of every latent.
"""

from collections.abc import Iterable, Iterator, Sequence
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
"""A yes or no of every sample, eight in a byte: bit b of byte e is that of sample b · eighths + e."""
Mask = Bool[np.ndarray, "sample tree"]
Node = Float[np.ndarray, "latent bin #tree"]
"""Numbers of a node up to every bin."""
PLACES = (1 << np.arange(8, dtype=np.uint8))[:, None, None]


class Thresholds:
    """Which samples lie above every bin of every latent, as bits; so samples go down a tree eight at a time."""

    def __init__(self, binned: Int[np.ndarray, "latent sample"], n_bins: int) -> None:
        self.n_bins, self.n_samples = n_bins, binned.shape[1]
        every = np.arange(n_bins, dtype=binned.dtype)[:, None]
        self.above = np.concatenate([_packed(row > every) for row in binned])

    def turns(self, splits: Splits, before: Sequence[Bits]) -> tuple[Bits, list[Bits]]:
        """Who goes right at the next level, given who went right at those before; and who does so in every node."""
        right = self.above[splits.latent * self.n_bins + splits.threshold]
        inside = [*right]
        # of two nodes side by side, the turn before says in which of them a sample stands
        for turn in reversed(before):
            right = (right[0::2] & ~turn) | (right[1::2] & turn)
        for depth, turn in enumerate(reversed(before)):
            for node in range(len(inside)):
                inside[node] = inside[node] & (turn if node >> depth & 1 else ~turn)
        return right[0], inside

    def leaf(self, turns: Sequence[Bits]) -> UInt8[np.ndarray, "sample tree"]:
        """The number of every sample's node: left is 0 and right is 1, the first turn foremost."""
        node = self.mask(turns[0]).view(np.uint8)
        for turn in turns[1:]:
            node = node + node
            node += self.mask(turn).view(np.uint8)
        return node

    def descend(self, levels: Sequence[Splits]) -> UInt8[np.ndarray, "sample tree"]:
        """Each sample's leaf."""
        turns: list[Bits] = []
        for splits in levels:
            turns.append(self.turns(splits, turns)[0])
        return self.leaf(turns)

    def mask(self, bits: Bits) -> Bool[np.ndarray, "sample tree"]:
        found = (bits.T.copy() & PLACES) != 0
        return found.reshape(-1, len(bits))[: self.n_samples]


def _packed(yes: Bool[np.ndarray, "tree sample"]) -> Bits:
    n_eighths = -(-yes.shape[1] // 8)
    wide = np.zeros((len(yes), 8 * n_eighths), dtype=bool)
    wide[:, : yes.shape[1]] = yes
    return np.packbits(wide.reshape(-1, 8, n_eighths), axis=1, bitorder="little")[:, 0]


class Scratch:
    """Tables whose memory is used again: new memory would cost as much as what is done with it."""

    def __init__(self) -> None:
        self.kept: dict[str, np.ndarray] = {}

    def take(self, name: str, shape: tuple[int, ...], dtype: type = np.float32) -> np.ndarray:
        """The table of this name, with whatever it holds."""
        found = self.kept.get(name)
        if found is None or found.shape != shape or found.dtype != dtype:
            found = self.kept[name] = np.empty(shape, dtype)
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
        self.counts = counts.cumsum(1)[:, :, None].astype(np.float32)
        self.starts = torch.from_numpy(counts.cumsum() - counts.flatten())
        self.rows = torch.from_numpy(binned.argsort(axis=1, kind="stable").flatten())

    def grow(
        self, residual: Float[np.ndarray, "sample tree"], order: Int[np.ndarray, " latent"]
    ) -> tuple[list[Splits], UInt8[np.ndarray, "sample tree"]]:
        """The splits of every level, and each sample's leaf. Of equal splits the first latent in ``order`` wins."""
        nodes: Iterable[tuple[Node, Node]] = ((_upto(one), self.counts) for one in self._sums(residual, [None]))
        levels: list[Splits] = []
        turns: list[Bits] = []
        for level in range(DEPTH):
            splits, known = _best_splits(nodes, order)
            turn, right = self.thresholds.turns(splits, turns)
            levels.append(splits)
            turns.append(turn)
            if level + 1 < DEPTH:
                nodes = self._below(known, residual, [self.thresholds.mask(bits) for bits in right])
        return levels, self.thresholds.leaf(turns)

    def _below(
        self, nodes: list[tuple[Node, Node]], residual: Float[np.ndarray, "sample tree"], masks: list[Mask]
    ) -> Iterator[tuple[Node, Node]]:
        """Sums and counts up to every bin one level below; what goes right under the masks is missing on the left."""
        counts = self._counts(masks)
        for (sums, n_all), part, n_right in zip(nodes, self._sums(residual, masks), counts):
            right = _upto(part)
            yield np.subtract(sums, right, out=sums), n_all - n_right
            yield right, n_right

    def _counts(self, masks: list[Mask]) -> list[Node]:
        """Samples under every mask up to every bin."""
        if len(masks) == 1 or not self.few:
            return [_upto(one) for one in self._sums(np.float32(1), masks)]
        # two masks in one table, so that one sum counts both
        pairs = zip(masks[::2], masks[1::2])
        found = [self._bags(np.float32(PACKED) * high + low) for low, high in pairs]
        return [_upto(count) for one in found for count in _unpacked(one)]

    def _sums(self, numbers: Any, masks: Sequence[Mask | None]) -> Iterator[Node]:
        """The sums of the numbers that every mask leaves, over the samples of every bin of every latent."""
        if 1 < len(masks) * self._width(masks) <= N_COLUMNS:
            wide = self._bags(np.concatenate([numbers * mask for mask in masks], axis=1))
            yield from map(np.ascontiguousarray, np.split(wide, len(masks), axis=2))
            return
        for mask in masks:
            yield self._bags(numbers if mask is None else numbers * mask)

    def _width(self, masks: Sequence[Mask | None]) -> int:
        return 0 if masks[0] is None else masks[0].shape[1]

    def _bags(self, table: Float[np.ndarray, "sample tree"]) -> Node:
        sums = torch.embedding_bag(torch.from_numpy(table), self.rows, self.starts)[0]
        return sums.view(self.n_latents, self.n_bins, -1).numpy()


def _unpacked(both: Node) -> tuple[Node, Node]:
    """The two counts that were summed as one number, the low one first."""
    high = np.floor(both / PACKED)
    return both - PACKED * high, high


def _best_splits(
    nodes: Iterable[tuple[Node, Node]], order: Int[np.ndarray, " latent"]
) -> tuple[Splits, list[tuple[Node, Node]]]:
    """And the nodes: each is looked at when it is made, while it lies in the cache."""
    known, each = [], []
    for node in nodes:
        known.append(node)
        each.append(_best_split(*node, order))
    latent, threshold, gain, left, right = (np.stack(part) for part in zip(*each))
    return Splits(latent, threshold, gain, np.stack([left, right])), known


def _best_split(
    sums: Float[np.ndarray, "latent bin tree"],
    counts: Float[np.ndarray, "latent bin #tree"],
    order: Int[np.ndarray, " latent"],
) -> tuple[np.ndarray, ...]:
    """From the sums and counts up to every bin. Where no split gains anything, all samples stay together."""
    total, n_total = sums[0, -1], counts[0, -1]
    gains = _gain(torch.from_numpy(sums), torch.from_numpy(counts))
    # eight bins in a row first: PyTorch is slow at largest numbers across short rows
    best, gain = gains.view(len(sums), -1, WIDE, len(total)).amax(1).amax(1).numpy(), gains.numpy()
    latent, tree = order[best[order].argmax(0)], np.arange(len(total))
    threshold = gain[latent, :, tree].argmax(1)
    left = sums[latent, threshold, tree]
    gained = best[latent, tree] - np.square(total) / np.maximum(n_total, 1)
    return latent, threshold, np.maximum(gained, 0), left, total - left


def _gain(sums: Float[Tensor, "latent bin tree"], counts: Float[Tensor, "latent bin #tree"]) -> Tensor:
    """How much a split after every bin explains: L²/n_L + R²/n_R, less what is the same for all."""
    gain = (sums * sums).div_(counts.clamp(min=1))
    other = sums[0, -1] - sums
    return gain.addcdiv_(other.mul_(other), (counts[0, -1] - counts).clamp_(min=1))


def _upto(sums: Node) -> Node:
    """Sums up to every bin in place of those of every bin."""
    return torch.from_numpy(sums).cumsum_(1).numpy()
