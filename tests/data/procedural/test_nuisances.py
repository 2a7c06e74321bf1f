"""Tint, noise and backdrop: their formulas and the statistics of their draws."""

import numpy as np
import pytest
import torch

from unweave import rng
from unweave.data.procedural.nuisances import Backdrop, Noise, Tint

SPRITES = (torch.arange(64 * 64).view(1, 1, 64, 64) % 7 == 0).float().expand(200, 1, 64, 64).contiguous()
INSIDE = SPRITES[0, 0] == 1


def uniform(n: int, columns: int) -> torch.Tensor:
    return rng.uniform(5, rng.Purpose.NUISANCE, 0, n, columns)


def test_tint_is_one_bright_colour_a_sprite() -> None:
    draws = uniform(200, Tint.n_draws)
    images = Tint().apply(SPRITES, draws)
    assert images.shape == (200, 3, 64, 64)
    assert not images[:, :, ~INSIDE].any()
    colours = images[:, :, INSIDE]
    torch.testing.assert_close(colours, (0.5 + draws / 2)[..., None].expand_as(colours))
    assert colours.min() >= 0.5
    # mean and standard deviation of U(1/2, 1), within four standard errors of 600 draws
    assert colours.mean().item() == pytest.approx(0.75, abs=4 * 0.144 / 600**0.5)


def test_noise_is_uniform_and_independent_under_a_white_sprite() -> None:
    images = Noise().apply(SPRITES, uniform(200, 4096))
    assert images.shape == (200, 3, 64, 64)
    assert (images[:, :, INSIDE] == 1).all()
    noise = images[:, :, ~INSIDE].double()
    assert noise.mean().item() == pytest.approx(0.5, abs=1e-3)
    assert noise.var().item() == pytest.approx(1 / 12, abs=1e-3)
    counts = torch.histc(noise, bins=16, min=0, max=1)
    assert ((counts / counts.sum() - 1 / 16).abs() < 5e-4).all()
    channels = np.corrcoef(noise.movedim(1, 0).flatten(1).numpy())
    assert np.abs(channels - np.eye(3)).max() < 0.005
    assert np.abs(np.corrcoef(noise[:2].flatten(1).numpy())[0, 1]) < 0.05


def test_noise_spends_all_the_bits_of_a_draw() -> None:
    draw = torch.full((1, 4096), ((3 << 16) + (200 << 8) + 77) * 2.0**-24)
    image = Noise().apply(torch.zeros(1, 1, 64, 64), draw)
    assert image[0, :, 5, 9].tolist() == [3.5 / 256, 200.5 / 256, 77.5 / 256]


def test_backdrop_agrees_with_a_loop() -> None:
    picture = torch.randint(0, 256, (3, 90, 80), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    draws = uniform(40, Backdrop.n_draws)
    images = Backdrop(picture).apply(SPRITES[:40], draws)
    for image, draw in zip(images, draws):
        row, column = int(draw[0] * (90 - 64)), int(draw[1] * (80 - 64))
        patch = picture[:, row : row + 64, column : column + 64].numpy() / 255
        expected = (patch + draw[2:, None, None].numpy()) / 2
        expected[:, INSIDE] = 1 - expected[:, INSIDE]
        np.testing.assert_allclose(image.numpy(), expected, atol=1e-6)


def test_backdrop_takes_every_place_but_the_last() -> None:
    # the picture tells its own places: rows in one channel, columns in another
    picture = torch.zeros(3, 68, 67, dtype=torch.uint8)
    picture[0] += torch.arange(68, dtype=torch.uint8)[:, None]
    picture[1] += torch.arange(67, dtype=torch.uint8)
    images = Backdrop(picture).apply(torch.zeros(200, 1, 64, 64), uniform(200, 5) * torch.tensor([1.0, 1, 0, 0, 0]))
    corners = (images[:, :2, 0, 0] * 2 * 255).round().long()
    assert set(corners[:, 0].tolist()) == {0, 1, 2, 3}
    assert set(corners[:, 1].tolist()) == {0, 1, 2}
    most = Backdrop(picture).apply(torch.zeros(1, 1, 64, 64), torch.full((1, 5), 1 - 2.0**-24))
    assert most.shape == (1, 3, 64, 64)


def test_inputs_stay_untouched() -> None:
    picture = torch.full((3, 70, 70), 9, dtype=torch.uint8)
    for nuisance in (Tint(), Noise(), Backdrop(picture)):
        sprites, draws = SPRITES[:3].clone(), uniform(3, nuisance.n_draws)
        before = draws.clone()
        first = nuisance.apply(sprites, draws)
        assert (sprites == SPRITES[:3]).all()
        assert (draws == before).all()
        assert (nuisance.apply(sprites, draws) == first).all()
        assert first.min() >= 0
        assert first.max() <= 1
