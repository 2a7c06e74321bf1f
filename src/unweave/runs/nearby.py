"""Which run may be meant by a path that leads to none."""

import difflib
from pathlib import Path

from unweave.files import as_typed

MOST_LOOKED_AT, MOST_SHOWN = 1000, 3


def others_in_words(path: Path) -> str:
    """Runs in it, where it is a folder; else those beside it and in ``runs``: with a like name, or the newest."""
    there = path.exists()
    places = (path,) if there else (Path("runs"), path.parent)
    found = {place.name: place for folder in places for place in _runs_in(folder)}
    if not there and (near := difflib.get_close_matches(path.name, found, n=MOST_SHOWN, cutoff=0.5)):
        return f". Did you mean {' or '.join(as_typed(found[name]) for name in near)}?"
    newest = sorted(found.values(), key=lambda place: place.stat().st_mtime, reverse=True)
    shown = ", ".join(as_typed(place) for place in newest[:MOST_SHOWN])
    more = f" and {len(newest) - MOST_SHOWN:,} more" if len(newest) > MOST_SHOWN else ""
    return f". There are {shown}{more}" if len(newest) > 1 else f". There is {shown}" if newest else ""


def _runs_in(folder: Path) -> list[Path]:
    try:
        places = [place for place, _ in zip(folder.iterdir(), range(MOST_LOOKED_AT))]
        return [place for place in places if (place / "config.json").is_file()]
    except OSError:
        return []
