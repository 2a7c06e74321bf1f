"""Pieces of a page: plain text is escaped the moment it enters, markup is only what was made here."""

import base64
import html
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from unweave.plots import style
from unweave.plots.format import in_words, number
from unweave.plots.save import to_svg

if TYPE_CHECKING:
    import matplotlib.figure

THEMED = {
    style.INK: "var(--ink)",
    style.MUTED: "var(--muted)",
    style.LINE: "var(--line)",
    style.SURFACE: "var(--surface)",
    style.ACTIVE: "var(--active)",
    style.MIXED: "var(--mixed)",
    style.PASSIVE: "var(--passive)",
}
"""Colours of figures that follow the page's light or dark theme."""


class Html(str):
    """Text that is markup already. Everything else is escaped by :func:`text`."""

    __slots__ = ()


def text(value: Any) -> Html:
    """A value as markup: :class:`Html` as it is, anything else escaped."""
    return value if isinstance(value, Html) else Html(html.escape(str(value), quote=True))


def element(tag: str, *children: Any, **attributes: Any) -> Html:
    """One element; ``class_`` and ``for_`` lose their underscore, inner ones become hyphens, None leaves one out."""
    named = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items() if value is not None}
    written = "".join(f" {name}" if value is True else f' {name}="{text(value)}"' for name, value in named.items())
    if tag in ("br", "img", "input", "meta"):
        return Html(f"<{tag}{written}>")
    return Html(f"<{tag}{written}>{joined(*children)}</{tag}>")


def joined(*children: Any) -> Html:
    """Several pieces, one after the other."""
    return Html("".join(text(child) for child in children))


def paragraphs(*texts: str) -> Html:
    """One paragraph for each text."""
    return joined(*(element("p", one) for one in texts))


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]], caption: str = "") -> Html:
    """A table; numbers are formatted and stand to the right, as their column's head does."""
    if wrong := [row for row in rows if len(row) != len(columns)]:
        raise ValueError(f"every row must have {len(columns)} cells, given one with {len(wrong[0])}")
    numeric = [bool(rows) and all(_is_number(row[place]) for row in rows) for place in range(len(columns))]
    head = (
        element("th", name, scope="col", class_="number" if right else None) for name, right in zip(columns, numeric)
    )
    body = (element("tr", *map(_cell, row)) for row in rows)
    title = element("caption", caption) if caption else Html()
    whole = element("table", title, element("thead", element("tr", *head)), element("tbody", *body))
    return element("div", whole, class_="scroll", tabindex="0", role="region", aria_label=caption or "table")


def facts(described: Mapping[str, Any]) -> Html:
    """A description as names and values; what lies deeper is named with dots."""
    rows = [element("div", element("dt", name), element("dd", in_words(value))) for name, value in _flat(described)]
    return element("dl", *rows, class_="facts")


def picture(png: bytes, alt: str, caption: Any = "", wide: bool = False) -> Html:
    """A PNG inside the page."""
    shown = element("img", src=data_address(png), alt=alt, loading="lazy")
    return _captioned(shown, caption, wide)


def chart(figure: "matplotlib.figure.Figure", name: str, alt: str, caption: Any = "", wide: bool = False) -> Html:
    """A figure inside the page as SVG that follows the theme. ``name`` keeps its inner ids apart from other charts'."""
    svg = to_svg(figure).decode()
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    # inside HTML neither namespaces nor a fixed size are wanted
    opening, _, rest = svg.partition(">")
    box = re.search(r'viewBox="([^"]*)"', opening)
    assert box is not None
    rest = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{name}-", rest)
    for colour, variable in THEMED.items():
        rest = rest.replace(colour, variable)
    # a quarter over its own size at most: beyond that text looks coarse beside the page's
    width = figure.get_size_inches()[0] * 96 * 1.25
    opening = f'<svg viewBox="{box[1]}" role="img" aria-label="{text(alt)}" style="max-width:{width:.0f}px"'
    return _captioned(Html(f"{opening}>{rest}"), caption, wide)


def data_address(png: bytes) -> str:
    """A PNG as an address that holds it."""
    return "data:image/png;base64," + base64.b64encode(png).decode()


def chip(kind: str, words: str | None = None) -> Html:
    """A type of latent as a coloured word."""
    return element("span", words or kind, class_=f"chip {kind}")


def _captioned(shown: Html, caption: Any, wide: bool) -> Html:
    inner = element("div", shown, class_="scroll", tabindex="0") if wide else shown
    return element(
        "figure", inner, element("figcaption", caption) if caption else Html(), class_="wide" if wide else None
    )


def _cell(value: Any) -> Html:
    if _is_number(value):
        return element("td", number(value), class_="number")
    return element("td", value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _flat(described: Mapping[str, Any], above: str = "") -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for name, value in described.items():
        place = f"{above}.{name}" if above else str(name)
        found += _flat(value, place) if isinstance(value, Mapping) and value else [(place, value)]
    return found
