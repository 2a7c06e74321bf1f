"""Writes the page of every metric, the tables of docs/metrics/index.md and the explorer's names of metrics.

    python docs/make_metrics.py

All from the rows and docstrings of the metrics. A metric without a picture gets one too; make_metric_pictures.py draws
those that are there anew.
"""

import json
import math
import sys
from pathlib import Path

from unweave.metrics import METRICS, PAPERS, Metric

DOCS = Path(__file__).parent / "metrics"
NAMES = Path(__file__).parents[1] / "src/unweave/web/static/lib/metric_names.js"
BEGIN, END = "<!-- the tables begin; made by make_metrics.py -->", "<!-- the tables end -->"
KINDS = {
    "supervised": "Against factors",
    "downstream": "What a code is worth to a learner",
    "unsupervised": "Without labels",
}
WORDS = {"split": "rows to fit and to test on", "pairs": "batches with one factor fixed"}


def main() -> None:
    for name, row in METRICS.items():
        (DOCS / f"{name}.md").write_text(page(row), encoding="utf-8")
    place = DOCS / "index.md"
    place.write_text(index(place.read_text(encoding="utf-8")), encoding="utf-8")
    NAMES.write_text(names(), encoding="utf-8")
    missing = [name for name in METRICS if not (DOCS / "images" / f"{name}.png").exists()]
    if missing:
        from make_metric_pictures import main as draw

        draw(missing)


def page(row: Metric) -> str:
    """What the row says, around what the docstring of the metric's file says: its formula first, then the rest."""
    text = (sys.modules[row.function.__module__].__doc__ or "").strip().partition("\n")[2].strip()
    formula, fence, rest = text[3:].partition("\n```\n") if text.startswith("```") else ("", "", text)
    parts = [f"# {row.title}", row.tells, *([f"```{formula}\n```"] if fence else []), facts(row), rest.strip()]
    parts += [picture(row), use(row), f"## Paper\n\n{PAPERS[row.paper]}"]
    made = f"<!-- made by docs/make_metrics.py from {row.function.__module__} -->"
    return "\n\n".join([made, *(part for part in parts if part)]) + "\n"


def facts(row: Metric) -> str:
    function, needs = row.function.__name__, [word for word in row.needs.split() if word != "seed"]
    low, high = ("∞" if math.isinf(end) else f"{end:g}".replace("-", "−") for end in row.range)
    together = "needs one" if "models" in needs else "yes" if row.batched else "one model after the other"
    told = {
        "in the table": f"`{row.name}`" + ("" if function == row.name else f" or `{function}`"),
        "needs": ", ".join(WORDS.get(word, word) for word in needs),
        "range": f"{low} to {high}",
        "better": row.better,
        "at chance": row.at_chance,
        "does not change with": ", ".join(row.invariant_to),
        "numbers": ", ".join(row.scores),
        "fleets in one call": together,
        "on a GPU": f"{row.on_cpu} on the CPU, the rest there" if row.on_cpu else "runs where the arrays live",
    }
    return "\n".join(["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in told.items())])


def picture(row: Metric) -> str:
    several = "models" in row.needs
    shown = "Posteriors" if "variance" in row.needs else "Four fleets" if several else "Nine codes"
    note = "The bars are means over five models. " if several else ""
    if row.scores[0] != "score":
        note = f"Numbers in the picture are the {row.scores[0]}. "
    return "\n\n".join(
        [
            f"## {shown} of one small world",
            f"![{row.title}: scores of example codes](images/{row.name}.png)",
            f"{note}Four factors of 3, 4, 6 and 8 values, 1,500 samples; drawn by "
            f"`python docs/make_metric_pictures.py {row.name}`.",
        ]
    )


def use(row: Metric) -> str:
    function, first = row.function.__name__, row.scores[0]
    arrays = [word for word in row.needs.split() if word in ("codes", "factors", "models")]
    arrays += ["variance=variance"] if "variance" in row.needs else []
    number = row.name if first == "score" else f"{row.name}.{first}"
    return f"""## Use

```
unweave measure codes.npz --metrics {function}
```

```python
import unweave as uw

uw.measure({", ".join(arrays)}, metrics="{function}")["{number}"].value
```

```python
from unweave.metrics import {function}

{row.example}
```"""


def index(text: str) -> str:
    """The same text with the tables between the two marks made anew."""
    before, rest = text.split(BEGIN)
    tables = "\n\n".join(table(kind) for kind in KINDS)
    return f"{before}{BEGIN}\n\n{tables}\n\n{END}{rest.split(END)[1]}"


def table(kind: str) -> str:
    rows = [row for row in METRICS.values() if row.kind == kind]
    lines = [f"| [{row.title}]({row.name}.md) | `{row.name}` | {row.tells} | {row.better} |" for row in rows]
    return "\n".join([f"## {KINDS[kind]}", "", "| metric | name | question | better |", "|---|---|---|---|", *lines])


def names() -> str:
    """What the explorer calls every number."""
    lines = [
        f"  {json.dumps(name)}: {json.dumps(label)}," for row in METRICS.values() for name, label in row.labels.items()
    ]
    return "\n".join(
        [
            "// Made by docs/make_metrics.py from the rows of the metrics.",
            "",
            "export const SCORES = {",
            *lines,
            "};",
            "",
        ]
    )


if __name__ == "__main__":
    main()
