"""The page of reproductions names every one of them."""

import re
from pathlib import Path

from unweave.recipes.reproductions import REPRODUCTIONS


def test_the_table_in_the_docs_is_the_table_in_the_code() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reproductions.md").read_text(encoding="utf-8")
    page = page.partition("<!-- the table begins")[2].partition("<!-- the table ends")[0]
    rows = re.findall(r"^\| `([^`]+)` \| (.*?) \|", page, flags=re.MULTILINE)
    wanted = [(name, one.title) for name, one in REPRODUCTIONS.items()]
    assert rows == wanted, "run: python docs/make_reproductions.py"
