"""Models of other shapes than a VAE's: without a decoder, with quantised codes, with a generator, in every command."""

import json
from pathlib import Path

import pytest
import torch
from fastapi.testclient import TestClient

import unweave as uw
from unweave.cli import main
from unweave.evaluation.describe import describe
from unweave.metrics import infomec
from unweave.models.method import NoDecoder
from unweave.studies.measures import MEASURES
from unweave.training.experiment import experiment_from
from unweave.training.run import Run
from unweave.web.app import create_app

MLP = ["--network", "mlp", "--network.encoder-widths", "8", "--network.decoder-widths", "8"]
CONV = ["--network.channels", "3,4,4", "--network.kernels", "4,4,4", "--objective.hidden", "6"]
OPTIONS = {
    "pcl": [*MLP, "--objective", "pcl"],
    "other": [*MLP, "--objective", "pcl", "--seed", "1"],
    "qlae": [*MLP, "--objective", "qlae"],
    "gan": [*CONV, "--objective", "ws_gan", "--objective.nuisances", "2"],
}
SENTENCE = "pcl trains an encoder alone"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("methods") / "runs"
    small = ["--latents", "3", "--steps", "20", "--batch-size", "8", "--history-every", "5", "--snapshots", "10"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNWEAVE_DATA", str(tmp_path_factory.getbasetemp() / "data"))
        for name, options in OPTIONS.items():
            command = ["train", "micro", *small, *options, "--plan.device", "cpu", "--plan.threads", "1", "--quiet"]
            assert main([*command, "--folder", str(place / name)]) == 0
    return place


def said(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    capsys.readouterr()
    assert main(list(words)) == code
    out = capsys.readouterr()
    return " ".join((out.out + out.err).split())


def test_what_needs_a_decoder_says_so_in_one_sentence(store: Path) -> None:
    run = Run(store / "pcl")
    assert not run.decodes
    codes = torch.zeros(2, 3)
    asked = [
        lambda: run.outputs(codes), lambda: run.decode(codes), lambda: run.reconstruct(run.images(2)), run.traverse,
        lambda: run.model.decode(codes), run.require_decoder,
    ]  # fmt: skip
    for ask in asked:
        with pytest.raises(NoDecoder, match=f"{SENTENCE}: without a decoder there are no traversals"):
            ask()


@pytest.mark.parametrize("name", ["qlae", "gan"])
def test_models_with_a_decoder_draw(store: Path, name: str) -> None:
    run = Run(store / name)
    assert run.decodes
    run.require_decoder()
    pictures = run.traverse(n=4)
    assert pictures.shape == (3, 4, 1, 32, 32)
    assert 0 <= float(pictures.min()) <= float(pictures.max()) <= 1
    torch.testing.assert_close(run.decode(torch.zeros(2, 3)), run.model.decode(torch.zeros(2, 3)))
    assert describe(run, n=50).reconstruction > 0


def test_a_generator_takes_nuisances_too(store: Path) -> None:
    model = Run(store / "gan").model
    plain, moved = model.decode(torch.zeros(1, 3)), model.decode(torch.tensor([[0.0, 0.0, 0.0, 3.0, 0.0]]))
    torch.testing.assert_close(plain, model.decode(torch.zeros(1, 5)))
    assert not torch.equal(plain, moved)


@pytest.mark.parametrize("name", ["pcl", *(pytest.param(name, marks=pytest.mark.slow) for name in ("qlae", "gan"))])
def test_every_command_works_or_says_why(store: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    run = str(store / name)
    shown = said(capsys, "show", run, "--examples", "100")
    assert (SENTENCE in shown) == (name == "pcl")
    assert ("reconstruction loss" in shown) == (name != "pcl")
    told = json.loads(said(capsys, "show", run, "--examples", "100", "--json"))
    assert (told["reconstruction"] is None) == (name == "pcl")
    diagnosis = json.loads(said(capsys, "diagnose", run, "--examples", "100", "--jacobians", "5", "--json"))
    assert (diagnosis["summary"]["dto"] is None) == (name == "pcl")
    assert ("no_decoder" in [one["name"] for one in diagnosis["findings"]]) == (name == "pcl")
    assert "written" in said(capsys, "report", run)
    page = (store / name / "report.html").read_text(encoding="utf-8")
    assert (SENTENCE in page) == (name == "pcl")
    assert ("Originals and reconstructions" in page) == (name != "pcl")
    drawn = said(capsys, "traverse", run, "--steps", "3", code=2 if name == "pcl" else 0)
    assert (SENTENCE in drawn) == (name == "pcl")
    scored = ["--samples", "200", "--seeds", "0", "--metrics", "mig,infomec", "--interventions", "table"]
    assert "mig" in said(capsys, "evaluate", run, *scored, "--quiet")
    assert "mean codes" in said(capsys, "intrinsic", run, "--examples", "200")


@pytest.mark.parametrize("name", ["pcl", "qlae", "gan"])
def test_exports_open_again(store: Path, name: str, tmp_path: Path) -> None:
    run = Run(store / name)
    path = uw.export(run, tmp_path / "model")
    model, images = uw.from_pretrained(path), run.images(4)
    torch.testing.assert_close(model.encode(images).mean, run.encode(images).mean)
    card = (path / "README.md").read_text()
    assert ("model.decode(code.mean)" in card) == (name != "pcl")
    assert f"A {run.experiment.objective.name} model with 3 latents" in card
    if name == "pcl":
        with pytest.raises(NoDecoder):
            model.decode(torch.zeros(1, 3))


def test_models_are_compared_as_far_as_they_go(store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = uw.compare(store / "pcl", store / "other", n=60, n_permutations=3)
    assert found.comparisons[0].rows == ("input", "encoder 1", "mean")
    words = ["compare", str(store / "pcl"), str(store / "other"), "--examples", "60", "--folder", str(tmp_path / "c")]
    assert "written" in said(capsys, *words)
    mixed = uw.compare(store / "gan", store / "pcl", n=60, n_permutations=3)
    assert mixed.comparisons


def test_quantised_codes_are_counted(store: Path) -> None:
    found = uw.evaluate(store / "qlae", metrics=["infomec"], n_samples=300, seeds=0)
    codes, factors = found.sample.mean, found.sample.factors
    by_hand = infomec(codes, factors, discrete=True)
    assert found.scores["mean"]["infomec.modularity"].value == pytest.approx(by_hand.modularity)
    assert len(codes.unique()) <= 10 * 3


@pytest.mark.parametrize("measure", ["decoder", "eigenfaces", "elbow"])
def test_measures_of_a_decoder_say_so(store: Path, measure: str) -> None:
    with pytest.raises(NoDecoder, match=SENTENCE):
        MEASURES[measure](n_samples=50)(Run(store / "pcl"))


def test_other_measures_work_without_one(store: Path) -> None:
    found = MEASURES["polarised"](n_samples=50)(Run(store / "pcl"))
    assert found["reconstruction"] is None
    assert MEASURES["scores"](metrics=("mig",), n_samples=100)(Run(store / "pcl"))["mean"]["mig"] >= 0


def test_the_explorer_says_why_it_draws_nothing(store: Path) -> None:
    with TestClient(create_app(store), base_url="http://127.0.0.1") as client:
        about = client.get("/api/runs/pcl").json()
        assert about["no_decoder"].startswith(SENTENCE)
        assert client.get("/api/runs/gan").json()["no_decoder"] is None
        assert client.get("/api/runs/pcl/latents").json()["reconstruction"] is None
        diagnosis = client.get("/api/runs/pcl/diagnosis").json()
        assert "dto" not in diagnosis["numbers"]
        assert SENTENCE in diagnosis["findings"][-1]["text"]
        refused = client.post("/api/runs/pcl/decode", json={"codes": [[0.0, 0.0, 0.0]]})
        assert refused.status_code == 422
        assert SENTENCE in refused.text
        assert client.get("/api/compare", params={"left": "pcl", "right": "other"}).status_code == 200
        for name in ("gan", "qlae"):
            drawn = client.post(f"/api/runs/{name}/decode", json={"codes": [[0.0, 0.0, 0.0]]})
            assert drawn.headers["x-shape"] == "1,32,32,1"


@pytest.mark.parametrize("name", ["pcl", "qlae", "gan"])
def test_nobody_is_told_to_change_a_beta_that_there_is_not(
    store: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    told = said(capsys, "diagnose", str(store / name), "--examples", "200", "--jacobians", "5")
    shown = said(capsys, "show", str(store / name), "--examples", "200")
    assert "β" not in told + shown
    assert ("ws_gan has no KL" in told) == (name == "gan")
    found = json.loads(said(capsys, "show", str(store / name), "--examples", "200", "--json"))["findings"]
    assert not [one for one in found if "β" in one["advice"] + one["text"]]
    with TestClient(create_app(store), base_url="http://127.0.0.1") as client:
        found = client.get(f"/api/runs/{name}/diagnosis").json()["findings"]
    assert not [one for one in found if "β" in one["advice"] + one["text"]]


def test_a_method_with_an_optimiser_of_its_own_refuses_another() -> None:
    for name in ("qlae", "ws_gan", "label_gan"):
        with pytest.raises(ValueError, match=f"{name} has an optimiser of its own"):
            experiment_from({"world": "micro", "objective": name, "optimiser": "sgd"}).resolve()


def test_a_method_without_a_regulariser_refuses_a_warmup() -> None:
    for name in ("pcl", "qlae", "ws_gan", "label_gan"):
        with pytest.raises(ValueError, match=f"{name} has no regulariser that could fade in: leave out warmup"):
            experiment_from({"world": "micro", "objective": name, "warmup": 10}).resolve()
