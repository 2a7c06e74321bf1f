"""The page of all claims is the one that its CSV files make, and no verdict on it lacks its control."""

import csv
import runpy
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_is_made_from_the_files() -> None:
    made = runpy.run_path(str(DOCS / "make_results.py"))
    rows = made["claims"]()
    assert made["page"](rows) == (DOCS / "results" / "index.html").read_text(encoding="utf-8"), "run: make docs"
    for row in rows:
        if row["verdict"] in ("agrees", "differs", "not evidence"):
            assert row["control"], row["claim"]
            assert row["size"] != "smoke"


def test_numbers_are_judged_at_paper_size_only() -> None:
    for path in (DOCS / "results").glob("*/results.csv"):
        made = runpy.run_path(str(DOCS / "make_results.py"))["made_of"](path.parent.name)
        for row in csv.DictReader(path.read_text(encoding="utf-8").splitlines()):
            if row.get("kind") == "number" and made["size"] != "paper":
                assert row["verdict"] not in ("agrees", "differs"), (path, row["what"])


def test_kept_pages_have_the_styles_of_todays_pages() -> None:
    made = runpy.run_path(str(DOCS / "make_results.py"))
    for page in (DOCS / "results").glob("*/index.html"):
        assert made["STYLES"].read_text(encoding="utf-8") in page.read_text(encoding="utf-8"), "run: make docs"
