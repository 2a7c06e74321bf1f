"""Similarity of groups of models, pair by pair of seeds, and what is read off the maps."""

import numpy as np
import pytest
import torch

from unweave.metrics.similarity.cka import cka
from unweave.metrics.similarity.procrustes import procrustes
from unweave.models.objectives import AnnealedVAE, BetaVAE
from unweave.recipes.bonheme2023 import fig_7_1, fig_7_3, fig_c, section_7_4_4, similarity
from unweave.recipes.bonheme2023.fig_c import convergence
from unweave.recipes.bonheme2023.layers import CKA, PROCRUSTES, Learned, Wanted, layer_map
from unweave.recipes.bonheme2023.settings import Setting
from unweave.recipes.controls import Invented
from unweave.recipes.reproductions import find_reproduction
from unweave.studies.measures.layer_similarity import LayerSimilarity
from unweave.studies.results import Results
from unweave.studies.store import Store
from unweave.studies.study import Study

NAMES = ("input", "encoder 1", "encoder 2", "mean", "variance", "sampled", "decoder 1", "output")
X = torch.randn(80, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


ASKED = Setting("dsprites", BetaVAE(1.0)).experiments("paper")


def group(noise, first=0):
    """Seeds whose layers are the same features turned, with noise of a size for every layer."""
    made = []
    for seed in range(len(ASKED)):
        generator = torch.Generator().manual_seed(1000 * first + seed)
        layers = []
        for amount in noise:
            turn = torch.linalg.qr(torch.randn(6, 6, generator=generator, dtype=torch.float64)).Q
            layers.append(X @ turn + amount * torch.randn(80, 6, generator=generator, dtype=torch.float64))
        made.append(layers)
    return made


def mapped(left, right, with_procrustes=False, seeds=len(ASKED)):
    """The map that is read from scores of all pairs; a model with itself has none."""
    wanted = Wanted(ASKED[:seeds], ASKED[:seeds], ("end", "end"), 80, ("encoder",) if with_procrustes else ())

    def scores(score):
        def pair(one, other):
            return None if one is other else [[score(a, b) for b in other] for a in one]

        return [[pair(one, other) for other in right[:seeds]] for one in left[:seeds]]

    def found(experiment, measure):
        assert experiment == ASKED[0]
        score = procrustes if measure.procrustes else (lambda a, b: cka(a, b, estimator="biased"))
        return {"names": NAMES, "n_encoder": 6, "scores": scores(score)}

    results = Invented(Study("made up", ASKED), Store("nowhere"), ASKED, found)
    return layer_map(wanted, results, "A", "B")


def test_every_cell_is_the_similarity_of_its_two_layers_averaged_over_pairs_of_seeds():
    left, right = group([0.1] * 8), group([0.5] * 8, first=1)
    found = mapped(left, right, True, 2)
    assert found.scores[CKA].shape == (2, 2, 8, 8)
    for measure, one in ((CKA, lambda a, b: cka(a, b, estimator="biased")), (PROCRUSTES, procrustes)):
        pairs = [one(a[2], b[5]) for a in left[:2] for b in right[:2]]
        assert found.mean(measure)[2, 5] == pytest.approx(np.mean(pairs), abs=1e-9)
    by_seed = found.diagonal([1, 2])
    expected = np.mean([found.scores[CKA][1, :, place, place] for place in (1, 2)])
    assert by_seed[1] == pytest.approx(expected)
    assert found.block([1], [2, 3])[0] == pytest.approx(found.scores[CKA][0, :, 1, 2:4].mean())


def test_a_model_is_never_held_against_itself():
    one = group([0.8] * 8)
    found = mapped(one, one, seeds=3)
    others = [cka(one[0][1], one[j][1], estimator="biased") for j in (1, 2)]
    assert found.diagonal([1])[0] == pytest.approx(np.mean(others))
    assert found.mean().max() < 0.99


def test_layers_are_found_by_their_part():
    found = mapped(group([0.1] * 8), group([0.1] * 8, first=1), seeds=1)
    assert [NAMES[place] for place in found.encoder] == ["encoder 1", "encoder 2"]
    assert [NAMES[place] for place in found.decoder] == ["decoder 1", "output"]
    assert found.places("sampled", "missing") == [5]
    assert found.figure().axes


CALM, LOUD = [0.05] * 8, [3.0] * 8
EARLY = [0.0, 0.05, 0.05, 0.5, 0.5, 0.5, 3.0, 3.0]
COLLAPSED = [0.0, 0.05, 0.05, 1.0, 1.0, 30.0, 0.5, 0.5]
OTHER = [0.0, 0.05, 0.05, 3.0, 3.0, 3.0, 1.0, 1.0]
BEFORE = [0.0, 0.6, 0.6, 1.0, 1.0, 3.0, 9.0, 9.0]
"""Untrained encoders are somewhat alike, untrained decoders are not."""


def learned(left, right, before=BEFORE, procrustes=False):
    """Two settings after training, from networks that were so noisy before it."""
    one, other = group(left), group(right, first=1)
    start = [group(before, first=place) for place in (2, 3)]
    return Learned(*(mapped(*pair, procrustes) for pair in ((one, other), start, (other, other))))


@pytest.mark.parametrize(
    ("claims", "left", "right"),
    [
        (similarity.encoder_first, EARLY, CALM),
        (fig_7_3.collapse, CALM, COLLAPSED),
        (similarity.shared_encoders, CALM, OTHER),
        (similarity.encoders_not_codes, CALM, OTHER),
    ],
)
def test_maps_as_published_agree(claims, left, right):
    assert {one.verdict for one in claims(learned(left, right))} == {"agrees"}


def test_maps_the_other_way_round_differ():
    late = [0.0, 3.0, 3.0, 0.5, 0.5, 0.5, 0.05, 0.05]
    assert [one.verdict for one in similarity.encoder_first(learned(late, CALM, LOUD))] == ["differs"]
    assert next(iter(similarity.shared_encoders(learned(LOUD, LOUD)))).verdict == "differs"


def test_what_was_alike_before_training_is_not_learned():
    """Encoders that begin alike and stay so are no evidence, however similar they are."""
    found = learned([0.0, *[0.1] * 7], [0.0, *[0.1] * 7], [0.0, *[0.1] * 7])
    assert found.after.diagonal(found.after.encoder)[0] > 0.9
    assert next(iter(similarity.shared_encoders(found))).verdict != "agrees"


def test_a_share_of_the_way_is_measured_from_the_first_weights():
    found = learned(EARLY, CALM)
    places = found.after.encoder
    after, before, end = (one.diagonal(places) for one in (found.after, found.before, found.end))
    assert found.share(places)[2] == pytest.approx((after[2] - before[2]) / (end[2] - before[2]))
    nowhere = Learned(found.before, found.before, found.before)
    assert all(np.isnan(value) for value in nowhere.share(places).values())


def test_both_measures_are_asked():
    found = learned(CALM, CALM, procrustes=True)
    told = list(similarity.by_both(similarity.shared_encoders)(found))
    assert [one.what.split()[0] for one in told] == [CKA, PROCRUSTES]
    assert {one.verdict for one in told} == {"agrees"}


def test_settings_keep_their_snapshots_inside_training_and_scale_the_annealing():
    setting = Setting("smallnorb", AnnealedVAE(capacity=5.0))
    for size, steps in (("smoke", 400), ("small", 60_000), ("paper", 300_000)):
        made = setting.experiments(size)
        assert len(made) == 5
        assert {one.objective.rise for one in made} == {steps // 3}
        assert all(0 < step < steps for step in made[0].snapshots)
    assert setting.at("small").world == "dsprites"
    assert setting.experiments("paper")[0].snapshots[0] == round(300_000 * 10 / 410)
    assert Setting("dsprites", BetaVAE(8.0), dense=True).name == "beta_vae 8, dsprites, dense"


def test_what_was_not_taken_is_not_judged():
    """Nor is a setting of which a part of the study has no model."""
    study = fig_7_3.study("paper")
    nothing = Invented(study, Store("nowhere"), study.experiments, lambda experiment, measure: None)
    outcome = fig_7_3.judge(nothing, "paper")
    assert not outcome.comparisons
    assert sum("not compared" in note for note in outcome.notes) == 2
    part = Study("part", study.experiments[5:])
    wanted = Wanted(ASKED, ASKED, ("end", "end"), 80)
    assert layer_map(wanted, Invented(part, Store("nowhere"), (), lambda *_: 1 / 0), "A", "B") is None


def test_every_map_that_a_judge_reads_is_taken_and_no_other():
    """Of trained models and of the control, kept by the first run of the rows."""
    for name in (*(f"b-fig-7.{n}" for n in range(2, 11)), "b-section-7.4.4", "b-fig-C"):
        one, asked = find_reproduction(name), set()
        study = one.study("paper")
        taken = {(experiment, measure.file) for experiment, measure in study.between(study.experiments)}

        def found(experiment, measure, asked=asked):
            if not isinstance(measure, LayerSimilarity):
                return {"n_active": experiment.seed, "types": ["active"]}
            asked.add((experiment, measure.file))
            size = len(NAMES)
            pair = np.random.default_rng(int(measure.file[-9:-5], 16)).random((size, size)).tolist()
            shape = [[pair] * len(measure.right)] * len(measure.left)
            return {"names": NAMES, "n_encoder": 6, "scores": shape}

        results = Invented(study, Store("nowhere"), study.experiments, found)
        if name == "b-fig-C":
            for setting in {one.at("paper") for one in similarity.EARLY}:
                for end in ("end", "again"):
                    assert fig_c._over_training(setting, results, "paper", end)
                    assert fig_c._ways(setting, results, "paper", end)
        elif name == "b-section-7.4.4":
            for end in ("end", "again"):
                assert section_7_4_4.judge_with(results, results, "paper", end).comparisons
            assert one.controls[1].judge(results, "paper", 0).comparisons
        else:
            assert one.judge(results, "paper").comparisons
            assert one.controls[0].judge(results, "paper", 0).comparisons
        assert asked == taken, name


def test_cka_and_procrustes_over_numbers_of_examples(monkeypatch, tmp_path):
    monkeypatch.setitem(fig_7_1.EXAMPLES, "smoke", (50, 100, 1_000))
    outcome = fig_7_1.judge(Results(Study("none", ()), Store(tmp_path), ()), "smoke")
    assert {one.verdict for one in outcome.comparisons} == {"agrees"}
    assert len(outcome.figures) == 3


def test_a_loss_has_converged_once_it_stays_near_its_end():
    falling = [*np.linspace(10.0, 1.0, 50), *[1.0] * 50]
    assert convergence(falling) == pytest.approx(0.47, abs=0.011)
    assert convergence([1.0] * 20) == 0.0
    assert convergence(np.linspace(10.0, 0.0, 100)) > 0.8
