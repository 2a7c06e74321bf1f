"""Every metric has its page, its picture and its citation; pages are made from rows and docstrings, and are current."""

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import unweave.metrics
from unweave.metrics import METRICS, PAPERS, Metric

DOCS = Path(__file__).parents[2] / "docs" / "metrics"


@pytest.fixture(scope="module")
def make() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_metrics", DOCS.parent / "make_metrics.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("row", METRICS.values(), ids=METRICS)
def test_pages_are_current(row: Metric, make: ModuleType) -> None:
    written = (DOCS / f"{row.name}.md").read_text(encoding="utf-8")
    assert written == make.page(row), f"docs/metrics/{row.name}.md is out of date; run `make docs`"


def test_the_index_is_current(make: ModuleType) -> None:
    written = (DOCS / "index.md").read_text(encoding="utf-8")
    assert written == make.index(written), "docs/metrics/index.md is out of date; run `make docs`"


def test_the_names_of_the_explorer_are_current(make: ModuleType) -> None:
    assert make.NAMES.read_text(encoding="utf-8") == make.names(), "metric_names.js is out of date; run `make docs`"
    assert METRICS["dci"].labels["dci.completeness"] == "DCI-C"
    assert METRICS["sap_score"].labels == {"sap_score": "SAP"}
    assert METRICS["mutual_info_score"].labels == {"mutual_info_score": "mutual info score"}


@pytest.mark.parametrize("row", METRICS.values(), ids=METRICS)
def test_examples_run(row: Metric) -> None:
    rng = np.random.default_rng(0)
    factors = np.stack([rng.integers(0, size, 600) for size in (3, 4)], axis=-1)
    codes = np.c_[factors, rng.normal(size=600)] + 0.1 * rng.normal(size=(600, 3))
    arrays: dict[str, Any] = {"codes": codes, "factors": factors, "variance": 0.1 + 0 * codes}
    known = vars(unweave.metrics) | arrays | {"models": np.stack([codes, -codes])}
    assert row.example.startswith(f"{row.function.__name__}(")
    assert np.isfinite(np.asarray(eval(row.example, known), dtype=float)).all()


@pytest.mark.parametrize("row", METRICS.values(), ids=METRICS)
def test_every_metric_has_a_page_and_a_picture(row: Metric) -> None:
    text = (DOCS / f"{row.name}.md").read_text(encoding="utf-8")
    for heading in ("```", "**Protocol.**", "**Rewards.**", "**Misses.**", "## Known defects", "## Paper"):
        assert heading in text, f"the docstring of {row.function.__module__} has no {heading}"
    assert PAPERS[row.paper] in text
    assert row.at_chance in text
    place = f"{row.on_cpu} on the CPU, the rest there" if row.on_cpu else "runs where the arrays live"
    assert f"| on a GPU | {place} |" in text
    assert f"images/{row.name}.png" in text
    assert (DOCS / "images" / f"{row.name}.png").read_bytes().startswith(b"\x89PNG")
    assert f"]({row.name}.md)" in (DOCS / "index.md").read_text(encoding="utf-8")


MENDED = {
    "mig": 'normalise="ceiling"',
    "modularity": 'average="information"',
    "factor_vae_score": 'prune="relative"',
    "sap_score": 'backend="bins"',
    "ds": 'form="bounded"',
    "beta_vae_sklearn": 'scheme="ovr"',
    "explicitness": 'scheme="ovr"',
}


@pytest.mark.parametrize("name", MENDED)
def test_both_behaviours_are_explained_and_exist(name: str) -> None:
    option = MENDED[name]
    assert option in (DOCS / f"{name}.md").read_text(encoding="utf-8")
    assert option.partition("=")[0] in METRICS[name].options


def test_no_page_is_left_over() -> None:
    assert {path.stem for path in DOCS.glob("*.md")} - {"index"} == set(METRICS)
