"""The page of a search for a number of latents: its answer, what decided it, and every model that was tried."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from unweave.pages.html import Html, chart, element, facts, joined, paragraphs, table
from unweave.pages.page import Page, Section, page
from unweave.plots.dimension import ElbowTable, SearchTable, criterion, elbow_curves, search_path
from unweave.plots.format import in_words, short
from unweave.plots.save import to_png

if TYPE_CHECKING:
    import matplotlib.figure


def dimension_page(
    *,
    title: str,
    answer: float | int | None,
    findings: Sequence[str],
    visited: SearchTable | None,
    threshold: float | int,
    rows: Sequence[Mapping[str, Any]],
    curves: ElbowTable | None,
    settings: Mapping[str, Any],
) -> Page:
    """The page of one search and its pictures. ``rows`` are the models that were tried, ``findings`` sentences."""
    drawn: dict[str, matplotlib.figure.Figure] = {}
    if visited is not None and answer is not None:
        drawn |= {"path": search_path(visited, answer), "criterion": criterion(visited, threshold, answer)}
    if curves is not None:
        drawn["elbow"] = elbow_curves(curves, answer)
    sections = [
        Section("In short", element("ul", *(element("li", finding) for finding in findings))),
        *(_decided(drawn) if visited is not None else []),
        *([Section("Every model that was trained", _models(rows))] if rows else []),
        *([_elbow_section(drawn["elbow"])] if curves is not None else []),
        Section("How this was made", facts(settings)),
    ]
    lead = f"The answer: {short(answer)}." if answer is not None else "Curves over the number of latents."
    html = page(title, sections, {}, lead, "unweave dimension")
    return Page(html, {f"{name}.png": to_png(figure) for name, figure in drawn.items()})


def _decided(drawn: Mapping[str, Any]) -> list[Section]:
    words = paragraphs(
        "Every point is a model that was trained briefly. Blue circles passed: the difference is at most the dotted"
        " threshold. Orange diamonds failed: some latents carry nothing. The dashed line is the answer, the largest"
        " value that passed with the next one failing. Grey bars are the brackets that were still open.",
    )
    charts = [
        chart(drawn["criterion"], "criterion", "Lines: the criterion over the values that were tried.", wide=True),
        chart(drawn["path"], "path", "Line: values in the order in which they were tried, with their brackets."),
    ]
    return [Section("How it was decided", joined(words, *charts))]


def _elbow_section(figure: "matplotlib.figure.Figure") -> Section:
    words = paragraphs(
        "Where the curve stops improving, further latents bring little. The ring is the point farthest from the"
        " straight line between the curve's ends; no ring, no clear elbow. The dashed line is the answer above.",
    )
    return Section("Elbow curves", joined(words, chart(figure, "elbow", "Curves over numbers of latents.", wide=True)))


def _models(rows: Sequence[Mapping[str, Any]]) -> Html:
    names = list(rows[0])
    return table(names, [[_cell(row[name]) for name in names] for row in rows])


def _cell(value: Any) -> Any:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else in_words(value)
