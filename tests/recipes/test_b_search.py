"""Searches as adaptive studies: replayed from what is there, they take the way of the algorithm itself."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unweave.algorithms.fondue import METHODS, Reading, fondue
from unweave.data.synthetic import SynthLin
from unweave.models.likelihoods import Gaussian
from unweave.models.networks.mlp import MLP
from unweave.recipes.bonheme2023.searches import Search, outcomes, search_study
from unweave.recipes.controls import Invented
from unweave.studies.adaptive import Waiting, replay
from unweave.studies.measure_only import measure_only
from unweave.studies.results import Results
from unweave.studies.run import run_study
from unweave.studies.store import Store
from unweave.training.experiment import Experiment, Plan

BASE = Experiment(
    SynthLin(n_points=200),
    network=MLP((8,), (8,)),
    likelihood=Gaussian(0.01),
    steps=5,
    history_every=5,
    plan=Plan("cpu", 1),
)


def search(method="fondue", start=2, seed=0, most=12):
    return Search(replace(BASE, seed=seed), method, start, most, 100)


@given(
    differences=st.lists(st.floats(-3.0, 3.0), min_size=12, max_size=12),
    start=st.integers(1, 12),
    method=st.sampled_from(sorted(METHODS)),
)
def test_a_replayed_search_takes_the_way_of_the_algorithm(differences, start, method):
    world = {n: Reading(difference, 0.0) for n, difference in enumerate(differences, start=1)}
    asked = []

    def train(n):
        asked.append(n)
        return world[n]

    direct = fondue(train, method=method, start=start, most=12)
    known = {}
    criterion = METHODS[method].criterion

    def look_up(experiment, measure):
        reading = known.get(experiment.latents)
        return reading and {criterion: {"first": reading.first, "second": reading.second}}

    while isinstance(found := replay(search(method, start), look_up), Waiting):
        n = found.experiment.latents
        assert n not in known
        known[n] = world[n]
    assert list(known) == asked
    assert found == direct


def test_a_search_study_trains_what_the_search_asks_for_and_nothing_else(tmp_path):
    study = search_study("tiny", [search(seed=seed) for seed in (0, 1)])
    results = run_study(study, tmp_path)
    ended = outcomes([search(seed=seed) for seed in (0, 1)], results)
    for seed, found in enumerate(ended):
        trained = [e.latents for e in results.experiments if e.seed == seed]
        assert sorted(trained) == sorted(visit.n for visit in found.found.visits)
        # five steps leave everything passive: each latent adds nearly 1, so one alone passes and two do not
        assert found.n == max((visit.n for visit in found.found.visits if visit.passes), default=0)


def test_searches_from_other_starts_share_models_and_a_second_call_trains_nothing(tmp_path):
    first = run_study(search_study("one", [search(start=2)]), tmp_path)
    again = run_study(search_study("one", [search(start=2)]), tmp_path)
    assert [e.id for e in again.experiments] == [e.id for e in first.experiments]
    both = run_study(search_study("two", [search(start=2), search(start=1)]), tmp_path)
    numbers = [e.latents for e in both.experiments]
    assert len(numbers) == len(set(numbers))
    one, other = outcomes([search(start=2), search(start=1)], both)
    assert one.n == other.n


def test_a_search_whose_model_failed_has_no_outcome_and_stops_asking(tmp_path):
    results = run_study(search_study("tiny", [search()]), tmp_path)
    missing = results.experiments[0]
    folder = results.store.folder(missing.id)
    folder.remove(*folder.names("measures/"))
    results = replace(results)  # what was read before is remembered
    assert outcomes([search()], results) == [None]
    asked = search_study("tiny", [search()]).follow_up(results)
    assert [experiment.latents for experiment in asked] == [missing.latents]


def test_a_search_that_was_trained_elsewhere_is_adopted_whole(tmp_path):
    """Runs with another plan have other ids; the search finds all of them, one after the other."""
    there = replace(search(), base=replace(BASE, plan=Plan("cpu", 2)))
    trained = run_study(search_study("there", [there]), tmp_path)
    assert len(trained.experiments) > 1
    found = measure_only(search_study("here", [search()]), tmp_path)
    assert [e.id for e in found.experiments] == [e.id for e in trained.experiments]
    assert outcomes([search()], found) == outcomes([there], trained)
    assert outcomes([search()], found)[0] is not None


@pytest.mark.parametrize("nothing", [math.nan, math.inf, None])
def test_a_reading_that_is_no_number_ends_its_search_and_the_others_go_on(tmp_path, nothing):
    study = search_study("tiny", [search(seed=0), search(seed=1)])
    first = Results(study, Store(tmp_path), tuple(one.resolve() for one in study.experiments))

    def read(experiment, measure):
        told = {"trace": {"first": nothing if experiment.seed == 0 else -1.0, "second": 0.0}}
        return told if experiment.latents == 2 else None

    asked = study.follow_up(Invented.of(first, read))
    assert [(one.seed, one.latents) for one in asked] == [(0, 2), (1, 4)]
