"""What the points of a figure are, in words: kept beside the figure, for pages that show them under the pointer."""

import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import matplotlib.artist

_names: "weakref.WeakKeyDictionary[Any, list[str]]" = weakref.WeakKeyDictionary()


def name_points(artist: "matplotlib.artist.Artist", words: Sequence[str]) -> None:
    """Say what the points of an artist are, in their order."""
    _names[artist] = list(words)


def point_names(artist: "matplotlib.artist.Artist") -> list[str] | None:
    """What was said of an artist's points, if anything."""
    return _names.get(artist)
