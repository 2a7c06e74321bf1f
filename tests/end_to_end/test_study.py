"""unweave study: from a user's own file to a table, with clear errors."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

from unweave.cli import main
from unweave.studies.failures import record
from unweave.studies.store import Store

STUDY = """
import unweave as uw
from unweave.data.micro import Micro
from unweave.studies.measures import Polarised
from unweave.studies.study import Study


def study(size):
    n = {"smoke": 2, "small": 3, "paper": 4}[size]
    given = dict(network=uw.MLP((8,), (8,)), latents=2, steps=5, batch_size=8, plan=uw.Plan("cpu"))
    return Study(NAME, tuple(uw.Experiment(Micro(), seed=s, **given) for s in range(n)), (Polarised(32),))
"""


@pytest.fixture
def recipe(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    name = request.node.name.partition("[")[0]
    path = tmp_path / f"study_{name}_{abs(hash(request.node.name))}.py"  # modules of one name would be one
    path.write_text(f"NAME = {name!r}\n" + STUDY)
    return path


def answer(words: list[str], capsys: pytest.CaptureFixture[str]) -> object:
    capsys.readouterr()
    assert main(words) == 0
    return json.loads(capsys.readouterr().out)


def test_a_study_from_a_file(recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = ["--store", str(tmp_path / "store")]
    found = answer(["study", "run", str(recipe), *store, "--executor", "here", "--quiet", "--json"], capsys)
    assert isinstance(found, dict)
    assert (found["done"], found["failed"], found["total"]) == (2, 0, 2)
    again = answer(["study", "resume", *store, "--quiet", "--json"], capsys)
    assert again == found | {"models_per_day": None}
    assert answer(["study", "status", *store, "--json"], capsys) == again
    assert main(["study", "status", *store]) == 0
    assert "models/day" in capsys.readouterr().out
    for file in ("all.parquet", "all.csv"):
        told = answer(["study", "export", str(tmp_path / file), *store, "--json"], capsys)
        assert isinstance(told, dict)
        assert told["runs"] == 2
    table = pl.read_parquet(tmp_path / "all.parquet")
    assert table["seed"].to_list() == pl.read_csv(tmp_path / "all.csv")["seed"].to_list()
    assert {"polarised.n_active", "objective.beta", "cost.seconds"} <= set(table.columns)
    assert answer(["study", "sql", "select count(*) as n from runs", *store, "--json"], capsys) == [{"n": 2}]
    assert answer(["study", "gc", "--dry-run", *store, "--json"], capsys) == {"removed": False, "paths": [], "bytes": 0}


@pytest.mark.slow
def test_a_study_has_a_page(recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = ["--store", str(tmp_path / "store")]
    assert main(["study", "run", str(recipe), *store, "--executor", "here", "--quiet", "--json"]) == 0
    page = answer(["study", "report", *store, "--json"], capsys)
    assert isinstance(page, dict)
    assert "mixed (measured) by setting" in Path(page["file"]).read_text()


def test_retry_forgets_failures(recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = ["--store", str(tmp_path / "store")]
    words = ["study", "run", str(recipe), *store, "--executor", "here", "--quiet", "--json"]
    assert main(words) == 0
    run = Store(tmp_path / "store").run(Store(tmp_path / "store").ids()[0])
    run.files.remove("model.safetensors")
    record(run.files, run.experiment, RuntimeError("gone wrong"))
    assert main(words) == 1
    capsys.readouterr()
    assert main(["study", "status", *store]) == 0
    assert "RuntimeError: gone wrong" in capsys.readouterr().out.replace("\n", " ")
    found = answer(["study", "retry", *store, "--quiet", "--json"], capsys)
    assert isinstance(found, dict)
    assert (found["done"], found["failed"]) == (2, 0)


def interrupted(recipe: Path, store: Path, times: int) -> int:
    """The status of a study that got Ctrl-C so many times while it trained."""
    command = [sys.executable, "-m", "unweave", "study", "run", str(recipe), "--store", str(store), "--workers", "1"]
    with subprocess.Popen([*command, "--quiet"], stderr=subprocess.DEVNULL) as study:
        until = time.monotonic() + 200
        while not Store(store).running() and study.poll() is None and time.monotonic() < until:
            time.sleep(0.1)
        for _ in range(times):
            time.sleep(1.0)
            study.send_signal(signal.SIGINT)
    # a second one that comes while Python is already leaving kills it: to a shell that is 130 too
    return 130 if study.returncode == -signal.SIGINT else study.returncode


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_ctrl_c_once_saves_and_twice_ends_at_once(recipe: Path, tmp_path: Path) -> None:
    recipe.write_text(recipe.read_text().replace("steps=5", "steps=10_000_000"))
    store = tmp_path / "store"
    assert interrupted(recipe, store, 1) == 130
    assert list(store.glob("fleet-*/checkpoints/*.safetensors"))
    assert interrupted(recipe, store, 2) == 130
    assert list(store.glob("fleet-*/checkpoints/*.safetensors"))
    assert not list(store.glob("micro-*/failure.json"))
    until = time.monotonic() + 60
    while Store(store).running() and time.monotonic() < until:
        time.sleep(0.1)
    assert not Store(store).running()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["run", "nothing"], "unknown recipe"),
        (["run", "nothing.py"], "there is no file"),
        (["run", "{}", "--size", "huge"], "unknown size"),
        (["run", "{}", "--executor", "cloud"], "unknown executor"),
        (["run", "{}", "--workers", "0"], "at least 1"),
        (["run", "{}", "--wrokers", "2"], "Did you mean workers"),
        (["status"], "holds no study"),
        (["export", "all.xlsx"], "must end in"),
        (["stauts"], "Did you mean status"),
    ],
)
def test_mistakes_are_answered_in_one_sentence(
    recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], sentence: str
) -> None:
    (tmp_path / "store").mkdir()
    given = [word.format(recipe) for word in words]
    assert main(["study", *given, "--store", str(tmp_path / "store")]) == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("def study(size):\n    return 1 / 0\n", "line 2): ZeroDivisionError"),
        ("def study(size)\n    return 1\n", "line 1): SyntaxError"),
        ("def study(size):\n    return 7\n", "returned int, not a Study"),
        ("x = 1\n", "no function study(size)"),
    ],
)
def test_a_recipe_that_raises_is_named_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, sentence: str
) -> None:
    path = tmp_path / f"raising_{abs(hash(text))}.py"
    path.write_text(text)
    assert main(["study", "run", str(path), "--store", str(tmp_path / "store")]) == 2
    assert sentence in capsys.readouterr().err


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study"]) == 0
    assert "resume" in capsys.readouterr().out
    for action in ("run", "status", "resume", "retry", "report", "export", "sql", "gc"):
        with pytest.raises(SystemExit) as ended:
            main(["study", action, "--help"])
        assert ended.value.code == 0
        assert "--store" in capsys.readouterr().out


def test_the_store_inside_that_has_the_study_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    studies = tmp_path / "runs" / "betas" / ".unweave" / "studies"
    studies.mkdir(parents=True)
    (studies / "betas.json").write_text("{}")
    assert main(["study", "status", "--store", str(tmp_path / "runs")]) == 2
    assert f"betas does: add --store {tmp_path / 'runs' / 'betas'}" in capsys.readouterr().err
