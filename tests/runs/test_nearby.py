"""A path that leads to no run is answered with runs that are there."""

from pathlib import Path

import pytest

from unweave.runs.nearby import others_in_words


@pytest.fixture(autouse=True)
def _runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("runs/demo", "runs/betas/one", "other"):
        Path(name).mkdir(parents=True)
        Path(name, "config.json").write_text("{}")
    Path("runs/photos").mkdir()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("demo", ". Did you mean runs/demo?"),
        ("dmo", ". Did you mean runs/demo?"),
        ("runs/demos", ". Did you mean runs/demo?"),
        ("runs/betas/two", ". There are "),
        ("zzzzzz", ". There are "),
        ("photos", ". There are "),
        ("runs/photos", ""),
        ("runs", ". There is runs/demo"),
        ("nowhere/zzz", ". There is runs/demo"),
    ],
)
def test_runs_of_a_like_name_or_those_that_are_there(given: str, told: str) -> None:
    found = others_in_words(Path(given))
    assert found.startswith(told)
    assert "photos" not in found


def test_nothing_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    assert others_in_words(Path("a")) == ""
