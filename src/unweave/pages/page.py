"""A page that is one file: styles, scripts and pictures inside it, and nothing fetched from anywhere."""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unweave.pages.html import Html, element, joined
from unweave.plots.format import in_words


@dataclass(frozen=True)
class Section:
    """A part of a page. ``body`` is markup made by :mod:`unweave.pages.html`; plain text is escaped."""

    heading: str
    body: Html | str


@dataclass(frozen=True)
class Page:
    """A page, and every figure of it as a PNG by file name."""

    html: str
    pictures: dict[str, bytes]


def page(
    title: str,
    sections: Sequence[Section],
    meta: Mapping[str, Any] | None = None,
    lead: str = "",
    kicker: str = "unweave",
) -> str:
    """The whole page. ``meta`` stands below the title, ``lead`` is the sentence that says what it shows."""
    script = _beside("page.js")
    head = joined(
        Html('<meta charset="utf-8">'),
        element("meta", http_equiv="Content-Security-Policy", content=_policy(script)),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        element("style", Html(_beside("page.css"))),
    )
    body = joined(
        _header(title, meta or {}, lead, kicker),
        element("main", *(_section(section) for section in sections)),
        element("footer", element("p", "Made by unweave. This page is one file and needs no network.")),
        element("script", Html(script)),
    )
    return f"<!DOCTYPE html>\n{element('html', element('head', head), element('body', body), lang='en')}\n"


def _header(title: str, meta: Mapping[str, Any], lead: str, kicker: str) -> Html:
    pairs = (element("div", element("dt", name), element("dd", in_words(value))) for name, value in meta.items())
    return element(
        "header",
        element("p", kicker, class_="kicker"),
        element("h1", title),
        element("p", lead, class_="lead") if lead else Html(),
        element("dl", *pairs, class_="meta") if meta else Html(),
    )


def _section(section: Section) -> Html:
    body = section.body if isinstance(section.body, Html) else element("p", section.body)
    return element("section", element("h2", section.heading), body)


def _policy(script: str) -> str:
    """Nothing may be fetched, and no script may run but this one: a hostile title stays a title."""
    summed = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{summed}'"


def _beside(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")
