"""The page of a reproduction or a study as a folder, with its numbers as CSV and its figures as PNG and PDF."""

import csv
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unweave.files import write_text
from unweave.pages.outcome import Outcome
from unweave.pages.result import Making, forest_of, result_page
from unweave.plots.save import to_pdf, to_png
from unweave.runs.folder import RunFolder
from unweave.studies.cost import cost_of, words_of
from unweave.studies.protocols import protocols_in_words
from unweave.studies.results import Results
from unweave.studies.verdicts import Comparison
from unweave.training.results import environment

if TYPE_CHECKING:
    import polars as pl

COLUMNS = (
    *("what", "published", "ours", "low", "high", "n", "verdict", "rule", "note", "kind"),
    *("control", "control_ours", "control_agrees"),
)


def write_result_page(
    folder: Path | str,
    title: str,
    outcome: Outcome,
    results: Results,
    *,
    command: str,
    meta: Mapping[str, Any],
    lead: str = "",
    kicker: str = "unweave",
) -> Path:
    """Write ``index.html``, ``results.csv`` (published beside ours), ``runs.csv``, ``tables/*.csv`` and ``figures/*``.

    The page's path is returned. Everything is written whole or not at all, so a page never shows half a study.
    """
    folder = Path(folder)
    forest = forest_of(outcome.comparisons)
    if forest is not None:
        outcome = replace(outcome, figures={"Published and ours": forest} | dict(outcome.figures))
    if outcome.comparisons:
        # with its checksum: the explorer sets these numbers beside its own
        RunFolder(folder).write("results.csv", as_csv([csv_row(one) for one in outcome.comparisons], COLUMNS))
    if n_asked(results):
        write_text(folder / "runs.csv", as_csv(flat(results.table).to_dicts(), results.table.columns))
    for name, rows in outcome.tables.items():
        columns = list(dict.fromkeys(key for row in rows for key in row))
        write_text(folder / "tables" / f"{slug(name)}.csv", as_csv(rows, columns))
    for name, figure in outcome.figures.items():
        to_png(figure, folder / "figures" / f"{slug(name)}.png")
        to_pdf(figure, folder / "figures" / f"{slug(name)}.pdf")
    page = result_page(title, outcome, making_of(results, command), meta, lead=lead, kicker=kicker)
    write_text(folder / "index.html", page)
    return folder / "index.html"


def making_of(results: Results, command: str) -> Making:
    """Command, cost, environment and failures of what a page is about."""
    here = {name: value for name, value in environment().items() if name != "command"}
    if not n_asked(results):
        return Making(command, "nothing was trained", {"here": here})
    table = results.table
    trained = _environment(results, table["id"].to_list())
    failures = [(row["id"], str(row.get("failure") or "")) for row in results.failed.to_dicts()]
    told = {"trained on": trained, "measured and judged on": here} if trained else {"here": here}
    n_missing = max(0, n_asked(results) - table.height - len(failures))
    return Making(command, words_of(cost_of(table)), told, failures, n_missing, protocols_in_words(results.protocols))


def n_asked(results: Results) -> int:
    """How many runs a study has asked for; where it names none itself, its record does."""
    return len(results.study.experiments) or len(results.ids)


def comparison_row(one: Comparison) -> dict[str, Any]:
    """A comparison as JSON."""
    low, high = one.interval or (None, None)
    told = {"what": one.what, "published": one.published, "ours": one.ours, "low": low, "high": high, "n": one.n}
    told |= {"verdict": one.verdict, "rule": one.rule, "note": one.note, "kind": one.kind}
    return told | {"controls": [asdict(control) | {"passes": control.passes} for control in one.controls]}


def csv_row(one: Comparison) -> dict[str, Any]:
    """A comparison as a row of ``results.csv``; several controls stand in one cell, parted by semicolons."""
    cells = {
        "control": [control.name for control in one.controls],
        "control_ours": ["" if control.ours is None else repr(control.ours) for control in one.controls],
        "control_agrees": [f"{control.agreed} of {control.draws}" for control in one.controls],
    }
    return comparison_row(one) | {name: "; ".join(values) for name, values in cells.items()}


def as_csv(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> str:
    """Rows as CSV text; nothing is written for what a row does not have."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(columns), restval="", extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: "" if value is None else value for key, value in row.items()} for row in rows)
    return text.getvalue()


def flat(table: "pl.DataFrame") -> "pl.DataFrame":
    """The table with lists as JSON text, which CSV can hold."""
    import polars as pl

    nested = [name for name, kind in table.schema.items() if kind.is_nested()]
    texts = [
        pl.Series(name, [None if value is None else json.dumps(value) for value in table[name].to_list()], pl.String)
        for name in nested
    ]
    return table.with_columns(texts)


def slug(name: str) -> str:
    """A name as part of a file's: letters, digits and hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "untitled"


def _environment(results: Results, ids: Sequence[str]) -> dict[str, Any]:
    for run_id in ids:
        folder = results.store.folder(run_id)
        if folder.has("environment.json"):
            found = folder.read_json("environment.json")
            return {name: value for name, value in found.items() if name not in ("command", "fleet")}
    return {}
