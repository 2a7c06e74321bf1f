"""What a new user stumbled over in version 0.1.0, finding by finding: each happens no more.

Numbers are those of the list of findings on own data, own code and own notebooks. The other tests of this folder are
named where they show the rest of a finding.
"""

import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unweave as uw
from unweave.cli import main
from unweave.cli.options import whole_number
from unweave.evaluation.scores import TRIVIAL

Capture = pytest.CaptureFixture[str]

ELSEWHERE = {
    "2 a module in the working folder": "test_own_code.py::test_the_installed_command_finds_the_working_folder",
    "2 code in a study's own file": "test_own_code.py::test_a_study_with_code_in_its_own_file_opens_again",
    "8 own metrics, worlds, measures": "test_own_code.py::test_a_template_works",
    "8 by entry points": "test_own_code.py::test_an_installed_package_offers_its_things_by_short_names",
    "9 suggested commands": "test_command_line.py::test_what_is_suggested_can_be_pasted",
    "12 compare answers": "test_command_line.py::test_compare_answers_first",
    "12 silence": "test_command_line.py::test_commands_that_take_long_say_so",
    "13 uw.Experiment by a name": "test_own_code.py::test_the_installed_command_finds_the_working_folder",
    "13 missing extras": "test_command_line.py::test_commands_that_need_an_extra",
    "14 tables at 80 columns": "test_command_line.py::test_tables_fit_eighty_columns_and_break_no_word",
}


def test_the_tests_that_are_named_are_there() -> None:
    for place in ELSEWHERE.values():
        file, _, name = place.partition("::")
        assert f"def {name}" in (Path(__file__).parent / file).read_text(), place


def said(capsys: Capture, words: str, code: int = 0) -> tuple[str, str]:
    capsys.readouterr()
    found = main(shlex.split(words))
    told = capsys.readouterr()
    assert found == code, told.err
    return told.out, told.err


@pytest.fixture
def table(fresh: Path) -> dict[str, Any]:
    """Five codes that follow three factors, and columns named as people name them."""
    draw = np.random.default_rng(0)
    factors = draw.integers(0, 4, size=(300, 3))
    codes = np.concatenate([factors + 0.05 * draw.normal(size=(300, 3)), draw.normal(size=(300, 2))], 1)
    variance = np.where(np.arange(5) < 3, 0.01, 1.0) * np.ones((300, 1))
    write_csv("table.csv", {f"z{i}": codes[:, i] for i in range(5)} | dict(zip(("x", "y", "size"), factors.T)))
    posteriors = {f"mu{i}": codes[:, i] for i in range(5)} | {f"logvar{i}": np.log(variance[:, i]) for i in range(5)}
    write_csv("both.csv", posteriors | {f"factor_{i}": factors[:, i] for i in range(3)})
    return {"codes": codes, "factors": factors, "variance": variance}


def write_csv(path: str, columns: dict[str, np.ndarray]) -> None:
    rows = [",".join(map(str, row)) for row in zip(*columns.values())]
    Path(path).write_text("\n".join([",".join(columns), *rows]) + "\n")


FEW = "--metrics mig,modularity --seeds 0 --quiet"


def test_4_columns_that_are_not_used_are_named(table: dict[str, Any], capsys: Capture) -> None:
    out, err = said(capsys, f"measure table.csv {FEW}")
    assert "codes: z0, z1, z2, z3, z4; factors: y" in out
    assert "x, size: columns are not used; if they are factors, add --factors y,x,size" in err
    out, err = said(capsys, f"measure table.csv {FEW} --codes 'z*' --factors x,y,size")
    assert (out.splitlines()[0], err) == ("codes: z0, z1, z2, z3, z4; factors: x, y, size", "")
    found = json.loads(said(capsys, f"measure table.csv {FEW} --factors x,y,size --json")[0])
    assert found["roles"] == {"codes": ["z0", "z1", "z2", "z3", "z4"], "factors": ["x", "y", "size"]}
    assert found["factor_names"] == ["x", "y", "size"]
    expected = uw.measure(table["codes"], table["factors"], metrics=["mig"], seeds=0)["mig"].value
    assert found["scores"]["mig"]["value"] == pytest.approx(expected, abs=1e-12)
    assert "has no 'q*' for its codes; it has z0" in said(capsys, f"measure table.csv {FEW} --codes 'q*'", 2)[1]
    assert "x cannot be code and factor at once" in said(capsys, "measure table.csv --codes x --factors x", 2)[1]


def test_4_one_factor_makes_some_scores_trivial(table: dict[str, Any], capsys: Capture) -> None:
    words = "is 1 for any code that varies: modularity."
    assert words in said(capsys, f"measure table.csv {FEW}")[0]
    assert words not in said(capsys, f"measure table.csv {FEW} --factors x,y")[0]
    metrics = ["modularity", "infomec", "beta_vae", "factor_vae", "dci"]
    turned = table["codes"][:, :3] @ np.random.default_rng(1).normal(size=(3, 3))
    with pytest.warns(UserWarning, match="With one factor alone"):
        scores = uw.measure(turned, table["factors"][:, :1], metrics=metrics, seeds=0)
    assert all(scores[name].value == pytest.approx(1.0) for name in TRIVIAL)


@pytest.mark.parametrize("name", ["mu", "codes", "z"])
def test_4_one_file_serves_measure_and_diagnose(name: str, table: dict[str, Any], capsys: Capture) -> None:
    np.savez("one.npz", **{name: table["codes"]}, factors=table["factors"], variance=table["variance"])  # type: ignore[arg-type]
    measured = json.loads(said(capsys, f"measure one.npz {FEW} --json")[0])
    assert measured["roles"] == {"codes": [name], "factors": ["factors"]}
    types = [latent["type"] for latent in json.loads(said(capsys, "diagnose one.npz --json")[0])["latents"]]
    assert types == ["active"] * 3 + ["passive"] * 2
    if name == "mu":
        again = json.loads(said(capsys, f"measure both.csv {FEW} --json")[0])
        assert again["scores"]["mig"]["value"] == pytest.approx(measured["scores"]["mig"]["value"], abs=1e-9)
        out = said(capsys, "diagnose both.csv")[0]
        assert out.startswith("codes: mu0, mu1, mu2, mu3, mu4; factors: factor_0, factor_1, factor_2\n")
        found = json.loads(said(capsys, "diagnose both.csv --json")[0])
        assert [latent["type"] for latent in found["latents"]] == types
        assert uw.diagnose("both.csv").diagnosis.types == types
        plain = said(capsys, "diagnose table.csv --codes 'z*' --factors x,y,size")[0]
        assert plain.startswith("codes: z0, z1, z2, z3, z4; factors: x, y, size\n")


@pytest.mark.parametrize(
    ("text", "number"),
    [("1e4", 10_000), ("10_000", 10_000), ("10k", 10_000), ("1.5M", 1_500_000), ("2e0", 2), ("-3", -3), ("+7", 7)],
)
def test_13_whole_numbers_as_people_write_them(text: str, number: int) -> None:
    assert whole_number(text) == number


@pytest.mark.parametrize("text", ["1.5", "1e-1", "k", "1e9999", "0x10", "", "1e", "1,000", "٣k2"])
def test_13_what_is_no_whole_number(text: str) -> None:
    with pytest.raises(ValueError, match="is no whole number"):
        whole_number(text)


def test_13_lr_and_ranges(fresh: Path, capsys: Capture) -> None:
    words = "train micro --lr 3e-4 --beta 2 --batch 1_6 --steps 1e4 --seed 0:3 --print-config"
    configs = json.loads(said(capsys, words)[0])
    assert [config["seed"] for config in configs] == [0, 1, 2]
    one = configs[0]
    assert (one["optimiser"]["learning_rate"], one["objective"]["beta"]) == (3e-4, 2.0)
    assert (one["batch_size"], one["steps"]) == (16, 10_000)
    for command in ("demo --seed 0:3", "dimension micro --seed 0:3"):
        assert "`unweave train` takes ranges and lists" in said(capsys, command, 2)[1]
    assert "a range is FIRST:END" in said(capsys, "train micro --seed 3:1", 2)[1]


def test_13_a_file_is_no_run(fresh: Path, capsys: Capture) -> None:
    np.savez("file.npz", a=np.zeros(2))
    assert "file.npz is a file; give the folder of a run" in said(capsys, "show file.npz", 2)[1]


def test_11_other_things_stay_as_they_are(fresh: Path, small_run: Path, capsys: Capture) -> None:
    Path("photos").mkdir()
    Path("photos/one.png").write_bytes(b"")
    assert "a run needs a folder of its own" in said(capsys, "train micro --folder photos --steps 3", 2)[1]
    said(capsys, f"export {small_run} model")
    said(capsys, f"export {small_run} model")
    tiny = {"network": uw.MLP((8,), (8,)), "latents": 2, "steps": 3, "quiet": True}
    other = uw.train("micro", "other", **tiny)  # type: ignore[arg-type]
    assert "model holds another model: choose another folder" in said(capsys, "export other model", 2)[1]
    assert "is the folder of a run" in said(capsys, f"export other {small_run}", 2)[1]
    assert other.state == "done"


def test_14_each_reason_is_told_once(table: dict[str, Any], capsys: Capture) -> None:
    np.savez("codes.npz", codes=table["codes"])
    out = said(capsys, "measure codes.npz --seeds 0 --quiet")[0]
    left = [line for line in out.splitlines() if line.startswith("left out: ")]
    assert len(left) == 3
    assert left[0].startswith("left out: mig, mig_sup, modularity, ")
    assert left[0].endswith(": needs factors, and none are given")
