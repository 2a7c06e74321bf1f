"""What studies measure of types, searches, correlations and layers, each by another route."""

import json

import numpy as np
import pytest
import torch

import unweave as uw
from unweave.algorithms.classifier import Lesson, classifier_layers, train_classifier
from unweave.data.micro import Micro
from unweave.data.synthetic import SynthLin
from unweave.evaluation.encode import encode
from unweave.metrics.dimension.mle import mle
from unweave.metrics.downstream.learning import downstream
from unweave.models.likelihoods import Gaussian
from unweave.studies.measures import accuracy_by_type as accuracy_by_type_module
from unweave.studies.measures import fondue
from unweave.studies.measures.accuracy_by_type import AccuracyByType
from unweave.studies.measures.by_type import ByType
from unweave.studies.measures.classifier import ClassifierSimilarity
from unweave.studies.measures.elbow import ElbowPoint
from unweave.studies.measures.fondue import FondueReading
from unweave.studies.measures.intrinsic import IntrinsicDimensions
from unweave.studies.measures.passive import PassiveCorrelations
from unweave.studies.measures.spread import Spread
from unweave.training.loop import train
from unweave.training.run import Run


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A small model that has learned a little, with snapshots."""
    experiment = uw.Experiment(
        SynthLin(n_points=500),
        objective=uw.BetaVAE(1.0),
        network=uw.MLP((16,), (16,)),
        likelihood=Gaussian(0.01),
        optimiser=uw.Adam(3e-3),
        latents=4,
        steps=150,
        history_every=50,
        snapshots=(0, 50, 100),
        plan=uw.Plan("cpu", 1),
    )
    return Run(train(experiment, tmp_path_factory.mktemp("runs") / "one"))


@pytest.fixture(scope="module")
def image_run(tmp_path_factory):
    experiment = uw.Experiment(
        Micro(), network=uw.Conv((4, 4), (4, 4), 8), latents=2, steps=3, history_every=1, plan=uw.Plan("cpu", 1)
    )
    return Run(train(experiment, tmp_path_factory.mktemp("runs") / "two"))


def codes(run, n):
    return encode(run, run.rows(n))


def test_the_trace_reading_is_the_mean_variance_and_types_are_counted(run):
    found = FondueReading("trace", 400)(run)["trace"]
    code = codes(run, 400)
    assert found["first"] - found["second"] == pytest.approx(code.variance.mean(0).sum().item(), rel=1e-5)
    assert found["second"] == pytest.approx(np.cov(code.mean.numpy().T).trace(), rel=1e-5)
    assert found["active"] + found["mixed"] + found["passive"] == 4
    json.dumps(found, allow_nan=False)


def test_the_intrinsic_reading_takes_the_dimension_of_both_codes(run):
    code = codes(run, 300)
    found = FondueReading("ide", 300)(run)["ide"]
    assert found["first"] == pytest.approx(mle(code.sampled).score)
    assert found["second"] == pytest.approx(mle(code.mean).score)
    found = FondueReading("ide_20", 300)(run)["ide_20"]
    assert found["first"] == pytest.approx(mle(code.sampled, neighbours=(20,)).score)


def test_batches_are_whole_and_codes_stay_with_their_images(run, monkeypatch):
    monkeypatch.setattr(fondue, "BATCH_SIZE", 20)
    code = codes(run, 50)
    batches = list(fondue._batches(run, code, 8))
    # 20, 20 and 10 rows hold two, two and one batches of eight
    wanted = [slice(begin, begin + 8) for begin in (0, 8, 20, 28, 40)]
    assert len(batches) == len(wanted)
    for (found, images, outputs), rows in zip(batches, wanted):
        assert torch.equal(found, code.sampled[rows])
        assert torch.equal(images, run.data.examples(code.rows[rows]).cpu())
        torch.testing.assert_close(outputs, run.decode(code.sampled[rows]))
    monkeypatch.setattr(fondue, "BATCH_SIZE", 300)
    assert [len(found) for found, _, _ in fondue._batches(run, code, 300)] == [50]


def test_an_unknown_criterion_is_named(run):
    with pytest.raises(ValueError, match="unknown criterion 'elbow'"):
        FondueReading("elbow", 100)(run)


def test_an_elbow_point_is_the_loss(run):
    found = ElbowPoint(200)(run)
    images = run.images(200)
    loss = run.model.architecture.likelihood.loss(images, run.outputs(run.encode(images).mean)).mean()
    # the factors of the square are continuous: no accuracy of classes
    assert found == {"reconstruction loss": pytest.approx(loss.item(), rel=1e-5)}


def test_an_elbow_point_learns_classes_from_two_thirds(image_run):
    found, code = ElbowPoint(90)(image_run), codes(image_run, 90)
    wanted = downstream(code.mean, code.factors.long(), predictor="trees", sizes=(60,), seed=0).score
    assert found["downstream accuracy"] == pytest.approx(wanted, abs=1e-12)


def test_dependence_by_type_against_numpy(run):
    found = ByType(500)(run)
    code = codes(run, 500)
    for name, table in (("mean", code.mean), ("sampled", code.sampled)):
        correlation = np.corrcoef(table.double().numpy().T)
        expected = -0.5 * np.linalg.slogdet(correlation)[1]
        assert found[name]["all"]["total_correlation"] == pytest.approx(expected, rel=1e-4, abs=1e-6)
        values = np.linalg.svd(table.double().numpy(), compute_uv=False)
        share = values / values.sum()
        assert found[name]["all"]["effective_rank"] == pytest.approx(np.exp(-(share * np.log(share)).sum()), rel=1e-5)
    assert found["variance_of_mean"] == pytest.approx(code.mean.numpy().var(0, ddof=1).tolist(), rel=1e-4)
    assert found["n_active"] + found["n_mixed"] + found["n_passive"] == len(found["types"]) == 4
    empty = [kind for kind in ("active", "mixed", "passive") if found[f"n_{kind}"] == 0]
    assert all(found["mean"][kind]["total_correlation"] == 0.0 for kind in empty)
    json.dumps(found, allow_nan=False)


def test_accuracy_by_type_with_a_continuous_square(run):
    found = AccuracyByType(200, 100)(run)
    assert found["chance"] == pytest.approx(0.1)
    present = set(found["types"])
    assert set(found["mean"]) == set(found["sampled"])
    assert "+".join(kind for kind in ("active", "mixed", "passive") if kind in present) in found["mean"]
    # a square that is drawn in the code tells tenths of its sides far better than a guess
    assert found["mean"]["all"] > 0.3


def test_accuracy_by_type_asks_for_what_it_trains_and_tests_on(run, monkeypatch):
    asked = []
    monkeypatch.setattr(accuracy_by_type_module, "encoded", lambda run, n: asked.append(n) or codes(run, n))
    AccuracyByType(200, 100)(run)
    assert asked == [300]


def test_a_spread_is_where_equal_shares_of_a_latent_s_values_lie(run):
    found, code = Spread(500, n_values=10)(run), codes(run, 500)
    assert {*found} == {"types", "mean", "sampled"}
    for name, table in (("mean", code.mean), ("sampled", code.sampled)):
        for values, latent in zip(found[name], table.double().numpy().T):
            # of 500 values 25 lie below the middle of the first tenth, 75 below that of the second, and so on
            below = [(latent < value).sum() for value in values]
            assert below == pytest.approx(range(25, 500, 50), abs=1)


def test_correlations_at_the_end_and_over_snapshots_against_numpy(run):
    found = PassiveCorrelations(300)(run)
    code = codes(run, 300)
    matrix = np.corrcoef(code.mean.double().numpy().T)
    assert np.allclose(found["correlation"], matrix, atol=1e-4)
    off = np.abs(matrix - np.eye(4))
    assert np.allclose(found["strongest"], off.max(1), atol=1e-4)
    assert found["steps"] == [0, 50, 100]
    assert np.array(found["course"]).shape == (3, 4, 4)
    often = (np.abs(np.array(found["course"]) - np.eye(4)).max(2) > 0.2).mean(0)
    assert np.allclose(found["often"], often)


def test_dimensions_of_codes_and_of_layers_at_every_snapshot(run):
    found = IntrinsicDimensions(300, layers=True)(run)
    code = codes(run, 300)
    assert found["mean"] == pytest.approx(mle(code.mean, neighbours=(20,)).score, abs=1e-5)
    assert list(found["layers"]) == ["0", "50", "100", "150"]
    assert found["layers"]["150"]["mean"] == pytest.approx(found["mean"], abs=1e-3)
    # a square, whatever the layer that shows it
    assert found["layers"]["150"]["input"] == pytest.approx(2.0, abs=0.5)


def test_a_layer_that_is_nearly_dead_has_no_dimension():
    table = torch.zeros(100, 3)
    table[0], table[1] = 1.0, 2.0
    assert IntrinsicDimensions()._dimension(table) is None
    assert IntrinsicDimensions()._dimension(torch.zeros(100, 3)) == 0.0


def test_a_classifier_learns_its_world_and_is_a_function_of_its_seed():
    data = Micro().load()
    network = uw.MLP((32,))
    made = [train_classifier(network, data, Lesson(steps, learning_rate=3e-3, seed=1)) for steps in (1, 60, 60)]
    rows = torch.arange(0, len(data), 7)
    right = [_accuracy(model, data, rows) for model in made]
    assert right[1] > right[0] + 0.1
    assert all(torch.equal(a, b) for a, b in zip(made[1].state_dict().values(), made[2].state_dict().values()))
    layers = classifier_layers(made[1], data.examples(rows[:5]))
    assert list(layers) == ["input", "classifier 1", "classes"]
    assert layers["classes"].shape == (5, 16 + 16 + 8)
    assert torch.equal(layers["classifier 1"], made[1].trunk(data.examples(rows[:5])))


def _accuracy(model, data, rows):
    scores = model(data.examples(rows)).split(list(model.n_classes), dim=1)
    return float(
        torch.stack([part.argmax(1) == data.factors(rows)[:, k] for k, part in enumerate(scores)]).float().mean()
    )


def test_a_classifier_needs_factors():
    with pytest.raises(ValueError, match="needs a world with factors"):
        train_classifier(uw.MLP((4,)), SynthLin(n_points=10).load(), Lesson(1))


def test_encoder_and_classifier_are_held_against_each_other(image_run):
    found = ClassifierSimilarity(64, 2)(image_run)
    cka = np.array(found["cka"])
    assert cka.shape == (len(found["rows"]), len(found["columns"]))
    assert found["rows"][0] == found["columns"][0] == "input"
    assert cka[0, 0] == pytest.approx(1.0, abs=1e-4)
    assert cka.min() >= 0.0
    assert np.array_equal(cka, cka.round(5))
    assert (cka != cka.round(4)).any()
    assert ClassifierSimilarity(64, 2, objective="dip_vae_ii")(image_run) == {}


def test_peaks_are_scipys_kurtosis(run):
    from scipy.stats import kurtosis

    from unweave.studies.measures.code_shapes import CodeShapes

    found, code = CodeShapes(300)(run), codes(run, 300)
    np.testing.assert_allclose(found["kurtosis_of_mean"], kurtosis(code.mean.double().numpy()), rtol=1e-6)
    np.testing.assert_allclose(found["kurtosis_of_sampled"], kurtosis(code.sampled.double().numpy()), rtol=1e-6)
    assert found["n_active"] + found["n_mixed"] + found["n_passive"] == len(found["types"]) == 4


def test_what_is_told_of_a_factor_is_its_latents_kl(tmp_path):
    from unweave.studies.measures.told_factors import ToldFactors

    experiment = uw.Experiment(
        Micro(), uw.KnownFactors(), uw.MLP((8,), (8,)), latents=3, steps=6, history_every=2, plan=uw.Plan("cpu", 1)
    )
    run = Run(train(experiment, tmp_path / "run"))
    found = ToldFactors()(run)
    assert found["steps"] == run.history.steps
    assert list(found["nats"]) == ["x", "y", "size"]
    scale, log_variance = run.model.encoder.scale, run.model.encoder.log_variance
    code = codes(run, 2048)
    # KL = ½ (a² E f² + σ² − log σ² − 1), over all examples, after the last step; the history has a batch before it
    squares = (2 * code.factors / torch.tensor([15.0, 15.0, 7.0]) - 1).square().mean(0)
    kl = 0.5 * (scale.square() * squares + log_variance.exp() - log_variance - 1)
    torch.testing.assert_close(code.kl.mean(0), kl.detach().to(code.kl.dtype), rtol=1e-4, atol=1e-6)
    last = torch.tensor([line[-1] for line in found["nats"].values()])
    torch.testing.assert_close(last, kl.detach(), rtol=0.3, atol=0)


def test_only_told_factors_have_latents_of_their_own(run):
    from unweave.studies.measures.told_factors import ToldFactors

    with pytest.raises(ValueError, match="runs by known_factors, and this one is by beta_vae"):
        ToldFactors()(run)
