"""Phases, kept weights, factors for a manipulation, and closed forms at the edge of what they take."""

import pytest
import torch

from unweave.models.autoencoder import Architecture
from unweave.models.closed_form_ivae import ivae_prior
from unweave.models.impossibility import UNIFORM, entangle, householder
from unweave.models.manipulation import ManipulationNetwork
from unweave.models.method import Phase, kept_weights, new_networks
from unweave.models.networks import Linear
from unweave.models.objectives import WSGAN, AnnealedVAE, BetaVAE, Context, FactorVAE, SemiVAE
from unweave.models.posteriors import Diagonal


def test_a_phase_is_due_in_every_so_manieth_step_and_counts_its_own_updates() -> None:
    phase = Phase(("model",), BetaVAE().loss, every=3)
    assert [step for step in range(10) if phase.due(step)] == [2, 5, 8]
    assert [int(phase.count(torch.tensor(step))) for step in (2, 5, 8)] == [1, 2, 3]
    usual = Phase(("model",), BetaVAE().loss)
    assert all(usual.due(step) for step in range(3))
    assert [int(usual.count(torch.tensor(step))) for step in range(3)] == [1, 2, 3]


def test_weights_of_several_networks_are_named_by_their_part() -> None:
    held = {"encoder": {"a": 1}, "generator": {"a": 2}, "discriminator": {"a": 3}, "model": {"a": 4}}
    assert kept_weights(WSGAN(), held) == {"encoder.a": 1, "generator.a": 2}
    assert kept_weights(BetaVAE(), held) == {"a": 4}


def test_networks_of_a_method_begin_with_other_numbers() -> None:
    made = new_networks(FactorVAE(width=3, depth=1), Architecture((3,), 3, Linear()), "glorot", 0)
    mean, first = made["model"].encoder.heads["mean"].weight, made["discriminator"].layers[0].weight  # type: ignore[union-attr, index]
    assert mean.shape == first.shape == (3, 3)
    assert not torch.equal(mean, first)


def test_factors_lie_on_minus_one_to_one() -> None:
    network = ManipulationNetwork(Architecture((1, 1, 2), 1, Linear(), labels=(3, 2, 0)))
    factors = torch.tensor([[0.0, 0.0, -0.4], [1.0, 1.0, 0.7], [2.0, 0.0, 9.0]])
    wanted = torch.tensor([[-1.0, -1.0, -0.4], [0.0, 1.0, 0.7], [1.0, -1.0, 9.0]])
    torch.testing.assert_close(network.scaled(factors), wanted)
    changed = network(factors)
    assert changed.shape == (3, 1, 1, 2)
    assert changed.abs().max() <= 1.0


def test_capacities_stay_once_they_are_reached() -> None:
    code = Diagonal().code({"mean": torch.zeros(2, 3), "log_variance": torch.zeros(2, 3)}, torch.zeros(2, 3))
    method = AnnealedVAE(gamma=2.0, capacity=8.0, rise=4)
    for step, capacity in ((0, 0.0), (1, 2.0), (4, 8.0), (9, 8.0)):
        for now in (step, torch.tensor(step)):
            terms = method.terms(code, Context(now))
            assert float(terms["capacity"]) == capacity
            assert float(terms["regulariser"]) == 2.0 * capacity  # the KL of the prior itself is 0


def test_supervision_comes_at_once_or_by_and_by() -> None:
    for annealing, wanted in (
        ("fixed", [6.0, 6.0, 6.0, 6.0]),
        ("linear", [0.0, 3.0, 6.0, 6.0]),
        ("fine_tuning", [0.0, 0.0, 0.0, 6.0]),
    ):
        method = SemiVAE(gamma=6.0, annealing=annealing, threshold=4)  # type: ignore[arg-type]
        assert [float(method.weight(step)) for step in (0, 2, 4, 5)] == wanted


@pytest.mark.parametrize("size", [0.01, 1.0, 100.0])
def test_columns_are_orthogonal_to_a_millionth_of_the_longest(size: float) -> None:
    covariance = torch.eye(3, dtype=torch.float64)
    for slant, taken in ((0.4e-6, True), (0.9e-6, True), (1.1e-6, False), (1.9e-6, False)):
        # the product of the columns is the slant, of the longest column's square
        weight = size * torch.tensor([[1.0, slant], [0.0, 0.5], [0.0, 0.0]], dtype=torch.float64)
        if taken:
            assert ivae_prior(weight, covariance, 0.5).shape == (2,)
        else:
            with pytest.raises(ValueError, match="must be orthogonal"):
                ivae_prior(weight, covariance, 0.5)


def test_a_latent_without_a_column_is_passive() -> None:
    weight = torch.tensor([[2.0, 0.0], [0.0, 0.0]], dtype=torch.float64)
    covariance = torch.diag(torch.tensor([3.0, 1.0], dtype=torch.float64))
    # (3 − 0.5) / 4: what noise does not explain, in the units of the latent
    assert ivae_prior(weight, covariance, 0.5).tolist() == [0.625, 0.0]
    assert ivae_prior(weight, covariance, 5.0).tolist() == [0.0, 0.0]


def test_rotations_are_orthogonal_to_a_millionth() -> None:
    factors, turn = torch.full((2, 2), 0.3, dtype=torch.float64), householder(2)
    for share, taken in ((0.4e-6, True), (0.6e-6, False), (0.9e-6, False)):
        # (1 + s)² − 1 is about 2 s
        if taken:
            entangle(factors, (UNIFORM, UNIFORM), turn * (1.0 + share))
        else:
            with pytest.raises(ValueError, match="rotation must be an orthogonal 2 × 2 matrix"):
                entangle(factors, (UNIFORM, UNIFORM), turn * (1.0 + share))
    with pytest.raises(ValueError, match="must describe each of the 2 factors, given 3"):
        entangle(factors, (UNIFORM,) * 3)


def test_the_embedding_learns_a_place_for_every_value_or_a_line_for_each_label() -> None:
    architecture = Architecture((3,), 3, Linear(), labels=(4, 2, 5))
    for ordered, learned_sigma, wanted in (
        (False, False, [4, 2, 5]),
        (True, False, [2, 2, 2]),
        (True, True, [3, 2, 2, 2]),
    ):
        method = SemiVAE("embed", ordered=ordered, learned_sigma=learned_sigma)
        parts = method.networks(architecture)["supervision"].parameters()
        assert sorted(part.numel() for part in parts) == sorted(wanted)
