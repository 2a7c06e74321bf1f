"""A figure in a page whose points say what they are when they are pointed at.

A drawing library inside each page would cost megabytes and a script that the page's own policy forbids. A figure is
SVG already: here each of its points is given a ``data-tip``, which forty lines of script show.
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from unweave.pages.html import Html, chart, text
from unweave.plots.format import short
from unweave.plots.point_names import point_names

if TYPE_CHECKING:
    import matplotlib.figure

MOST_POINTS = 4000
"""Points of a figure beyond which none says anything: the page would grow by megabytes."""


def live_chart(figure: "matplotlib.figure.Figure", name: str, alt: str, caption: Any = "", wide: bool = False) -> Html:
    """A chart in a page whose points speak when they are pointed at."""
    words_of = _words_of_points(figure)
    if sum(map(len, words_of.values())) > MOST_POINTS:
        words_of = {}
    markup = str(chart(figure, name, alt, caption, wide))
    for gid, words in words_of.items():
        markup = _insert(markup, f"{name}-{gid}", words)
    return Html(markup)


def _words_of_points(figure: "matplotlib.figure.Figure") -> dict[str, list[str]]:
    """Give every artist that has points an id, and return the words for each of its points."""
    found: dict[str, list[str]] = {}
    for place, axes in enumerate(figure.axes):
        for number, artist in enumerate([*axes.collections, *axes.lines]):
            points = _points(artist)
            if points is not None and len(points):
                gid = f"tips-{place}-{number}"
                artist.set_gid(gid)
                found[gid] = point_names(artist) or _coordinates(artist, points)
    return found


def _points(artist: Any) -> np.ndarray | None:
    from matplotlib.collections import PathCollection
    from matplotlib.lines import Line2D

    if isinstance(artist, PathCollection) and not artist.get_rasterized():
        return np.ma.filled(np.ma.asarray(artist.get_offsets(), dtype=float), np.nan)
    if isinstance(artist, Line2D) and artist.get_marker() not in ("", "None", None, " "):
        return np.asarray(artist.get_xydata(), dtype=float)
    return None


def _coordinates(artist: Any, points: np.ndarray) -> list[str]:
    label = str(artist.get_label())
    prefix = "" if label.startswith("_") else f"{label}: "
    return [f"{prefix}{short(float(x))}, {short(float(y))}" for x, y in points]


def _insert(markup: str, gid: str, words: Sequence[str]) -> str:
    """Words onto the marks of one group, where there are as many marks as words."""
    begin = markup.find(f'<g id="{gid}"')
    if begin < 0:
        return markup
    end = _end_of_group(markup, begin)
    group = markup[begin:end]
    marks = list(re.finditer(r"<use [^>]*?/>", group))
    if len(marks) != len(words):
        return markup
    pieces, last = [], 0
    for mark, word in zip(marks, words):
        pieces += [group[last : mark.end() - 2], f' data-tip="{text(word)}"/>']
        last = mark.end()
    return markup[:begin] + "".join(pieces) + group[last:] + markup[end:]


def _end_of_group(markup: str, begin: int) -> int:
    depth = 0
    for tag in re.compile(r"<g[ >]|</g>").finditer(markup, begin):
        depth += 1 if tag[0] != "</g>" else -1
        if depth == 0:
            return tag.end()
    return len(markup)
