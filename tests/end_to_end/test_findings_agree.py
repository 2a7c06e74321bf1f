"""`show`, `diagnose`, the page of a run and the explorer say the same of a model: they take it from one place."""

import json
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from unweave.cli import main
from unweave.evaluation.describe import describe
from unweave.evaluation.findings import diagnose_described, expected_of, findings, sentences
from unweave.pages.html import text
from unweave.training.run import Run
from unweave.web.app import create_app

SMALL = "--steps 3 --latents 3 --batch-size 4 --plan.threads 1 --quiet --network mlp --network.encoder-widths 4".split()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("store") / "one"
    assert main(["train", "micro", *SMALL, "--folder", str(place)]) == 0
    return place


def answer(words: list[str], capsys: pytest.CaptureFixture[str]) -> Any:
    capsys.readouterr()
    assert main([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_all_four_say_the_same(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = Run(folder)
    described, expected = describe(run), expected_of(run.experiment.world.card().space)
    found = findings(diagnose_described(described), expected)
    words = sentences(described, expected)
    assert found
    assert words[1:] == [f"{one.text} {one.advice}" for one in found]

    plain = [vars(one) for one in found]
    assert answer(["show", str(folder)], capsys)["findings"] == plain
    assert main(["show", str(folder)]) == 0
    shown = capsys.readouterr().out
    assert all(sentence in shown for sentence in words)
    diagnosed = answer(["diagnose", str(folder), "--jacobians", "4"], capsys)["findings"]
    assert [one for one in diagnosed if one in plain] == plain
    assert main(["report", str(folder)]) == 0
    page = (folder / "report.html").read_text()
    assert all(f"<li>{text(sentence)}</li>" in page for sentence in words)
    with TestClient(create_app(folder.parent), base_url="http://127.0.0.1") as client:
        assert client.get("/api/runs/one/latents").json()["findings"] == words
        told = client.get("/api/runs/one/diagnosis").json()["findings"]
    assert [one for one in told if one in plain] == plain
