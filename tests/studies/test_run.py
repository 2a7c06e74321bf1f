"""A study from a grid to a table."""

from dataclasses import replace

import unweave as uw
from unweave.data.micro import Micro
from unweave.studies.measures import Polarised
from unweave.studies.run import run_study
from unweave.studies.study import Study


def small(seed, latents=3):
    return uw.Experiment(
        Micro(), network=uw.MLP((16,)), latents=latents, steps=5, seed=seed, plan=uw.Plan("cpu", 1), history_every=1
    )


def test_a_study_trains_measures_and_follows_up(tmp_path):
    study = Study("three", tuple(small(seed) for seed in range(2)), (Polarised(64),))

    def one_more(results):
        return [small(9, latents=4)] if results.table.height == 2 else []

    found = run_study(replace(study, follow_up=one_more), tmp_path)
    assert found.table["seed"].to_list() == [0, 1, 9]
    assert found.table["latents"].to_list() == [3, 3, 4]
    counted = found.table.select("polarised.n_active", "polarised.n_mixed", "polarised.n_passive").sum_horizontal()
    assert counted.to_list() == [3, 3, 4]
