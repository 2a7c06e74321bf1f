"""Similarity of groups of models, pair by pair of seeds, and what is read off the maps."""

import numpy as np
import pytest
import torch

from unweave.evaluation.activations import Activations
from unweave.metrics.similarity.cka import cka
from unweave.metrics.similarity.procrustes import procrustes
from unweave.models.objectives import AnnealedVAE, BetaVAE
from unweave.recipes.bonheme2023 import fig_7_1, fig_7_3, similarity
from unweave.recipes.bonheme2023.fig_c import convergence
from unweave.recipes.bonheme2023.layers import CKA, PROCRUSTES, Group, Learned, layer_map
from unweave.recipes.bonheme2023.settings import Setting
from unweave.studies.results import Results
from unweave.studies.store import Store
from unweave.studies.study import Study

NAMES = ("input", "encoder 1", "encoder 2", "mean", "variance", "sampled", "decoder 1", "output")
X = torch.randn(80, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def group(name, noise, seeds=5, first=0):
    """Seeds whose layers are the same features turned, with noise of a size for every layer."""
    made = []
    for seed in range(seeds):
        generator = torch.Generator().manual_seed(1000 * first + seed)
        layers = []
        for amount in noise:
            turn = torch.linalg.qr(torch.randn(6, 6, generator=generator, dtype=torch.float64)).Q
            layers.append(X @ turn + amount * torch.randn(80, 6, generator=generator, dtype=torch.float64))
        made.append(Activations(NAMES, tuple(layers), 6))
    return Group(name, tuple(range(seeds)), tuple(made))


def test_every_cell_is_the_similarity_of_its_two_layers_averaged_over_pairs_of_seeds():
    left, right = group("A", [0.1] * 8, 2), group("B", [0.5] * 8, 3, first=1)
    found = layer_map(left, right, procrustes=True)
    assert found.scores[CKA].shape == (2, 3, 8, 8)
    for measure, one in ((CKA, lambda a, b: cka(a, b, estimator="biased")), (PROCRUSTES, procrustes)):
        pairs = [one(a.layers[2], b.layers[5]) for a in left.layers for b in right.layers]
        assert found.mean(measure)[2, 5] == pytest.approx(np.mean(pairs), abs=1e-9)
    by_seed = found.diagonal([1, 2])
    expected = np.mean([found.scores[CKA][1, :, place, place] for place in (1, 2)])
    assert by_seed[1] == pytest.approx(expected)
    assert found.block([1], [2, 3])[0] == pytest.approx(found.scores[CKA][0, :, 1, 2:4].mean())


def test_a_model_is_never_held_against_itself():
    one = group("A", [0.8] * 8, 3)
    found = layer_map(one, one)
    others = [cka(one.layers[0].layers[1], one.layers[j].layers[1], estimator="biased") for j in (1, 2)]
    assert found.diagonal([1])[0] == pytest.approx(np.mean(others))
    assert found.mean().max() < 0.99


def test_layers_are_found_by_their_part():
    found = layer_map(group("A", [0.1] * 8, 1), group("B", [0.1] * 8, 1, first=1))
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
    one, other = group("A", left), group("B", right, first=1)
    start = [group(name, before, first=place) for name, place in (("A", 2), ("B", 3))]
    maps = [layer_map(*pair, procrustes=procrustes) for pair in ((one, other), start, (other, other))]
    return Learned(maps[0], maps[1], maps[2])


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


def test_a_setting_without_a_finished_run_says_so(tmp_path):
    results = Results(Study("empty", ()), Store(tmp_path), ())
    with pytest.raises(ValueError, match="no run of beta_vae 1, dsprites has finished"):
        Setting("dsprites", BetaVAE(1.0)).group(results, "smoke")


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
