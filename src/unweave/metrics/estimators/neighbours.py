"""Mutual information of a continuous code and a discrete factor by nearest neighbours (Ross, 2014).

In one dimension neighbours are found by sorting: the k-th neighbour of a point lies at the end of one of the k + 1
windows of k + 1 sorted points that hold it.
"""

import numpy as np
import torch

from unweave.shapes import Float, Int, Tensor


def neighbour_information(
    code: Float[Tensor, " sample"], labels: Int[Tensor, " sample"], n_neighbours: int
) -> Float[Tensor, ""]:
    """I(code; labels) in nats, never negative. Labels that occur once are left out; ties should be broken before."""
    counts = torch.bincount(labels)[labels]
    code, labels, counts = code[counts > 1], labels[counts > 1], counts[counts > 1]
    if len(code) == 0:
        return torch.zeros((), dtype=torch.float64, device=code.device)
    ordered, order = code.to(torch.float64).sort()
    grouping = labels[order].argsort(stable=True)
    values, labels, counts = ordered[grouping], labels[order][grouping], counts[order][grouping]
    k = (counts - 1).clamp(max=n_neighbours)
    inside = _points_closer(ordered, values, _kth_distance(values, labels, k))
    # I = ψ(N) + ⟨ψ(k)⟩ − ⟨ψ(N_label)⟩ − ⟨ψ(m)⟩
    digamma = torch.digamma(torch.arange(len(code) + 1, dtype=torch.float64, device=code.device))
    return (digamma[-1] + (digamma[k] - digamma[counts] - digamma[inside]).mean()).clamp(min=0.0)


def _kth_distance(
    values: Float[Tensor, " sample"], labels: Int[Tensor, " sample"], k: Int[Tensor, " sample"]
) -> Float[Tensor, " sample"]:
    """Distance to the k-th neighbour of the same label; values ascend within each label, labels lie together."""
    distance = torch.empty_like(values)
    for size in k.unique().tolist():
        # k depends on the label alone, so these are whole groups
        chosen = k == size
        distance[chosen] = _in_windows(values[chosen], labels[chosen], size)
    return distance


def _in_windows(values: Float[Tensor, " sample"], labels: Int[Tensor, " sample"], k: int) -> Float[Tensor, " sample"]:
    """The least, over the windows of one label that hold a value, of its distance to the window's farther end."""
    n_windows = len(values) - k
    first, last = values[:n_windows], values[k:].clone()
    last[labels[:n_windows] != labels[k:]] = torch.inf
    distance = torch.full_like(values, torch.inf)
    for place in range(k + 1):
        here = values[place : place + n_windows]
        reach = torch.maximum(here - first, last - here)
        torch.minimum(distance[place : place + n_windows], reach, out=distance[place : place + n_windows])
    return distance


def _points_closer(
    ordered: Float[Tensor, " sample"], values: Float[Tensor, " sample"], distance: Float[Tensor, " sample"]
) -> Int[Tensor, " sample"]:
    """How many points lie strictly closer than the distance, the point itself included."""
    low = _places(ordered, values - distance, right=True)
    high = _places(ordered, values + distance, right=False)
    # value ± distance is rounded, so a point on the rim may fall on the wrong side: ask for its true distance
    last = len(ordered) - 1
    low += (values - ordered[low.clamp(max=last)] >= distance).long()
    low -= ((low > 0) & (values - ordered[(low - 1).clamp(min=0)] < distance)).long()
    high -= (ordered[(high - 1).clamp(min=0)] - values >= distance).long()
    high += ((high <= last) & (ordered[high.clamp(max=last)] - values < distance)).long()
    return (high - low).clamp(min=1)


def _places(ordered: Float[Tensor, " sample"], values: Float[Tensor, " sample"], right: bool) -> Int[Tensor, " sample"]:
    """Where the values would stand among the ordered ones, by whoever is faster: on a CPU NumPy, by half."""
    if ordered.device.type != "cpu":
        return torch.searchsorted(ordered, values, right=right)
    return torch.from_numpy(np.searchsorted(ordered.numpy(), values.numpy(), "right" if right else "left"))
