"""CKA, Procrustes, SVCCA and matching: slow definitions, known answers, invariances, bad input."""

import math

import numpy as np
import pytest
import torch

from unweave.metrics.similarity.cka import cka, cka_matrix, inner_products
from unweave.metrics.similarity.matching import matching
from unweave.metrics.similarity.minibatch import minibatch_cka
from unweave.metrics.similarity.over_seeds import over_seeds
from unweave.metrics.similarity.permutation import cka_test
from unweave.metrics.similarity.procrustes import nuclear, procrustes, procrustes_matrix
from unweave.metrics.similarity.svcca import svcca, svcca_matrix

RNG = np.random.default_rng(0)
NARROW, OTHER, WIDE = RNG.normal(size=(60, 5)), RNG.normal(size=(60, 8)) + 3, RNG.normal(size=(60, 100)) ** 3
LAYERS = [NARROW, np.tanh(NARROW @ RNG.normal(size=(5, 8))), WIDE]
OTHERS = [OTHER, np.c_[NARROW, OTHER], WIDE + RNG.normal(size=WIDE.shape)]


def turned(table, seed=1):
    rng = np.random.default_rng(seed)
    return 3.7 * table @ np.linalg.qr(rng.normal(size=(table.shape[1],) * 2))[0] + rng.normal(size=table.shape[1])


def slow_biased(x, y):
    n = len(x)
    centring = np.eye(n) - 1 / n
    k, m = centring @ x @ x.T @ centring, centring @ y @ y.T @ centring
    return (k * m).sum() / math.sqrt((k * k).sum() * (m * m).sum())


def slow_hsic(k, m):
    """Song et al. (2012), equation 5, on uncentred kernels."""
    n = len(k)
    k, m = k - np.diag(np.diag(k)), m - np.diag(np.diag(m))
    ones = np.ones(n)
    total = np.trace(k @ m) + ones @ k @ ones * (ones @ m @ ones) / ((n - 1) * (n - 2))
    return (total - 2 / (n - 2) * ones @ k @ m @ ones) / (n * (n - 3))


def slow_unbiased(x, y):
    k, m = x @ x.T, y @ y.T
    return slow_hsic(k, m) / math.sqrt(slow_hsic(k, k) * slow_hsic(m, m))


@pytest.mark.parametrize("form", ["feature", "gram", "auto"])
@pytest.mark.parametrize(("estimator", "slow"), [("biased", slow_biased), ("unbiased", slow_unbiased)])
def test_cka_by_its_definition(form, estimator, slow):
    found = cka_matrix(LAYERS, OTHERS, estimator=estimator, form=form).scores
    expected = [[slow(x, y) for y in OTHERS] for x in LAYERS]
    np.testing.assert_allclose(found, expected, atol=1e-10)
    assert cka(LAYERS[0], OTHERS[1], estimator=estimator, form=form) == pytest.approx(expected[0][1])


def test_blocks_of_any_size_give_the_same(monkeypatch):
    import unweave.metrics.similarity.cka as module

    whole = cka_matrix(LAYERS, OTHERS, form="gram").scores
    monkeypatch.setattr(module, "BLOCK_BYTES", 6 * 60 * 8 * 7)
    monkeypatch.setattr(module, "PIECE", 33)
    np.testing.assert_allclose(cka_matrix(LAYERS, OTHERS, form="gram").scores, whole, atol=1e-12)


def test_single_precision_stays_within_a_millionth():
    rng = np.random.default_rng(3)
    tables = [rng.normal(size=(400, p)).astype(np.float32) + 5 for p in (10, 900, 3000)]
    single = cka_matrix(tables, tables[::-1], estimator="biased").scores
    double = cka_matrix(
        [t.astype(np.float64) for t in tables], [t.astype(np.float64) for t in tables[::-1]], estimator="biased"
    )
    np.testing.assert_allclose(single, double.scores, atol=1e-6)


def test_inner_products_of_streamed_blocks():
    table = torch.randn(4, 1000, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(
        inner_products(table.split(130, dim=1)), (table @ table.T).double(), atol=1e-3, rtol=1e-5
    )


@pytest.mark.parametrize("measure", [cka, procrustes, svcca, lambda x, y: cka(x, y, estimator="biased")])
def test_equal_up_to_rotation_scale_and_shift(measure):
    assert measure(NARROW, NARROW) == pytest.approx(1.0)
    assert measure(NARROW, turned(NARROW)) == pytest.approx(1.0)
    assert measure(WIDE, turned(WIDE)) == pytest.approx(1.0)
    assert measure(NARROW, OTHER) == pytest.approx(measure(OTHER, NARROW))


def test_only_the_unbiased_estimator_knows_chance():
    """Unrelated layers with more features than examples: biased CKA is far from 0, the unbiased one is not."""
    rng = np.random.default_rng(5)
    scores = []
    for _ in range(20):
        x, y = rng.normal(size=(50, 500)), rng.normal(size=(50, 500))
        scores.append((cka(x, y), cka(x, y, estimator="biased")))
    unbiased, biased = np.mean(scores, axis=0)
    assert abs(unbiased) < 0.02
    assert biased > 0.8


def test_cka_counts_shared_features():
    """As in the thesis's Figure 7.1: half of fifty independent features kept gives about a half."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=(5000, 50))
    b = np.c_[a[:, :25], rng.normal(size=(5000, 25))]
    assert cka(a, b) == pytest.approx(0.5, abs=0.02)
    assert procrustes(a, b) == pytest.approx(0.5, abs=0.07)


def slow_procrustes(x, y):
    x, y = x - x.mean(0), y - y.mean(0)
    x, y = x / np.linalg.norm(x), y / np.linalg.norm(y)
    return 1 - 0.5 * (
        np.linalg.norm(x) ** 2 + np.linalg.norm(y) ** 2 - 2 * np.linalg.svd(y.T @ x, compute_uv=False).sum()
    )


def test_procrustes_by_its_definition():
    found = procrustes_matrix(LAYERS, OTHERS).scores
    np.testing.assert_allclose(found, [[slow_procrustes(x, y) for y in OTHERS] for x in LAYERS], atol=1e-10)


@pytest.mark.parametrize("kind", ["full", "decaying", "low rank", "zeros"])
def test_nuclear_norms_of_large_layers(kind):
    """By eigenvalues where that is precise, by singular values where a rank is not full."""
    generator = torch.Generator().manual_seed(0)
    x, y = (torch.randn(400, 200, dtype=torch.float64, generator=generator) for _ in range(2))
    if kind == "decaying":
        x = x * torch.logspace(0, -8, 200, dtype=torch.float64)
    if kind == "low rank":
        x = x[:, :50] @ x[:50]
    x, y = x / x.norm(), (y * 0.0 if kind == "zeros" else y / y.norm())
    slow = np.linalg.svd((x.T @ y).numpy(), compute_uv=False).sum()
    assert nuclear(x, y) == pytest.approx(slow, abs=1e-6)
    assert nuclear(y, x) == pytest.approx(slow, abs=1e-6)


def test_procrustes_is_the_best_alignment():
    from scipy.linalg import orthogonal_procrustes

    x, y = NARROW - NARROW.mean(0), turned(NARROW) + 0.5 * OTHER[:, :5]
    y = y - y.mean(0)
    x, y = x / np.linalg.norm(x), y / np.linalg.norm(y)
    rotation, _ = orthogonal_procrustes(y, x)
    assert procrustes(x, y) == pytest.approx(1 - 0.5 * np.linalg.norm(x - y @ rotation) ** 2)


def slow_svcca(x, y, share=0.99):
    kept = []
    for table in (x, y):
        u, s, _ = np.linalg.svd(table - table.mean(0), full_matrices=False)
        n = int(np.searchsorted(np.cumsum(s**2) / np.sum(s**2), share)) + 1
        kept.append(u[:, :n])
    return np.linalg.svd(kept[0].T @ kept[1], compute_uv=False).mean()


@pytest.mark.parametrize("share", [0.5, 0.9, 0.99])
def test_svcca_by_its_definition(share):
    found = svcca_matrix(LAYERS, OTHERS, share=share).scores
    np.testing.assert_allclose(found, [[slow_svcca(x, y, share) for y in OTHERS] for x in LAYERS], atol=1e-8)


def test_svcca_is_canonical_correlation():
    from sklearn.cross_decomposition import CCA

    x, y = NARROW[:, :2], np.c_[NARROW[:, :2] @ [[1.0], [2.0]], OTHER[:, :1]]
    found = CCA(2, scale=False, max_iter=5000, tol=1e-12).fit(x, y).transform(x, y)
    expected = [np.corrcoef(found[0][:, i], found[1][:, i])[0, 1] for i in range(2)]
    assert svcca(x, y, share=1.0) == pytest.approx(np.mean(expected), abs=1e-6)
    skewed = x @ np.array([[1.0, 5.0], [0.0, 1.0]])
    assert svcca(x, skewed, share=1.0) == pytest.approx(1.0)
    assert svcca_matrix([WIDE], [WIDE]).saturated.all()
    assert not svcca_matrix([NARROW], [OTHER]).saturated.any()
    # five centred examples span four directions
    few = np.random.default_rng(3).normal(size=(5, 5))
    assert svcca_matrix([few[:, :2]], [few[:, 2:4], few[:, 2:]], share=1.0).saturated.tolist() == [[False, True]]


def test_one_model_with_itself_is_symmetric():
    for measure in (cka_matrix, procrustes_matrix, svcca_matrix, minibatch_cka):
        scores = measure(LAYERS).scores
        torch.testing.assert_close(scores, scores.T)
        torch.testing.assert_close(scores.diagonal(), torch.ones(3).double())
        torch.testing.assert_close(measure(LAYERS[:1]).scores, torch.ones(1, 1).double())


def test_images_are_flattened_and_devices_kept():
    images = torch.randn(20, 3, 4, 4, generator=torch.Generator().manual_seed(0))
    assert cka(images, images.flatten(1)) == pytest.approx(1.0)


def test_minibatches_come_near_the_whole():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(4000, 30))
    y = np.tanh(x @ rng.normal(size=(30, 20)) / 3) + 0.5 * rng.normal(size=(4000, 20))
    whole, parts = cka(x, y), minibatch_cka([x], [y], batch_size=200).scores
    assert float(parts) == pytest.approx(whole, abs=0.02)
    same = minibatch_cka([x], [y], batch_size=4000).scores
    assert float(same) == pytest.approx(whole, abs=1e-10)
    slow = [0.0, 0.0, 0.0]
    for begin in range(0, 4000, 500):
        k, m = (t[begin : begin + 500] @ t[begin : begin + 500].T for t in (x, y))
        slow = [total + slow_hsic(*pair) for total, pair in zip(slow, ((k, m), (k, k), (m, m)))]
    assert float(minibatch_cka([x], [y], batch_size=500).scores) == pytest.approx(
        slow[0] / math.sqrt(slow[1] * slow[2])
    )


def test_permutations_tell_likeness_from_chance():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(80, 40))
    like, unlike = x[:, :10] + rng.normal(size=(80, 10)), rng.normal(size=(80, 10))
    found = cka_test([x], [like, unlike], n_permutations=99)
    assert float(found.p_values[0, 0]) == pytest.approx(0.01)
    assert float(found.p_values[0, 1]) > 0.05
    torch.testing.assert_close(found.scores, cka_matrix([x], [like, unlike]).scores)
    again = cka_test([x], [like, unlike], n_permutations=99)
    torch.testing.assert_close(again.p_values, found.p_values, rtol=0, atol=0)


def test_p_values_of_unrelated_layers_are_uniform():
    rng = np.random.default_rng(3)
    lefts, rights = ([rng.normal(size=(30, 5)) for _ in range(12)] for _ in range(2))
    found = cka_test(lefts, rights, n_permutations=49).p_values
    assert 0.4 < float(found.mean()) < 0.6
    assert 0.02 < float((found <= 0.1).double().mean()) < 0.2


def test_one_permutation_by_hand():
    """Shuffling a Gram matrix is shuffling its examples: the count agrees with CKA recomputed on shuffled rows."""
    from unweave import rng as counter

    found = cka_test([NARROW], [OTHER], n_permutations=30, n_samples=60, seed=4)
    chosen = counter.permutations(4, counter.Purpose.RESAMPLE, 0, 60, 1)[:, 0].numpy()
    orders = counter.permutations(4, counter.Purpose.PERMUTATION, 0, 60, 30).numpy()
    x, y = NARROW[chosen], OTHER[chosen]
    observed = slow_unbiased(x, y)
    above = sum(slow_unbiased(x, y[order]) >= observed - 1e-12 for order in orders.T)
    assert float(found.p_values[0, 0]) == pytest.approx((1 + above) / 31)


def test_similarity_of_bad_input():
    with pytest.raises(ValueError, match="same examples, given tables of 30, 60 rows"):
        cka_matrix([NARROW], [OTHER[:30]])
    with pytest.raises(ValueError, match="put a single one into a list"):
        procrustes_matrix(NARROW)
    with pytest.raises(ValueError, match="at least one layer"):
        svcca_matrix([], [NARROW])
    with pytest.raises(ValueError, match="layer 1 of left must be finite"):
        cka_matrix([NARROW, np.full_like(NARROW, np.nan)])
    with pytest.raises(ValueError, match="at least 4 examples"):
        cka(NARROW[:3], OTHER[:3])
    with pytest.raises(ValueError, match="estimator"):
        cka(NARROW, OTHER, estimator="debiased")
    with pytest.raises(ValueError, match="form"):
        cka(NARROW, OTHER, form="kernel")
    with pytest.raises(ValueError, match="share"):
        svcca(NARROW, OTHER, share=0.0)
    with pytest.raises(ValueError, match="batch_size"):
        minibatch_cka([NARROW], batch_size=3)


@pytest.mark.parametrize("n", [4, 5])
def test_few_examples_have_a_finite_answer(n):
    assert torch.isfinite(cka_matrix([NARROW[:n], WIDE[:n]]).scores).all()
    assert torch.isfinite(minibatch_cka([NARROW, WIDE], batch_size=n).scores).all()


def test_a_constant_layer_is_like_nothing():
    constant = np.full((60, 3), 0.1)
    for measure in (cka, procrustes, svcca):
        assert measure(constant, NARROW) == 0.0
        assert measure(constant, constant) == 0.0


def test_huge_and_tiny_activations():
    assert cka(1e120 * NARROW, 1e-120 * turned(NARROW)) == pytest.approx(1.0)
    assert procrustes(1e120 * NARROW, 1e-120 * turned(NARROW)) == pytest.approx(1.0)
    single = (1e25 * NARROW).astype(np.float32)
    assert cka(single, turned(NARROW)) == pytest.approx(1.0, abs=1e-5)


def test_latents_are_matched_up_to_order_and_sign():
    order, signs = [3, 0, 4, 1, 2], np.array([1, -1, 1, -1, 1])
    found = matching(NARROW, (NARROW * signs * [1, 2, 3, 4, 5] + 7)[:, order])
    assert found.score == pytest.approx(1.0)
    assert found.partner.tolist() == np.argsort(order).tolist()
    assert torch.sign(found.correlation).tolist() == signs.tolist()
    np.testing.assert_allclose(found.matrix, np.corrcoef(NARROW.T, (NARROW * signs)[:, order].T)[:5, 5:], atol=1e-12)


def test_matching_is_the_best_assignment():
    import itertools

    left, right = NARROW[:, :4], NARROW[:, :4] @ np.random.default_rng(3).normal(size=(4, 4))
    table = np.abs(np.corrcoef(left.T, right.T)[:4, 4:])
    best = max(sum(table[i, order[i]] for i in range(4)) for order in itertools.permutations(range(4)))
    assert matching(left, right).score == pytest.approx(best / 4)


def test_matching_models_of_different_size_and_with_passive_latents():
    wide = np.c_[OTHER[:, :2], NARROW[:, 1], NARROW[:, 0]]
    found = matching(NARROW[:, :2], wide)
    assert found.partner.tolist() == [3, 2]
    assert matching(wide, NARROW[:, :2]).partner.tolist() == [-1, -1, 1, 0]
    kept = matching(NARROW[:, :2], wide, left_active=[True, False])
    assert (kept.partner.tolist(), kept.score) == ([3, -1], pytest.approx(1.0))
    assert matching(NARROW, NARROW, left_active=[False] * 5).score == 0.0
    monotone = matching(NARROW, np.exp(NARROW), method="spearman")
    assert monotone.score == pytest.approx(1.0)
    with pytest.raises(ValueError, match="one row per sample"):
        matching(NARROW, NARROW[:5])
    with pytest.raises(ValueError, match="each of the 5"):
        matching(NARROW, NARROW, left_active=[True])
    with pytest.raises(ValueError, match="method"):
        matching(NARROW, NARROW, method="kendall")


def test_seeds_are_averaged_and_the_smaller_measure_quoted():
    rng = np.random.default_rng(0)
    scores, others = torch.tensor(rng.uniform(size=(3, 4, 2, 5))), torch.tensor(rng.uniform(size=(3, 4, 2, 5)))
    found = over_seeds(scores, others, tolerance=0.05)
    expected = sum(scores[i, j] for i in range(3) for j in range(4)) / 12
    torch.testing.assert_close(found.cka, expected)
    torch.testing.assert_close(found.quoted, torch.minimum(expected, others.mean((0, 1))))
    assert found.disagree.any()
    alone = over_seeds(scores)
    torch.testing.assert_close(alone.quoted, alone.cka)
    assert not alone.disagree.any()
