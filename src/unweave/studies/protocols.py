"""What the measures of a study were taken with, in words."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from unweave.studies.measures.measure import protocol_of

MOST_LETTERS = 40
"""Of one setting in the name of a column."""


class Protocol(NamedTuple):
    """A measure for a reader (``words``), and the file it is kept in with all of its settings (``title``)."""

    words: str
    title: str


def protocols_in_words(protocols: Mapping[str, Any]) -> list[Protocol]:
    """One a measure, by the names of their files: how many examples, and the settings that are not the usual ones.

    Where one measure was taken with several settings, its columns carry their hashes, and so do the words.
    """
    names = [_parts(file)[0] for file in protocols]
    return [_protocol(file, found, names.count(_parts(file)[0]) > 1) for file, found in protocols.items()]


def settings_in_words(protocols: Mapping[str, Any]) -> dict[str, str]:
    """The settings of every measure by the hash that marks its columns: what differs between them, two at most."""
    groups: dict[str, dict[str, Mapping[str, Any]]] = {}
    for file, found in protocols.items():
        name, mark = _parts(file)
        groups.setdefault(name, {})[mark] = found if isinstance(found, Mapping) else {}
    return {mark: _apart(known, group) for group in groups.values() for mark, known in group.items() if mark}


def _apart(known: Mapping[str, Any], group: Mapping[str, Mapping[str, Any]]) -> str:
    keys = [key for key in known if any(other.get(key) != known[key] for other in group.values())]
    told = [_setting(key, known[key]) for key in sorted(keys or known, key=lambda key: key != "n_samples")[:2]]
    short = [words if len(words) <= MOST_LETTERS else f"{words[: MOST_LETTERS - 1]}…" for words in told]
    return ", ".join(short) or "no settings"


def _protocol(file: str, settings: Any, one_of_several: bool) -> Protocol:
    name, mark = _parts(file)
    known = dict(settings) if isinstance(settings, Mapping) else {}
    usual = _usual(name)
    told = [_setting(key, value) for key, value in known.items() if key == "n_samples" or value != usual.get(key, "?")]
    if not told:
        told = ["settings as usual" if known else "no settings"]
    title = f"{file}: {'; '.join(f'{key} {_value(value)}' for key, value in known.items()) or 'no settings'}"
    marked = f" (its columns are marked {mark})" if one_of_several and mark else ""
    return Protocol(f"{name}: {'; '.join(told)}{marked}", title)


def _parts(file: str) -> tuple[str, str]:
    """The name of a measure and the hash of its settings: ``measures/scores-699e.json``."""
    name, _, mark = file.rpartition("/")[2].removesuffix(".json").rpartition("-")
    return (name, mark) if name else (mark, "")


def _usual(name: str) -> dict[str, Any]:
    from unweave.studies.measures import MEASURES

    return protocol_of(MEASURES[name]()) if name in MEASURES else {}


def _setting(key: str, value: Any) -> str:
    if isinstance(value, bool):
        return f"{'' if value else 'no '}{key.replace('_', ' ')}"
    if key.startswith("n_"):
        return f"{_value(value)} {key.removeprefix('n_').replace('_', ' ')}"
    return f"{key.replace('_', ' ')} {_value(value)}"


def _value(value: Any) -> str:
    if isinstance(value, list | tuple):
        inner = [" ".join(map(_value, one)) if isinstance(one, list | tuple) else _value(one) for one in value]
        return ", ".join(inner) or "none"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)[:200]
