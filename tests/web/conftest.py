"""A small store with everything a store can hold: finished, unfinished and failed runs, points, a search, a study."""

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from unweave.cli import main
from unweave.data.micro import Micro
from unweave.models.networks.conv import Conv
from unweave.models.objectives import BetaVAE
from unweave.recipes.dimension import dimension, write_dimension
from unweave.recipes.dimension_search import DimensionSearch
from unweave.runs.folder import RunFolder
from unweave.training.experiment import Experiment, Plan

if TYPE_CHECKING:
    from playwright.sync_api import Browser

sys.path.insert(0, str(Path(__file__).parent))

SMALL = ["--batch-size", "8", "--plan.threads", "1", "--plan.device", "cpu", "--quiet", "--history-every", "2"]
CONV = ["--network.channels", "4,8", "--network.kernels", "4,4", "--network.hidden", "16", "--latents", "4"]
MLP = ["--network", "mlp", "--network.encoder-widths", "4", "--network.decoder-widths", "4", "--latents", "3"]
LEARN = ["--optimiser.learning-rate", "5e-3", "--steps", "40"]


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store, made once; do not change it."""
    place = tmp_path_factory.mktemp("explorer") / "runs"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNWEAVE_DATA", str(tmp_path_factory.getbasetemp() / "data"))
        for name, options in {"one": [], "two": ["--seed", "1"], "ae": ["--objective", "ae"]}.items():
            assert main(["train", "micro", *SMALL, *CONV, *LEARN, *options, "--folder", str(place / name)]) == 0
        flat = ["--likelihood", "squared_error", "--steps", "3", "--folder", str(place / "flat")]
        assert main(["train", "synth_lin", *SMALL, *MLP, *flat]) == 0
        tiny = Experiment(Micro(), BetaVAE(4.0), Conv((4, 4), (4, 4), 8), batch_size=8, plan=Plan("cpu", 1))
        search = DimensionSearch(start=2.0, most=3.0, steps=3, examples=60, threshold=1.5)
        write_dimension(dimension(tiny, search, place), "How many?")
        scored = ["--samples", "150", "--seeds", "2", "--metrics", "mig,dci", "--interventions", "table"]
        assert main(["evaluate", str(place / "one"), *scored, "--no-pictures", "--quiet"]) == 0
    _begun(place, "unfinished")
    RunFolder(_begun(place, "failed").path).write_json("failure.json", {"step": 7, "term": "kl", "value": "nan"})
    studies = place / ".unweave" / "studies"
    comparison = {"what": "MIG", "column": "scores.mean.mig", "published": 0.3, "ours": 0.1, "verdict": "differs"}
    record = {"name": "pair", "title": "Two seeds", "experiments": ["one", "two"], "comparisons": [comparison]}
    (studies / "pair.json").write_text(json.dumps(record))
    (studies / "pair.progress.json").write_text("{}")
    return place


@pytest.fixture(scope="session")
def search_name(made: Path) -> str:
    """The dimension search of the store."""
    (found,) = (made / ".unweave" / "studies").glob("dimension-*-fondue.json")
    return found.stem


@pytest.fixture(scope="session")
def searched(made: Path) -> list[str]:
    """The runs of that search."""
    return sorted(path.parent.name for path in made.glob("micro-beta_vae-*/config.json"))


@pytest.fixture
def store(made: Path, tmp_path: Path) -> Path:
    """A copy of the store, to damage."""
    return Path(shutil.copytree(made, tmp_path / "runs"))


def _begun(place: Path, name: str) -> RunFolder:
    folder = RunFolder(place / name)
    config = json.loads((place / "one" / "config.json").read_text())
    folder.write_json("config.json", config | {"seed": 9})
    return folder


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    from browsing import chromium

    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def address(made: Path) -> Iterator[str]:
    """Where the store is served."""
    from browsing import served

    with served(made) as found:
        yield found
