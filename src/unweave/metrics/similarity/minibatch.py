"""CKA from minibatches (Nguyen, Raghu and Kornblith, 2021), for many examples and many features."""

import torch

from unweave.metrics.estimators.arrays import check_count
from unweave.metrics.similarity.cka import Cka, hsic, normalised
from unweave.metrics.similarity.layers import Layers, centred_layers
from unweave.shapes import Float, Tensor


def minibatch_cka(left: Layers, right: Layers = None, *, batch_size: int = 250) -> Cka:
    """CKA with the unbiased criterion averaged over batches of rows: the work falls by samples / batch size.

    The rows should be in random order. The last batch is left out when fewer than four rows remain for it.
    """
    check_count(batch_size, "batch_size", least=4)
    layers, n_left = centred_layers(left, right)
    n_samples = len(layers[0])
    if n_samples < 4:
        raise ValueError(f"the unbiased estimator needs at least 4 examples, given {n_samples}")
    parts = [[layer[begin : begin + batch_size] for layer in layers] for begin in range(0, n_samples, batch_size)]
    kept = [part for part in parts if len(part[0]) >= 4]
    # the unbiased criterion has the same expectation in every batch; it wants the batch's own mean taken off, but not
    # its own scale, which would weigh batches differently
    shared = torch.stack([hsic([_shifted(layer) for layer in part], "unbiased") * len(part[0]) for part in kept])
    scores = normalised(shared.sum(0))
    return Cka(scores[:n_left, n_left:] if right is not None else scores, "unbiased", n_samples)


def _shifted(table: Float[Tensor, "sample feature"]) -> Float[Tensor, "sample feature"]:
    return table - table.mean(0)
