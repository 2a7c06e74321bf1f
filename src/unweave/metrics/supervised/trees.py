"""Gradient-boosted trees (Friedman, 2001): scikit-learn's classifier, and the same algorithm vectorised over classes.

``fast_trees`` grows what ``GradientBoostingClassifier()`` grows with its defaults: log-loss from the class priors, one
tree of depth 3 per class and round on the residuals, splits by variance reduction, one Newton step per leaf, importance
= total variance reduction. (Other learners weigh samples by their curvature, which shifts importance to late rounds.)
Two differences are left: beyond ``N_FEW`` samples a latent offers ``N_BINS`` − 1 thresholds instead of all, and latents
that are equal share their importance exactly instead of by lot. The trees of all classes grow together, so that the
histograms of a level are one sum of rows over sorted samples.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import torch

from unweave.metrics.supervised.forest import DEPTH, N_TOGETHER, Forest, Scratch, Splits, Thresholds
from unweave.shapes import Float, Int, Tensor, UInt8

N_ROUNDS = 100
RATE = 0.1
N_BINS = 128
N_FEW = 1000
"""Up to so many samples all thresholds are offered."""
TINY = 1e-30
VECTOR = 16
"""Numbers that a processor takes at once, at most."""


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
    return fast_trees_of_all(codes, [labels], test, n_rounds)[0]


def fast_trees_of_all(
    codes: Float[np.ndarray, "sample latent"],
    columns: Sequence[Int[np.ndarray, " sample"]],
    test: Float[np.ndarray, "test latent"],
    n_rounds: int = N_ROUNDS,
) -> list[Fitted]:
    """One classifier for each column of labels, as :func:`fast_trees` fits it; their trees grow side by side."""
    if (codes == codes[0]).all():
        return [_commonest(codes, labels, test) for labels in columns]
    n_bins = len(codes) if len(codes) <= N_FEW else N_BINS
    edges = [thresholds(column, n_bins) for column in codes.T]
    forest = Forest(_bin(codes, edges), max(map(len, edges)) + 1)
    unseen = Thresholds(_bin(test, edges), forest.n_bins)
    told: dict[int, Fitted] = {}
    for places in _together([_n_trees(labels) for labels in columns]):
        told |= zip(places, _boost(forest, unseen, [columns[place] for place in places], n_rounds))
    return [told[place] if place in told else _commonest(codes, labels, test) for place, labels in enumerate(columns)]


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


def _n_trees(labels: Int[np.ndarray, " sample"]) -> int:
    """Trees a round: one a class, but one for two classes and none for one."""
    n_classes = len(np.unique(labels))
    return n_classes if n_classes > 2 else n_classes - 1


def _together(n_trees: list[int]) -> list[list[int]]:
    """Columns whose trees grow side by side, by their places: as many as fit, the largest first."""
    bundles: list[list[int]] = []
    for place in sorted(range(len(n_trees)), key=lambda place: -n_trees[place]):
        fitting = [each for each in bundles if sum(n_trees[one] for one in (*each, place)) <= N_TOGETHER]
        if fitting and n_trees[place]:
            fitting[0].append(place)
        elif n_trees[place]:
            bundles.append([place])
    return bundles


# many small steps, of which PyTorch would keep an account for gradients
@torch.inference_mode()
def _boost(
    forest: Forest, unseen: Thresholds, columns: list[Int[np.ndarray, " sample"]], n_rounds: int
) -> list[Fitted]:
    """One classifier for each column of labels; a tree is a column of all tables here."""
    classes, targets = zip(*(np.unique(labels, return_inverse=True) for labels in columns))
    truths, priors = zip(*(_truth_and_priors(own, len(known)) for own, known in zip(targets, classes)))
    ends = np.cumsum([len(prior) for prior in priors]).tolist()
    owners = [slice(end - len(prior), end) for end, prior in zip(ends, priors)]
    blocks = [(slice(own[0].start, own[-1].stop), n) for n, own in _runs(owners)]
    # (K − 1)/K, for more than two classes only
    shares = [1.0 if len(known) == 2 else (len(known) - 1) / len(known) for known in classes]
    factor = np.repeat(np.array(shares, np.float32), [len(prior) for prior in priors])
    truth = np.concatenate(truths, axis=1)
    scores, new = (np.repeat(np.concatenate(priors)[None], n, axis=0) for n in (len(truth), unseen.n_samples))
    probability, importance = np.empty_like(truth), np.zeros((len(factor), forest.n_latents))
    generator = np.random.default_rng(0)
    for _ in range(n_rounds):
        for some, n_trees in blocks:
            probability[:, some] = _probability(scores[:, some], n_trees)
        order = generator.permutation(forest.n_latents)
        for some in _portions(len(factor)):
            residual = forest.scratch.take("residual", (len(truth), some.stop - some.start))
            levels, leaf = forest.grow(np.subtract(truth[:, some], probability[:, some], out=residual), order)
            importance[some] += _gained(levels, forest.n_latents)
            places = _places(leaf, forest.scratch)
            # from here on the residuals' memory serves for p (1 − p)
            step = RATE * _newton(levels[-1].sums, probability[:, some], places, factor[some], out=residual)
            scores[:, some] += _looked_up(step, places, forest.scratch)
            new[:, some] += _looked_up(step, _places(unseen.descend(levels), forest.scratch), forest.scratch)
    return [
        Fitted(
            _share(_even(importance[own].sum(0), forest.binned)),
            known[_decide(scores[:, own])],
            known[_decide(new[:, own])],
        )
        for own, known in zip(owners, classes)
    ]


def _runs(owners: list[slice]) -> list[tuple[int, list[slice]]]:
    """Columns of labels with as many trees as their neighbours, and how many these are."""
    return [(n, list(own)) for n, own in groupby(owners, key=lambda own: own.stop - own.start)]


def _portions(n_trees: int) -> list[slice]:
    return [slice(at, min(at + N_TOGETHER, n_trees)) for at in range(0, n_trees, N_TOGETHER)]


def _gained(levels: list[Splits], n_latents: int) -> Float[np.ndarray, "tree latent"]:
    """The variance that every latent takes away in every tree."""
    latent, gain = (np.concatenate([getattr(splits, name) for splits in levels]) for name in ("latent", "gain"))
    place = latent + n_latents * np.arange(latent.shape[1])
    return np.bincount(place.ravel(), gain.ravel(), n_latents * latent.shape[1]).reshape(-1, n_latents)


def _truth_and_priors(targets: Int[np.ndarray, " sample"], n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    truth = (targets[:, None] == np.arange(n_classes)).astype(np.float32)
    share = np.bincount(targets, minlength=n_classes) / len(targets)
    if n_classes == 2:
        # two classes share one tree a round, on the log-odds of the second
        return truth[:, 1:], np.log(share[1:] / share[:1]).astype(np.float32)
    return truth, np.log(share).astype(np.float32)


def _probability(scores: Float[np.ndarray, "sample tree"], n_trees: int) -> Float[np.ndarray, "sample tree"]:
    """Of columns of labels side by side, so many trees each."""
    if n_trees == 1:
        return torch.from_numpy(scores).sigmoid().numpy()
    rows = scores.reshape(-1, n_trees)
    if n_trees >= VECTOR:
        return torch.from_numpy(rows).softmax(1).numpy().reshape(scores.shape)
    # PyTorch goes through rows shorter than a vector number by number. Here they are as long, with chances of 0 between
    # their own, at places where adding up the halves of vectors is adding one number after the other
    places = [*range(0, VECTOR * max(1, n_trees - 4), VECTOR), 8, 4, 2, 1][:n_trees]
    wide = np.full((len(rows), VECTOR * max(1, n_trees - 4)), -np.inf, np.float32)
    wide[:, places] = rows
    return torch.from_numpy(wide).softmax(1).numpy()[:, places].reshape(scores.shape)


def _decide(scores: Float[np.ndarray, "sample tree"]) -> Int[np.ndarray, " sample"]:
    return (scores[:, 0] > 0).astype(np.int64) if scores.shape[1] == 1 else scores.argmax(1)


def _places(leaf: UInt8[np.ndarray, "sample tree"], scratch: Scratch) -> Int[Tensor, "sample tree"]:
    """Each sample's leaf among those of all trees, one after another."""
    # small numbers first, and PyTorch for the larger: casts of bytes while adding take three times as long
    own = np.arange(leaf.shape[1]) * 2**DEPTH
    small = leaf + own.astype(np.int16 if len(own) < 2**12 else np.int64)
    places = torch.from_numpy(scratch.take("places", leaf.shape, np.int64))
    return places.copy_(torch.from_numpy(small))


def _newton(
    sums: Float[np.ndarray, "side node tree"],
    probability: Float[np.ndarray, "sample tree"],
    places: Int[Tensor, "sample tree"],
    factor: Float[np.ndarray, " tree"],
    out: Float[np.ndarray, "sample tree"],
) -> Float[np.ndarray, " leaf"]:
    """(K − 1)/K · Σ residual / Σ p (1 − p) in every leaf."""
    slope = sums.transpose(2, 1, 0).ravel()
    weight = np.multiply(probability, np.subtract(1.0, probability, out=out), out=out)
    curvature = torch.zeros(len(slope)).scatter_add_(0, places.flatten(), torch.from_numpy(weight).view(-1)).numpy()
    stretch = np.repeat(factor, 2**DEPTH) * slope
    return np.where(curvature < TINY, np.float32(0), stretch / np.maximum(curvature, TINY))


def _looked_up(
    step: Float[np.ndarray, " leaf"], places: Int[Tensor, "sample tree"], scratch: Scratch
) -> Float[np.ndarray, "sample tree"]:
    """Every sample's step in every tree."""
    found = scratch.take("table", tuple(places.shape))
    torch.index_select(torch.from_numpy(step), 0, places.flatten(), out=torch.from_numpy(found).view(-1))
    return found


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
