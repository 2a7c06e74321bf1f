"""The worked example of Zietlow (2022), §3.2.4, to its numbers, and why orthogonal columns are cheapest."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from unweave.models.precision_budget import precision_budget

M1 = torch.tensor([[4.0, 1.0], [-3.0, 1.0], [5.0, -1.0]], dtype=torch.float64)
TURN = torch.tensor([[1.0, -1.0], [1.0, 1.0]], dtype=torch.float64) / math.sqrt(2)


def test_the_numbers_of_the_example():
    assert precision_budget(M1).coefficient == pytest.approx(24.5, abs=0.05)
    turned = precision_budget(M1 @ TURN.T)
    assert turned.coefficient == pytest.approx(52.4, abs=0.05)
    # the source turns the other way round, which swaps x' and y': columns of squared norm 61/2 and 45/2
    assert sorted((M1 @ TURN.T).square().sum(0).tolist()) == pytest.approx([22.5, 30.5])
    variance = precision_budget(M1).variance
    assert float(variance[0] / variance[1]) == pytest.approx(3 / 50)


@pytest.mark.parametrize("budget", [0.0, 1.0, 5.0])
def test_the_minimum_is_what_an_optimiser_finds(budget):
    decoder = torch.randn(6, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    squares = decoder.square().sum(0).numpy()
    found = minimize(
        lambda log: float((squares * torch.tensor(log).exp().numpy()).sum()),
        x0=[-budget / 3] * 3,
        constraints={"type": "eq", "fun": lambda log: -sum(log) - budget},
        options={"ftol": 1e-14},
    )
    best = precision_budget(decoder, budget)
    assert best.loss == pytest.approx(found.fun, rel=1e-6)
    assert best.variance.log().sum() == pytest.approx(-budget)
    assert float((best.variance * torch.from_numpy(squares)).sum()) == pytest.approx(best.loss)


def test_the_loss_is_the_expected_squared_error():
    best = precision_budget(M1, 2.0)
    noise = (
        torch.randn(200_000, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) * best.variance.sqrt()
    )
    assert float((noise @ M1.T).square().sum(1).mean()) == pytest.approx(best.loss, rel=0.02)


@settings(max_examples=30, deadline=None)
@given(angle=st.floats(0.05, math.pi / 2 - 0.05), first=st.floats(1.5, 5.0))
def test_orthogonal_columns_are_cheapest(angle, first):
    """A column-orthogonal decoder turned by any angle costs more; unless its columns have equal norms."""
    straight = torch.diag(torch.tensor([first, 1.0], dtype=torch.float64))
    turn = torch.tensor([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]], dtype=torch.float64)
    assert precision_budget(straight @ turn).loss > precision_budget(straight).loss
    equal = torch.eye(2, dtype=torch.float64)
    assert precision_budget(equal @ turn).loss == pytest.approx(precision_budget(equal).loss)


def test_a_latent_without_effect_is_refused():
    with pytest.raises(ValueError, match="column of zeros"):
        precision_budget(torch.tensor([[1.0, 0.0]]))
