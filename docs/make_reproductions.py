"""Writes the table of all reproductions into docs/reproductions.md.

python docs/make_reproductions.py
"""

from pathlib import Path

from unweave.recipes.reproductions import REPRODUCTIONS, find_reproduction
from unweave.studies.study import SIZES

PAGE = Path(__file__).parent / "reproductions.md"
BEGIN, END = "<!-- the table begins; made by make_reproductions.py -->", "<!-- the table ends -->"


def main() -> None:
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    PAGE.write_text(before + BEGIN + "\n" + table() + END + rest.split(END)[1], encoding="utf-8")


def table() -> str:
    """One row a reproduction: its id, what it claims, where it was published, and its models at every size."""
    rows = [f"| id | what | published in | models: {', '.join(SIZES)} |", "|---|---|---|---|"]
    for one in map(find_reproduction, REPRODUCTIONS):
        counts = ", ".join(count(one.study(size)) for size in SIZES)
        rows.append(f"| `{one.id}` | {one.title} | {one.source} | {counts} |")
    return "\n".join(rows) + "\n"


def count(study) -> str:  # type: ignore[no-untyped-def]
    """How many models a study begins with; a plus where more follow from what is found."""
    return f"{len(study.experiments):,}" + ("+" if study.follow_up else "")


if __name__ == "__main__":
    main()
