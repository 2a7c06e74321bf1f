"""The page of all claims is the one that its CSV files make, and no verdict on it lacks its control."""

import csv
import re
import runpy
from collections import Counter
from pathlib import Path

from unweave.recipes.reproductions import REPRODUCTIONS

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_is_made_from_the_files() -> None:
    made = runpy.run_path(str(DOCS / "make_results.py"))
    rows = made["claims"]()
    assert made["page"](rows) == (DOCS / "results" / "index.html").read_text(encoding="utf-8"), "run: make docs"
    for row in rows:
        if row["verdict"] in ("agrees", "differs", "not evidence"):
            assert row["control"], row["claim"]
            assert row["size"] != "smoke"


def test_the_counts_at_the_top_are_those_of_the_files() -> None:
    counts: Counter[str] = Counter()
    for path in (DOCS / "results").glob("*/results.csv"):
        for row in csv.DictReader(path.read_text(encoding="utf-8").splitlines()):
            open_still = row["verdict"] in ("agrees", "differs") and not row.get("control")
            counts["cannot tell" if open_still else row["verdict"]] += 1
    text = (DOCS / "results" / "index.html").read_text(encoding="utf-8")
    shown = {word: int(n) for word, n in re.findall(r'value="([a-z ]+)" checked> [a-z ]+ <b>(\d+)</b>', text)}
    folders = {path.parent.name for path in (DOCS / "results").glob("*/results.csv")}
    results = len({name.removesuffix("-paper").removesuffix("-shapes") for name in folders})
    assert shown == counts | {"not run": len(REPRODUCTIONS) - results}
    assert f"{counts.total()} claims of {results} results were judged" in text


def test_numbers_are_judged_at_paper_size_only() -> None:
    for path in (DOCS / "results").glob("*/results.csv"):
        made = runpy.run_path(str(DOCS / "make_results.py"))["made_of"](path.parent.name)
        for row in csv.DictReader(path.read_text(encoding="utf-8").splitlines()):
            if row.get("kind") == "number" and made["size"] != "paper":
                assert row["verdict"] not in ("agrees", "differs"), (path, row["what"])


def test_what_differs_is_discussed_in_two_sentences_and_nothing_else_is() -> None:
    made = runpy.run_path(str(DOCS / "make_results.py"))
    differing = [row for row in made["claims"]() if row["verdict"] == "differs"]
    for row in differing:
        assert row["why"], f"write into reasons.json why {row['folder']} differs: {row['claim']}"
        assert len(re.split(r"(?<!Synth)(?<!Lin)\. ", row["why"])) == 2, row["why"]
    unused = [one for one in made["REASONS"] if one["why"] not in {row["why"] for row in differing}]
    assert not unused, "reasons for what does not differ"


def test_the_table_of_the_readme_is_that_of_the_files() -> None:
    made = runpy.run_path(str(DOCS / "make_results.py"))
    text = (DOCS / "results" / "README.md").read_text(encoding="utf-8")
    assert made["with_table"](text, made["claims"]()) == text, "run: make docs"
    for path in (DOCS / "results").glob("*/results.csv"):
        assert f"]({path.parent.name}/index.html): " in text


def test_every_result_has_a_figure_and_a_line_at_the_top() -> None:
    text = (DOCS / "results" / "index.html").read_text(encoding="utf-8")
    top = text.split('id="claims"')[0]
    for path in (DOCS / "results").glob("*/results.csv"):
        assert f'src="{path.parent.name}/figure-1.svg"' in text
        assert f'href="#{path.parent.name}"' in top


def test_kept_pages_have_the_styles_of_todays_pages() -> None:
    made = runpy.run_path(str(DOCS / "make_results.py"))
    for page in (DOCS / "results").glob("*/index.html"):
        assert made["STYLES"].read_text(encoding="utf-8") in page.read_text(encoding="utf-8"), "run: make docs"
