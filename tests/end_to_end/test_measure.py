"""unweave measure and unweave evaluate as a person types them, with good and with bad tables."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unweave as uw
from unweave.api import train
from unweave.cli import main
from unweave.metrics import METRICS

FAST = "mig,modularity,irs,sap_score,ds,mcc,gaussian_total_correlation,mutual_info_score,effective_rank"
QUICK = [
    "--set", "beta_vae.n_train=200", "--set", "beta_vae.n_test=100", "--set", "beta_vae.batch_size=8",
    "--set", "factor_vae.n-train=200", "--set", "factor_vae.n_test=100", "--set", "downstream_trees.sizes=10,20",
    "--set", "downstream_logistic.sizes=10,20",
]  # fmt: skip


def table(n_samples: int = 90) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    factors = np.stack([rng.integers(0, size, n_samples) for size in (3, 4)], axis=-1)
    return {"codes": factors @ np.array([[1.0, 0.3, 0.0], [-0.2, 1.0, 0.5]]) + 0.2 * rng.normal(size=(n_samples, 3)),
            "factors": factors}  # fmt: skip


def saved(folder: Path, name: str = "codes.npz", **changes: Any) -> str:
    np.savez(folder / name, **(table() | changes))
    return str(folder / name)


def answer(words: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main(["measure", *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def refused(words: list[str], capsys: pytest.CaptureFixture[str], command: str = "measure") -> str:
    assert main([command, *words]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("unweave: ")
    assert output.err.count("\n") == 1
    return output.err


def test_every_metric_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = answer([saved(tmp_path), "--metrics", "all", "--seeds", "0", *QUICK], capsys)
    assert {name.partition(".")[0] for name in found["scores"]} | set(found["left_out"]) == set(METRICS)
    assert found["scores"]["mig"]["value"] == uw.measure(**table(), metrics="mig", seeds=0)["mig"].value
    assert found["parts"]["dci"]["backend"] == "fast"
    assert np.shape(found["parts"]["dci"]["importance"]) == (3, 2)


def test_the_table_for_people(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["measure", saved(tmp_path), "--metrics", "mig,sap", "--seeds", "3", "--adjust", "chance"]) == 0
    text = capsys.readouterr().out
    assert all(word in text for word in ("mig", "sap_score", "95 % interval", "chance", "adjusted", "3 random halves"))


@pytest.mark.parametrize("kind", ["npy", "csv", "parquet"])
def test_other_files_give_the_same_numbers(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import polars as pl

    arrays, name = table(), str(tmp_path / f"codes.{kind}")
    columns = {f"z{j}": arrays["codes"][:, j] for j in range(3)} | {f"y{k}": arrays["factors"][:, k] for k in range(2)}
    words = [name]
    if kind == "npy":
        np.save(name, arrays["codes"])
        np.save(tmp_path / "factors.npy", arrays["factors"])
        words.append(str(tmp_path / "factors.npy"))
    else:
        frame = pl.DataFrame(columns)
        frame.write_csv(name) if kind == "csv" else frame.write_parquet(name)
    options = ["--metrics", "mig,sap,mcc", "--seeds", "2"]
    there, here = answer([*words, *options], capsys), answer([saved(tmp_path), *options], capsys)
    assert there["scores"] == here["scores"]


def test_split_is_exact(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from unweave.metrics import explicitness, mig

    found = answer([saved(tmp_path), "--split", "50:30", "--metrics", "mig,explicitness"], capsys)
    codes, factors = table().values()
    assert found["scores"]["mig"]["value"] == mig(codes[:50], factors[:50]).score
    wanted = explicitness(codes[:50], factors[:50], codes[50:80], factors[50:80]).score
    assert found["scores"]["explicitness"]["value"] == wanted
    assert found["settings"]["split"] == [50, 30]


def test_the_reference_learner_can_be_chosen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = answer([saved(tmp_path), "--metrics", "dci", "--dci-trees", "sklearn", "--seeds", "0"], capsys)
    assert found["parts"]["dci"]["backend"] == "sklearn"


def test_two_tables_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    noisy = table()["codes"] + np.random.default_rng(1).normal(size=(90, 3))
    words = [saved(tmp_path), saved(tmp_path, "noisy.npz", codes=noisy), "--metrics", "mig,mcc"]
    found = answer(words, capsys)
    assert found["paired"] is True
    one = found["differences"]["mcc"]
    assert one["difference"] == pytest.approx(one["second"] - one["first"])
    assert one["low"] < one["difference"] < one["high"] < 0
    assert one["better"] == "first"
    assert main(["measure", *words]) == 0
    assert "clearly" in capsys.readouterr().out
    other = saved(tmp_path, "other.npz", factors=table()["factors"][::-1])
    assert answer([words[0], other, "--metrics", "mcc"], capsys)["paired"] is False


def test_a_fleet_in_one_call(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    codes = table()["codes"]
    name = saved(tmp_path, codes=np.stack([codes, -codes, codes**3]))
    found = answer([name, "--metrics", "mig,sap,udr", "--seeds", "0"], capsys)
    assert found["n_models"] == 3
    assert len(found["scores"]["udr"]["value"]) == len(found["scores"]["sap_score"]["value"]) == 3
    assert main(["measure", name, "--metrics", "mig"]) == 0
    assert "over models" in capsys.readouterr().out
    assert "not a fleet" in refused([name, "--metrics", "mig", "--pictures", str(tmp_path / "p")], capsys)


def test_pictures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "pictures"
    assert (
        main(["measure", saved(tmp_path), "--metrics", "mig,dci,mcc", "--seeds", "2", "--pictures", str(folder)]) == 0
    )
    names = {path.stem for path in folder.glob("*.png")}
    assert {"mutual_information", "importance", "correlation", "code_correlation", "scores"} <= names
    assert {"per_factor_mig", "per_factor_dci"} <= names
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in folder.glob("*.png"))


DEFINED: dict[str, dict[str, Any]] = {
    "constant latents": {"codes": np.full((90, 3), 0.5)},
    "one constant latent": {"codes": np.c_[table()["codes"][:, :2], np.full(90, 0.1)]},
    "constant factors": {"factors": np.ones((90, 2), int)},
    "one constant factor": {"factors": np.c_[table()["factors"][:, 0], np.ones(90, int)]},
    "one factor": {"factors": table()["factors"][:, 0]},
    "one latent": {"codes": table()["codes"][:, :1]},
    "fewer samples than latents": {"codes": np.random.default_rng(0).normal(size=(90, 120))},
    "integral floats": {"factors": table()["factors"].astype(float)},
    "words": {"factors": np.array(["red", "green", "blue", "white"])[table()["factors"]]},
}


@pytest.mark.parametrize("case", DEFINED)
def test_odd_tables_have_defined_answers(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    metrics = FAST.replace(",mcc", "") if case == "words" else FAST
    found = answer([saved(tmp_path, **DEFINED[case]), "--metrics", metrics, "--seeds", "2"], capsys)
    for name, number in found["scores"].items():
        assert number["value"] == "inf" or isinstance(number["value"], float), name
    assert set(found["scores"]) == set(metrics.split(","))


@pytest.mark.slow
@pytest.mark.parametrize("case", DEFINED)
def test_odd_tables_under_every_metric(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = answer([saved(tmp_path, **DEFINED[case]), "--metrics", "all", "--seeds", "2", *QUICK], capsys)
    assert set(found["left_out"]) <= {"udr", "mcc", "traces"}
    assert ("mcc" in found["left_out"]) == (case == "words")


def holed(name: str) -> np.ndarray:
    array = table()[name].astype(float)
    array[4, 1] = np.nan
    return array


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"codes": holed("codes")}, "codes must be finite: column 1 holds NaN"),
        ({"factors": holed("factors")}, "factors must be finite: column 1 holds NaN"),
        ({"factors": table()["factors"][:50]}, "codes and factors must have one row per sample, given 90 and 50"),
        ({"codes": np.zeros((0, 3)), "factors": np.zeros((0, 2))}, "codes must have at least one sample"),
        ({"codes": np.array([["a"]] * 90)}, "codes must hold numbers"),
        ({"codes": np.zeros((2, 2, 90, 3))}, "codes must be sample × latent"),
        ({"factors": np.zeros((90, 2, 2))}, "factors must be sample × factor"),
        ({"factors": np.linspace(0, 1, 180).reshape(90, 2)}, "mig: factors must be categories: column 0"),
        ({"variance": -np.ones((90, 3))}, "variance has negative entries"),
    ],
)
def test_bad_tables_get_one_line(
    changes: dict[str, Any], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert words in refused([saved(tmp_path, **changes), "--metrics", "mig"], capsys)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--metrics", "miig"], "unknown metric 'miig'. Did you mean mig"),
        (["--metrics", "udr"], "udr: needs the codes of several models"),
        (["--split", "10"], "--split must be N:M"),
        (["--split", "80:40"], "split asks for 80 + 40 rows, but the table has 90"),
        (["--seeds", "many"], "--seeds must be a whole number"),
        (["--adjust", "luck"], "adjust must be 'chance'"),
        (["--dci-trees", "oak"], "dci: backend must be fast or sklearn"),
        (["--set", "mig=3"], "--set must be METRIC.OPTION=VALUE"),
        (["--set", "mig.bins=3"], "unknown option of mig 'bins'"),
        (["--colour", "red"], "unknown option 'colour'"),
    ],
)
def test_bad_options_get_one_line(
    words: list[str], expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = [] if "--metrics" in words else ["--metrics", "dci" if "oak" in words else "mig"]
    assert expected in refused([saved(tmp_path), *chosen, *words], capsys)


def test_bad_files_get_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty.npz").touch()
    assert "empty.npz is empty" in refused([str(tmp_path / "empty.npz")], capsys)
    (tmp_path / "empty.csv").touch()
    assert "empty.csv is empty" in refused([str(tmp_path / "empty.csv")], capsys)
    assert "does not exist" in refused([str(tmp_path / "none.npz")], capsys)
    three = [saved(tmp_path)] * 3
    assert "one table is measured or two are compared, given 3" in refused(three, capsys)


def test_a_run_is_evaluated_and_keeps_its_scores(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "run"
    train("micro", folder, network="linear", latents=3, steps=4, batch_size=4, quiet=True)
    words = ["evaluate", str(folder), "--metrics", "mig,mcc,factor_vae", "--samples", "400", "--seeds", "2",
             "--set", "factor_vae.n_train=200", "--set", "factor_vae.n_test=100"]  # fmt: skip
    assert main(words) == 0
    text = capsys.readouterr().out
    assert "mean codes" in text
    assert "sampled codes" in text
    kept = uw.Run(folder).files.read_json("scores.json")
    assert len(kept["mean"]["parts"]["mig"]["per_factor"]) == 3
    assert kept["n_world"] == 2048
    assert kept["factor_names"] == ["x", "y", "size"]
    assert uw.Run(folder).files.has("figures/sampled_mutual_information.png")
    assert main([*words, "--json", "--no-pictures"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["mean"]["scores"] == kept["mean"]["scores"]
    assert "is not a run folder" in refused([str(tmp_path)], capsys, "evaluate")


@pytest.mark.slow
def test_large_tables_stay_small_in_memory(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    factors = rng.integers(0, 10, (100_000, 5))
    codes = np.c_[factors + rng.normal(size=(100_000, 5)), rng.normal(size=(100_000, 59))]
    np.savez(tmp_path / "large.npz", codes=codes, factors=factors)
    metrics = "mig,mig_sup,modularity,jemmig,dcimig,irs,mcc,beta_vae,factor_vae,sap,ds,total_correlation,effective_rank"
    words = ["measure", str(tmp_path / "large.npz"), "--metrics", metrics, "--seeds", "1", "--json"]
    script = f"""
import resource, sys, torch, scipy.stats, sklearn.linear_model
from unweave.cli import main
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
before = peak()
code = main({words!r})
print(peak() - before, file=sys.stderr)
sys.exit(code)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert int(done.stderr.split()[-1]) < 1_000_000
