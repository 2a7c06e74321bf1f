"""What is measured of decoders, of the course of training, and of linear models beside PCA."""

import math

import numpy as np
import pytest
import torch
from sklearn.neighbors import KNeighborsRegressor

import unweave as uw
from unweave.data.micro import Micro
from unweave.data.synthetic import SynthLin
from unweave.metrics.polarised.regime import regime
from unweave.models.likelihoods import LearnedGaussian
from unweave.studies.measures.decoder import DecoderGeometry
from unweave.studies.measures.eigenfaces import Eigenfaces
from unweave.studies.measures.principal import PrincipalDirections, matched
from unweave.studies.measures.regime import RegimeCourse, looks
from unweave.studies.measures.untrained import UntrainedDecoder
from unweave.training.history import History
from unweave.training.loop import train
from unweave.training.many import train_many
from unweave.training.run import Run

PLAN = uw.Plan("cpu", 1)
SQUARED = uw.SquaredError("identity")


def linear(seed=0, **options):
    given = {"latents": 2, "steps": 40, "history_every": 10, "holdout": 0.2} | options
    world, objective = given.pop("world", SynthLin(n_points=2000)), given.pop("objective", uw.BetaVAE(0.02))
    return uw.Experiment(world, objective, uw.Linear(), SQUARED, uw.Adam(1e-2), seed=seed, plan=PLAN, **given)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return Run(train(linear(), tmp_path_factory.mktemp("runs") / "linear"))


def by_hand(weight):
    """DtO of two latents: 2√2 sin(θ/2) with θ the angle of the singular vectors to the nearest axis."""
    _, _, vectors = np.linalg.svd(weight)
    angle = math.atan2(abs(vectors[0, 1]), abs(vectors[0, 0]))
    return 2 * math.sqrt(2) * math.sin(min(angle, math.pi / 2 - angle) / 2)


def test_the_distance_of_a_linear_decoder_is_that_of_its_weights(run):
    weight = run.model.decoder.output.weight.numpy()
    found = DecoderGeometry(200, 8)(run)
    assert found["dto"] == pytest.approx(by_hand(weight), abs=1e-5)
    assert found["singular_values"] == pytest.approx(np.linalg.svd(weight, compute_uv=False), rel=1e-5)
    # log of what the columns would span if they were orthogonal, over what they span
    contrast = np.log(np.linalg.norm(weight, axis=0)).sum() - 0.5 * np.log(np.linalg.det(weight.T @ weight))
    if found["n_active"] == 2:
        assert found["ima"] == pytest.approx(contrast, abs=1e-5)


def test_the_score_is_that_of_nearest_neighbours(run):
    found = DecoderGeometry(300, 4)(run)["ds"]
    rows = run.rows(300)
    codes, truth = run.encode(run.data.examples(rows)).mean.numpy(), run.data.labels[rows].numpy()
    order = np.random.default_rng(0).permutation(300)
    codes, truth = codes[order], truth[order]
    told = np.zeros((2, 2))
    for latent in range(2):
        for factor in range(2):
            fitted = KNeighborsRegressor().fit(codes[:240, [latent]], truth[:240, factor])
            error = np.sqrt(((fitted.predict(codes[240:, [latent]]) - truth[240:, factor]) ** 2).mean())
            told[latent, factor] = max(0.0, 1 - error / truth[240:, factor].std())
    assert found == pytest.approx(np.abs(told[0] - told[1]).mean(), abs=0.1)


def test_reconstruction_is_the_likelihood_of_held_out_rows(run):
    found = DecoderGeometry(300, 4)(run)["reconstruction"]
    points = run.data.examples(run.rows(300))
    rebuilt = run.decode(run.encode(points).mean)
    assert found["deterministic"] == pytest.approx(float((rebuilt - points).square().sum(1).mean()), rel=1e-4)
    assert found["loss"] > found["deterministic"]
    assert found["stochastic"] > 0
    assert found["variance"] == pytest.approx(points.double().var(0, correction=0).sum().item())


def test_classes_are_no_factors_and_autoencoders_no_exception(tmp_path):
    given = {"steps": 2, "latents": 3, "plan": PLAN, "history_every": 1}
    paths = train_many([uw.Experiment(Micro(), uw.AE(), uw.MLP((8,), (8,)), **given)], tmp_path)
    found = DecoderGeometry(64, 4)(Run(paths[0]))
    assert 0.0 <= found["ds"] <= 1.0
    assert found["reconstruction"]["stochastic"] == 0.0
    labelled = Run(paths[0])
    data = labelled.data
    # class labels in place of factors
    labelled.data = type(data)(data.store, data.shape, labels=torch.zeros(len(data), 1, dtype=torch.int64))
    assert DecoderGeometry(64, 4)(labelled)["ds"] is None


def test_the_untrained_decoder_is_the_one_that_training_began_with(tmp_path):
    run = Run(train(linear(snapshots=(0,)), tmp_path / "run"))
    first = run.load_weights(run.snapshots[0])
    found = UntrainedDecoder(8)(run)["dto"]
    assert found == pytest.approx(by_hand(first.decoder.output.weight.numpy()), abs=1e-5)
    assert found != pytest.approx(DecoderGeometry(200, 8)(run)["dto"], abs=1e-3)


def test_the_regime_is_read_from_the_history(run):
    found = RegimeCourse(every=20)(run)
    assert found["steps"] == [0, 20]
    assert found["n_looks"] == 2
    history = run.history
    row = history.steps.index(20)
    kl = history.latent("kl")[row].double()
    used = history.latent("variance_of_mean")[row].sqrt() > 0.5
    rest = 0.5 * history.latent("mean_variance")[row].double()[used].sum() + kl[~used].sum()
    # KL − KL≈ = ½ Σ_active σ² + Σ_passive KL
    assert found["delta"][1] == pytest.approx(float(rest / kl.sum()), rel=1e-5)
    assert found["since"] is None
    assert found["share"] == 0.0
    lenient = RegimeCourse(threshold=1e9, every=20)(run)
    assert lenient["since"] == 0
    assert lenient["share"] == 1.0


def test_latents_in_use_are_those_of_the_last_look(run, monkeypatch):
    columns = ["kl_0", "kl_1", "variance_of_mean_0", "variance_of_mean_1", "mean_variance_0", "mean_variance_1"]
    used, unused = [2.0, 2.0, 1.0, 1.0, 0.01, 0.01], [2.0, 0.0, 1.0, 0.0, 0.01, 1.0]
    for rows, n_active in (([used, used, unused], 1), ([unused, unused, used], 2)):
        monkeypatch.setattr(run, "history", History(columns, [0, 500, 1000], torch.tensor(rows)))
        assert RegimeCourse()(run)["n_active"] == n_active


def test_the_regime_of_a_batch_is_that_of_its_posteriors(run):
    """The history's three statistics give the same Δ_KL as the posteriors themselves."""
    code = run.encode(run.images(200))
    direct = regime(code.mean, code.variance)
    kl, spread, average = code.kl.mean(0), code.mean.var(0, correction=0), code.variance.mean(0)
    approximate = ((kl - 0.5 * average) * (spread.sqrt() > 0.5)).sum()
    assert direct.delta == pytest.approx(float((kl.sum() - approximate).abs() / kl.sum()), rel=1e-3)


def test_a_course_needs_two_looks():
    assert looks([0, 50, 100, 149], 100) == [0, 2]
    with pytest.raises(ValueError, match="history_every"):
        looks([0, 50, 99], 100)


def test_columns_are_matched_to_directions_up_to_sign_and_order():
    axes = torch.linalg.qr(torch.randn(4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))).Q
    weight = torch.stack([-3.0 * axes[:, 2], 0.1 * axes[:, 0], 2.0 * axes[:, 1]], dim=1)
    places, latents, angles = matched(weight, axes[:, :3])
    assert (places, latents) == ([0, 1, 2], [1, 2, 0])
    assert float(angles.max()) < 1e-5
    tilted = axes[:, :1] * math.cos(0.1) + axes[:, 1:2] * math.sin(0.1)
    assert float(matched(tilted, axes[:, :1])[2]) == pytest.approx(math.degrees(0.1))
    assert matched(weight[:, :0], axes)[1] == []


def test_principal_directions_of_an_untrained_model_are_far_off(run):
    found = PrincipalDirections(500)(run)
    # stretched by 2 and 1: variances 4/12 and 1/12, of which β/2 = 0.01 is lost
    assert found["n_active_theory"] == 2
    assert found["rate_theory"] == pytest.approx(
        0.5 * math.log(4 / 12 / 0.01) + 0.5 * math.log(1 / 12 / 0.01), rel=0.05
    )
    assert found["largest_angle"] is None or found["largest_angle"] > 5.0


def test_principal_directions_are_those_of_linear_gaussian_models(tmp_path):
    given = {"steps": 1, "latents": 2, "plan": PLAN}
    curved = uw.Experiment(SynthLin(n_points=100), uw.BetaVAE(1.0), uw.MLP((4,), (4,)), SQUARED, **given)
    with pytest.raises(ValueError, match="linear network"):
        PrincipalDirections()(Run(train(curved, tmp_path / "curved")))
    learned = uw.Experiment(SynthLin(n_points=100), uw.BetaVAE(1.0), uw.Linear(), LearnedGaussian(), **given)
    with pytest.raises(ValueError, match="known variance"):
        PrincipalDirections()(Run(train(learned, tmp_path / "learned")))


def test_eigenfaces_come_in_the_order_of_noise(tmp_path):
    experiment = uw.Experiment(
        Micro(), uw.BetaVAE(1.0), uw.MLP((16,), (16,)), steps=3, latents=4, plan=PLAN, history_every=1
    )
    run = Run(train(experiment, tmp_path / "run"))
    found = Eigenfaces(128)(run)
    assert sorted(found["latents"]) == [0, 1, 2, 3]
    assert found["deviation"] == sorted(found["deviation"])
    middle = run.encode(run.images(300)).mean.mean(0)
    step = torch.zeros(4)
    step[found["latents"][1]] = 2.5
    moved = run.decode(torch.stack([middle + step, middle - step]))
    assert found["change"][1] == pytest.approx(float((moved[0] - moved[1]).square().sum()), rel=1e-4)
