"""The transposed convolutions of stacked generators on GPU kernels, each with its rectifier and norm, and back."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from unweave.models.kernels.aside import Later, aside, in_turn
from unweave.models.kernels.batch_norm import Setting, normalise, normalise_backward
from unweave.models.kernels.convolutions import Precision, down, up
from unweave.models.kernels.correlation import correlate_into
from unweave.models.kernels.encoder import bias_of
from unweave.models.kernels.join import Join
from unweave.models.kernels.layout import Layout
from unweave.shapes import Float, Tensor

Images = Float[Tensor, "model batch channel height width"]


class Layers(NamedTuple):
    """What all models have in common: where weights lie, sizes, precision and norm. A batch is normalised in groups."""

    layout: Layout
    joins: Sequence[Join]
    precision: Precision
    setting: Setting


class Kept(NamedTuple):
    """Of one layer: what it made before its bias, that bias; of its norm the scale, means and 1 / √(variance + ε)."""

    made: Tensor
    bias: Tensor
    scale: Tensor
    mean: Tensor
    inverse: Tensor


class Generated(torch.autograd.Function):
    """The last normalised images in fp32, then the next running mean and variance of every layer.

    Given are all weights and biases as the layout names them, then of every layer scale, shift, running mean and
    running variance.
    """

    @staticmethod
    def forward(ctx: Any, x: Images, layers: Layers, *given: Tensor) -> tuple[Tensor, ...]:
        layout, joins, precision, setting = layers
        n_models, n_names = len(x), len(layout.names)
        parameters, norms = dict(zip(layout.names, given)), given[n_names:]
        weights = layout.rows(parameters).to(precision.stored)
        images, kept, moved = [x.movedim(2, -1).to(precision.stored).contiguous()], [], []
        for place, join in enumerate(joins):
            made = up(join, images[-1], weights, precision.product)
            last = place == len(joins) - 1
            scale, shift, running_mean, running_variance = norms[4 * place : 4 * place + 4]
            bias = parameters[f"{place}.bias"]
            rows = made.view(n_models * setting.groups, -1, join.n_big)
            y, mean, inverse, *fresh = normalise(
                rows,
                scale,
                shift,
                running_mean,
                running_variance,
                setting,
                before=bias,
                dtype=torch.float32 if last else None,
            )
            images.append(y.view(made.shape))
            kept.append(Kept(rows, bias, scale, mean, inverse))
            moved += [one.view(n_models, setting.groups, -1)[:, -1] for one in fresh]
        ctx.kept = layers, weights, images[:-1], kept
        ctx.mark_non_differentiable(*moved)
        ctx.set_materialize_grads(False)  # or zeros would be made for them
        return images[-1].movedim(-1, 2), *moved

    @staticmethod
    def backward(ctx: Any, slope: Images, *_: Any) -> tuple[Tensor | None, ...]:
        (layout, joins, precision, setting), weights, images, kept = ctx.kept
        gradients = torch.empty(weights.shape, device=weights.device)
        beside = aside(len(weights), weights.device)
        later: Later = beside or in_turn
        by_norms: list[Tensor | None] = []
        slope = slope.movedim(2, -1).contiguous()
        for join, image, one in zip(reversed(joins), reversed(images), reversed(kept)):
            by_made, by_scale, by_shift = normalise_backward(
                slope.view(one.made.shape), one.made, one.scale, one.mean, one.inverse, setting.leak,
                before=one.bias, by_before=bias_of(gradients, join, join.n_big),
            )  # fmt: skip
            by_norms = [by_scale, by_shift, None, None, *by_norms]
            big = by_made.view(slope.shape)
            later(correlate_into, join, big, image, gradients, precision.product)
            slope = down(join, big, weights, precision.product)
        if beside is not None:
            beside.join()
        return slope.float().movedim(-1, 2), None, *layout.views(gradients).values(), *by_norms
