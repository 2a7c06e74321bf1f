"""k-1 to k-5 at smoke size: one store, five pages."""

import csv
import json
from pathlib import Path

import pytest

from unweave.cli import main

IDS = ("k-1", "k-2", "k-3", "k-4", "k-5")


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_five_reproductions_share_their_models(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["reproduce", *IDS, "--size", "smoke", "--store", str(tmp_path), "--workers", "2", "--quiet", "--json"]
    assert main(words) == 0
    told = json.loads(capsys.readouterr().out)
    assert [one["id"] for one in told] == list(IDS)
    models = [path for path in tmp_path.iterdir() if (path / "model.safetensors").exists()]
    assert len(models) == 54
    for one in told:
        folder = Path(one["page"]).parent
        page = Path(one["page"]).read_text()
        assert len(page) < 1_500_000
        rows = list(csv.DictReader((folder / "results.csv").read_text().splitlines()))
        assert len(rows) == len(one["comparisons"]) > 0
        assert all(row["rule"] for row in rows)
        assert len(list((folder / "figures").glob("*.pdf"))) == len(list((folder / "figures").glob("*.png"))) > 0
    # smoke never judges, not even the sharpest contrast of the study
    falls = next(
        row for row in told[0]["comparisons"] if row["what"].startswith("all but DIP-VAE-I: total correlation of s")
    )
    assert falls["verdict"] == "runs"
