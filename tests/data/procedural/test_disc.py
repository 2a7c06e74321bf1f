"""The soft disc against supersampled coverage."""

import numpy as np
import torch

from unweave.data.procedural.disc import render_discs


def test_brightness_is_the_covered_area() -> None:
    images = render_discs(3, 3, 5).double() / 255
    radius = torch.linspace(3, 7, 5).double().repeat(9)
    torch.testing.assert_close(images.sum(dim=(1, 2, 3)), torch.pi * radius**2, rtol=0.01, atol=0)


def test_pixels_agree_with_supersampling() -> None:
    ours = render_discs(4, 4, 2)[2 * (1 * 4 + 2) + 1, 0].double() / 255
    x, y = 8 + 16 * 1 / 3, 8 + 16 * 2 / 3
    fine = (np.arange(32 * 20) + 0.5) / 20
    inside = np.hypot(fine[None, :] - x, fine[:, None] - y) <= 7
    covered = inside.reshape(32, 20, 32, 20).mean(axis=(1, 3))
    assert np.abs(ours.numpy() - covered).max() < 0.1
    assert np.abs(ours.numpy() - covered).mean() < 0.01


def test_discs_stay_inside_the_image() -> None:
    images = render_discs(5, 5, 3)[:, 0]
    assert not images[:, [0, -1]].any()
    assert not images[:, :, [0, -1]].any()
