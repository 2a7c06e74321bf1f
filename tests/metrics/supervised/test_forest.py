"""Trees grown side by side against scikit-learn's regression trees, one by one."""

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

from unweave.metrics.supervised import forest as module
from unweave.metrics.supervised.forest import Forest, Splits, Thresholds


def grown(
    n_trees: int, n_samples: int = 300, n_bins: int = 12
) -> tuple[np.ndarray, np.ndarray, list[Splits], np.ndarray]:
    rng = np.random.default_rng(n_trees)
    binned = rng.integers(0, n_bins, (3, n_samples)).astype(np.int16)
    residual = rng.normal(size=(n_samples, n_trees)).astype(np.float32) + 0.2 * binned[[0]].T
    levels, leaf = Forest(binned, n_bins).grow(residual, np.array([2, 0, 1]))
    return binned, residual, levels, leaf.T


@pytest.mark.parametrize("n_trees", [1, 4, 20])
@pytest.mark.parametrize("few", [True, False])
def test_splits_gains_and_sums_are_those_of_single_trees(
    n_trees: int, few: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # with and without two counts in one number
    monkeypatch.setattr(module, "PACKED", module.PACKED if few else 1)
    binned, residual, levels, leaf = grown(n_trees)
    for tree in range(n_trees):
        column = residual[:, tree].astype(np.float64)
        model = DecisionTreeRegressor(max_depth=3).fit(binned.T, column)
        means = model.predict(binned.T)
        np.testing.assert_allclose([column[leaf[tree] == place].mean() for place in leaf[tree]], means, atol=1e-4)
        gain = sum(float(splits.gain[:, tree].sum()) for splits in levels)
        wanted = ((column - column.mean()) ** 2).sum() - ((column - means) ** 2).sum()
        assert gain == pytest.approx(wanted, rel=1e-3)
        both = levels[-1].sums[:, :, tree].T.ravel()
        np.testing.assert_allclose(both, [column[leaf[tree] == place].sum() for place in range(8)], atol=1e-2)


def test_samples_descend_as_they_were_sorted_while_growing() -> None:
    binned, _, levels, leaf = grown(4)
    np.testing.assert_array_equal(Thresholds(binned, 12).descend(levels).T, leaf)
    for tree in range(4):  # one sample after the other
        for sample in range(binned.shape[1]):
            node = 0
            for splits in levels:
                node = 2 * node + int(binned[splits.latent[node, tree], sample] > splits.threshold[node, tree])
            assert node == leaf[tree, sample]


def test_nothing_to_gain_keeps_samples_together_in_sums() -> None:
    binned = np.zeros((2, 10), np.int16)
    levels, leaf = Forest(binned, 3).grow(np.ones((10, 1), np.float32), np.arange(2))
    assert all(float(splits.gain.sum()) == pytest.approx(0.0, abs=1e-5) for splits in levels)
    assert len(np.unique(leaf)) == 1


def test_two_counts_share_a_number_only_below_its_limit() -> None:
    for n_samples, few in ((4095, True), (4096, False)):
        trees = Forest(np.zeros((1, n_samples), dtype=np.int64), 2)
        assert trees.few is few
        all_of_them = np.ones((n_samples, 1), dtype=bool)
        counted = trees._counts([all_of_them, ~all_of_them])
        assert [float(one[0, 0, 0]) for one in counted] == [n_samples, 0]
