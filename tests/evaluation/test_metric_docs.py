"""Every metric has its page, its picture and its citation."""

from pathlib import Path

import pytest

from unweave.evaluation.view import options_of
from unweave.metrics import METRICS, PAPERS, Metric

DOCS = Path(__file__).parents[2] / "docs" / "metrics"


@pytest.mark.parametrize("row", METRICS.values(), ids=METRICS)
def test_every_metric_has_a_page_and_a_picture(row: Metric) -> None:
    text = (DOCS / f"{row.name}.md").read_text(encoding="utf-8")
    for heading in ("```", "**Protocol.**", "**Rewards.**", "**Misses.**", "## Known defects", "## Paper"):
        assert heading in text
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
    assert option.partition("=")[0] in options_of(METRICS[name])


def test_no_page_is_left_over() -> None:
    assert {path.stem for path in DOCS.glob("*.md")} - {"index"} == set(METRICS)
