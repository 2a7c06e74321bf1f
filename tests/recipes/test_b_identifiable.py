"""Judgements of Figures 5.1 to 5.4 on rows that were written by hand: right ones agree, wrong ones do not."""

import pytest

from unweave.data.micro import Micro
from unweave.models.objectives import IVAE
from unweave.recipes.bonheme2023 import fig_5_1, fig_5_2, fig_5_3, fig_5_4
from unweave.recipes.bonheme2023.results import Measured
from unweave.recipes.controls import Invented
from unweave.recipes.reproductions import find_reproduction
from unweave.studies.store import Store
from unweave.training.experiment import Experiment


def row(seed: int, passive: dict[str, float], active: dict[str, float]) -> Measured:
    """Two latents: a passive and an active one, with a little luck."""
    luck = 1.0 + 0.01 * seed
    names = ("squared_mean", "squared_shift", "mean_variance", "prior_variance", "variance_of_mean")
    found = {name: [luck * one.get(name, 0.01) for one in (passive, active)] for name in names}
    types = {"types": ["passive", "active"], "n_passive": 1, "n_active": 1, "n_mixed": 0}
    return Measured(Experiment(Micro(), IVAE(), seed=seed), found | types)


def rows(passive: dict[str, float], active: dict[str, float]) -> list[Measured]:
    return [row(seed, passive, active) for seed in range(5)]


QUIET = {"squared_mean": 1e-4, "squared_shift": 1e-4, "mean_variance": 0.02, "prior_variance": 0.02}
LOUD = {"squared_mean": 100.0, "squared_shift": 99.0, "mean_variance": 0.05, "prior_variance": 100.05}
LOUD |= {"variance_of_mean": 100.0}
TAME = LOUD | {"prior_variance": 3.0}


def verdicts(claims) -> set[str]:
    return {one.verdict for one in claims}


def test_what_is_published_agrees():
    assert verdicts(fig_5_1.claims(rows(QUIET, LOUD))) == {"agrees"}
    assert verdicts(fig_5_2.claims(rows(QUIET, LOUD))) == {"agrees"}
    assert verdicts(fig_5_3.claims(rows(QUIET, LOUD))) == {"agrees"}
    assert verdicts(fig_5_4.claims(rows(QUIET, TAME), rows(QUIET, LOUD))) == {"agrees"}


def test_the_opposite_differs():
    assert "differs" in verdicts(fig_5_1.claims(rows(LOUD, QUIET)))
    assert "differs" in verdicts(fig_5_2.claims(rows(QUIET, LOUD | {"prior_variance": 1.0})))
    assert "differs" in verdicts(fig_5_3.claims(rows(LOUD, QUIET)))
    assert "differs" in verdicts(fig_5_4.claims(rows(QUIET, LOUD), rows(QUIET, TAME)))


def test_collapsed_models_are_no_evidence():
    collapsed = [
        Measured(one.experiment, one.found | {"types": ["passive"] * 2, "n_passive": 2, "n_active": 0})
        for one in rows(QUIET, QUIET)
    ]
    for claims in (fig_5_1.claims, fig_5_2.claims, fig_5_3.claims, lambda found: fig_5_4.claims(found, found)):
        assert next(iter(claims(collapsed))).verdict == "cannot tell"


def test_a_width_of_zero_says_nothing():
    found = list(fig_5_2.claims(rows(QUIET, LOUD | {"prior_variance": 0.0})))
    assert [one.verdict for one in found] == ["agrees", "cannot tell"]


def test_models_without_the_type_differ():
    none = [
        Measured(one.experiment, one.found | {"types": ["mixed"] * 2, "n_passive": 0, "n_active": 0})
        for one in rows(QUIET, LOUD)
    ]
    for claims in (fig_5_1.claims(none), fig_5_2.claims(none), fig_5_3.claims(none), fig_5_4.claims(none, none)):
        first, *others = claims
        assert first.verdict == "differs"
        assert {one.verdict for one in others} == {"cannot tell"}


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_the_paper_s_protocol(number):
    study = find_reproduction(f"b-fig-5.{number}").study("paper")
    first = study.experiments[0]
    assert (first.latents, first.steps, first.batch_size, first.holdout) == (30, 300_000, 64, 0.1)
    assert first.objective.encoding == "values"
    assert {one.objective.prior_mean for one in study.experiments} == {
        1: {"zero"}, 2: {"zero"}, 3: {"learned"}, 4: {"zero", "learned"},
    }[number]  # fmt: skip


@pytest.mark.parametrize(("module", "kind"), [(fig_5_1, "passive"), (fig_5_4, "active")])
def test_histograms_are_drawn_where_there_are_no_weights(module, kind):
    study = module.study("small")
    drawn = {name: [[0.1, 0.2], [1.0, 3.0]] for name in ("mean", "sampled", "variance", "prior_mean", "prior_variance")}

    def found(experiment, measure):
        told = row(experiment.seed, QUIET, LOUD).found | {"kl": [0.0, 5.0]}
        return told if measure.name == "priors" else {"types": told["types"]} | drawn

    results = Invented(study, Store("nowhere"), tuple(one.resolve() for one in study.experiments), found)
    figures = module.judge(results, "small").figures
    latent = ("passive", "active").index(kind)
    assert [*figures] == [
        f"{name} (seed 0, latent {latent})"
        for name in ("posterior mean", "posterior variance", "prior mean", "prior variance")
    ]
