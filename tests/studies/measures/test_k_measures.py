"""Scores, dependence of codes and downstream accuracy of a run, each against another route to the same number."""

import gc

import numpy as np
import pytest

from unweave.data.micro import Micro
from unweave.evaluation.encode import encode
from unweave.evaluation.evaluation import evaluate
from unweave.metrics.downstream.learning import downstream
from unweave.models.networks.mlp import MLP
from unweave.studies.measures import MEASURES
from unweave.studies.measures import downstream as downstream_accuracy
from unweave.studies.measures.codes import Codes
from unweave.studies.measures.downstream import DownstreamAccuracy
from unweave.studies.measures.encoded import encoded
from unweave.studies.measures.scores import Scores
from unweave.studies.pack import Pack, pack_from, pack_to
from unweave.training.experiment import Experiment, Plan
from unweave.training.loop import train
from unweave.training.run import Run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    chosen = Experiment(Micro(), network=MLP((8,), (8,)), latents=4, steps=5, plan=Plan("cpu", 1), history_every=5)
    return Run(train(chosen, tmp_path_factory.mktemp("runs") / "one"))


def test_scores_are_those_of_evaluate(run: Run) -> None:
    metrics = ("mig", "modularity", "dci")
    found = Scores(metrics, 500, ("mean", "sampled"))(run)
    expected = evaluate(run, metrics=metrics, n_samples=500, interventions="table", seeds=0).scores
    for codes in ("mean", "sampled"):
        assert found[codes]["mig"] == pytest.approx(expected[codes]["mig"].value)
        assert found[codes]["dci"]["completeness"] == pytest.approx(expected[codes]["dci.completeness"].value)


def test_options_reach_the_metric(run: Run) -> None:
    coarse = Scores(("mig",), 500, options=(("mig", "n_bins", 3),))(run)
    assert coarse["mean"]["mig"] != Scores(("mig",), 500)(run)["mean"]["mig"]


def test_total_correlation_is_the_gaussian_one(run: Run) -> None:
    found = Codes(400)(run)
    code = encode(run, run.rows(400))
    for name, values in (("mean", code.mean), ("sampled", code.sampled)):
        correlations = np.corrcoef(values.double().numpy().T)
        # TC = −½ log det R
        assert found[name]["total_correlation"] == pytest.approx(-0.5 * np.linalg.slogdet(correlations)[1], abs=1e-6)
        assert not found[name]["singular"]
    assert 1.0 <= found["mean"]["effective_rank"] <= 4.0


def test_downstream_accuracy_and_its_efficiency(run: Run) -> None:
    measure = DownstreamAccuracy(("trees",), (10, 100), 200, few=10, many=100)
    found = measure(run)["trees"]
    code = encode(run, run.rows(300))
    assert code.factors is not None
    expected = downstream(code.mean, code.factors.long(), predictor="trees", sizes=(10, 100), n_test=200)
    assert found["accuracy_100"] == pytest.approx(float(expected.mean[1]))
    assert found["efficiency"] == pytest.approx(float(expected.mean[0] / expected.mean[1]))


def test_measures_of_one_run_share_its_codes_and_let_go_of_them(run: Run) -> None:
    assert encoded(run, 64) is encoded(run, 64)
    assert encoded(run, 64) is not encoded(run, 65)
    from unweave.studies.measures.encoded import _kept

    other = Run(run.path)
    encoded(other, 16)
    before = len(_kept)
    del other
    gc.collect()
    assert len(_kept) == before - 1


@pytest.mark.parametrize("name", ["codes", "downstream", "scores"])
def test_measures_travel_to_workers_as_text(name: str, run: Run) -> None:
    measure = MEASURES[name]()
    assert pack_from(pack_to(Pack((run.experiment,), (measure,)))).measures == (measure,)


def test_downstream_accuracy_asks_for_what_it_trains_and_tests_on(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(
        downstream_accuracy, "encoded", lambda run, n: asked.append(n) or encode(run, run.rows(n), device="cpu")
    )
    found = DownstreamAccuracy(("trees",), (10, 40), n_test=20, few=10, many=40)(run)["trees"]
    assert asked == [60]
    assert found["efficiency"] == pytest.approx(found["accuracy_10"] / found["accuracy_40"])
