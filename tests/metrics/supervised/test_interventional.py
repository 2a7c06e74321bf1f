"""BetaVAE and FactorVAE: draws, votes, and the reference run."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from unweave.metrics.supervised.beta_vae import beta_vae, beta_vae_of_draws
from unweave.metrics.supervised.factor_vae import _active, _variance, factor_vae, factor_vae_of_draws
from unweave.metrics.supervised.interventions import fixed_batches, fixed_pairs, grouped

FEW = {"n_train": 600, "n_test": 300}


def factors_table(n_samples: int = 2000, n_factors: int = 4, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(5, size=(n_samples, n_factors))


def test_batches_hold_one_factor_fixed_and_vary_the_others() -> None:
    factors = factors_table()
    for which, rows in fixed_batches(grouped(factors), 1000, 64, np.random.default_rng(0)):
        held = factors[rows, which[:, None]]
        assert (held == held[:, :1]).all()
        other = factors[rows, (which[:, None] + 1) % 4]
        assert (other != other[:, :1]).any(1).all()
    assert np.bincount(held[:, 0], minlength=5).min() > 0


def test_pairs_share_a_factor_each_with_a_value_of_its_own() -> None:
    factors = factors_table()
    n = 0
    for which, first, second in fixed_pairs(grouped(factors), 1000, 32, np.random.default_rng(0)):
        n += len(which)
        assert (factors[first, which[:, None]] == factors[second, which[:, None]]).all()
        assert (factors[first, which[:, None]] != factors[first[:, :1], which[:, None]]).any(1).all()
    assert n == 1000


def test_every_row_of_a_group_is_drawn_equally_often() -> None:
    factors = np.array([[0], [0], [0], [1], [1], [2]])
    rows = np.concatenate([rows for _, rows in fixed_batches(grouped(factors), 5000, 8, np.random.default_rng(0))])
    share = np.bincount(rows.ravel(), minlength=6) / rows.size
    assert share[5] == 0  # a value of one row cannot be held fixed
    assert share[:5] == pytest.approx(np.full(5, 0.2), abs=0.02)


@pytest.mark.parametrize("table", ["identity", "rotated"])
def test_the_reference_run_is_met_within_its_noise(reference: Path, table: str) -> None:
    with np.load(reference / f"metrics_{table}.npz") as arrays:
        codes, factors = arrays["codes"], arrays["factors"]
    for version, scheme in (("19", "multinomial"), ("021", "ovr")):
        text = (reference / f"metrics_{table}.sklearn{version}.json").read_text()
        wanted = json.loads(text)["interventional"]
        found = beta_vae(codes, factors, n_train=1000, n_test=4000, scheme=scheme)
        # 500 test points in the reference: four standard errors
        spread = 4 * np.sqrt(0.05 * 0.95 / 500) if table == "rotated" else 1e-12
        assert found.score == pytest.approx(wanted["beta_vae"]["eval_accuracy"], abs=spread)
        votes = factor_vae(codes, factors, n_train=1000, n_test=4000)
        assert votes.score == pytest.approx(wanted["factor_vae"]["eval_accuracy"], abs=spread)
        assert votes.n_active_latents == 4


def test_votes_are_those_of_a_plain_loop() -> None:
    rng = np.random.default_rng(0)
    batches, reference = rng.normal(size=(90, 16, 3)) * [1, 2, 3], rng.normal(size=(500, 3)) * [1, 2, 3]
    fixed = rng.integers(3, size=90)
    batches[np.arange(90), :, fixed] *= 0.5
    votes = np.zeros((3, 3), int)
    right = 0
    scale = reference.var(0, ddof=1)
    winners = [int(np.argmin([batch[:, j].var(ddof=1) / scale[j] for j in range(3)])) for batch in batches]
    for winner, factor in zip(winners[:60], fixed[:60]):
        votes[winner, factor] += 1
    for winner, factor in zip(winners[60:], fixed[60:]):
        right += votes[winner].argmax() == factor
    found = factor_vae_of_draws(torch.tensor(batches), fixed, reference)
    assert np.array_equal(found.votes.numpy(), votes)
    assert found.score == right / 30


def test_votes_do_not_depend_on_where_the_codes_lie() -> None:
    rng = np.random.default_rng(0)
    batches, fixed = rng.integers(-9, 9, (30, 4, 3)).astype(float), np.arange(30) % 3
    reference = rng.integers(-9, 9, (50, 3)).astype(float)
    near = factor_vae_of_draws(batches, fixed, reference)
    assert int(near.votes.sum()) == 20, "two thirds are counted"
    far = factor_vae_of_draws(batches + 2.0**52, fixed, reference + 2.0**52)  # where only whole numbers are left
    assert np.array_equal(near.votes.numpy(), far.votes.numpy())


@pytest.mark.parametrize(("n_train", "fits"), [(0, False), (1, True), (5, True), (6, False)])
def test_batches_are_left_to_count_and_to_test(n_train: int, fits: bool) -> None:
    rng = np.random.default_rng(0)
    batches, fixed = rng.normal(size=(6, 2, 2)), np.arange(6) % 2
    calls = (
        lambda: factor_vae_of_draws(batches, fixed, batches[0], n_train=n_train).score,
        lambda: beta_vae_of_draws(batches, -batches, fixed, n_train=n_train).score,
    )
    for call in calls:
        if fits:
            assert 0.0 <= call() <= 1.0
        else:
            with pytest.raises(ValueError, match=f"n_train must leave batches .* of 6, not {n_train}"):
                call()


def test_ready_draws_must_fit_together() -> None:
    batches, fixed = np.random.default_rng(0).normal(size=(6, 2, 2)), np.arange(6) % 2
    for wrong, labels in ((batches[:, :1], fixed), (batches[:, 0], fixed), (batches, fixed[:5])):
        with pytest.raises(ValueError, match="batches must be batch × sample × latent and fixed batch"):
            factor_vae_of_draws(wrong, labels, batches[0])
    for first, second, labels in ((batches[0], batches[0], fixed), (batches, batches, fixed[:5])):
        with pytest.raises(ValueError, match="first and second must be batch × pair × latent"):
            beta_vae_of_draws(first, second, labels)


def test_a_dead_latent_ruins_the_original_rule_only() -> None:
    factors = factors_table()
    codes = np.column_stack([factors, np.full(2000, 0.1)]).astype(float)
    assert factor_vae(codes, factors, **FEW).score == 1.0
    assert factor_vae(codes, factors, prune="relative", **FEW).score == 1.0
    assert factor_vae(codes, factors, prune="code", **FEW).score < 0.4


def test_only_the_relative_rule_forgives_a_small_scale() -> None:
    factors = factors_table()
    assert factor_vae(factors * 1e-3, factors, **FEW).score == 0.0
    assert factor_vae(factors * 1e-3, factors, prune="relative", **FEW).score == 1.0


def test_ideal_and_hopeless_codes() -> None:
    factors = factors_table()
    assert beta_vae(factors, factors, **FEW).score > 0.95
    assert beta_vae(np.zeros((2000, 4)), factors, **FEW).score < 0.35
    assert factor_vae(np.zeros((2000, 4)), factors, **FEW).score == 0.0
    assert factor_vae(np.random.default_rng(1).normal(size=(2000, 4)), factors, **FEW).score < 0.4


def test_ready_pairs_give_the_same_features_as_a_loop() -> None:
    rng = np.random.default_rng(0)
    fixed = rng.integers(2, size=300)
    first, second = rng.normal(size=(2, 300, 16, 2))
    second[np.arange(300), :, fixed] = first[np.arange(300), :, fixed]
    assert beta_vae_of_draws(first, torch.tensor(second), fixed).score == 1.0
    assert beta_vae_of_draws(first, rng.normal(size=second.shape), fixed).score < 0.65
    with pytest.raises(ValueError, match="batch × pair × latent"):
        beta_vae_of_draws(first, second[:, :3], fixed)


def test_the_seed_decides() -> None:
    factors = factors_table()
    codes = factors @ np.random.default_rng(0).normal(size=(4, 4))
    assert factor_vae(codes, factors, seed=5, **FEW).score == factor_vae(codes, factors, seed=5, **FEW).score
    assert len({beta_vae(codes, factors, seed=seed, **FEW).train_accuracy for seed in range(4)}) > 1


def test_odd_tables_have_defined_answers() -> None:
    factors = factors_table(n_factors=2)
    codes = factors.astype(float)
    still = np.column_stack([factors, np.zeros(2000)])
    assert beta_vae(codes, still, **FEW).n_factors == 2
    assert factor_vae(codes, still, **FEW).score == 1.0
    assert beta_vae(codes, factors[:, :1], **FEW).score == 1.0
    assert beta_vae(codes, np.zeros(2000), **FEW).score == 0.0
    assert factor_vae(codes, np.zeros(2000), **FEW).score == 0.0
    with pytest.raises(ValueError, match="column 0 has 2000 values in 2000 rows"):
        factor_vae(codes, np.arange(2000), **FEW)
    with pytest.raises(ValueError, match="prune must be one of"):
        factor_vae(codes, factors, prune="never")
    with pytest.raises(ValueError, match="scheme must be"):
        beta_vae(codes, factors, scheme="crammer")


def test_variances_are_unbiased() -> None:
    table = np.random.default_rng(0).normal(size=(3, 2, 4))
    np.testing.assert_allclose(_variance(torch.tensor(table)), table.var(1, ddof=1))
    assert (_variance(torch.tensor(table[:, :1])) == 0.0).all()


def test_a_latent_that_varies_by_exactly_the_threshold_is_active() -> None:
    variance = np.array([0.25, 0.0625, 0.0])
    assert _active(variance, "study", 0.25).tolist() == [True, True, False]
    assert _active(variance, "relative", 0.5).tolist() == [True, True, False]
    assert _active(variance, "code", 9.0).tolist() == [True, True, True]  # a still one too, as the original has it
