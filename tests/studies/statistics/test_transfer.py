"""Selection and transfer against the published procedure drawn at random, and where the answer is known."""

import numpy as np
import pytest

from unweave.studies.statistics.transfer import KINDS, share_beaten, transfer


def drawn(scores: np.ndarray, kind: str, n_draws: int, generator: np.random.Generator) -> float:
    """The procedure as one would write it down: draw, select, draw again, compare."""
    n_worlds, n_settings, n_seeds, n_metrics = scores.shape
    won = 0.0
    for _ in range(n_draws):
        world, metric = generator.integers(n_worlds), generator.integers(n_metrics)
        under, tried = generator.choice(n_seeds, 2, replace=False)
        best = int(scores[world, :, under, metric].argmax())
        if "other metric" in kind:
            metric = generator.choice([m for m in range(n_metrics) if m != metric])
        if "other data" in kind or (kind.endswith("metric and data") and "other" in kind):
            world = generator.choice([w for w in range(n_worlds) if w != world])
        rival = generator.choice([s for s in range(n_settings) if s != best])
        ours, theirs = scores[world, best, tried, metric], scores[world, rival, tried, metric]
        won += float(ours > theirs) + 0.5 * float(ours == theirs)
    return won / n_draws


@pytest.mark.parametrize("kind", KINDS)
def test_counting_all_meets_drawing_some(kind: str) -> None:
    generator = np.random.default_rng(0)
    setting = generator.normal(size=(1, 6, 1, 1)) + generator.normal(size=(3, 6, 1, 1))
    scores = setting + generator.normal(size=(3, 6, 1, 4)) * 0.5 + generator.normal(size=(3, 6, 5, 4))
    share = transfer(scores).share[kind]
    assert share == pytest.approx(drawn(scores, kind, 6000, generator), abs=0.025)


def test_only_noise_is_a_coin_and_its_interval_says_so() -> None:
    generator = np.random.default_rng(1)
    held = 0
    for _ in range(60):
        found = transfer(generator.normal(size=(2, 8, 6, 3)))
        interval = found.interval["same metric and data"]
        assert interval is not None
        held += interval[0] <= 0.5 <= interval[1]
    assert held >= 50


def test_a_setting_that_is_always_best_always_wins() -> None:
    scores = np.tile(np.arange(5.0)[None, :, None, None], (2, 1, 3, 2))
    found = transfer(scores)
    assert all(share == 1.0 for share in found.share.values())


def test_one_world_has_nowhere_to_transfer_to() -> None:
    found = transfer(np.random.default_rng(2).normal(size=(1, 4, 3, 2)))
    assert found.share["same metric, other data"] is None
    assert found.share["other metric, same data"] is not None


def test_missing_runs_neither_win_nor_lose() -> None:
    scores = np.array([1.0, 2.0, np.nan, 2.0])[None, :, None, None]
    assert share_beaten(scores)[0, :, 0, 0] == pytest.approx([0.0, 0.75, np.nan, 0.75], nan_ok=True)


def test_a_single_setting_is_refused() -> None:
    with pytest.raises(ValueError, match="two settings"):
        transfer(np.zeros((1, 1, 2, 2)))


def test_a_model_without_rivals_has_no_share() -> None:
    scores = np.full((1, 2, 2, 1), np.nan)
    scores[0, :, 0, 0] = 1.0, 2.0
    scores[0, 0, 1, 0] = 1.0
    found = share_beaten(scores)[0, :, :, 0]
    np.testing.assert_array_equal(found, [[0.0, np.nan], [1.0, np.nan]])


def test_where_nothing_is_better_nothing_is_selected() -> None:
    for scores in (np.ones((3, 4, 5, 2)), np.tile(np.arange(5.0)[None, None, :, None], (3, 4, 1, 2))):
        assert set(transfer(scores).share.values()) == {None}


def test_worlds_that_stand_for_others_count_and_two_of_them_do_not_suffice() -> None:
    scores = np.random.default_rng(4).normal(size=(4, 6, 5, 3))
    assert set(transfer(scores[:2], some_worlds=True).interval.values()) == {None}
    narrow, wide = transfer(scores).interval, transfer(scores, some_worlds=True).interval
    for kind, (low, high) in wide.items():
        assert low < narrow[kind][0] < narrow[kind][1] < high
