"""Permutation test of CKA: which similarities could be chance?"""

from dataclasses import dataclass

import torch

from unweave import rng
from unweave.metrics.estimators.arrays import check_count
from unweave.metrics.similarity.cka import hsic, normalised
from unweave.metrics.similarity.layers import Layers, centred_layers
from unweave.shapes import Float, Tensor


@dataclass(frozen=True)
class CkaTest:
    """``p_values`` of every pair, (1 + permutations at least as similar) / (1 + permutations), and unbiased scores."""

    p_values: Float[Tensor, "left right"]
    scores: Float[Tensor, "left right"]
    n_permutations: int
    n_samples: int


def cka_test(left: Layers, right: Layers, *, n_permutations: int = 199, n_samples: int = 500, seed: int = 0) -> CkaTest:
    """Unbiased CKA of all pairs of layers against the same with the examples of the right ones shuffled.

    It runs on ``n_samples`` of the examples, drawn at random, as every permutation goes through their Gram matrices.
    """
    check_count(n_permutations, "n_permutations")
    check_count(n_samples, "n_samples", least=4)
    layers, n_left = centred_layers(left, right)
    if len(layers[0]) < 4:
        raise ValueError(f"the unbiased estimator needs at least 4 examples, given {len(layers[0])}")
    chosen = rng.permutations(seed, rng.Purpose.RESAMPLE, 0, len(layers[0]), 1)[:n_samples, 0].to(layers[0].device)
    subset = [layer[chosen].double() - layer[chosen].double().mean(0) for layer in layers]
    scores = normalised(hsic(subset, "unbiased"))[:n_left, n_left:]
    grams = torch.stack([_u_centred(layer @ layer.T) for layer in subset])
    first, second = grams[:n_left].flatten(1), grams[n_left:]
    observed = first @ second.flatten(1).T
    orders = rng.permutations(seed, rng.Purpose.PERMUTATION, 0, len(chosen), n_permutations).to(chosen.device)
    above = torch.zeros_like(observed)
    for order in orders.T:
        # only ⟨U(K), U(L)⟩ changes when the examples of L change places, not the norms
        above += first @ second[:, order][:, :, order].flatten(1).T >= observed - 1e-12 * observed.abs()
    return CkaTest((1.0 + above) / (1.0 + n_permutations), scores, n_permutations, len(chosen))


def _u_centred(gram: Float[Tensor, "sample sample"]) -> Float[Tensor, "sample sample"]:
    """Without a diagonal, and with rows and columns that add up to zero (Székely and Rizzo, 2014)."""
    n = len(gram)
    hollow = gram - torch.diag(torch.diagonal(gram))
    rows = hollow.sum(1) / (n - 2)
    centred = hollow - rows[:, None] - rows + hollow.sum() / ((n - 1) * (n - 2))
    return centred - torch.diag(torch.diagonal(centred))
