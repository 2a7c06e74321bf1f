"""A model that reads labels, through every command: its types against its own prior, no image without its labels."""

import io
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from fastapi.testclient import TestClient
from PIL import Image

import unweave as uw
from unweave.cli import main
from unweave.data.images import Images
from unweave.evaluation.describe import describe
from unweave.evaluation.encode import encode
from unweave.models.objectives import IVAE, VAE
from unweave.recipes.diagnose import diagnose_run
from unweave.studies.measures import MEASURES
from unweave.training.engine import summary
from unweave.training.run import Run
from unweave.web.app import create_app

TINY = ["--network", "mlp", "--network.encoder-widths", "24", "--network.decoder-widths", "24", "--steps", "40"]
SMALL = {"network": uw.MLP((8,), (8,)), "latents": 2, "steps": 5, "quiet": True}
TINY += ["--latents", "4", "--quiet", "--plan.threads", "1", "--snapshots", "20"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("labels")
    for name, mean in (("zero", "zero"), ("learned", "learned")):
        words = ["--objective", "ivae", "--objective.prior-mean", mean, "--folder", str(path / name)]
        assert main(["train", "micro", *words, *TINY]) == 0
    return path


@pytest.mark.parametrize(
    "words",
    [
        "show {}/zero --json",
        "show {}/learned",
        "diagnose {}/learned --examples 300 --jacobians 8 --json",
        "report {}/learned",
        "evaluate {}/zero --metrics mig,mcc --samples 300 --quiet",
        "traverse {}/learned --steps 3",
        "traverse {}/learned --steps 3 --row 17",
        "compare {}/zero {}/learned --quiet --examples 60 --permutations 9 --folder {}/compared",
        "intrinsic {}/zero --examples 100 --json",
        "sample {}/learned --label size=3 -n 3",
        "export {}/learned {}/export",
    ],
)
def test_every_command_knows_the_labels(words: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = main(words.replace("{}", str(folder)).split())
    assert status == 0, capsys.readouterr().err


def test_chosen_labels_change_what_is_drawn(folder: Path, tmp_path: Path) -> None:
    drawn = {}
    for size in (0, 7):
        out = tmp_path / f"{size}.npz"
        label = ["--label", f"size={size}", "--label", "x=3", "--label", "y=4"]
        assert main(["sample", str(folder / "learned"), *label, "-n", "5", "--out", str(out)]) == 0
        drawn[size] = np.load(out)["images"]
    assert drawn[0].shape == (5, 1, 32, 32)
    assert not np.array_equal(drawn[0], drawn[7])
    run = Run(folder / "learned")
    mean, log_variance = run.model.prior_of(torch.tensor([[3.0, 4.0, 7.0]] * 5))
    noise = uw.rng.normal(0, uw.rng.Purpose.EVALUATE, 0, 5, 4)
    np.testing.assert_array_equal(run.decode(mean + (0.5 * log_variance).exp() * noise).numpy(), drawn[7])


def test_bad_labels_are_answered(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, told in (
        ("--label size=8", "the label size must be a whole number in 0…7, not 8"),
        ("--label size=2.5", "the label size must be a whole number in 0…7, not 2.5"),
        ("--label sizes=2", "unknown label 'sizes'. Did you mean size?"),
        ("--label size", "--label must be NAME=VALUE as in shape=2, not 'size'"),
    ):
        assert main(["sample", str(folder / "zero"), *words.split()]) == 2
        assert told in capsys.readouterr().err
    run = Run(folder / "zero")
    with pytest.raises(ValueError, match=r"together with their labels \(x, y, size\), and got none"):
        run.encode(run.images(3))
    with pytest.raises(ValueError, match="3 images need as many rows of labels"):
        run.encode(run.images(3), run.labels(4))


@pytest.fixture
def keeps_its_prior(folder: Path) -> Run:
    """Latent 0 is made to have the learned prior as its posterior, far from the standard normal."""
    run = Run(folder / "zero")
    with torch.no_grad():
        prior, heads = run.model.prior.log_variance.output, run.model.encoder.heads
        for layer, value in ((prior, -3.0), (heads["log_variance"], -3.0), (heads["mean"], 0.0)):
            layer.weight[0] = 0.0
            layer.bias[0] = value
    return run


def test_a_latent_that_keeps_its_prior_is_passive_everywhere(keeps_its_prior: Run) -> None:
    run = keeps_its_prior
    assert describe(run, n=300).types[0] == "passive"
    assert float(describe(run, n=300).kl[0]) == pytest.approx(0.0, abs=1e-6)
    found = diagnose_run(run, n=300)
    assert found.diagnosis.types[0] == "passive"
    assert found.to_plain()["latents"][0]["type"] == "passive"
    code = encode(run, run.rows(300))
    assert uw.variable_types(code.mean, code.variance)[0] == "active"  # a prior of 1 would not see it
    for name in ("polarised", "by_type", "passive"):
        assert MEASURES[name](n_samples=300)(run)["types"][0] == "passive", name
    assert MEASURES["intrinsic"](n_samples=300)(run)["n_passive"] >= 1
    assert MEASURES["fondue"](n_samples=300)(run)["trace"]["passive"] >= 1


def test_variances_stand_in_units_of_the_prior_wherever_types_stand_beside_them(keeps_its_prior: Run) -> None:
    run, n = keeps_its_prior, 300
    code = run.encode(run.images(n), run.labels(n))
    wanted = (code.variance / code.prior_variance).mean(0).tolist()
    assert wanted[0] == pytest.approx(1.0, abs=1e-5)
    assert float(code.variance[:, 0].mean()) == pytest.approx(np.exp(-3.0), rel=1e-4)
    spread = ((code.mean - code.prior_mean) / code.prior_variance**0.5).var(0, correction=0)
    described = describe(run, n=n)
    assert described.mean_variance.tolist() == pytest.approx(wanted, rel=1e-5)
    assert described.variance_of_mean.tolist() == pytest.approx(spread.tolist(), rel=1e-4)
    diagnosis = diagnose_run(run, n=n).diagnosis
    assert [one.mean_variance for one in diagnosis.latents] == pytest.approx(wanted, rel=1e-5)
    assert MEASURES["polarised"](n_samples=n)(run)["mean_variance"][0] == pytest.approx(1.0, abs=1e-5)
    assert MEASURES["alignment"](n_samples=n)(run)["n_active"] == sum(one < 0.8 for one in wanted)
    scored = uw.evaluate(run, n_samples=n, metrics="traces", representations=("mean",))
    assert scored.scores["mean"]["traces"].value == pytest.approx(sum(wanted), rel=1e-5)
    kept = scored.to_plain()["latents"]
    assert (kept["types"][0], kept["mean_variance"][0]) == ("passive", pytest.approx(1.0, abs=1e-5))
    row = summary({"loss": torch.zeros(())}, code)[1:].unflatten(0, (5, -1))
    assert row[3].tolist() == pytest.approx(wanted, rel=1e-5)
    assert row[2].tolist() == pytest.approx(spread.tolist(), rel=1e-4)


@pytest.mark.slow
def test_it_is_passive_where_types_are_scored(keeps_its_prior: Run) -> None:
    found = diagnose_run(keeps_its_prior, n=300, accuracy=True)
    assert found.diagnosis.types[0] == "passive"
    assert MEASURES["accuracy_by_type"](n_train=200, n_test=100)(keeps_its_prior)["types"][0] == "passive"


@pytest.mark.parametrize("name", ["codes", "decoder", "untrained", "eigenfaces", "regime"])
def test_other_measures_pass(name: str, folder: Path) -> None:
    measure = MEASURES[name]
    settings = {"n_samples": 200} if "n_samples" in measure.__dataclass_fields__ else {}
    settings |= {"n_jacobians": 8} if "n_jacobians" in measure.__dataclass_fields__ else {}
    if name != "regime":  # forty steps have no row at a multiple of 500 but the first
        assert measure(**settings)(Run(folder / "learned"))


def test_an_export_opens_again(folder: Path, tmp_path: Path) -> None:
    run = Run(folder / "learned")
    model = uw.from_pretrained(uw.export(run, tmp_path / "model"))
    images, labels = run.images(6), run.labels(6)
    torch.testing.assert_close(model.encode(images, labels).mean, run.encode(images, labels).mean)
    with pytest.raises(ValueError, match="together with their 3 labels"):
        model.encode(images)


def test_a_run_that_reads_no_labels_needs_none(tmp_path: Path) -> None:
    run = uw.train("micro", tmp_path / "vae", objective=VAE(), **SMALL)
    assert run.labels(4) is None
    assert run.sample(3).shape == (3, 1, 32, 32)
    assert torch.equal(run.sample(3), run.sample(3))
    with pytest.raises(ValueError, match="knows no labels: it was trained by vae"):
        run.sample(3, labels={"size": 1})


def test_worlds_without_labels_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez(tmp_path / "plain.npz", images=np.random.default_rng(0).random((20, 8, 8), dtype=np.float32))
    words = ["train", "images", "--world.path", str(tmp_path / "plain.npz"), "--folder", str(tmp_path / "run")]
    for method in ("ivae", "semi_vae"):
        assert main([*words, "--objective", method, *TINY]) == 2
        assert f"{method} learns from labels, and plain has none: take a world with factors" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("labels", "told"),
    [
        (np.full((20, 1), 3), "all have the same"),
        (np.zeros(20), "all have the same"),
    ],
)
def test_labels_that_cannot_teach_are_refused(
    labels: np.ndarray, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    images = np.random.default_rng(0).random((20, 8, 8), dtype=np.float32)
    np.savez(tmp_path / "some.npz", images=images, labels=labels)
    words = ["train", "images", "--world.path", str(tmp_path / "some.npz"), "--folder", str(tmp_path / "run")]
    assert main([*words, "--objective", "ivae", *TINY]) == 2
    assert told in capsys.readouterr().err


def test_own_labels_and_own_words(tmp_path: Path) -> None:
    images = np.random.default_rng(0).random((30, 8, 8), dtype=np.float32)
    labels = np.stack([np.arange(30) % 3, np.arange(30) / 7], axis=1)
    np.savez(tmp_path / "own.npz", images=images, labels=labels)
    run = uw.train(Images(path=str(tmp_path / "own.npz")), tmp_path / "run", objective=IVAE(), **SMALL)
    assert run.model.architecture.labels == (3, 0)
    assert run.encode(run.images(5), run.labels(5)).mean.shape == (5, 2)
    assert json.loads((run.path / "config.json").read_text())["objective"]["name"] == "ivae"


def test_one_segment_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["train", "ivae_toy", "--world.segments", "1", "--objective", "ivae", "--likelihood", "gaussian"]
    assert main([*words, "--folder", str(tmp_path / "run"), *TINY]) == 2
    assert "in ivae_toy all have the same (segment); give two segments or classes at least" in capsys.readouterr().err


def test_the_explorer_knows_the_labels_of_the_data_and_asks_for_those_of_others(folder: Path) -> None:
    with TestClient(create_app(folder), base_url="http://127.0.0.1") as client:
        client.app.state.catalogue.refresh()  # type: ignore[attr-defined]
        for page in ("latents", "diagnosis", "examples?n=3", "codes.npz?n=5"):
            assert client.get(f"/api/runs/learned/{page}").status_code == 200, page
        shown = client.get("/api/runs/learned/latents").json()
        code = describe(Run(folder / "learned"), n=2048).code
        for one in shown["latents"]:
            drawn = code.standardised().sampled[:, one["latent"]].clamp(shown["edges"][0], shown["edges"][-1])
            wanted = np.histogram(drawn.numpy(), shown["edges"], density=True)[0]
            assert one["sampled_histogram"] == pytest.approx(wanted.tolist(), abs=1e-3)
            assert one["low"] == pytest.approx(float(code.mean[:, one["latent"]].quantile(0.01)), abs=1e-4)
        assert client.get("/api/compare?left=zero&right=learned").status_code == 200
        picture = io.BytesIO()
        Image.new("L", (32, 32)).save(picture, format="PNG")
        answer = client.post("/api/runs/learned/encode", content=picture.getvalue())
    assert answer.status_code in (400, 422)
    assert "together with their labels (x, y, size), and got none" in answer.json()["detail"]
