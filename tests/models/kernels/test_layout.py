"""Rows and views are two ways to see the same parameters."""

import pytest
import torch

from unweave.models.autoencoder import Architecture, Autoencoder
from unweave.models.kernels.layout import layout_of
from unweave.models.networks import Conv


@pytest.mark.parametrize("kernels", [False, True])
def test_rows_and_views_are_inverse(kernels: bool) -> None:
    models = [Autoencoder(Architecture((1, 8, 8), 3, Conv((4, 8), (4, 4), 16)), "pytorch", seed) for seed in (0, 1)]
    layout = layout_of(models[0], kernels=kernels)
    stack = torch.stack([layout.row(dict(model.named_parameters())) for model in models])
    for name, view in layout.views(stack).items():
        for place, model in enumerate(models):
            assert torch.equal(view[place], model.get_parameter(name))
    assert torch.equal(layout.rows(layout.views(stack)), stack)
    assert all(offset % layout.align == 0 for offset in layout.offsets.values())


def test_kernel_layout_keeps_small_channels_last() -> None:
    model = Autoencoder(Architecture((1, 8, 8), 3, Conv((4, 8), (4, 4), 16)), "pytorch", 0)
    layout = layout_of(model, kernels=True)
    row = layout.row(dict(model.named_parameters()))
    weight = model.get_parameter("encoder.trunk.convolutions.1.weight")
    begin = layout.offsets["encoder.trunk.convolutions.1.weight"]
    expected = [weight[small, big, y, x] for y in range(4) for x in range(4) for big in range(4) for small in range(8)]
    assert torch.equal(row[begin : begin + weight.numel()], torch.stack(expected))


def test_a_smaller_model_fills_the_beginning() -> None:
    wide = layout_of(Autoencoder(_mlp(5), "pytorch", 0))
    small = Autoencoder(_mlp(3), "pytorch", 1)
    view = wide.views(wide.row(dict(small.named_parameters()))[None])["encoder.heads.mean.weight"][0]
    assert torch.equal(view[:3], small.get_parameter("encoder.heads.mean.weight"))
    assert torch.equal(view[3:], torch.zeros_like(view[3:]))


def _mlp(latents: int) -> Architecture:
    from unweave.models.networks import MLP

    return Architecture((4,), latents, MLP((8,), (8,)))
