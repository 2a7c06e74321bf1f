"""The page of a reproduction or a study: what was published and what we found, figures, tables, and how it was made."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from unweave.pages.column_names import column_name, column_names
from unweave.pages.html import Html, chip, element, facts, joined, paragraphs, table
from unweave.pages.live_chart import live_chart
from unweave.pages.outcome import Outcome
from unweave.pages.page import Section, page
from unweave.plots.forest import forest
from unweave.plots.format import number
from unweave.studies.measures import MEASURES
from unweave.studies.protocols import Protocol
from unweave.studies.verdicts import Checked, Comparison

if TYPE_CHECKING:
    import matplotlib.figure

KINDS = {"agrees": "active", "differs": "mixed", "cannot tell": "passive", "not evidence": "mixed", "runs": "passive"}
"""Verdicts in the colours of the latents' types: blue, vermilion, grey."""

WIDE = 6.5
"""Inches from which a figure gets the width of the page."""

MOST_ROWS = 200

FAMILIES = ("world", "objective", "network", "likelihood", "optimiser", "plan", "cost", "latents")


@dataclass(frozen=True)
class Making:
    """How a page came to be: command, environment, cost, and what went wrong."""

    command: str
    cost: str
    environment: Mapping[str, Any] = field(default_factory=dict)
    failures: Sequence[tuple[str, str]] = ()
    """Run and reason."""
    n_missing: int = 0
    """Experiments of the study that have no finished run."""
    protocols: Sequence[Protocol] = ()
    """What each measure was taken with: examples and settings."""


def result_page(
    title: str, outcome: Outcome, making: Making, meta: Mapping[str, Any], *, lead: str = "", kicker: str = "unweave"
) -> str:
    """The whole page, self-contained."""
    sections = []
    if outcome.comparisons:
        sections.append(Section("Published beside ours", _beside(outcome.comparisons)))
    if outcome.figures:
        sections.append(Section("Figures", _figures(outcome.figures)))
    if outcome.notes:
        sections.append(Section("What this can and cannot tell", element("ul", *map(_item, outcome.notes))))
    sections += [Section(name, _table(rows, name)) for name, rows in outcome.tables.items() if rows]
    sections.append(Section("How it was made", _made(making)))
    return page(title, sections, meta, lead, kicker)


def forest_of(comparisons: Sequence[Comparison]) -> "matplotlib.figure.Figure | None":
    """All published numbers for which we have an interval, in one figure where they are of one size; else None."""
    shown = [one for one in comparisons if isinstance(one.published, float | int) and one.interval is not None]
    sizes = [abs(float(one.published)) for one in shown if one.published]
    if len(shown) < 2 or len(sizes) < 2 or max(sizes) > 30 * min(sizes) or len(shown) > 60:
        return None
    ends = np.array([one.interval or (np.nan, np.nan) for one in shown], dtype=float)
    ours, published = ([float(getattr(one, name)) for one in shown] for name in ("ours", "published"))
    return forest(ours, ends, published, [one.what for one in shown])


def _beside(comparisons: Sequence[Comparison]) -> Html:
    given = {one.verdict for one in comparisons}
    always = ("runs",) if given == {"runs"} else ("agrees", "differs", "cannot tell")
    tiles = [_tile(comparisons, verdict) for verdict in KINDS if verdict in (*always, *given)]
    rows = [_row(one) for one in comparisons]
    shown = table(
        ["verdict", "claim", "published", "ours", "95 % interval", "n", "control, which must not agree"], rows
    )
    rules = dict.fromkeys(one.rule for one in comparisons)
    listed = element("ol", *(element("li", rule) for rule in rules), class_="rules")
    told = element("details", element("summary", "The rules behind these verdicts"), listed)
    return joined(element("div", *tiles, class_="tiles"), shown, told)


def _tile(comparisons: Sequence[Comparison], verdict: str) -> Html:
    count = sum(one.verdict == verdict for one in comparisons)
    return element("div", element("b", count), element("span", verdict), class_=f"tile {KINDS[verdict]}")


def _row(one: Comparison) -> tuple[Any, ...]:
    note = element("div", one.note, class_="rule") if one.note else Html()
    claim = element("div", one.what, note, class_="words", title=one.rule)
    published = number(one.published) if isinstance(one.published, float | int) else one.published
    interval = "–" if one.interval is None else f"{number(one.interval[0])} to {number(one.interval[1])}"
    # a correlation of exactly 0 comes out as 1e-17
    ours = "–" if one.ours is None else number(round(one.ours, 12))
    lines = (element("div", words, class_="rule") for words in map(control_words, one.controls))
    controls = element("div", *lines, class_="words") if one.controls else "–"
    return chip(KINDS[one.verdict], one.verdict), claim, published, ours, interval, one.n, controls


def control_words(control: Checked) -> str:
    """What a control gave, and whether it agrees."""
    gave = "no number" if control.ours is None else number(round(control.ours, 12))
    verdict = "agrees" if control.passes else "does not agree"
    told = verdict if control.draws == 1 else f"{control.agreed} of {control.draws} agree"
    return f"{control.name}: {gave}, {told}"


def _figures(figures: Mapping[str, "matplotlib.figure.Figure"]) -> Html:
    narrow: list[Html] = []
    wide: list[Html] = []
    for place, (name, figure) in enumerate(figures.items()):
        is_wide = bool(figure.get_size_inches()[0] > WIDE)
        drawn = live_chart(figure, f"figure-{place}", f"Figure: {name}.", name, wide=is_wide)
        (wide if is_wide else narrow).append(drawn)
    return joined(element("div", *narrow, class_="charts") if narrow else Html(), *wide)


def _table(rows: Sequence[Mapping[str, Any]], name: str) -> Html:
    columns = list(dict.fromkeys(key for row in rows for key in row))
    cells = [[_cell(row.get(key)) for key in columns] for row in rows[:MOST_ROWS]]
    more = f"The first {MOST_ROWS} of {len(rows):,} rows; all are in the CSV." if len(rows) > MOST_ROWS else ""
    shown = element("div", table(_heads(columns), cells), data_sortable=True)
    return joined(shown, element("p", more) if more else Html())


def _heads(columns: Sequence[str]) -> list[str]:
    """Columns in words, also the half-width of an interval beside its number: ``scores.mean.mig ±``."""
    words = column_names([name for name in columns if _is_column(name)])
    return [words.get(name) or _half_width(name, words) or name for name in columns]


def _half_width(name: str, words: Mapping[str, str]) -> str:
    return f"{words[of]} ±" if (of := name.removesuffix(" ±")) in words and of != name else ""


def _is_column(name: str) -> bool:
    """Whether a word is the name of a column of a study's table: a measure or a part of a config, a dot, and so on."""
    found = re.fullmatch(r"([a-z0-9_]+)(@[0-9a-f]+)?(\.[A-Za-z0-9_]+)+", name)
    return found is not None and found[1] in (*MEASURES, *FAMILIES)


def _cell(value: Any) -> Any:
    if value is None:
        return "–"
    if isinstance(value, str):
        return column_name(value) if _is_column(value) else value
    return value if isinstance(value, float | int) and not isinstance(value, bool) else str(value)


def _made(making: Making) -> Html:
    parts = [element("pre", making.command), paragraphs(f"Training cost: {making.cost}.")]
    if making.n_missing:
        parts.append(paragraphs(f"{making.n_missing} models of this study have no finished run and are missing above."))
    if making.protocols:
        told = paragraphs("Every number comes from these measures with these settings; examples are drawn by seed 0.")
        parts.append(
            joined(told, element("ul", *(element("li", one.words, title=one.title) for one in making.protocols)))
        )
    if making.failures:
        parts.append(table(["failed run", "reason"], [list(failure) for failure in making.failures[:MOST_ROWS]]))
    if making.environment:
        parts.append(facts(making.environment))
    return joined(*parts)


def _item(text: str) -> Html:
    return element("li", text)
