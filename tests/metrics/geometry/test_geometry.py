"""Jacobians, DtO, IMA contrast and self-consistency on decoders whose answers are known."""

import itertools
import math
import warnings

import numpy as np
import pytest
import torch
from scipy.optimize import Bounds, LinearConstraint, milp
from torch import nn

from unweave.metrics.geometry.consistency import self_consistency
from unweave.metrics.geometry.ima import ima_contrast
from unweave.metrics.geometry.jacobian import decoder_gram, decoder_jacobian, gram
from unweave.metrics.geometry.orthogonality import dto, right_singular
from unweave.metrics.geometry.tangents import push
from unweave.models.autoencoder import Architecture, Autoencoder
from unweave.models.networks.conv import Conv
from unweave.models.networks.mlp import MLP


def model(network, shape, seed=0):
    return Autoencoder(Architecture(shape, 4, network), "pytorch", seed).requires_grad_(False)


@pytest.mark.parametrize(
    ("network", "shape"),
    [(Conv((4, 8), (4, 4), 16), (1, 16, 16)), (Conv((4, 8), (4, 4), 16), (3, 14, 14)), (MLP((8,), (8, 8)), (5,))],
)
def test_forward_mode_agrees_with_backward_mode(network, shape):
    decoder = model(network, shape).decoder
    codes = torch.randn(7, 4, generator=torch.Generator().manual_seed(0))
    found = decoder_jacobian(decoder, codes, chunk=3)
    for row, code in zip(found, codes):
        slow = torch.autograd.functional.jacobian(lambda c: decoder(c[None])[0].flatten(), code)
        torch.testing.assert_close(row, slow, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(decoder_gram(decoder, codes, chunk=3), gram(found), rtol=1e-6, atol=1e-9)
    torch.testing.assert_close(
        decoder_jacobian(decoder, codes, latents=[2, 0]), found[..., [2, 0]], rtol=1e-4, atol=1e-6
    )


def test_known_rules_agree_with_general_ones():
    """Layers of all kinds, written in all ways; and the rules really are used."""
    shape, codes = (1, 16, 16), torch.randn(5, 4, generator=torch.Generator().manual_seed(0))
    own = model(Conv((4, 8), (4, 4), 16), shape)
    plain = nn.Sequential(
        nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 12), nn.Tanh(), nn.Unflatten(1, (3, 2, 2)),
        nn.ConvTranspose2d(3, 2, 4, 2, 1), nn.Sigmoid(), nn.Conv2d(2, 2, 3, padding=1), nn.Flatten(),
    ).requires_grad_(False)  # fmt: skip

    def residual(code):
        hidden = torch.relu(plain[0](code))
        return torch.tanh(plain[2](hidden + torch.relu(hidden))) / 2.0 + 0.5

    def named(code):
        return plain[0](code).view(code.size(0), 3, 2)

    for decode in (own.decoder, own.decode, plain, residual, named):
        assert len(push(decode, codes, torch.eye(4))) == 4
        found = decoder_jacobian(decode, codes)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            general = torch.func.vmap(torch.func.jacfwd(lambda code, f=decode: f(code[None])[0].flatten()))(codes)
        torch.testing.assert_close(found, general, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    "decode",
    [
        lambda code: torch.cat([code.square(), code.sin()], dim=1),
        lambda code: code * code.flip(1),
        lambda code: torch.nn.functional.linear(code, torch.ones(2, 4)) * code[:, :1],
    ],
)
def test_decoders_with_other_operations_take_the_general_way(decode):
    codes = torch.randn(6, 4, dtype=torch.float32, generator=torch.Generator().manual_seed(1))
    with pytest.raises(NotImplementedError):
        push(decode, codes, torch.eye(4))
    found = decoder_jacobian(decode, codes)
    for row, code in zip(found, codes):
        slow = torch.autograd.functional.jacobian(lambda c: decode(c[None])[0], code)
        torch.testing.assert_close(row, slow, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    "decode", [lambda c: c[:3], lambda c: c.transpose(0, 1), lambda c: c.reshape(2, 12), lambda c: c.flatten(0)]
)
def test_examples_must_stay_apart(decode):
    with pytest.raises(NotImplementedError, match="axis of the examples"):
        push(decode, torch.zeros(6, 4), torch.eye(4))


def test_a_decoder_that_ignores_its_code_has_no_directions():
    found = decoder_jacobian(lambda code: torch.ones(len(code), 3) + 0.0 * code[:, :1], torch.zeros(6, 4))
    assert found.shape == (6, 3, 4)
    assert float(found.abs().max()) == 0.0


def test_jacobians_of_bad_codes():
    with pytest.raises(ValueError, match="sample × latent"):
        decoder_jacobian(lambda c: c, torch.zeros(0, 3))
    with pytest.raises(ValueError, match="at least one latent"):
        decoder_gram(lambda c: c, torch.zeros(4, 3), latents=[])
    with pytest.raises(ValueError, match="one output for each"):
        decoder_jacobian(lambda c: c.sum(0, keepdim=True), torch.zeros(4, 3))


def matrices(n, d, seed=0):
    return torch.randn(n, 12, d, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def by_milp(v):
    """The source's mixed-integer programme, equation 3.29, word for word: variables P⁺, P⁻ and D."""
    d = len(v)
    n = d * d
    eye = np.eye(n)
    above = LinearConstraint(np.hstack([eye, -eye, -eye]), -np.inf, v.flatten())  # P − V ≤ D
    below = LinearConstraint(np.hstack([-eye, eye, -eye]), -np.inf, -v.flatten())  # V − P ≤ D
    sums = []
    for axis in range(2):
        table = np.zeros((d, n))
        for i, j in itertools.product(range(d), range(d)):
            table[(i, j)[axis], i * d + j] = 1
        sums.append(LinearConstraint(np.hstack([table, table, np.zeros((d, n))]), 1, 1))
    cost = np.concatenate([np.zeros(2 * n), np.ones(n)])
    integrality = np.concatenate([np.ones(2 * n), np.zeros(n)])
    bounds = Bounds(0, np.concatenate([np.ones(2 * n), np.full(n, np.inf)]))
    found = milp(cost, constraints=[above, below, *sums], integrality=integrality, bounds=bounds)
    return (found.x[:n] - found.x[n : 2 * n]).round().reshape(d, d)


@pytest.mark.parametrize("d", [2, 3, 4])
def test_the_assignment_is_the_integer_programme(d):
    jacobians = matrices(6, d)
    found = dto(gram(jacobians))
    vectors = right_singular(gram(jacobians))[0].numpy()
    for example in range(6):
        nearest = by_milp(vectors[example])
        assert np.linalg.norm(vectors[example] - nearest) == pytest.approx(float(found.per_example[example]), abs=1e-9)
        np.testing.assert_array_equal(np.abs(nearest).argmax(0), found.latent[example])


@pytest.mark.parametrize("d", [2, 3])
def test_the_assignment_is_the_best_of_all_signed_permutations(d):
    jacobians = matrices(10, d, seed=1)
    found = dto(gram(jacobians))
    for example in range(10):
        v = np.linalg.svd(jacobians[example].numpy())[2].T
        candidates = []
        for order in itertools.permutations(range(d)):
            for signs in itertools.product([-1, 1], repeat=d):
                candidates.append(np.eye(d)[list(order)] * signs)
        nearest = min(candidates, key=lambda p: np.abs(v - p).sum())
        assert np.linalg.norm(v - nearest) == pytest.approx(float(found.per_example[example]), abs=1e-9)
    expected = torch.linalg.svdvals(jacobians)
    torch.testing.assert_close(found.singular_values, expected)


def orthogonal(d, seed=0):
    return torch.linalg.qr(torch.randn(12, 12, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))).Q[
        :, :d
    ]


def test_orthogonal_columns_score_zero():
    columns = orthogonal(4) * torch.tensor([1.0, 5.0, 2.0, 0.5])
    found = dto(gram(columns.expand(3, 12, 4)))
    assert found.score == pytest.approx(0.0, abs=1e-7)
    assert found.latent[0].tolist() == [1, 2, 0, 3]  # largest singular value first
    assert found.degenerate == 0.0
    assert ima_contrast(gram(columns.expand(3, 12, 4))).score == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("angle", [0.1, 0.5, math.pi / 4])
def test_a_turned_pair_scores_its_angle(angle):
    """V is a rotation by the angle: ‖V − I‖ = 2√(1 − cos); the contrast follows from the columns' norms."""
    turn = torch.tensor([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]], dtype=torch.float64)
    jacobian = (orthogonal(2) * torch.tensor([3.0, 1.0])) @ turn
    found = dto(gram(jacobian[None]))
    assert found.score == pytest.approx(2 * math.sqrt(1 - math.cos(angle)), abs=1e-9)
    norms = jacobian.norm(dim=0)
    assert ima_contrast(gram(jacobian[None])).score == pytest.approx(math.log(float(norms.prod()) / 3.0))


def test_equal_singular_values_are_reported():
    assert dto(gram(orthogonal(3).expand(4, 12, 3))).degenerate == 1.0


def test_passive_latents_are_left_out_on_request():
    jacobians = matrices(5, 3)
    noisy = torch.cat([jacobians, 1e-9 * matrices(5, 2, seed=3)], dim=2)
    active = [True, True, True, False, False]
    assert dto(gram(noisy), active=active).score == pytest.approx(dto(gram(jacobians)).score)
    assert ima_contrast(gram(noisy), active=active).score == pytest.approx(ima_contrast(gram(jacobians)).score)
    with pytest.raises(ValueError, match="no latent is active"):
        dto(gram(noisy), active=[False] * 5)
    with pytest.raises(ValueError, match="each of the 5 latents"):
        dto(gram(noisy), active=[True])


def test_one_latent_is_orthogonal():
    assert dto(gram(matrices(5, 1))).score == pytest.approx(0.0, abs=1e-7)
    assert ima_contrast(gram(matrices(5, 1))).score == 0.0


def test_the_contrast_by_its_definition():
    jacobians = matrices(20, 4)
    slow = [float(j.norm(dim=0).log().sum() - 0.5 * torch.logdet(j.T @ j)) for j in jacobians]
    found = ima_contrast(gram(jacobians))
    assert found.per_example.tolist() == pytest.approx(slow)
    assert found.score == pytest.approx(np.mean(slow))
    # unlike DtO it does not see the scale of a latent
    scaled = jacobians * torch.tensor([1.0, 10.0, 0.1, 3.0])
    assert ima_contrast(gram(scaled)).score == pytest.approx(found.score)
    assert abs(dto(gram(scaled)).score - dto(gram(jacobians)).score) > 0.01


def test_dependent_columns_have_an_infinite_contrast():
    jacobians = matrices(4, 3)
    jacobians[0, :, 2] = jacobians[0, :, 1]
    found = ima_contrast(gram(jacobians))
    assert found.per_example[0] == math.inf
    assert found.singular == 0.25
    assert math.isfinite(found.score)
    assert ima_contrast(gram(torch.zeros(2, 5, 3))).score == math.inf


def test_geometry_of_bad_input():
    with pytest.raises(ValueError, match="sample × latent × latent"):
        dto(torch.zeros(3, 2))
    with pytest.raises(ValueError, match="finite"):
        dto(torch.full((2, 3, 3), math.nan))


def test_self_consistency():
    mean = torch.randn(1000, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert self_consistency(mean, mean).score == 1.0
    average = mean.mean(0).expand_as(mean)
    assert self_consistency(mean, average).score == pytest.approx(0.0)
    halved = mean.clone()
    halved[:, 2] = average[:, 2]
    found = self_consistency(mean, halved)
    assert found.per_latent.tolist() == pytest.approx([1.0, 1.0, 0.0])
    assert self_consistency(mean, halved, active=[True, True, False]).score == 1.0
    variance = mean.var(0, correction=0)
    assert found.score == pytest.approx(1 - float(variance[2] / variance.sum()))
    assert self_consistency(0 * mean, 0 * mean).score == 0.0
    with pytest.raises(ValueError, match="one row per sample"):
        self_consistency(mean, mean[:5])
    with pytest.raises(ValueError, match="each of the 3"):
        self_consistency(mean, mean, active=[True])
