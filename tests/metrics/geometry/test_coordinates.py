"""Cartesian or polar, on planted planes."""

import math

import pytest
import torch

from unweave.metrics.geometry.coordinates import polar_or_cartesian


def planted() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Factors (12 hues, 10 orientations), and codes that hold them along axes, and as angle and radius."""
    hue, turn = torch.meshgrid(torch.arange(12), torch.arange(10), indexing="ij")
    factors = torch.stack([hue.flatten(), turn.flatten()], 1).repeat(20, 1)
    noise = 0.01 * torch.randn(len(factors), 2, generator=torch.Generator().manual_seed(0))
    angle, radius = 2 * math.pi * (factors[:, 0] + 0.5) / 12, 1.0 + 0.3 * factors[:, 1]
    polar = torch.stack([radius * angle.cos(), radius * angle.sin()], 1)
    return factors, factors / torch.tensor([11.0, 9.0]) + noise, polar + noise


def rotated(codes: torch.Tensor, degrees: float) -> torch.Tensor:
    angle = math.radians(degrees)
    return codes @ torch.tensor([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])


def test_planted_codes_are_told_apart() -> None:
    factors, axes, polar = planted()
    assert polar_or_cartesian(axes, factors).score < -0.4
    assert polar_or_cartesian(axes, factors).cartesian > 0.95
    assert polar_or_cartesian(polar, factors).score > 0.4
    assert polar_or_cartesian(polar, factors).polar > 0.9


@pytest.mark.parametrize("kind", [1, 2])
def test_scale_sign_order_and_rotation_change_nothing(kind: int) -> None:
    factors, codes = planted()[0], planted()[kind]
    score = polar_or_cartesian(codes, factors).score
    for other in (7.0 * codes, codes * torch.tensor([-1.0, 3.0]), codes.flip(1), codes + 5.0):
        assert polar_or_cartesian(other, factors).score == pytest.approx(score, abs=0.05)
    for degrees in (15, 45, 70):
        assert polar_or_cartesian(rotated(codes, degrees), factors).score == pytest.approx(score, abs=0.12)


def test_a_turned_plane_says_by_how_much() -> None:
    factors, axes, _ = planted()
    white = (axes - axes.mean(0)) / axes.std(0)
    assert polar_or_cartesian(white, factors).rotation in (0.0, 5.0, 85.0)
    assert polar_or_cartesian(rotated(white, 45), factors).rotation == pytest.approx(45.0, abs=10.0)


def test_noise_is_neither() -> None:
    factors = planted()[0]
    noise = torch.randn(len(factors), 2, generator=torch.Generator().manual_seed(1))
    assert abs(polar_or_cartesian(noise, factors).score) < 0.05
    constant = polar_or_cartesian(torch.zeros(len(factors), 2), factors)
    assert math.isfinite(constant.score)


def test_only_planes_are_taken() -> None:
    with pytest.raises(ValueError, match="two latents and two factors"):
        polar_or_cartesian(torch.randn(10, 3), torch.arange(20).reshape(10, 2))
