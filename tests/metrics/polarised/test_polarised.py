"""Types, regime, traces, dependence by type, reconstruction and rate: on constructed posteriors with known answers."""

import math

import numpy as np
import pytest
import torch

from unweave.metrics.polarised.by_type import by_type
from unweave.metrics.polarised.passive import passive_correlation
from unweave.metrics.polarised.rate_distortion import rate_distortion
from unweave.metrics.polarised.reconstruction import linear_stochastic_loss, reconstruction_split
from unweave.metrics.polarised.regime import regime, regime_share
from unweave.metrics.polarised.traces import traces
from unweave.metrics.polarised.types import RULES, variable_types


def posteriors(n_active, n_passive, n_mixed=0, n=4000, small=1e-3, seed=0):
    """Means and variances of ideal latents; a mixed one is passive for half of the examples."""
    rng = np.random.default_rng(seed)
    half = (np.arange(n) % 2 == 0)[:, None]
    mean = [
        rng.normal(size=(n, n_active)),
        np.zeros((n, n_passive)),
        np.where(half, 1.4 * rng.normal(size=(n, n_mixed)), 0),
    ]
    variance = [np.full((n, n_active), small), np.ones((n, n_passive)), np.where(half, small, np.ones((n, n_mixed)))]
    return torch.tensor(np.concatenate(mean, 1)), torch.tensor(np.concatenate(variance, 1))


def sampled(mean, variance, seed=1):
    noise = torch.randn(mean.shape, dtype=mean.dtype, generator=torch.Generator().manual_seed(seed))
    return mean + variance.sqrt() * noise


def test_types_of_ideal_latents():
    mean, variance = posteriors(2, 1, 1)
    assert variable_types(mean, variance) == ["active", "active", "passive", "mixed"]
    for rule in ("spread", "mean_variance", "kl"):
        assert variable_types(mean, variance, rule=rule)[:3] == ["active", "active", "passive"]


def test_types_relative_to_a_learned_prior():
    mean, variance = posteriors(1, 2)
    prior = torch.tensor([0.5, 0.2, 3.0]).double()
    assert variable_types(mean, variance * prior, prior_variance=prior) == ["active", "passive", "passive"]
    conditional = prior * (1 + torch.rand(len(mean), 3, generator=torch.Generator().manual_seed(0))).double()
    assert variable_types(mean, variance * conditional, prior_variance=conditional) == ["active", "passive", "passive"]
    shift = torch.tensor([0.0, 5.0, 0.0]).double()
    moved = mean * prior.sqrt() + shift
    types = variable_types(moved, variance * prior, rule="kl", prior_variance=prior, prior_mean=shift)
    assert types == ["active", "passive", "passive"]
    with pytest.raises(ValueError, match="prior_variance must be positive"):
        variable_types(mean, variance, prior_variance=torch.zeros(3).double())


@pytest.mark.parametrize("rule", RULES)
def test_a_deterministic_autoencoder_uses_all_latents(rule):
    mean, variance = posteriors(3, 0)
    assert variable_types(mean, 0 * variance, rule=rule) == ["active"] * 3


def test_delta_is_the_published_formula():
    mean, variance = posteriors(2, 3, small=0.05)
    found = regime(mean, variance)
    assert found.active.tolist() == [True, True, False, False, False]
    exact = approximate = 0.0
    for row in range(len(mean)):
        for j in range(5):
            m, v = float(mean[row, j]), float(variance[row, j])
            exact += 0.5 * (m**2 + v - math.log(v) - 1) / len(mean)
            approximate += 0.5 * (m**2 - math.log(v) - 1) / len(mean) * (j < 2)
    assert found.kl == pytest.approx(exact)
    assert found.approximate == pytest.approx(approximate)
    assert found.delta == pytest.approx(abs(exact - approximate) / exact)
    assert found.delta < 0.03


def test_delta_is_large_outside_the_regime():
    mean, variance = posteriors(2, 0)
    assert regime(mean, torch.full_like(variance, 0.5)).delta > 0.3
    assert regime(0 * mean, torch.ones_like(variance)).delta == 0.0  # collapsed, and polarised
    with pytest.raises(ValueError, match="deterministic autoencoder"):
        regime(mean, 0 * variance)


def test_the_share_of_training_is_counted_from_its_end():
    kl = torch.full((5, 2), 3.0)
    spread = torch.ones(5, 2)
    variance = torch.tensor([0.9, 0.01, 0.9, 0.01, 0.01])[:, None].expand(5, 2)
    found = regime_share(kl, spread, variance, steps=[0, 100, 200, 500, 1000])
    # Δ = ½ Σ σ² / KL
    assert found.delta.tolist() == pytest.approx([0.15, 0.01 / 6, 0.15, 0.01 / 6, 0.01 / 6], rel=1e-6)
    assert found.since == 500
    assert found.share == pytest.approx(0.5)
    assert regime_share(kl, spread, torch.full((5, 2), 0.9)).share == 0.0
    assert regime_share(kl, spread, torch.full((5, 2), 0.9)).since is None
    assert regime_share(kl, spread, torch.full((5, 2), 0.01)).share == 1.0
    with pytest.raises(ValueError, match="ascending"):
        regime_share(kl, spread, variance, steps=[0, 1, 1, 2, 3])
    with pytest.raises(ValueError, match="equal tables"):
        regime_share(kl, spread[:2], variance)


def test_the_share_agrees_with_the_posteriors():
    """What the history keeps is enough: the same Δ as from means and variances."""
    rows = [posteriors(2, 2, small=small, seed=seed) for seed, small in enumerate((0.3, 0.1, 0.02))]
    whole = [regime(*row) for row in rows]
    found = regime_share(
        torch.stack([r.per_latent for r in whole]),
        torch.stack([mean.var(0, correction=0) for mean, _ in rows]),
        torch.stack([variance.mean(0) for _, variance in rows]),
    )
    assert found.delta.tolist() == pytest.approx([r.delta for r in whole])


@pytest.mark.parametrize(("n_active", "n_passive"), [(3, 0), (2, 3), (0, 4), (1, 0)])
def test_propositions_one_and_two(n_active, n_passive):
    """Tr Var[Z] − Tr Var[M] is 0 with active latents only, s with s passive ones (B 8.3.1, 8.3.2)."""
    mean, variance = posteriors(n_active, n_passive, n=20_000)
    exact, drawn = traces(mean, variance), traces(mean, sampled=sampled(mean, variance))
    assert exact.score == pytest.approx(n_passive + 1e-3 * n_active)
    assert drawn.score == pytest.approx(n_passive, abs=0.1)
    assert exact.counts == drawn.counts == n_passive
    assert exact.sampled - exact.mean == pytest.approx(exact.score)


def test_proposition_three():
    """With s mixed latents among active ones the difference lies strictly between 0 and s (B 8.3.3)."""
    mean, variance = posteriors(2, 0, n_mixed=3, n=20_000)
    drawn = traces(mean, sampled=sampled(mean, variance))
    assert 0.1 < drawn.score < 2.9
    assert traces(mean, variance).score == pytest.approx(1.5, abs=0.01)
    with_noise = sampled(mean, variance)
    expected = np.trace(np.cov(with_noise.numpy().T)) - np.trace(np.cov(mean.numpy().T))
    assert drawn.score == pytest.approx(expected)


def test_traces_of_bad_input():
    mean, variance = posteriors(2, 1)
    with pytest.raises(ValueError, match="either variance or sampled"):
        traces(mean)
    with pytest.raises(ValueError, match="logarithms"):
        traces(mean, -variance)
    with pytest.raises(ValueError, match="equal tables"):
        traces(mean, variance[:, :2])
    with pytest.raises(ValueError, match="two samples"):
        traces(mean[:1], variance[:1])
    assert traces(mean, 0 * variance).score == 0.0  # deterministic


def test_passive_latents_that_follow_an_active_one():
    mean, _ = posteriors(2, 2)
    noise = torch.randn(len(mean), generator=torch.Generator().manual_seed(5)).double()
    mean[:, 2] = 0.01 * (0.7 * mean[:, 0] + math.sqrt(0.51) * noise)
    found = passive_correlation(mean, ["active", "active", "passive", "passive"])
    expected = np.corrcoef(mean[:, :3].numpy().T)
    np.testing.assert_allclose(found.correlation[:3, :3], expected, atol=1e-12)
    assert found.score == pytest.approx(abs(expected[0, 2]))
    assert found.partner.tolist()[:3] == [2, int(np.argmax(np.abs(expected[1] - np.eye(3)[1]))), 0]
    assert found.strongest[3] == 0.0  # a constant latent goes with nothing


def test_passive_correlation_over_snapshots():
    mean, _ = posteriors(2, 1)
    late = mean.clone()
    late[:, 2] = 0.1 * late[:, 1]
    found = passive_correlation(torch.stack([mean, late, late, late]), ["active", "active", "passive"])
    assert found.often.tolist() == [0.0, 0.75, 0.75]
    assert found.score == pytest.approx(1.0)
    single = passive_correlation(mean[:, :1], ["active"])
    assert (single.score, single.partner.tolist()) == (0.0, [-1])
    with pytest.raises(ValueError, match="each of the 3 latents"):
        passive_correlation(mean, ["active"])


def test_passive_latents_raise_the_dependence_of_the_mean_only():
    mean, variance = posteriors(2, 1)
    mean[:, 2] = 0.01 * (mean[:, 0] + 0.3 * mean[:, 1])
    mean[:, 2] += 1e-4 * torch.randn(len(mean), generator=torch.Generator().manual_seed(2)).double()
    rows = {
        (row.representation, row.subset): row
        for row in by_type(mean, sampled(mean, variance), ["active", "active", "passive"])
    }
    assert rows["mean", "all"].total_correlation > 3.0
    assert rows["sampled", "all"].total_correlation < 0.01
    assert rows["mean", "without passive"].total_correlation < 0.01
    assert rows["mean", "all"].effective_rank == pytest.approx(2.0, abs=0.1)
    assert rows["sampled", "all"].effective_rank == pytest.approx(3.0, abs=0.01)
    assert rows["mean", "all"].averaged_mi > 3 * rows["mean", "active"].averaged_mi
    assert rows["mean", "mixed"].n_latents == 0
    assert rows["mean", "mixed"].total_correlation is None
    assert rows["mean", "passive"].n_latents == 1


def test_a_singular_covariance_is_reported():
    mean = posteriors(2, 0)[0]
    twice = torch.cat([mean, mean[:, :1]], dim=1)
    row = by_type(twice, twice, ["active"] * 3)[0]
    assert row.total_correlation == math.inf
    assert math.isfinite(row.pseudo)


def test_the_reconstruction_splits_exactly_for_a_linear_decoder():
    """Proposition 4: total = deterministic + stochastic, and the stochastic part is Σ σ² ‖J_j‖²."""
    generator = torch.Generator().manual_seed(0)
    mean, variance = torch.randn(200, 3, generator=generator).double(), torch.rand(200, 3, generator=generator).double()
    weight = torch.randn(7, 3, generator=generator).double()
    images = torch.randn(200, 7, generator=generator).double()
    noise = torch.randn(4000, 200, 3, generator=generator).double()
    found = reconstruction_split(images, mean @ weight.T, (mean + variance.sqrt() * noise) @ weight.T)
    expected = linear_stochastic_loss((weight.T @ weight).expand(200, 3, 3), variance)
    torch.testing.assert_close(found.stochastic_per_example, expected, rtol=0.2, atol=0)
    assert found.stochastic == pytest.approx(float(expected.mean()), rel=0.01)
    assert abs(found.rest) < 0.02 * found.total
    assert found.deterministic == pytest.approx(float((images - mean @ weight.T).square().sum(1).mean()))
    # antithetic noise cancels the mixed term, so the sum is exact
    pair = torch.cat([noise[:5], -noise[:5]])
    exact = reconstruction_split(images, mean @ weight.T, (mean + variance.sqrt() * pair) @ weight.T)
    assert exact.total == pytest.approx(exact.deterministic + exact.stochastic)


def test_a_curved_decoder_leaves_a_rest():
    mean = torch.zeros(500, 1).double()
    draws = torch.randn(2000, 500, 1, generator=torch.Generator().manual_seed(0)).double()
    found = reconstruction_split(torch.ones(500, 1).double(), mean.square(), draws.square())
    # x = 1, Dec = z²: total E(z² − 1)² = 2, deterministic 1, stochastic E z⁴ = 3
    assert (found.total, found.deterministic, found.stochastic) == pytest.approx((2.0, 1.0, 3.0), abs=0.05)
    assert found.rest == pytest.approx(-2.0, abs=0.05)
    with pytest.raises(ValueError, match="draw"):
        reconstruction_split(mean, mean, mean)


def test_rate_and_distortion():
    kl, losses = torch.tensor([[1.0, 0.0], [3.0, 0.5]]), torch.tensor([10.0, 20.0])
    found = rate_distortion(kl, losses)
    assert (found.rate, found.distortion, found.elbo) == pytest.approx((2.25, 15.0, -17.25))
    assert found.rate_in_bits == pytest.approx(2.25 / math.log(2))
    assert found.per_latent.tolist() == [2.0, 0.25]
    with pytest.raises(ValueError, match="one loss"):
        rate_distortion(kl, losses[:1])
    with pytest.raises(ValueError, match="finite"):
        rate_distortion(kl, losses * math.nan)


def test_a_single_latent_has_no_partner():
    found = passive_correlation(np.random.default_rng(0).normal(size=(50, 1)), ["active"])
    assert (found.partner.tolist(), found.strongest.tolist(), found.score) == ([-1], [0.0], 0.0)
