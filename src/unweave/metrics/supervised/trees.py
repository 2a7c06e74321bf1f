"""Gradient-boosted trees (Friedman, 2001): scikit-learn's classifier, and the same algorithm vectorised over classes.

``fast_trees`` grows what ``GradientBoostingClassifier()`` grows with its defaults: log-loss from the class priors, one
tree of depth 3 per class and round on the residuals, splits by variance reduction, one Newton step per leaf, importance
= total variance reduction. (Other learners weigh samples by their curvature, which shifts importance to late rounds.)
Two differences are left: beyond ``N_FEW`` samples a latent offers ``N_BINS`` − 1 thresholds instead of all, and latents
that are equal share their importance exactly instead of by lot. The trees of all classes grow together, so that the
histograms of a level are one sum of rows over sorted samples.
"""

from dataclasses import dataclass

import numpy as np
import torch

from unweave.metrics.supervised.forest import DEPTH, N_TOGETHER, Forest, Splits, descend
from unweave.shapes import Float, Int, UInt8

N_ROUNDS = 100
RATE = 0.1
N_BINS = 128
N_FEW = 1000
"""Up to so many samples all thresholds are offered."""
TINY = 1e-30


@dataclass(frozen=True)
class Fitted:
    """A fitted classifier as numbers: each latent's share of importance, and the labels it gives to both tables."""

    importance: Float[np.ndarray, " latent"]
    train: Int[np.ndarray, " sample"]
    test: Int[np.ndarray, " test"]


def fast_trees(
    codes: Float[np.ndarray, "sample latent"],
    labels: Int[np.ndarray, " sample"],
    test: Float[np.ndarray, "test latent"],
    n_rounds: int = N_ROUNDS,
) -> Fitted:
    """Fit on (codes, labels), predict both tables. One label, or codes that never vary, give the commonest label."""
    classes, targets = np.unique(labels, return_inverse=True)
    if len(classes) == 1 or (codes == codes[0]).all():
        return _commonest(codes, labels, test)
    n_bins = len(codes) if len(codes) <= N_FEW else N_BINS
    edges = [thresholds(column, n_bins) for column in codes.T]
    forest = Forest(_bin(codes, edges), max(map(len, edges)) + 1)
    tables = forest.binned, _bin(test, edges)
    importance, decided = _boost(forest, tables, targets, len(classes), n_rounds)
    return Fitted(_share(_even(importance, tables[0])), classes[decided[0]], classes[decided[1]])


def sklearn_trees(
    codes: Float[np.ndarray, "sample latent"],
    labels: Int[np.ndarray, " sample"],
    test: Float[np.ndarray, "test latent"],
    n_rounds: int = N_ROUNDS,
) -> Fitted:
    """The reference: scikit-learn's ``GradientBoostingClassifier`` with its defaults and a fixed seed for ties."""
    from sklearn.ensemble import GradientBoostingClassifier

    if len(np.unique(labels)) == 1:
        return _commonest(codes, labels, test)
    model = GradientBoostingClassifier(n_estimators=n_rounds, random_state=0).fit(codes, labels)
    return Fitted(np.abs(model.feature_importances_), model.predict(codes), model.predict(test))


def thresholds(column: Float[np.ndarray, " sample"], n_bins: int) -> Float[np.ndarray, " threshold"]:
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


def _boost(
    forest: Forest,
    tables: tuple[Int[np.ndarray, "latent sample"], Int[np.ndarray, "latent test"]],
    targets: Int[np.ndarray, " sample"],
    n_classes: int,
    n_rounds: int,
) -> tuple[Float[np.ndarray, " latent"], list[Int[np.ndarray, " _"]]]:
    """Total variance reduction of every latent, and the class of every row of both tables after the last round."""
    truth, priors = _truth_and_priors(targets, n_classes)
    scores, unseen = (np.repeat(priors[None], table.shape[1], axis=0) for table in tables)
    importance = np.zeros(forest.n_latents)
    generator = np.random.default_rng(0)
    for _ in range(n_rounds):
        probability = _probability(scores)
        order = generator.permutation(forest.n_latents)
        for some in _together(len(priors)):
            levels, leaf = forest.grow(truth[:, some] - probability[:, some], order)
            for splits in levels:
                importance += np.bincount(splits.latent.ravel(), splits.gain.ravel(), forest.n_latents)
            places = _places(leaf)
            step = RATE * _newton(levels[-1].sums, probability[:, some], places, n_classes)
            scores[:, some] += step.take(places)
            unseen[:, some] += step.take(_places(_leaf(levels, tables[1], len(leaf))))
    return importance, [_decide(scores), _decide(unseen)]


def _together(n_trees: int) -> list[slice]:
    return [slice(at, min(at + N_TOGETHER, n_trees)) for at in range(0, n_trees, N_TOGETHER)]


def _truth_and_priors(targets: Int[np.ndarray, " sample"], n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    truth = (targets[:, None] == np.arange(n_classes)).astype(np.float32)
    share = np.bincount(targets, minlength=n_classes) / len(targets)
    if n_classes == 2:
        # two classes share one tree a round, on the log-odds of the second
        return truth[:, 1:], np.log(share[1:] / share[:1]).astype(np.float32)
    return truth, np.log(share).astype(np.float32)


def _probability(scores: Float[np.ndarray, "sample tree"]) -> Float[np.ndarray, "sample tree"]:
    tensor = torch.from_numpy(scores)
    return (tensor.sigmoid() if scores.shape[1] == 1 else tensor.softmax(1)).numpy()


def _decide(scores: Float[np.ndarray, "sample tree"]) -> Int[np.ndarray, " sample"]:
    return (scores[:, 0] > 0).astype(np.int64) if scores.shape[1] == 1 else scores.argmax(1)


def _places(leaf: UInt8[np.ndarray, "tree sample"]) -> Int[np.ndarray, "sample tree"]:
    """Each sample's leaf among those of all trees, one after another."""
    return leaf.T.copy() + np.arange(len(leaf)) * 2**DEPTH


def _newton(
    sums: Float[np.ndarray, "side node tree"],
    probability: Float[np.ndarray, "sample tree"],
    places: Int[np.ndarray, "sample tree"],
    n_classes: int,
) -> Float[np.ndarray, " leaf"]:
    """(K − 1)/K · Σ residual / Σ p (1 − p) in every leaf, the factor for more than two classes only."""
    slope = sums.transpose(2, 1, 0).ravel()
    weight = torch.from_numpy(probability * (1.0 - probability)).flatten()
    curvature = torch.zeros(len(slope)).scatter_add_(0, torch.from_numpy(places).flatten(), weight).numpy()
    factor = np.float32(1.0 if n_classes == 2 else (n_classes - 1) / n_classes)
    return np.where(curvature < TINY, np.float32(0), factor * slope / np.maximum(curvature, TINY))


def _leaf(
    levels: list[Splits], binned: Int[np.ndarray, "latent sample"], n_trees: int
) -> UInt8[np.ndarray, "tree sample"]:
    leaf = np.zeros((n_trees, binned.shape[1]), np.uint8)
    for splits in levels:
        leaf = descend(leaf, splits, binned)
    return leaf


def _bin(codes: Float[np.ndarray, "sample latent"], edges: list[np.ndarray]) -> Int[np.ndarray, "latent sample"]:
    # a code equal to a threshold goes left, as in scikit-learn
    bins = np.stack([np.searchsorted(edge, column, side="left") for edge, column in zip(edges, codes.T)])
    return bins.astype(np.int16)


def _commonest(codes: np.ndarray, labels: np.ndarray, test: np.ndarray) -> Fitted:
    classes, counts = np.unique(labels, return_counts=True)
    common = classes[counts.argmax()]
    return Fitted(np.zeros(codes.shape[1]), np.full(len(codes), common), np.full(len(test), common))


def _even(
    importance: Float[np.ndarray, " latent"], binned: Int[np.ndarray, "latent sample"]
) -> Float[np.ndarray, " latent"]:
    """Latents that are equal share their importance equally, which is what drawing lots comes to."""
    groups: dict[bytes, list[int]] = {}
    for latent, row in enumerate(binned):
        groups.setdefault(row.tobytes(), []).append(latent)
    shared = importance.copy()
    for members in groups.values():
        shared[members] = shared[members].mean()
    return shared


def _share(importance: Float[np.ndarray, " latent"]) -> Float[np.ndarray, " latent"]:
    total = importance.sum()
    return importance / total if total > 0 else np.zeros_like(importance)
