"""Verdicts: right where the truth is known, wrong as rarely as they say, silent where they must be."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from statsmodels.stats.weightstats import CompareMeans, DescrStatsW

from unweave.studies.verdicts import (
    TOO_WIDE,
    Checked,
    Comparison,
    Verdict,
    at_size,
    compare_between,
    compare_difference,
    compare_exact,
    compare_mean,
    compare_scores,
    compare_share,
    compare_sign,
    compare_trend,
    with_controls,
    with_seeds,
)

N_TRIALS = 400


def rate(verdicts: Sequence[str], word: str) -> float:
    return sum(verdict == word for verdict in verdicts) / len(verdicts)


def test_a_true_mean_is_said_to_differ_once_in_twenty() -> None:
    generator = np.random.default_rng(0)
    found = [compare_mean("x", generator.normal(2, 0.5, 6), 2.0).verdict for _ in range(N_TRIALS)]
    assert 0.025 < rate(found, "differs") < 0.08


def test_a_false_mean_is_found_out() -> None:
    found = compare_mean("x", np.random.default_rng(1).normal(2, 0.1, 6), 3.0)
    assert found.verdict == "differs"
    assert found.interval is not None
    assert found.interval[1] < 3.0


def test_an_uncertain_published_mean_widens_the_interval() -> None:
    generator = np.random.default_rng(2)
    verdicts, naive = [], []
    for _ in range(N_TRIALS):
        published = generator.normal(2, 0.5, 5)
        ours = generator.normal(2, 0.5, 5)
        mean, sd = float(published.mean()), float(published.std(ddof=1))
        verdicts.append(compare_mean("x", ours, mean, spread=(sd, 5)).verdict)
        naive.append(compare_mean("x", ours, mean).verdict)
    assert 0.02 < rate(verdicts, "differs") < 0.08
    assert rate(naive, "differs") > 0.1


def test_few_or_scattered_seeds_cannot_tell() -> None:
    assert compare_mean("x", [1.0, 1.1], 1.0).verdict == "cannot tell"
    assert compare_mean("x", [0.1, 0.9, 0.2, 0.8], 0.5).verdict == "cannot tell"
    assert compare_mean("x", [0.1, 0.9, 0.2, 0.8], 0.5, tolerance=2.0).verdict == "agrees"
    assert compare_mean("x", [], 0.5).ours is None


def test_two_means_are_the_same_when_the_interval_of_their_difference_lies_within_the_tolerance() -> None:
    values = [1.0, 1.01, 0.99]
    assert compare_mean("x", values, 1.2).verdict == "differs"
    # the published value is 0.2 away, and the interval reaches 0.025 farther
    assert compare_mean("x", values, 1.2, tolerance=0.2).verdict == "differs"
    same = compare_mean("x", values, 1.2, tolerance=0.23, unit="nats")
    assert same.verdict == "agrees"
    assert "within ±0.23 nats" in same.rule
    # what lies in a wide interval is not the same for that
    assert compare_mean("x", [0.5, 1.0, 1.5], 1.1, tolerance=0.23).verdict == "cannot tell"


def test_equivalence_is_claimed_wrongly_once_in_forty() -> None:
    """The truth lies on the edge of what counts as the same: two one-sided tests at 2.5 %."""
    generator = np.random.default_rng(7)
    found = [compare_mean("x", generator.normal(0.5, 0.3, 10), 0.0, tolerance=0.5).verdict for _ in range(800)]
    assert 0.012 < rate(found, "agrees") < 0.04


@pytest.mark.parametrize("published", [0.0, 0.12, 0.2, 0.31])
def test_equivalence_is_that_of_statsmodels(published: float) -> None:
    """Two one-sided t-tests of a mean, each at 2.5 %."""
    values = np.random.default_rng(9).normal(0.1, 0.2, 30)
    p = DescrStatsW(values).ttost_mean(published - 0.2, published + 0.2)[0]
    verdict = compare_mean("x", values, published, tolerance=0.2).verdict
    assert (verdict == "agrees") == (p <= 0.025)


def test_equivalence_of_two_uncertain_means_is_that_of_statsmodels() -> None:
    generator = np.random.default_rng(10)
    seen = set()
    for shift in np.linspace(0.0, 0.6, 13):
        ours, theirs = generator.normal(shift, 0.2, 12), generator.normal(0.0, 0.3, 10)
        p = CompareMeans(DescrStatsW(ours), DescrStatsW(theirs)).ttost_ind(-0.3, 0.3, usevar="unequal")[0]
        spread = (float(theirs.std(ddof=1)), 10)
        verdict = compare_mean("x", ours, float(theirs.mean()), tolerance=0.3, spread=spread).verdict
        assert (verdict == "agrees") == (p <= 0.025)
        seen.add(verdict)
    assert len(seen) > 1


def test_an_assumed_number_of_seeds_is_shown_with_its_effect() -> None:
    values = np.random.default_rng(3).normal(0.5, 0.02, 10)
    found = compare_mean("x", values, 0.5, tolerance=0.1, spread=(0.15, 10), assumed=True)
    assert "10 seeds are assumed behind the published ±0.15" in found.note
    assert "cannot tell with 5" in found.note
    assert "agrees with none to add" in found.note
    assert "assumed" not in compare_mean("x", values, 0.5, tolerance=0.1, spread=(0.15, 10)).note


def test_a_published_mean_that_is_less_certain_than_the_tolerance_can_only_be_contradicted() -> None:
    many = np.random.default_rng(3).normal(0.5, 1e-6, 10_000)
    for spread, told in (((0.15, 10), True), ((0.13, 10), False)):
        found = compare_mean("x", many, 0.5, tolerance=0.1, spread=spread)
        assert (TOO_WIDE in found.note) == told == (found.verdict != "agrees")
    assert compare_mean("x", many, 0.9, tolerance=0.1, spread=(0.15, 10)).verdict == "differs"


def test_between_two_ends() -> None:
    assert compare_between("x", 0.3, (0.2, 0.4), (0.0, 0.5), 9, "t").verdict == "agrees"
    assert compare_between("x", 0.1, (-0.1, 0.3), (0.0, 0.5), 9, "t").verdict == "cannot tell"
    assert compare_between("x", 0.7, (0.6, 0.8), (0.0, 0.5), 9, "t").verdict == "differs"
    assert compare_between("x", 0.7, None, (0.0, 0.5), 9, "t").verdict == "cannot tell"


def test_a_claim_whose_control_agrees_is_not_evidence() -> None:
    claim = compare_difference("x", [3.0, 4, 5], [0.0, 1, 2], 1)
    refused, passed = Checked("noise", 0.1, None, 1, 5), Checked("untrained", 2.9, None, 1, 1)
    assert with_controls(claim, [refused]).verdict == "agrees"
    void = with_controls(claim, [refused, passed])
    assert (void.verdict, void.controls) == ("not evidence", (refused, passed))
    assert void.note.endswith("the control agrees too: untrained")
    against = compare_difference("x", [3.0, 4, 5], [0.0, 1, 2], -1)
    assert with_controls(against, [passed]).verdict == "differs"
    # an order that the control turns round too is none that the models have made; other numbers are what controls are
    turned = Checked("shuffled", -1.0, None, 0, 5, 3)
    assert with_controls(against, [turned]).verdict == "not evidence"
    assert with_controls(against, [turned]).note.endswith("the control differs too: shuffled")
    assert with_controls(against, [Checked("shuffled", -1.0, None, 0, 5, 2)]).verdict == "differs"
    number = compare_mean("x", [3.0, 4, 5], 9.0)
    assert with_controls(number, [turned]).verdict == "differs"


@pytest.mark.parametrize(("size", "order", "number"), [("smoke", *("runs",) * 2), ("small", "agrees", "cannot tell")])
def test_sizes_say_what_they_may(size: str, order: str, number: str) -> None:
    larger = compare_difference("x", [3.0, 4, 5], [0.0, 1, 2], 1)
    mean = compare_mean("x", [1.0, 1.01, 0.99], 1.0, tolerance=0.1)
    equal = compare_difference("x", [1.0, 1.01, 0.99], [1.0, 1.01, 0.99], 0, tolerance=0.1)
    between = compare_between("x", 0.3, (0.2, 0.4), (0.0, 0.5), 9, "t")
    assert [at_size(one, size).verdict for one in (larger, mean, equal, between)] == [order, *[number] * 3]
    assert [at_size(one, "paper").verdict for one in (larger, mean, equal, between)] == ["agrees"] * 4
    assert at_size(compare_exact("x", 1.0, 1.0, 0.0), "small").verdict == "agrees"


@pytest.mark.parametrize("verdict", ["agrees", "differs"])
def test_a_claim_without_a_control_is_not_judged(verdict: Verdict) -> None:
    found = with_controls(Comparison("which", "larger", 1.0, (0.5, 1.5), 5, "", verdict, "p = 0.01"), ())
    assert (found.verdict, found.note) == ("cannot tell", "p = 0.01; no control stands beside it")


@pytest.mark.parametrize(("n", "order"), [(1, "cannot tell"), (2, "cannot tell"), (3, "agrees")])
def test_one_or_two_seeds_decide_nothing_but_what_is_exact(n: int, order: Verdict) -> None:
    one = Comparison("which", "larger", 1.0, (0.5, 1.5), 40, "", "agrees", kind="order")
    assert with_seeds(one, n).verdict == order
    assert with_seeds(replace(one, kind="exact"), n).verdict == "agrees"
    assert with_seeds(replace(one, verdict="runs"), n).verdict == "runs"


def test_values_that_are_not_finite_are_left_out_and_named() -> None:
    found = compare_mean("x", [1.0, float("nan"), 1.1, 0.9], 1.0)
    assert found.n == 3
    assert "1 value that is not finite" in found.note


@pytest.mark.parametrize("n", [5, 8])
def test_no_difference_is_called_one_in_twenty_on_either_side(n: int) -> None:
    generator = np.random.default_rng(n)
    verdicts = []
    for _ in range(N_TRIALS):
        # seeds share an effect, as runs with the same data order do
        shared = generator.normal(size=n)
        first, second = (dict(enumerate(shared + generator.normal(size=n))) for _ in range(2))
        verdicts.append(compare_difference("x", first, second, 1).verdict)
    assert rate(verdicts, "agrees") < 0.08
    assert rate(verdicts, "differs") < 0.08
    assert rate(verdicts, "agrees") + rate(verdicts, "differs") > 0.03


def test_pairing_by_seed_finds_what_groups_cannot() -> None:
    shared = np.array([0.0, 10, 20, 30, 40, 50])
    first, second = dict(enumerate(shared + 1)), dict(enumerate(shared))
    assert compare_difference("x", first, second, 1).verdict == "agrees"
    assert compare_difference("x", first, second, -1).verdict == "differs"
    assert compare_difference("x", shared + 1, shared, 1).verdict == "cannot tell"


def test_three_seeds_each_can_decide_between_groups_but_not_in_pairs() -> None:
    assert compare_difference("x", [3.0, 4, 5], [0.0, 1, 2], 1).verdict == "agrees"
    paired = compare_difference("x", {0: 3.0, 1: 4.0, 2: 5.0}, {0: 0.0, 1: 1.0, 2: 2.0}, 1)
    assert paired.verdict == "cannot tell"
    assert "cannot give p" in paired.note


def test_equality_needs_an_interval_inside_the_tolerance() -> None:
    generator = np.random.default_rng(4)
    first, second = generator.normal(0, 0.01, 30), generator.normal(0, 0.01, 30)
    assert compare_difference("x", first, second, 0, tolerance=0.1).verdict == "agrees"
    assert compare_difference("x", first, second + 1, 0, tolerance=0.1).verdict == "differs"
    assert compare_difference("x", first * 100, second * 100, 0, tolerance=0.1).verdict == "cannot tell"


def test_trends() -> None:
    x = np.arange(6.0)
    assert compare_trend("x", x, x**3, 1).verdict == "agrees"
    assert compare_trend("x", x, -x, 1).verdict == "differs"
    for one, other in ((x, np.linspace(0, 1, 6)), (np.linspace(0, 1, 6), x)):
        assert compare_trend("x", one, other, 1).verdict == "agrees"
    for one, other in ((x, np.zeros(6)), (np.zeros(6), x)):
        unclear = compare_trend("x", one, other, 1)
        assert (unclear.verdict, unclear.note) == ("cannot tell", "all values are equal")
    assert compare_trend("x", x[:2], x[:2], 1).verdict == "cannot tell"


def test_no_trend_is_called_one_in_twenty() -> None:
    generator = np.random.default_rng(5)
    x, seeds = np.tile(np.arange(4.0), 4), np.repeat(np.arange(4), 4)
    found = [
        compare_trend("x", x, generator.normal(size=16) + 3 * generator.normal(size=4)[seeds], -1, seeds=seeds).verdict
        for _ in range(200)
    ]
    assert 0.01 < rate(found, "agrees") < 0.1


def test_exact_and_share() -> None:
    assert compare_exact("x", 0.5001, 0.5, 1e-3).verdict == "agrees"
    assert compare_exact("x", 0.502, 0.5, 1e-3).verdict == "differs"
    assert compare_exact("x", float("nan"), 0.5, 1e-3).verdict == "cannot tell"
    assert compare_share("x", 80, 100, 0.807).verdict == "agrees"
    assert compare_share("x", 80, 100, 0.807, tolerance=0.05).verdict == "cannot tell"
    assert compare_share("x", 55, 100, 0.807).verdict == "differs"
    assert compare_share("x", 2, 3, 0.807).verdict == "cannot tell"
    assert compare_share("x", 0, 0, 0.807).ours is None


def test_a_sign_is_plus_minus_or_nothing() -> None:
    with pytest.raises(ValueError, match="expected_sign must be"):
        compare_trend("x", [1.0, 2, 3], [1.0, 2, 3], 2)


def test_strengths_of_one_seed_are_no_trend():
    """A permutation within one seed is significant as soon as there are four strengths; it is still one model each."""
    strengths = np.arange(6.0)
    one = compare_trend("x", strengths, strengths, 1, seeds=np.zeros(6))
    assert one.verdict == "cannot tell"
    assert "models of only 1 seed" in one.note
    three = np.repeat(np.arange(3), 6)
    assert compare_trend("x", np.tile(strengths, 3), np.tile(strengths, 3), 1, seeds=three).verdict == "agrees"


@pytest.mark.parametrize(
    ("interval", "above", "below"),
    [
        ((0.1, 2.0), "agrees", "differs"),
        ((-2.0, -0.1), "differs", "agrees"),
        ((0.0, 2.0), "cannot tell", "cannot tell"),
        ((-2.0, 0.0), "cannot tell", "cannot tell"),
        ((-1.0, 1.0), "cannot tell", "cannot tell"),
        ((0.1, math.inf), "cannot tell", "cannot tell"),
        (None, "cannot tell", "cannot tell"),
    ],
)
def test_an_interval_that_ends_at_nothing_cannot_tell(interval, above: str, below: str) -> None:
    assert [compare_sign("x", 1.0, interval, 5, sign, "h").verdict for sign in (1, -1)] == [above, below]


def over_a_grid(n_seeds: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """A score of six objectives, six strengths and some seeds, and one that goes with it."""
    generator = np.random.default_rng(3)
    first, own = generator.normal(size=(2, 6, 6, n_seeds))
    return first, 0.7 * first + 0.7 * own


def test_scores_that_go_together_agree_and_others_do_not() -> None:
    first, second = over_a_grid()
    assert compare_scores("x", first, second, 1).verdict == "agrees"
    assert compare_scores("x", first, -second, 1).verdict == "differs"
    assert compare_scores("x", first, second, 0, tolerance=0.3).verdict == "differs"
    assert compare_scores("x", first, np.random.default_rng(4).normal(size=first.shape), 1).verdict == "cannot tell"


def test_one_run_that_stands_out_decides_nothing() -> None:
    alone = np.zeros((6, 6, 3))
    alone[2, 1, 0] = 1.0
    found = compare_scores("x", alone, alone, 1)
    assert (found.verdict, found.ours) == ("cannot tell", pytest.approx(1.0))
    assert compare_scores("x", np.ones_like(alone), alone, 1).verdict == "cannot tell"
    assert compare_scores("x", np.full_like(alone, np.nan), alone, 1).n == 0


def test_no_relation_asks_for_a_narrow_interval() -> None:
    generator = np.random.default_rng(5)
    first, second = generator.normal(size=(2, 6, 6, 30))
    assert compare_scores("x", first, second, 0, tolerance=0.3).verdict == "agrees"
    assert compare_scores("x", first[..., :2], second[..., :2], 0, tolerance=0.1).verdict == "cannot tell"
