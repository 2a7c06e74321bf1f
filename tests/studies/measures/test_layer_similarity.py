"""Layers of two runs of one store: on the same images, whatever seeds, and beside slow routes."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from unweave.data.micro import Micro
from unweave.evaluation.activations import activations
from unweave.metrics.similarity.cka import cka
from unweave.metrics.similarity.procrustes import procrustes
from unweave.models.networks.conv import Conv
from unweave.models.objectives import BetaVAE
from unweave.studies.identity import identity
from unweave.studies.measures.layer_similarity import AGAIN, END, FIRST, LayerSimilarity, rows_of
from unweave.studies.run import run_study
from unweave.studies.store import Store
from unweave.studies.study import Study
from unweave.training.experiment import Experiment, Plan

N = 60
ONE = Experiment(
    Micro(),
    BetaVAE(1.0),
    Conv((4, 4), (4, 4), 8),
    latents=3,
    steps=4,
    batch_size=8,
    holdout=0.3,
    snapshots=(2,),
    plan=Plan("cpu", 1),
)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    study = Study("pair", tuple(replace(ONE, seed=seed) for seed in range(2)))
    root = tmp_path_factory.mktemp("store")
    run_study(study, root)
    return Store(root)


def runs(store: Store):
    return sorted((store.run(run_id) for run_id in store.ids()), key=lambda run: run.experiment.seed)


def taken(store: Store, left: str, right: str, **options):
    """The map of the first run (row) and the second one (column)."""
    one, other = runs(store)
    groups = (identity(one.experiment),), (identity(other.experiment),)
    found = LayerSimilarity(*groups, (left, right), N, **options)(one)
    return {**found, "scores": found["scores"][0][0]}


def test_it_is_the_cka_of_every_two_layers_on_the_same_images(store: Store) -> None:
    one, other = runs(store)
    images = one.data.examples(rows_of(len(one.data), N))
    found = taken(store, END, END)
    kept = [activations(run.model, images) for run in (one, other)]
    assert found["names"] == list(kept[0].names)
    assert found["n_encoder"] == kept[0].n_encoder
    for i, name in enumerate(kept[0].names):
        for j, column in enumerate(kept[1].names):
            if not all(part.startswith(("input", "encoder", "mean", "variance")) for part in (name, column)):
                continue  # the others have noise of their own
            expected = cka(kept[0].layers[i].double(), kept[1].layers[j].double(), estimator="biased")
            assert found["scores"][i][j] == pytest.approx(expected, abs=2e-5), (name, column)


def test_two_models_see_the_same_images_whatever_their_seeds(store: Store) -> None:
    """Held-out images are other ones for every seed: on those the inputs of two models have nothing in common."""
    assert taken(store, END, END)["scores"][0][0] == pytest.approx(1.0, abs=1e-5)
    one, other = runs(store)
    assert not torch.equal(one.rows(N), other.rows(N))


def test_procrustes_is_of_the_same_layers_alone(store: Store) -> None:
    one, other = runs(store)
    found = taken(store, END, END, procrustes=("encoder",))
    images = one.data.examples(rows_of(len(one.data), N))
    kept = [activations(run.model, images) for run in (one, other)]
    for i, name in enumerate(found["names"]):
        for j, value in enumerate(found["scores"][i]):
            if i == j and name.startswith("encoder"):
                layers = (run.layers[i].double() for run in kept)
                assert value == pytest.approx(procrustes(*layers), abs=1e-5)
            else:
                assert value is None


def test_a_model_before_its_first_step_is_the_one_that_training_began_with(store: Store) -> None:
    """Of the same seed the same, of another seed another; a share of training is the nearest snapshot."""
    one, _ = runs(store)
    fresh = one.experiment.objective.model(one.experiment.architecture(one.data.shape))
    from unweave.models.initialise import initialise

    initialise(fresh, one.experiment.init, 0)
    images = one.data.examples(rows_of(len(one.data), N))
    encoder = activations(fresh.eval(), images)["encoder 2"].double()
    trained = activations(one.model, images)["encoder 2"].double()
    place = taken(store, END, END)["names"].index("encoder 2")

    def own(*weights: str) -> float:
        found = LayerSimilarity((), (), weights, N)(one)["scores"][0][0]
        return float(np.array(found)[place, place])

    assert own(FIRST, END) == pytest.approx(cka(encoder, trained, estimator="biased"), abs=2e-5)
    assert own(FIRST, AGAIN) < 0.999
    early = activations(one.load_weights(one.snapshots[2]), images)["encoder 2"].double()
    assert own("0.4", END) == pytest.approx(cka(early, trained, estimator="biased"), abs=2e-5)


def test_a_store_without_the_other_run_is_refused(store: Store) -> None:
    one, _ = runs(store)
    with pytest.raises(FileNotFoundError, match="has no run with weights"):
        LayerSimilarity(("nothing",), (), (END, END), N)(one)


def test_all_pairs_of_two_groups_but_a_model_with_itself(store: Store) -> None:
    both = tuple(identity(run.experiment) for run in runs(store))
    found = LayerSimilarity(both, both, (END, END), N)(runs(store)[0])["scores"]
    assert [[pair is None for pair in row] for row in found] == [[True, False], [False, True]]
    assert np.array(found[0][1])[:4] == pytest.approx(np.array(found[1][0]).T[:4], abs=1e-5)
    assert found[0][1] == taken(store, END, END)["scores"]
    others = LayerSimilarity(both, both, (FIRST, END), N)(runs(store)[0])["scores"]
    assert not any(pair is None for row in others for pair in row)
    assert LayerSimilarity(both, both).others == both[1:] + both[:1]
