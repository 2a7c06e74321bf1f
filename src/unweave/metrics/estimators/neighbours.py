"""Mutual information of a continuous code and a discrete factor by nearest neighbours (Ross, 2014).

In one dimension neighbours are found by sorting: the k-th neighbour of a point lies at the end of one of the k + 1
windows of k + 1 sorted points that hold it. All of it is done on the CPU, by NumPy: arrays are short.
"""

from functools import lru_cache

import numpy as np
import torch

from unweave.shapes import Float, Int, Tensor


def neighbour_information(
    code: Float[Tensor, " sample"], labels: Int[Tensor, " sample"], n_neighbours: int
) -> Float[Tensor, ""]:
    """I(code; labels) in nats, never negative. Labels that occur once are left out; ties should be broken before."""
    ordered, own = code.to("cpu", torch.float64).numpy(), labels.cpu().numpy()
    counts = np.bincount(own)[own]
    ordered, own, counts = ordered[counts > 1], own[counts > 1], counts[counts > 1]
    if len(ordered) == 0:
        return torch.zeros((), dtype=torch.float64, device=code.device)
    order = ordered.argsort(kind="stable")
    ordered, own, counts = ordered[order], own[order], counts[order]
    # the fewer bytes, the faster: small numbers are sorted by counting
    grouping = own.astype(np.min_scalar_type(own.max())).argsort(kind="stable")
    values, own, counts = ordered[grouping], own[grouping], counts[grouping]
    k = np.minimum(counts - 1, n_neighbours)
    inside = _points_closer(ordered, values, _kth_distance(values, own, k))
    # I = ψ(N) + ⟨ψ(k)⟩ − ⟨ψ(N_label)⟩ − ⟨ψ(m)⟩
    digamma = _digamma(len(ordered))
    found = digamma[-1] + (digamma[k] - digamma[counts] - digamma[inside]).mean()
    return torch.tensor(max(0.0, float(found)), dtype=torch.float64, device=code.device)


@lru_cache(maxsize=4)
def _digamma(n: int) -> Float[np.ndarray, " number"]:
    """ψ of 0 … n."""
    table: np.ndarray = torch.digamma(torch.arange(n + 1, dtype=torch.float64)).numpy()
    return table


def _kth_distance(
    values: Float[np.ndarray, " sample"], labels: Int[np.ndarray, " sample"], k: Int[np.ndarray, " sample"]
) -> Float[np.ndarray, " sample"]:
    """Distance to the k-th neighbour of the same label; values ascend within each label, labels lie together."""
    if (k == k[0]).all():
        return _in_windows(values, labels, int(k[0]))
    distance = np.empty_like(values)
    for size in np.unique(k):
        # k depends on the label alone, so these are whole groups
        chosen = k == size
        distance[chosen] = _in_windows(values[chosen], labels[chosen], int(size))
    return distance


def _in_windows(
    values: Float[np.ndarray, " sample"], labels: Int[np.ndarray, " sample"], k: int
) -> Float[np.ndarray, " sample"]:
    """The least, over the windows of one label that hold a value, of its distance to the window's farther end."""
    n_windows = len(values) - k
    first, last = values[:n_windows], values[k:].copy()
    last[labels[:n_windows] != labels[k:]] = np.inf
    distance = np.full_like(values, np.inf)
    for place in range(k + 1):
        here, least = values[place : place + n_windows], distance[place : place + n_windows]
        np.minimum(least, np.maximum(here - first, last - here), out=least)
    return distance


def _points_closer(
    ordered: Float[np.ndarray, " sample"], values: Float[np.ndarray, " sample"], distance: Float[np.ndarray, " sample"]
) -> Int[np.ndarray, " sample"]:
    """How many points lie strictly closer than the distance, the point itself included."""
    low = ordered.searchsorted(values - distance, "right")
    high = ordered.searchsorted(values + distance, "left")
    # value ± distance is rounded, so a point on the rim may fall on the wrong side: ask for its true distance
    last = len(ordered) - 1
    low += values - ordered[np.minimum(low, last)] >= distance
    low -= (low > 0) & (values - ordered[np.maximum(low - 1, 0)] < distance)
    high -= ordered[np.maximum(high - 1, 0)] - values >= distance
    high += (high <= last) & (ordered[np.minimum(high, last)] - values < distance)
    return np.maximum(high - low, 1)
