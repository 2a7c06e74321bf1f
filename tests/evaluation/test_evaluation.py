"""A run from its folder to its scores."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from unweave.api import train
from unweave.cli import main
from unweave.data.micro import Micro
from unweave.evaluation.encode import BATCH_SIZE, encode, factor_names, known_factors
from unweave.evaluation.evaluation import evaluate, protocol_of_scores
from unweave.metrics import mcc, mig
from unweave.training.run import Run

QUICK = {"factor_vae": {"n_train": 200, "n_test": 100, "batch_size": 8}}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("evaluated") / "run"
    return train("micro", folder, network="linear", latents=3, steps=5, batch_size=4, quiet=True)


def test_codes_are_those_of_the_run(run: Run) -> None:
    rows = torch.tensor([5, 900, 3])
    found = encode(run, rows, device="cpu")
    images = run.data.examples(rows)
    torch.testing.assert_close(found.mean, run.encode(images).mean)
    torch.testing.assert_close(found.variance, run.encode(images).variance)
    assert found.factors is not None
    torch.testing.assert_close(found.factors, run.data.space.values(rows))
    assert factor_names(run.data) == ("x", "y", "size")
    again = encode(run, rows, device="cpu")
    torch.testing.assert_close(found.sampled, again.sampled, rtol=0, atol=0)
    assert not torch.equal(found.sampled, encode(run, rows, seed=1, device="cpu").sampled)


def test_batches_do_not_repeat_their_noise(run: Run) -> None:
    rows = torch.zeros(2 * BATCH_SIZE, dtype=torch.int64)
    sampled = encode(run, rows, device="cpu").sampled
    assert len(torch.unique(sampled[:, 0])) > 2 * BATCH_SIZE - 20


def test_scores_are_those_of_its_codes(run: Run) -> None:
    found = evaluate(run, metrics=["mig", "mcc"], seeds=2)
    assert set(found.scores) == {"mean", "sampled"}
    assert len(found.sample.rows) == len(run.data)
    for name in ("mean", "sampled"):
        codes = getattr(found.sample, name)
        assert found.scores[name]["mig"].value == mig(codes, found.sample.factors).score
        assert found.scores[name]["mcc"].value == mcc(codes, found.sample.factors).score
    assert found.scores["mean"]["mcc"].value != found.scores["sampled"]["mcc"].value
    plain = json.loads(json.dumps(found.to_plain(), allow_nan=False))
    assert len(plain["mean"]["parts"]["mig"]["per_factor"]) == 3


def test_it_can_be_had_from_the_front_door(run: Run) -> None:
    import unweave as uw

    found = uw.evaluate(run.path, metrics="mig", seeds=0)
    assert found.scores["mean"]["mig"].value == evaluate(run, metrics="mig", seeds=0).scores["mean"]["mig"].value
    assert uw.evaluate is evaluate
    assert "evaluate" in dir(uw)


def test_each_plan_is_encoded_once(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    encoded = []

    def counted(run: Run, rows: torch.Tensor, **options: object) -> object:
        encoded.append(len(rows))
        return encode(run, rows, **options)

    monkeypatch.setattr("unweave.evaluation.evaluation.encode", counted)
    metrics = ["factor_vae", "mig"]
    small = evaluate(run, metrics=metrics, n_samples=300, seeds=0, options=QUICK)
    assert encoded == [300, len(run.data)]
    assert small.n_world == len(run.data)
    encoded.clear()
    assert evaluate(run, metrics="mig", n_samples=300, seeds=0).n_world is None
    evaluate(run, metrics=metrics, n_samples=300, seeds=0, options=QUICK, interventions="table")
    evaluate(run, metrics=metrics, seeds=0, options=QUICK)
    assert encoded == [300, 300, len(run.data)]


def test_continuous_labels_are_measured_by_what_takes_them(tmp_path: Path) -> None:
    run = train(
        {"name": "synth_lin", "n_points": 400}, tmp_path / "run", network="linear", likelihood="squared_error",
        latents=2, steps=3, batch_size=8, quiet=True,
    )  # fmt: skip
    found = evaluate(run, metrics=["mcc", "ds"], n_samples=200, seeds=0)
    assert np.isfinite(found.scores["mean"]["mcc"].value)
    assert found.factor_names == ("w1", "w2")
    binned = evaluate(run, metrics="mig", n_samples=200, seeds=0, factor_bins=4)
    assert 0 <= binned.scores["mean"]["mig"].value <= 1
    assert known_factors(run.data, torch.arange(3)).shape == (3, 2)


def test_bad_arguments_say_so(run: Run) -> None:
    with pytest.raises(ValueError, match="interventions must be world or table"):
        evaluate(run, interventions="nowhere")
    with pytest.raises(ValueError, match="representations are mean and sampled, not noise"):
        evaluate(run, representations=["noise"])


def test_a_run_on_correlated_factors_says_which_world_is_measured(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    world = Micro(correlated=("x=y:0.2",))
    told = train(world, tmp_path / "run", network="linear", latents=3, steps=5, batch_size=4, quiet=True)
    found = evaluate(told, metrics=["mig"], seeds=0)
    sentence = "Measured where factors are independent; training saw them go together: x=y:0.2."
    assert repr(found).endswith(sentence)
    assert sentence in found._repr_html_()
    plain = found.to_plain()
    assert plain["correlated_in_training"] == ["x=y:0.2"]
    assert protocol_of_scores(plain).endswith("factors independent, though training saw x=y:0.2")
    assert main(["evaluate", str(told.path), "--metrics", "mig", "--seeds", "0", "--quiet", "--no-pictures"]) == 0
    assert sentence in capsys.readouterr().out
    # where nothing is correlated, nothing is said
    other = evaluate(run, metrics=["mig"], seeds=0)
    assert "independent" not in repr(other)
    assert "correlated_in_training" not in other.to_plain()
