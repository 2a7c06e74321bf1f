"""Axes: both ends carry a number, and both axes a name."""

from typing import Any

import numpy as np
import pytest
from matplotlib.collections import PolyCollection

from unweave.plots.bands import Band, bands
from unweave.plots.curves import line_bands, stacked_types
from unweave.plots.histogram import histogram
from unweave.plots.latents import kl_bars, latent_history
from unweave.plots.scatter import scatter
from unweave.plots.training import loss_curves
from unweave.plots.violins import violins

DRAW = np.random.default_rng(0)
STEPS = np.arange(0, 1780, 20)
FALL = 650.0 * np.exp(-STEPS / 300.0) + 37.0 + DRAW.uniform(size=len(STEPS))
FIGURES = {
    "losses": lambda: loss_curves(STEPS, {"loss": FALL, "kl": np.abs(DRAW.normal(size=len(STEPS))) * 1e-3}),
    "a narrow loss": lambda: loss_curves(STEPS, {"loss": 500.0 + DRAW.uniform(size=len(STEPS))}),
    "latents": lambda: latent_history(STEPS, np.abs(DRAW.normal(size=(len(STEPS), 3))), ["active"] * 3),
    "KL": lambda: kl_bars([2.2, 1.4, 0.001], ["active", "active", "passive"]),
    "lines": lambda: line_bands({"a": {1.0: [0.31, 0.4], 4.0: [0.7, 0.77]}}, "β", "MIG"),
    "types": lambda: stacked_types(
        [1.0, 4.0], {"active": [3.0, 2.0], "mixed": [0.0, 1.0], "passive": [3.0, 3.0]}, x="β"
    ),
    "points": lambda: scatter({"a": (DRAW.normal(size=9), DRAW.normal(size=9))}, "", "β", "MIG"),
    "violins": lambda: violins([DRAW.normal(size=9), DRAW.normal(size=3)], ["a", "b"], "", "MIG", "setting"),
    "bands": lambda: bands({"a": {"b": Band([1, 2], [0.31, 0.4], [0.3, 0.39], [0.32, 0.44])}}, "β", "MIG"),
    "histogram": lambda: histogram({"a": DRAW.uniform(size=40)}, "", "MIG"),
}


@pytest.mark.parametrize("name", FIGURES)
def test_both_ends_of_a_measured_axis_carry_a_number(name: str) -> None:
    for axes in FIGURES[name]().axes:
        low, high = axes.get_ylim()
        shown = [tick for tick in axes.get_yticks() if low - 1e-9 <= tick <= high * (1 + 1e-9) + 1e-9]
        assert len(shown) >= 2
        assert min(shown) == pytest.approx(low, rel=1e-6, abs=1e-9)
        assert max(shown) == pytest.approx(high, rel=1e-6, abs=1e-9)
        assert axes.get_xlabel()
        assert axes.get_ylabel()


def test_what_is_never_negative_has_no_negative_axis() -> None:
    for name in ("losses", "latents", "KL", "types"):
        assert all(axes.get_ylim()[0] >= 0.0 for axes in FIGURES[name]().axes)


def test_steps_begin_and_end_with_a_number() -> None:
    (axes,) = loss_curves(STEPS, {"loss": FALL}).axes
    ticks = axes.get_xticks()
    assert (ticks[0], ticks[-1]) == (STEPS[0], STEPS[-1])
    assert len(ticks) >= 4


def test_a_shape_is_drawn_from_eight_values_on() -> None:
    def shapes(n: int) -> list[Any]:
        (axes,) = violins([np.arange(float(n))], ["a"]).axes
        return [one for one in axes.collections if isinstance(one, PolyCollection)]

    assert len(shapes(7)) == 0
    assert len(shapes(8)) == 1
