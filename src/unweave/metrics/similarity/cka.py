"""Linear centred kernel alignment, CKA (Kornblith et al., 2019), of all pairs of layers at once.

Each layer enters once, by a block of rows of its Gram matrix K = XXᵀ at a time; all pairs then share one product of
these blocks, ⟨K, L⟩ = Σ_ij K_ij L_ij. The unbiased estimator (Song et al., 2012) costs nothing more: for centred
features it needs only ⟨K, L⟩ and the diagonals.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from unweave.metrics.similarity.layers import Layers, centred_layers
from unweave.shapes import Float, Tensor

BLOCK_BYTES = 128 * 2**20
PIECE = 2**16
"""Products summed in the precision of the activations before they are added up in float64."""


@dataclass(frozen=True)
class Cka:
    """``scores`` of every left layer (rows) with every right one (columns).

    1 for equal representations up to rotation and scale, 0 on average for unrelated ones by the unbiased estimator,
    which may fall below. A constant layer scores 0 with everything.
    """

    scores: Float[Tensor, "left right"]
    estimator: str
    n_samples: int


def cka(left: Any, right: Any, *, estimator: str = "unbiased", form: str = "auto") -> float:
    """CKA of one pair of representations of the same examples."""
    return float(cka_matrix([left], [right], estimator=estimator, form=form).scores)


def cka_matrix(left: Layers, right: Layers = None, *, estimator: str = "unbiased", form: str = "auto") -> Cka:
    """CKA of all pairs of layers of two models; without ``right``, of the layers of one model with each other.

    The published studies used the biased estimator, which is far from 0 for unrelated representations with more
    features than examples. ``feature`` multiplies features (fewer of them than examples), ``gram`` examples; the
    result is the same.
    """
    if estimator not in ("unbiased", "biased"):
        raise ValueError(f"estimator must be unbiased or biased, not {estimator!r}")
    if form not in ("auto", "feature", "gram"):
        raise ValueError(f"form must be auto, feature or gram, not {form!r}")
    layers, n_left = centred_layers(left, right)
    n_samples = len(layers[0])
    if estimator == "unbiased" and n_samples < 4:
        raise ValueError(f"the unbiased estimator needs at least 4 examples, given {n_samples}")
    shared = hsic(layers, estimator, form)
    scores = normalised(shared)
    return Cka(scores[:n_left, n_left:] if right is not None else scores, estimator, n_samples)


def gram_rows(layers: Layers) -> Float[Tensor, "layer entry"]:
    """The Gram matrices of one model's layers, a row each, for :func:`cka_of_grams`: made once for all its partners."""
    return torch.cat(list(_gram_blocks(centred_layers(layers, None)[0])), dim=1)


def cka_of_grams(left: Float[Tensor, "left entry"], right: Float[Tensor, "right entry"]) -> Float[Tensor, "left right"]:
    """The biased CKA of all pairs of layers of two models of equally many layers, from their Gram matrices."""
    if left.shape[1] != right.shape[1]:
        raise ValueError("both models must have seen the same examples, and have equally many layers")
    pieces = list(zip(left.split(PIECE, dim=1), right.split(PIECE, dim=1)))
    crossed = torch.stack([one @ other.T for one, other in pieces]).double().sum(0)
    own = [
        torch.stack([piece.square().sum(1) for piece in rows.split(PIECE, dim=1)]).double().sum(0)
        for rows in (left, right)
    ]
    scale = own[0].sqrt()[:, None] * own[1].sqrt()
    return torch.where(scale > 0, crossed / scale.clamp(min=1e-300), 0.0)


def hsic(layers: list[Float[Tensor, "sample _"]], estimator: str, form: str = "auto") -> Float[Tensor, "layer layer"]:
    """The Hilbert–Schmidt independence criterion of all pairs of centred layers."""
    n_samples, width = len(layers[0]), sum(layer.shape[1] for layer in layers)
    by_features = form == "feature" or (form == "auto" and width <= n_samples)
    products = _feature_products(layers) if by_features else inner_products(_gram_blocks(layers))
    if estimator == "biased":
        return products / max(1, n_samples - 1) ** 2
    diagonals = torch.stack([layer.square().sum(1, dtype=torch.float64) for layer in layers])
    return unbiased(products, diagonals)


def unbiased(
    products: Float[Tensor, "layer layer"], diagonals: Float[Tensor, "layer sample"]
) -> Float[Tensor, "layer layer"]:
    """The unbiased criterion from ⟨K, L⟩ and the diagonals of centred Gram matrices.

    Song et al.'s terms for K̃, which is K with a zero diagonal, where the rows of K add up to zero:
    tr K̃L̃ = ⟨K, L⟩ − k·l,   1ᵀK̃1 = −tr K,   1ᵀK̃L̃1 = k·l.
    """
    n = diagonals.shape[1]
    crossed = diagonals @ diagonals.T
    traces = diagonals.sum(1)
    total = products - crossed + traces[:, None] * traces / ((n - 1) * (n - 2)) - 2.0 * crossed / (n - 2)
    return total / (n * (n - 3))


def normalised(shared: Float[Tensor, "layer layer"]) -> Float[Tensor, "layer layer"]:
    """CKA = HSIC(K, L) / √(HSIC(K, K) HSIC(L, L)); 0 where a layer does not vary."""
    own = torch.diagonal(shared).clamp(min=0.0).sqrt()
    scale = own[:, None] * own
    return torch.where(scale > 0, shared / scale.clamp(min=1e-300), 0.0)


def inner_products(blocks: Iterable[Float[Tensor, "layer _"]]) -> Float[Tensor, "layer layer"]:
    """Σ over entries of every pair of rows, added up in float64 over blocks that may come from anywhere."""
    total: Tensor | float = 0.0
    for block in blocks:
        for piece in block.split(PIECE, dim=1):
            total = total + (piece @ piece.T).double()
    assert isinstance(total, Tensor)
    return total


def _gram_blocks(layers: list[Tensor]) -> Iterator[Float[Tensor, "layer _"]]:
    """The upper triangle of all Gram matrices, rows at a time; what stands right of the diagonal counts twice."""
    n_samples = len(layers[0])
    kind = torch.float64 if any(layer.dtype == torch.float64 for layer in layers) else torch.float32
    # many blocks, for one on the diagonal is computed whole; but not so small that reading the features takes the time
    rows = max(1, min(max(128, n_samples // 16), BLOCK_BYTES // (len(layers) * n_samples * kind.itemsize)))
    for begin in range(0, n_samples, rows):
        end = min(n_samples, begin + rows)
        block = torch.empty(len(layers), end - begin, n_samples - begin, dtype=kind, device=layers[0].device)
        for place, layer in enumerate(layers):
            block[place] = layer[begin:end] @ layer[begin:].T
        block[:, :, end - begin :] *= 2.0**0.5
        yield block.flatten(1)


def _feature_products(layers: list[Tensor]) -> Float[Tensor, "layer layer"]:
    """⟨K, L⟩ = ‖XᵀY‖², from one product of all features with all features."""
    wide = torch.cat([layer.double() for layer in layers], dim=1)
    widths = [layer.shape[1] for layer in layers]
    squares = (wide.T @ wide).square_()
    rows = torch.stack([part.sum(0) for part in squares.split(widths, dim=0)])
    return torch.stack([part.sum(1) for part in rows.split(widths, dim=1)], dim=1)
