"""Every block of docs/own-data.md runs, in a folder with a few pictures and a table."""

import re
import shlex
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image

from unweave.cli import main

PAGE = (Path(__file__).parents[2] / "docs" / "own-data.md").read_text()
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
CODE = [text for language, text in BLOCKS if language == "python"]
COMMANDS = [line for language, text in BLOCKS if language == "sh" for line in text.splitlines()]


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("page")
    random = np.random.default_rng(0)
    for number in range(24):
        folder = place / "photos" / ("cat", "dog")[number % 2]
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(random.integers(0, 256, (40, 36, 3), dtype=np.uint8)).save(folder / f"{number}.png")
    values = random.normal(size=(150, 2)) @ random.normal(size=(2, 4)) + 5
    frame = pl.DataFrame(values, schema=["height", "width", "z0", "z1"])
    frame.with_columns(species=pl.Series(["a", "b", "c"] * 50)).write_csv(place / "people.csv")
    return place


@pytest.fixture(autouse=True)
def _there(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(here)


def test_there_is_something_to_run() -> None:
    assert len(CODE) == 3
    assert len(COMMANDS) == 6


def test_commands(capsys: pytest.CaptureFixture[str]) -> None:
    for line in COMMANDS:
        program, *words = shlex.split(line, comments=True)
        assert program == "unweave"
        assert main(words) == 0, line
    told = capsys.readouterr().err
    for said in ("photos: 24 images of 32 × 32 pixels, cut, colour; labels: folder",
                 "people: 150 rows of 4 columns; labels: species"):  # fmt: skip
        assert said in told
        assert said in PAGE
    assert pl.read_csv("more.csv").columns == ["height", "width", "z0", "z1"]


@pytest.mark.parametrize("place", range(len(CODE)))
def test_code(place: int, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(CODE[place], f"own-data.md, block {place + 1}", "exec"), {})
    if "print(data)" in CODE[place]:
        assert "Data: 150 rows of 4 columns (height, width, z0, z1); labels species" in capsys.readouterr().out
