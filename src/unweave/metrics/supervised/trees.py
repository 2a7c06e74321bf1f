"""Gradient-boosted trees (Friedman, 2001): scikit-learn's classifier, and the same algorithm vectorised over classes.

``fast_trees`` grows what ``GradientBoostingClassifier()`` grows with its defaults: log-loss from the class priors, one
tree of depth 3 per class and round on the residuals, splits by variance reduction, one Newton step per leaf, importance
= total variance reduction. (Other learners weigh samples by their curvature, which shifts importance to late rounds.)
Two differences are left: beyond ``N_FEW`` samples a latent offers ``N_BINS`` − 1 thresholds instead of all, and latents
that are equal share their importance exactly instead of by lot. The trees of all classes grow together, so that the
histograms of a level are one sum of rows over sorted samples.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch.nn.functional import embedding_bag

from unweave.shapes import Bool, Float, Int, Tensor

N_ROUNDS = 100
RATE = 0.1
DEPTH = 3
N_BINS = 128
N_FEW = 1000
"""Up to so many samples all thresholds are offered."""
N_COLUMNS = 96
"""Columns summed at a time: as many as keep the rows in the cache."""
TINY = 1e-30


@dataclass(frozen=True)
class Fitted:
    """A fitted classifier as numbers: each latent's share of importance, and the labels it gives to both tables."""

    importance: Float[np.ndarray, "latent"]
    train: Int[np.ndarray, "sample"]
    test: Int[np.ndarray, "test"]


def fast_trees(
    codes: Float[np.ndarray, "sample latent"],
    labels: Int[np.ndarray, "sample"],
    test: Float[np.ndarray, "test latent"],
    n_rounds: int = N_ROUNDS,
) -> Fitted:
    """Fit on (codes, labels), predict both tables. One label, or codes that never vary, give the commonest label."""
    classes, targets = np.unique(labels, return_inverse=True)
    if len(classes) == 1 or (codes == codes[0]).all():
        return _commonest(codes, labels, test)
    n_bins = len(codes) if len(codes) <= N_FEW else N_BINS
    edges = [thresholds(column, n_bins) for column in codes.T]
    forest = _Forest(_bin(codes, edges), max(map(len, edges)) + 1)
    tables = forest.binned, _bin(test, edges)
    importance, scores = _boost(forest, tables, torch.from_numpy(targets), len(classes), n_rounds)
    decided = [classes[_decide(table).numpy()] for table in scores]
    return Fitted(_share(_even(importance, tables[0])), decided[0], decided[1])


def sklearn_trees(
    codes: Float[np.ndarray, "sample latent"],
    labels: Int[np.ndarray, "sample"],
    test: Float[np.ndarray, "test latent"],
    n_rounds: int = N_ROUNDS,
) -> Fitted:
    """The reference: scikit-learn's ``GradientBoostingClassifier`` with its defaults and a fixed seed for ties."""
    from sklearn.ensemble import GradientBoostingClassifier

    if len(np.unique(labels)) == 1:
        return _commonest(codes, labels, test)
    model = GradientBoostingClassifier(n_estimators=n_rounds, random_state=0).fit(codes, labels)
    return Fitted(np.abs(model.feature_importances_), model.predict(codes), model.predict(test))


def thresholds(column: Float[np.ndarray, "sample"], n_bins: int) -> Float[np.ndarray, "threshold"]:
    """At most ``n_bins`` − 1 thresholds: the middle of the widest gap in each block of equally many samples.

    Blocks of equal counts alone would put a threshold inside a cluster and lump the ends of two clusters together.
    """
    values, counts = np.unique(column, return_counts=True)
    gaps = np.diff(values)
    middles = values[:-1] + gaps / 2
    if len(values) <= n_bins:
        return middles
    block = (np.cumsum(counts)[:-1] - 1) * (n_bins - 1) // len(column)
    widest = np.lexsort((-gaps, block))
    first = np.unique(block[widest], return_index=True)[1]
    return np.sort(middles[widest[first]])


class _Splits(NamedTuple):
    """The best split of every node of a level in every tree."""

    latent: Int[Tensor, "node tree"]
    threshold: Int[Tensor, "node tree"]
    """Bins above it go right; a node that cannot be split sends nothing right."""
    gain: Float[Tensor, "node tree"]
    sums: Float[Tensor, "side node tree"]
    """Residuals on the left and on the right."""


class _Forest:
    """Grows one tree per column of residuals."""

    def __init__(self, binned: Int[Tensor, "latent sample"], n_bins: int) -> None:
        self.binned, self.n_bins = binned, n_bins
        self.n_latents = len(binned)
        place = binned.long() + n_bins * torch.arange(self.n_latents)[:, None]
        self.counts = torch.bincount(place.flatten(), minlength=self.n_latents * n_bins)
        self.starts = self.counts.cumsum(0) - self.counts
        self.rows = binned.argsort(dim=1, stable=True).flatten()

    def grow(
        self, residual: Float[Tensor, "tree sample"], order: Int[Tensor, "latent"]
    ) -> tuple[list[_Splits], Int[Tensor, "tree sample"]]:
        """The splits of every level, and each sample's leaf. Of equal splits the first latent in ``order`` wins."""
        rows = residual.T.contiguous()
        sums = self._sum(rows, order)[None]
        counts = self.counts.view(self.n_latents, self.n_bins, 1)[order].float().expand_as(sums[0])[None]
        levels, leaf = [], torch.zeros(residual.shape, dtype=torch.int8)
        for level in range(DEPTH):
            splits = _best_splits(sums, counts, order)
            levels.append(splits)
            right = _goes_right(splits, self.binned, leaf)
            if level + 1 < DEPTH:
                masks = [(right & (leaf == node)).T.to(torch.float32).contiguous() for node in range(len(sums))]
                sums = _children(sums, [self._sum(rows * mask, order) for mask in masks])
                counts = _children(counts, [self._sum(mask, order) for mask in masks])
            leaf = 2 * leaf + right
        return levels, leaf

    def _sum(
        self, values: Float[Tensor, "sample tree"], order: Int[Tensor, "latent"]
    ) -> Float[Tensor, "latent bin tree"]:
        """Sums over the samples of every bin of every latent."""
        blocks = values.split(N_COLUMNS, dim=1) if values.shape[1] > N_COLUMNS else (values,)
        summed = [embedding_bag(self.rows, block.contiguous(), self.starts, mode="sum") for block in blocks]
        return torch.cat(summed, dim=1).view(self.n_latents, self.n_bins, -1)[order]


def _children(both: Float[Tensor, "node latent bin tree"], right: list[Tensor]) -> Float[Tensor, "_ latent bin tree"]:
    """Histograms of the nodes below, left and right in turn; what is not on the right is on the left."""
    part = torch.stack(right)
    return torch.stack([both - part, part], dim=1).flatten(0, 1)


def _goes_right(
    splits: _Splits, binned: Int[Tensor, "latent sample"], leaf: Int[Tensor, "tree sample"]
) -> Bool[Tensor, "tree sample"]:
    """Whether a sample goes right at the node it stands on."""
    right = torch.zeros(leaf.shape, dtype=torch.bool)
    for node in range(len(splits.latent)):
        passed = binned.index_select(0, splits.latent[node]) > splits.threshold[node].to(binned.dtype)[:, None]
        right |= passed & (leaf == node)
    return right


def _best_splits(
    sums: Float[Tensor, "node latent bin tree"],
    counts: Float[Tensor, "node latent bin tree"],
    order: Int[Tensor, "latent"],
) -> _Splits:
    left, n_left = sums.cumsum(2), counts.cumsum(2)
    total, n_total = left[:, :1, -1:], n_left[:, :1, -1:]
    left, n_left = left[:, :, :-1], n_left[:, :, :-1]
    right, n_right = total - left, n_total - n_left
    # variance reduction = L²/n_L + R²/n_R − (L + R)²/n
    gain = left**2 / n_left.clamp(min=1) + right**2 / n_right.clamp(min=1) - total**2 / n_total.clamp(min=1)
    gain.masked_fill_((n_left < 0.5) | (n_right < 0.5), -torch.inf)
    best, place = gain.flatten(1, 2).max(1)
    possible = best > -torch.inf
    latent = order[place // gain.shape[2]]
    threshold = torch.where(possible, place % gain.shape[2], sums.shape[2])
    everything = total[:, 0, 0]
    on_left = torch.where(possible, left.flatten(1, 2).gather(1, place[:, None])[:, 0], everything)
    gained = torch.where(possible, best, 0.0).clamp(min=0)
    return _Splits(latent, threshold, gained, torch.stack([on_left, everything - on_left]))


def _boost(
    forest: _Forest, tables: tuple[Tensor, Tensor], targets: Int[Tensor, "sample"], n_classes: int, n_rounds: int
) -> tuple[Float[Tensor, "latent"], list[Float[Tensor, "tree _"]]]:
    """Total variance reduction of every latent, and the scores of both tables after the last round."""
    truth, priors = _truth_and_priors(targets, n_classes)
    scores = [priors[:, None].repeat(1, table.shape[1]) for table in tables]
    importance = torch.zeros(forest.n_latents, dtype=torch.float64)
    generator = np.random.default_rng(0)
    for _ in range(n_rounds):
        order = torch.from_numpy(generator.permutation(forest.n_latents))
        probability = _probability(scores[0])
        levels, leaf = forest.grow(truth - probability, order)
        for splits in levels:
            importance.index_add_(0, splits.latent.flatten(), splits.gain.flatten().double())
        leaf = leaf.long()
        step = RATE * _newton(levels[-1].sums, probability, leaf, n_classes)
        scores[0] += step.gather(1, leaf)
        scores[1] += step.gather(1, _leaf(levels, tables[1], len(truth)).long())
    return importance, scores


def _truth_and_priors(targets: Int[Tensor, "sample"], n_classes: int) -> tuple[Tensor, Tensor]:
    truth = (targets == torch.arange(n_classes)[:, None]).float()
    share = truth.double().mean(1)
    if n_classes == 2:
        # two classes share one tree a round, on the log-odds of the second
        return truth[1:], (share[1:] / share[:1]).log().float()
    return truth, share.log().float()


def _probability(scores: Float[Tensor, "tree sample"]) -> Float[Tensor, "tree sample"]:
    return scores.sigmoid() if len(scores) == 1 else scores.softmax(0)


def _decide(scores: Float[Tensor, "tree sample"]) -> Int[Tensor, "sample"]:
    return (scores[0] > 0).long() if len(scores) == 1 else scores.argmax(0)


def _newton(
    sums: Float[Tensor, "side node tree"],
    probability: Float[Tensor, "tree sample"],
    leaf: Int[Tensor, "tree sample"],
    n_classes: int,
) -> Float[Tensor, "tree leaf"]:
    """(K − 1)/K · Σ residual / Σ p (1 − p) in every leaf, the factor for more than two classes only."""
    slope = sums.permute(2, 1, 0).flatten(1)
    curvature = torch.zeros_like(slope).scatter_add_(1, leaf, probability * (1.0 - probability))
    factor = 1.0 if n_classes == 2 else (n_classes - 1) / n_classes
    return torch.where(curvature < TINY, 0.0, factor * slope / curvature.clamp(min=TINY))


def _leaf(levels: list[_Splits], binned: Int[Tensor, "latent sample"], n_trees: int) -> Int[Tensor, "tree sample"]:
    leaf = torch.zeros((n_trees, binned.shape[1]), dtype=torch.int8)
    for splits in levels:
        leaf = 2 * leaf + _goes_right(splits, binned, leaf)
    return leaf


def _bin(codes: Float[np.ndarray, "sample latent"], edges: list[np.ndarray]) -> Int[Tensor, "latent sample"]:
    # a code equal to a threshold goes left, as in scikit-learn
    bins = np.stack([np.searchsorted(edge, column, side="left") for edge, column in zip(edges, codes.T)])
    return torch.from_numpy(bins.astype(np.int16))


def _commonest(codes: np.ndarray, labels: np.ndarray, test: np.ndarray) -> Fitted:
    classes, counts = np.unique(labels, return_counts=True)
    common = classes[counts.argmax()]
    return Fitted(np.zeros(codes.shape[1]), np.full(len(codes), common), np.full(len(test), common))


def _even(importance: Float[Tensor, "latent"], binned: Int[Tensor, "latent sample"]) -> Float[np.ndarray, "latent"]:
    """Latents that are equal share their importance equally, which is what drawing lots comes to."""
    groups: dict[bytes, list[int]] = {}
    for latent, row in enumerate(binned.numpy()):
        groups.setdefault(row.tobytes(), []).append(latent)
    shared = importance.numpy().copy()
    for members in groups.values():
        shared[members] = shared[members].mean()
    return shared


def _share(importance: Float[np.ndarray, "latent"]) -> Float[np.ndarray, "latent"]:
    total = importance.sum()
    return importance / total if total > 0 else np.zeros_like(importance)
