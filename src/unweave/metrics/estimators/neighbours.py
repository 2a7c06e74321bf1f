"""Mutual information of a continuous code and a discrete factor by nearest neighbours (Ross, 2014).

In one dimension neighbours are found by sorting: the k-th neighbour of a point lies at the end of one of the k + 1
windows of k + 1 sorted points that hold it.
"""

import torch

from unweave.shapes import Float, Int, Tensor


def neighbour_information(
    code: Float[Tensor, "sample"], labels: Int[Tensor, "sample"], n_neighbours: int
) -> Float[Tensor, ""]:
    """I(code; labels) in nats, never negative. Labels that occur once are left out; ties should be broken before."""
    counts = torch.bincount(labels)[labels]
    code, labels, counts = code[counts > 1], labels[counts > 1], counts[counts > 1]
    if len(code) == 0:
        return torch.zeros((), dtype=torch.float64, device=code.device)
    ordered, order = code.to(torch.float64).sort()
    labels, counts = labels[order], counts[order]
    grouping = labels.argsort(stable=True)
    values, counts = ordered[grouping], counts[grouping]
    k = (counts - 1).clamp(max=n_neighbours)
    inside = _points_closer(ordered, values, _kth_distance(values, labels[grouping], k))
    # I = ψ(N) + ⟨ψ(k)⟩ − ⟨ψ(N_label)⟩ − ⟨ψ(m)⟩
    terms = torch.digamma(k.double()) - torch.digamma(counts.double()) - torch.digamma(inside.double())
    total = torch.digamma(torch.tensor(float(len(code)), dtype=torch.float64, device=code.device))
    return (total + terms.mean()).clamp(min=0.0)


def _kth_distance(
    values: Float[Tensor, "sample"], labels: Int[Tensor, "sample"], k: Int[Tensor, "sample"]
) -> Float[Tensor, "sample"]:
    """Distance to the k-th neighbour of the same label; values ascend within each label, labels lie together."""
    place = torch.arange(len(values), device=values.device)
    distance = torch.full_like(values, torch.inf)
    for before in range(int(k.max()) + 1):
        first, last = (place - before).clamp(min=0), (place - before + k).clamp(max=len(values) - 1)
        fits = (before <= k) & (place >= before) & (place - before + k < len(values))
        fits &= (labels[first] == labels) & (labels[last] == labels)
        reach = torch.maximum(values - values[first], values[last] - values)
        distance = torch.where(fits, torch.minimum(distance, reach), distance)
    return distance


def _points_closer(
    ordered: Float[Tensor, "sample"], values: Float[Tensor, "sample"], distance: Float[Tensor, "sample"]
) -> Int[Tensor, "sample"]:
    """How many points lie strictly closer than the distance, the point itself included."""
    low = torch.searchsorted(ordered, values - distance, right=True)
    high = torch.searchsorted(ordered, values + distance)
    # value ± distance is rounded, so a point on the rim may fall on the wrong side: ask for its true distance
    last = len(ordered) - 1
    low += (values - ordered[low.clamp(max=last)] >= distance).long()
    low -= ((low > 0) & (values - ordered[(low - 1).clamp(min=0)] < distance)).long()
    high -= (ordered[(high - 1).clamp(min=0)] - values >= distance).long()
    high += ((high <= last) & (ordered[high.clamp(max=last)] - values < distance)).long()
    return (high - low).clamp(min=1)
