"""Searches that train ahead: the answer of one model after the other, in fewer rounds."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unweave.algorithms.fondue import METHODS, Reading, fondue
from unweave.data.micro import Micro
from unweave.models.networks import MLP, Conv
from unweave.models.objectives import BetaVAE
from unweave.recipes.dimension import dimension
from unweave.recipes.dimension_search import DimensionSearch, ahead_of
from unweave.recipes.dimension_study import DimensionQuestion
from unweave.studies.adaptive import Waiting, adaptive_study, may_need, replay
from unweave.studies.run import run_study
from unweave.training.experiment import Experiment, Plan

BASE = Experiment(Micro(), BetaVAE(4.0), Conv((4, 4), (4, 4), 8), batch_size=8, plan=Plan("cpu", 1))
MOST = 40


def question(method="fondue", start=2, base=BASE, **search):
    return DimensionQuestion(base, DimensionSearch(method, **search), start, 1, MOST, 3)


@given(
    differences=st.lists(st.floats(-3.0, 3.0), min_size=MOST, max_size=MOST),
    start=st.integers(1, MOST),
    method=st.sampled_from(sorted(METHODS)),
    ahead=st.integers(1, 20),
)
@settings(max_examples=40)
def test_the_answer_is_that_of_one_after_the_other(differences, start, method, ahead):
    world = {n: Reading(difference, 0.0) for n, difference in enumerate(differences, start=1)}
    direct = fondue(world.__getitem__, method=method, start=start, most=MOST)
    trained, asked, n_rounds = {}, question(method, start), 0

    def known(experiment, measure):
        reading = trained.get(experiment.latents)
        return reading and {measure.criterion: {"first": reading.first, "second": reading.second}}

    while isinstance(waiting := replay(asked, known), Waiting):
        together = [experiment.latents for experiment in may_need(asked, known, ahead)]
        assert together[0] == waiting.experiment.latents
        assert len(together) == len(set(together)) <= ahead
        assert not {*together} & {*trained}
        trained |= {n: world[n] for n in together}
        n_rounds += 1
    assert waiting.fondue == direct
    assert n_rounds <= len(direct.found.visits)
    if ahead >= 15:  # four answers deep
        assert n_rounds <= -(-len(direct.found.visits) // 4)


def test_what_comes_ahead_is_as_long_as_the_first():
    asked = question(until_stable=True)
    assert {experiment.steps for experiment in may_need(asked, lambda *_: None, 200)} == {3}


def test_a_question_that_cannot_guess_asks_for_one_model():
    plain = question()
    assert len(may_need(lambda ask: plain(ask), lambda *_: None, 9)) == 1


def test_convolutions_trained_ahead_give_the_same_search(tmp_path):
    asked = DimensionSearch(threshold=4.5, start=2.0, most=6.0, steps=3, examples=120)
    alone = dimension(BASE, asked, tmp_path / "alone")
    ahead = dimension(BASE, replace(asked, ahead=5), tmp_path / "ahead")
    assert ahead.rows == alone.rows
    assert (ahead.answer, ahead.findings) == (alone.answer, alone.findings)
    assert ahead.n_trained >= alone.n_trained
    assert dimension(BASE, replace(asked, ahead=5), tmp_path / "ahead").n_trained == 0


def test_dense_models_of_different_codes_share_a_fleet(tmp_path, capfd):
    base = replace(BASE, network=MLP((16,), (16,)))
    asked = DimensionSearch(threshold=4.5, start=2.0, most=6.0, steps=3, examples=120)
    alone = dimension(base, asked, tmp_path / "alone")
    ahead = dimension(base, replace(asked, ahead=6), tmp_path / "ahead")
    assert [(row["latents"], row["passes"]) for row in ahead.rows] == [
        (row["latents"], row["passes"]) for row in alone.rows
    ]
    assert ahead.rows[0]["difference"] == pytest.approx(alone.rows[0]["difference"], rel=1e-4)
    assert ahead.answer == alone.answer


def test_nothing_comes_ahead_of_a_model_that_failed(tmp_path):
    asked = question()
    study = adaptive_study("ahead", [asked], [asked.measure], ahead=3)
    results = run_study(replace(study, follow_up=None), tmp_path)
    first = next(e for e in results.experiments if e.latents == 2)
    folder = results.store.folder(first.id)
    folder.remove(*folder.names("measures/"))
    assert [experiment.latents for experiment in study.follow_up(results)] == [2]


def test_a_cpu_trains_nothing_ahead_unless_asked():
    assert ahead_of(DimensionSearch(), BASE) == 1
    assert ahead_of(DimensionSearch(ahead=4), BASE) == 4
