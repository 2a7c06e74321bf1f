"""diagnose, compare, traverse and intrinsic as a person types them, with good and with bad input."""

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unweave as uw
from unweave.cli import main

SMALL = ["--steps", "3", "--latents", "3", "--batch-size", "4", "--plan.threads", "1", "--quiet"]
CONV = ["--network.channels", "2,3", "--network.kernels", "4,4", "--network.hidden", "6"]
MLP = ["--network", "mlp", "--network.encoder-widths", "4", "--network.decoder-widths", "4"]
Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("runs")
    for name, options in {
        "run": ["--snapshots", "0,1"],
        "other": ["--seed", "1"],
        "ae": ["--objective", "ae"],
        "one": ["--latents", "1"],
    }.items():
        assert main(["train", "micro", *SMALL, *CONV, *options, "--folder", str(place / name)]) == 0
    flat = [*SMALL, *MLP, "--likelihood", "squared_error", "--folder", str(place / "points")]
    assert main(["train", "synth_lin", *flat]) == 0
    return place


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.chdir(tmp_path)
    capsys.readouterr()


def answer(words: list[str], capsys: Capture) -> Any:
    assert main([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_diagnose_a_run(folder: Path, capsys: Capture) -> None:
    few = ["--examples", "60", "--jacobians", "8"]
    assert main(["diagnose", str(folder / "run"), *few]) == 0
    told = capsys.readouterr().out
    assert all(word in told for word in ("mean σ²", "trace difference", "delta kl", "self consistency", "→"))
    found = answer(["diagnose", str(folder / "run"), *few], capsys)
    assert len(found["latents"]) == 3
    summary = found["summary"]
    assert summary["rate"] == pytest.approx(sum(one["kl"] for one in found["latents"]))
    assert summary["elbo"] == pytest.approx(-summary["rate"] - summary["distortion"])
    assert found["snapshots"] == [0, 1]
    assert len(found["often_correlated"]) == 3
    assert json.loads((folder / "run" / "diagnosis.json").read_text())["summary"] == summary
    page = (folder / "run" / "diagnosis.html").read_text()
    assert "Mean and sampled codes" in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    subprocess.run(["sha256sum", "--quiet", "-c", "SHA256SUMS"], cwd=folder / "run", check=True)


def test_diagnose_a_deterministic_run_and_one_latent(folder: Path, capsys: Capture) -> None:
    few = ["--examples", "60", "--jacobians", "8"]
    found = answer(["diagnose", str(folder / "ae"), *few], capsys)
    assert found["summary"]["delta_kl"] is None
    assert 0 <= found["summary"]["dto"] < 2 * found["summary"]["dto_of_random_directions"]
    assert found["summary"]["ima_contrast"] >= 0
    assert "deterministic" in [one["name"] for one in found["findings"]]
    assert (folder / "ae" / "diagnosis.html").exists()
    found = answer(["diagnose", str(folder / "one"), *few], capsys)
    assert found["latents"][0]["partner"] is None
    assert found["summary"]["dto"] in (0.0, None)
    assert answer(["diagnose", str(folder / "points"), *few], capsys)["summary"]["distortion"] is not None


def test_diagnose_a_file(tmp_path: Path, capsys: Capture) -> None:
    draw = np.random.default_rng(0)
    mean = np.concatenate([draw.normal(size=(1500, 2)), np.zeros((1500, 1))], 1)
    variance = np.broadcast_to([0.01, 0.01, 1.0], (1500, 3))
    np.savez("codes.npz", mean=mean, variance=variance, reconstruction=np.full(1500, 7.0))
    found = answer(["diagnose", "codes.npz", "--factors", "3", "--page", "page.html"], capsys)
    assert [one["type"] for one in found["latents"]] == ["active", "active", "passive"]
    assert [one["name"] for one in found["findings"]] == ["over_pruned", "passive"]
    assert found["summary"]["distortion"] == 7.0
    assert found["summary"]["passive_by_traces"] == 1
    assert "Over-pruned" in (tmp_path / "page.html").read_text()
    np.savez("same.npz", mean=np.repeat(mean[:, :1], 2, axis=1), variance=np.full((1500, 2), 0.01))
    found = answer(["diagnose", "same.npz", "--page", "page.html"], capsys)
    assert found["dependence"][0]["total_correlation"] == "inf"


def test_compare(folder: Path, tmp_path: Path, capsys: Capture) -> None:
    few = ["--examples", "30", "--permutations", "3", "--quiet"]
    words = ["compare", str(folder / "run"), str(folder / "other"), *few]
    found = answer([*words, "--folder", "out"], capsys)
    assert [one["n_pairs"] for one in found["comparisons"]] == [2]
    assert np.shape(found["comparisons"][0]["cka"]) == (11, 11)
    assert len(found["matched"]) == 1
    page = (tmp_path / "out" / "comparison.html").read_text()
    assert "quote the smaller" in page
    assert len(list((tmp_path / "out" / "figures").glob("*.png"))) == 3
    assert main(["compare", str(folder / "other"), *few]) == 0
    assert "kept no snapshots" in capsys.readouterr().out


def test_looking_inside_from_a_notebook(folder: Path, tmp_path: Path) -> None:
    run = uw.load(folder / "run")
    found = uw.diagnose(run, n=60, n_jacobians=4)
    assert found.summary() == uw.diagnose(folder / "run", n=60, n_jacobians=4).summary()
    assert len(found.diagnosis.latents) == 3
    assert "Over training" in found.page()
    draw = np.random.default_rng(0)
    mean, variance = draw.normal(size=(1200, 2)), np.full((1200, 2), 0.01)
    assert uw.diagnose(mean, variance).findings == ()
    assert [one.name for one in uw.diagnose(mean, variance, n_factors=5).findings] == ["too_few_latents"]
    np.savez(tmp_path / "codes.npz", mean=mean, variance=variance)
    assert uw.diagnose(tmp_path / "codes.npz").summary() == uw.diagnose(mean, variance).summary()
    alike = uw.compare(run, folder / "other", n=20, n_permutations=1)
    assert alike.members == ("1: run", "2: other")
    shown = [
        repr(one) for one in (found, alike, uw.intrinsic(mean), run.evaluate(metrics=["mig"], n_samples=50, seeds=0))
    ]
    assert all(len(words) < 2000 and "tensor" not in words for words in shown), shown
    assert uw.intrinsic(mean).score == pytest.approx(2, abs=0.6)
    assert uw.intrinsic(mean.reshape(1200, 1, 2)).score == uw.intrinsic(tmp_path / "codes.npz").score
    assert set(uw.intrinsic(run)) == {"data", "mean codes", "sampled codes"}
    assert 2 < uw.intrinsic("micro", n_samples=500).score < 9


def test_traverse(folder: Path, capsys: Capture) -> None:
    found = answer(["traverse", str(folder / "run"), "--steps", "3", "--plane", "0,2", "--row", "5"], capsys)
    assert sorted(found["figures"]) == ["eigenfaces", "plane_0_2", "strips"]
    assert Path(found["figures"]["plane_0_2"]).read_bytes()[:4] == b"\x89PNG"
    assert "plane" not in " ".join(answer(["traverse", str(folder / "one"), "--steps", "3"], capsys)["figures"])


def test_intrinsic(folder: Path, tmp_path: Path, capsys: Capture) -> None:
    draw = np.random.default_rng(0)
    np.save("plane.npy", draw.random((700, 2)) @ draw.normal(size=(2, 6)))
    found = answer(["intrinsic", "plane.npy", "--seeds", "2"], capsys)["plane"]
    assert found["mle"] == pytest.approx(2.0, abs=0.3)
    assert found["two_nn"] == pytest.approx(2.0, abs=0.3)
    assert np.shape(found["mackay_ghahramani"]) == (2, 4)
    assert found["mle_spread"] > 0
    words = ["--examples", "100", "--seeds", "1", "--neighbours", "3,6"]
    assert list(answer(["intrinsic", str(folder / "run"), *words], capsys)) == ["data", "mean codes", "sampled codes"]
    assert list(answer(["intrinsic", str(folder / "ae"), *words], capsys)) == ["data", "mean codes"]
    assert main(["intrinsic", "synth-lin", *words, "--world.ratio", "3"]) == 0
    assert "TwoNN" in capsys.readouterr().out
    np.savez("images.npz", images=draw.integers(0, 255, (150, 6, 6), dtype=np.uint8), labels=np.zeros(150))
    assert answer(["intrinsic", "images.npz", *words], capsys)["images"]["n_features"] == 36


def test_intrinsic_of_a_folder_of_images(tmp_path: Path, capsys: Capture) -> None:
    from PIL import Image

    (tmp_path / "photos").mkdir()
    draw = np.random.default_rng(0)
    for name in range(12):
        Image.fromarray(draw.integers(0, 255, (8, 8), dtype=np.uint8)).save(tmp_path / "photos" / f"{name}.png")
    found = answer(["intrinsic", "photos", "--world.size", "4", "--neighbours", "3", "--seeds", "1"], capsys)
    assert found["photos"]["n_features"] == 16


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("diagnose nowhere", "nowhere does not exist; give a run's folder or an npz"),
        ("diagnose {}", "is not a run folder"),
        ("diagnose {}/run --rule kll", "unknown rule 'kll'. Did you mean kl?"),
        ("diagnose {}/run --examples 1", "--examples must be at least 2"),
        ("diagnose {}/run --factors 0", "must be at least 1"),
        ("compare {}/run {}/points", "choose two runs of one world"),
        ("compare {}/run --examples 2", "at least 4 examples"),
        ("compare nowhere", "nowhere is not a run folder"),
        ("traverse {}/points", "not images"),
        ("traverse {}/run --plane 0,7", "numbered 0…2, given 7"),
        ("traverse {}/run --plane 0", "--plane must be two latents"),
        ("traverse {}/run --latents x", "must be a whole number"),
        ("traverse {}/run --row 9999", "--row must lie in 0…2047"),
        ("intrinsic", "say of what"),
        ("intrinsic mirco", "unknown world or file 'mirco'. Did you mean micro?"),
        ("intrinsic micro --neighbours 1", "--neighbours must be numbers of at least 2"),
        ("intrinsic micro --averaging best", "unknown averaging 'best'"),
        ("intrinsic micro --examples 5", "20 neighbours need at least 21"),
    ],
)
def test_bad_input_is_answered_in_one_sentence(words: str, message: str, folder: Path, capsys: Capture) -> None:
    assert main(words.replace("{}", str(folder)).split()) == 2
    told = capsys.readouterr().err.strip()
    assert message in told
    assert told.startswith("unweave: ")
    assert "\n" not in told
