"""ARCHITECTURE.md is followed literally: in a copy of the repository, by exactly the steps of its table.

One metric, method, world, figure and reproduction are added, each as its file, its line and its test; then the walks
over all tables, the contracts of the new things and their own tests must pass, and the command line must know them.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TABLE = re.compile(r"^\| a (\w+) \| `([^`]+)`[^|]*\| `(\w+)` in `([^`]+)` \| `([^`]+)` \| (?:`(make \w+)` )?\|$", re.M)

THINGS = {
    "metric": '''"""Spread of a code.

```
spread = mean of the latents' standard deviations
```

## Protocol

All rows.

## Rewards

Large numbers.

## Misses

Everything else.

## Known defects

None.
"""

from dataclasses import dataclass
from typing import Any

from unweave.metrics.estimators.arrays import as_codes
from unweave.metrics.row import Metric


@dataclass(frozen=True)
class Spread:
    """The mean standard deviation."""

    score: float


def tiny(codes: Any) -> Spread:
    """How far the values of a latent lie apart, on the average."""
    return Spread(float(as_codes(codes).std(0).mean()))


ROW = Metric(
    tiny,
    name="tiny",
    title="Spread",
    tells="How far apart are the values of a latent?",
    kind="unsupervised",
    needs="codes",
    range=(0.0, float("inf")),
    better="neither",
    invariant_to=("sample order", "latent order", "latent sign", "latent shift"),
    at_chance="whatever the code's scale is",
    paper="chen2018isolating",
    example="tiny(codes).score",
)
''',
    "method": '''"""A VAE whose means are drawn to zero."""

from dataclasses import dataclass
from typing import ClassVar

from unweave.models.method import Context, Terms
from unweave.models.objectives.objective import Objective, total_kl
from unweave.models.posteriors import Code
from unweave.shapes import Scalar


@dataclass(frozen=True)
class Tiny(Objective):
    """KL + λ E|μ|²."""

    name: ClassVar[str] = "tiny"
    pull: Scalar = 1.0

    def terms(self, code: Code, context: Context) -> Terms:
        kl = total_kl(code)
        return {"regulariser": kl + self.pull * code.mean.square().sum(-1).mean(), "kl": kl}
''',
    "world": '''"""Two pictures: one black, one white."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from unweave.data.factors import Factor, FactorSpace
from unweave.data.files import Progress
from unweave.data.world import Card, Data, World

SPACE = FactorSpace((Factor("light", 2),))


@dataclass(frozen=True)
class Tiny(World):
    """Dark or light."""

    name: ClassVar[str] = "tiny"

    def card(self) -> Card:
        return Card("Tiny", (1, 8, 8), 2, SPACE, True, "Nothing to get: made when it is loaded.")

    def load(self, progress: Progress | None = None) -> Data:
        pictures = torch.stack([torch.zeros(1, 8, 8), torch.full((1, 8, 8), 255.0)]).to(torch.uint8)
        return Data(pictures, (1, 8, 8), "bytes", SPACE)
''',
    "figure": '''"""A line."""

from typing import TYPE_CHECKING, Any

from unweave.plots.style import new_figure

if TYPE_CHECKING:
    import matplotlib.figure


def tiny(values: Any) -> "matplotlib.figure.Figure":
    """Values in their order."""
    figure, grid = new_figure(4.0, 3.0)
    grid[0, 0].plot(values)
    return figure
''',
    "reproduction": '''"""k-tiny: a VAE on the micro-world can be trained at all."""

from unweave.data.micro import Micro
from unweave.pages.outcome import Outcome
from unweave.papers import SHORT
from unweave.recipes.reproduction import Reproduction
from unweave.studies.results import Results
from unweave.studies.study import Study
from unweave.training.experiment import Experiment

TITLE = "A tiny claim"


def study(size: str) -> Study:
    """One model."""
    return Study(f"k-tiny-{size}", (Experiment(Micro(), steps=1),))


def judge(results: Results, size: str) -> Outcome:
    """Nothing is claimed."""
    return Outcome(())


REPRODUCTION = Reproduction("k-tiny", TITLE, f"{SHORT['locatello2019challenging']}, nowhere", study, judge)
''',
}
LINES = {
    "metric": ("from unweave.metrics.unsupervised.tiny import tiny as tiny\n", '    "tiny": row_of(tiny),\n'),
    "method": ("from unweave.models.objectives.tiny import Tiny\n", '    "tiny": Tiny,\n'),
    "world": ("from unweave.data.tiny import Tiny\n", '    "tiny": Tiny,\n'),
    "figure": ("", '    "tiny": "tiny:tiny",\n'),
    "reproduction": ("", '    "k-tiny": Listed("locatello2019.k_tiny", "A tiny claim", "nowhere"),\n'),
}
TESTS = {
    "metric": """import pytest
import torch

from unweave.metrics import tiny


def test_tiny():
    assert tiny(torch.tensor([[0.0], [2.0], [4.0]])).score == pytest.approx(2.0)
""",
    "method": """import torch

from unweave.models.method import Context
from unweave.models.objectives import Tiny
from unweave.models.posteriors import Code


def test_tiny():
    code = Code(torch.ones(2, 3), torch.zeros(2, 3), torch.ones(2, 3), torch.full((2, 3), 0.5))
    assert Tiny(2.0).terms(code, Context())["regulariser"].item() == 1.5 + 2.0 * 3
""",
    "world": """from unweave.data.tiny import Tiny


def test_tiny():
    assert len(Tiny().load()) == 2
""",
    "figure": """from unweave.plots.tiny import tiny


def test_tiny():
    assert tiny([1.0, 2.0]).axes
""",
    "reproduction": """from unweave.recipes.reproductions import find_reproduction


def test_k_tiny():
    assert len(find_reproduction("k-tiny").study("smoke").experiments) == 1
""",
}
NAMES = {"reproduction": "k_tiny"}


def steps() -> dict[str, tuple[str, str, str, str, str]]:
    """The rows of the table: kind to (the thing, the name of its table, the file of that, its test, what then)."""
    found = TABLE.findall((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"))
    return {kind: tuple(rest) for kind, *rest in found}


def add_line(path: Path, table: str, imported: str, line: str) -> None:
    """An import where imports are, and a line in its place in the table."""
    text = path.read_text(encoding="utf-8")
    assert f"\n{table}" in text
    if imported:
        text = text.replace("\nfrom unweave", f"\n{imported}from unweave", 1)
    head, opened, rest = text.partition(f"\n{table}")
    inside, closed, after = rest.partition("\n}")
    lines = inside.split("\n")
    if table == "FIGURES":  # kept sorted
        place = next((n for n, one in enumerate(lines) if n and one.strip() > line.strip()), len(lines))
        lines.insert(place, line.rstrip("\n"))
    else:
        lines.append(line.rstrip("\n"))
    path.write_text(head + opened + "\n".join(lines) + closed + after, encoding="utf-8")


def test_the_table_names_every_kind() -> None:
    assert set(steps()) == set(THINGS)


def follow(place: Path) -> list[str]:
    """Add one of every kind to a copy of the repository; returns their tests."""
    for name in ("src", "tests", "docs"):
        shutil.copytree(ROOT / name, place / name, ignore=shutil.ignore_patterns("__pycache__", "reference"))
    for name in ("pyproject.toml", "ARCHITECTURE.md"):
        shutil.copy(ROOT / name, place / name)
    written = []
    for kind, (thing, table, table_file, test, _) in steps().items():
        name = NAMES.get(kind, "tiny")
        for template, content in ((thing, THINGS[kind]), (test, TESTS[kind])):
            path = place / template.replace("NAME", name)
            path.parent.mkdir(parents=True, exist_ok=True)
            assert not path.exists()
            path.write_text(content, encoding="utf-8")
        written.append(test.replace("NAME", name))
        add_line(place / table_file, table, *LINES[kind])
    return written


def run(place: Path, *words: str) -> str:
    environment = os.environ | {"PYTHONPATH": str(place / "src"), "OMP_NUM_THREADS": "1"}
    ran = subprocess.run([sys.executable, *words], cwd=place, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-3000:]
    return ran.stdout


USED = """
from unweave.cli import main

train = "train tiny --objective tiny --network linear --latents 2 --steps 3 --quiet --folder runs/x"
evaluate = "evaluate runs/x --metrics tiny --seeds 0 --interventions table --no-pictures --quiet"
for words in (train, evaluate, "reproduce --list"):
    assert main(words.split()) == 0
"""


def test_its_steps_suffice(tmp_path: Path) -> None:
    """Without the checks of shapes; the slow test below asks everything that a change must pass."""
    written = follow(tmp_path)
    told = run(tmp_path, "-c", USED)
    assert "tiny" in told
    assert "k-tiny" in told
    run(tmp_path, "-m", "pytest", "-q", "--noconftest", "-p", "no:cacheprovider", *written)


@pytest.mark.slow
def test_walks_and_contracts_take_them_in(tmp_path: Path) -> None:
    written = follow(tmp_path)
    if any(then == "make docs" for *_, then in steps().values()):
        run(tmp_path, "docs/make_metrics.py")
        run(tmp_path, "docs/make_reproductions.py")
    walks = [f"tests/contracts/test_{name}.py" for name in ("tables", "figures", "reproductions")]
    contracts = ["tests/contracts/test_metrics.py", "tests/contracts/test_worlds.py", "tests/training/test_training.py"]
    fleets = "tests/training/test_fleet.py"
    chosen = " or ".join(["(tiny and not slow)", *(Path(walk).stem + ".py" for walk in walks)])
    asked = [*walks, *written, *contracts, fleets]
    run(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", *asked, "-k", chosen, "-m", "not slow")
