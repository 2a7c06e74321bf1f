"""Correlated factors: the ridge of the published study, drawn row by row, and only where it is asked for."""

import dataclasses

import numpy as np
import pytest
import torch
from scipy.stats import chisquare

from unweave import rng
from unweave.config import fingerprint, from_plain, to_plain
from unweave.data import WORLDS
from unweave.data.altered import Noise
from unweave.data.correlated import FactorWorld, draw_places, row_thresholds, row_weights
from unweave.data.factors import Factor, FactorSpace
from unweave.data.micro import Micro
from unweave.data.world import Data, World

SPACE = FactorSpace((Factor("x", 5), Factor("hidden", 2, hidden=True), Factor("y", 4), Factor("shape", 3)))


def words(n: int, seed: int = 0) -> torch.Tensor:
    return rng.words(seed, rng.Purpose.BATCH, 0, n, 2)


def drawn_rows(data: Data, n: int) -> torch.Tensor:
    assert data.weights is not None
    return draw_places(row_thresholds(data.weights), words(n)[None, None]).flatten()


@pytest.mark.parametrize("turned", [False, True])
def test_weights_are_the_ridge_of_the_original(turned: bool) -> None:
    found = row_weights(SPACE, ("x=-y:0.3" if turned else "x=y:0.3", "shape = x : 2e-1"))
    for row in range(SPACE.n_cells):
        x, y, shape = (v / (n - 1) for v, n in zip(SPACE.values(torch.tensor(row)).tolist(), SPACE.sizes))
        first = np.exp(-((x - (1 - y if turned else y)) ** 2) / (2 * 0.3**2))
        second = np.exp(-((shape - x) ** 2) / (2 * 0.2**2))
        assert found[row].item() == pytest.approx(first * second, rel=1e-12)


def test_rows_come_as_often_as_their_weights() -> None:
    weights = row_weights(SPACE, ("x=y:0.4",))
    data = Data(torch.zeros(SPACE.n_cells, 1, 2, 2, dtype=torch.uint8), (1, 2, 2), space=SPACE, weights=weights)
    found = np.bincount(drawn_rows(data, 60_000), minlength=SPACE.n_cells)
    assert chisquare(found, (weights / weights.sum() * 60_000).numpy()).pvalue > 1e-3


def test_rows_without_weight_never_come() -> None:
    thresholds = row_thresholds(torch.tensor([0.0, 1.0, 0.0, 0.1, 0.0]).double())
    extreme = torch.tensor([[0, 0], [2**32 - 1, 2**32 - 1]])
    assert draw_places(thresholds, extreme[None, None]).flatten().tolist() == [1, 3]
    assert set(draw_places(thresholds, words(10_000)[None, None]).flatten().tolist()) == {1, 3}


def test_every_model_may_have_rows_of_its_own() -> None:
    weights = row_weights(SPACE, ("x=y:0.1",))
    kept = torch.stack([torch.arange(0, 100), torch.arange(20, 120)])
    drawn = words(4 * 2 * 50).view(4, 2, 50, 2)
    together = draw_places(row_thresholds(weights[kept]), drawn)
    for model in range(2):
        alone = draw_places(row_thresholds(weights[kept[model]]), drawn[:, model : model + 1])
        assert torch.equal(together[:, model : model + 1], alone)


def test_large_worlds_keep_their_tails() -> None:
    """A million rows: neighbouring thresholds stay apart where 32 bits would merge some."""
    thresholds = row_thresholds(torch.linspace(1e-6, 1.0, 1_000_000).double())
    assert (thresholds.diff() > 0).all()


def test_the_option_is_on_every_world_with_factors_and_in_no_id_by_default() -> None:
    for name, cls in WORLDS.items():
        if "base" in {field.name for field in dataclasses.fields(cls)}:
            continue  # a world over another, whose option it is
        assert (cls().card().space is not None) == issubclass(cls, FactorWorld), name
    assert to_plain(Micro()) == {"name": "micro"}
    world = Micro(correlated=("x=y:0.2",))
    assert fingerprint(world) != fingerprint(Micro())
    assert from_plain(World, to_plain(world), {World: WORLDS}) == world
    assert to_plain(world) == {"name": "micro", "correlated": ["x=y:0.2"]}


def test_a_loaded_world_has_its_weights() -> None:
    assert Micro().load().weights is None
    data = Micro(correlated=("x=y:0.1",)).load()
    factors = data.factors(drawn_rows(data, 20_000)).double()
    assert np.corrcoef(factors.T)[0, 1] > 0.9
    assert abs(np.corrcoef(factors.T)[0, 2]) < 0.05
    turned = Micro(correlated=("x=-y:0.1",)).load()
    assert np.corrcoef(turned.factors(drawn_rows(turned, 20_000)).double().T)[0, 1] < -0.9


def test_a_world_over_a_correlated_world_is_correlated() -> None:
    data = Noise(Micro(correlated=("x=y:0.1",))).load()
    factors = data.factors(drawn_rows(data, 5_000)).double()
    assert np.corrcoef(factors.T)[0, 1] > 0.9


@pytest.mark.parametrize(
    ("entry", "complaint"),
    [
        ("x=z:0.1", "unknown factor 'z'"),
        ("x=x:0.1", "two different factors"),
        ("x=y", "as in x=size:0.2, not 'x=y'"),
        ("x=y:0", "a width above 0"),
        ("x=y:-1", "a width above 0"),
        ("x=y:1e", "a width above 0"),
        ("x=y:1e999", "a width above 0"),
        ("", "correlated takes two factors"),
    ],
)
def test_bad_entries_are_refused(entry: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        Micro(correlated=(entry,)).load()


def test_a_factor_of_one_value_is_refused() -> None:
    with pytest.raises(ValueError, match="one has one value only"):
        row_weights(FactorSpace((Factor("one", 1), Factor("x", 3))), ("one=x:0.2",))
