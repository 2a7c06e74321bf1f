"""A run as one row of a table: its settings, measures, failures, cost and scores, each from a file that was checked."""

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

from unweave.files import as_typed, in_words, parse_json
from unweave.runs.columns import FAILURE_KEY, raw_name, shown_names
from unweave.runs.failures import FAILURE, OF_MEASURES, reason_of
from unweave.runs.folder import LEFT_WEIGHTS, WEIGHTS, DamagedFile, RunFolder
from unweave.runs.names import read_plain
from unweave.runs.sums import SUMS

LARGEST = 64 * 2**20
"""Bytes of a file up to which a table reads it."""

TYPES = ("active", "mixed", "passive")

USUAL = {"samples": 15_000, "interventions": "world"}
"""What ``unweave evaluate`` is asked for unless told otherwise; a ``scores.json`` of version 0.1.0 does not say."""

TELLING = ("config.json", WEIGHTS, LEFT_WEIGHTS, FAILURE, "cost.json", "scores.json")
"""Files that a row is made of, beside measures and their failures."""

EVALUATED = "evaluate"
PROTOCOL = ("seed", "adjust", "factor_bins", "options")
"""Settings of ``unweave evaluate`` that change a value; the number of seeds changes intervals only."""

Row = dict[str, Any]


def row_of(folder: RunFolder) -> Row | None:
    """``id``, ``state``, ``failure`` and what a run's files say, flattened with dots; None where there is no run."""
    row = raw_row_of(folder)
    return None if row is None else {shown: row[name] for name, shown in shown_names(row).items()}


def raw_row_of(folder: RunFolder) -> Row | None:
    """The same with the columns of measures as files have them (:mod:`unweave.runs.columns`).

    The state is the files' alone: ``done``, ``failed``, ``unfinished``, or ``damaged``, with the reason as failure.
    Whatever a folder holds, it is a row, and never an error.
    """
    row: Row = {"id": folder.path.name, "state": "damaged", "failure": None}
    try:
        sums = _listed(folder)
        if "config.json" not in sums and not (folder.path / "config.json").is_file():
            return None
        columns = {"state": _state(folder, sums)} | _columns(folder, sums)
    except Exception as error:  # a stranger's folder may hold anything
        return row | {"failure": in_words(error)}
    return row | columns | {"id": folder.path.name}


@contextlib.contextmanager
def reading_scores(folder: RunFolder) -> Iterator[None]:
    """One sentence where the file of scores is read and holds something else."""
    try:
        yield
    except (TypeError, KeyError, IndexError, AttributeError, ValueError) as error:
        again = f"unweave evaluate {as_typed(folder.path)}"
        raise DamagedFile(f"{folder.path / 'scores.json'} holds no scores; write it again with: {again}") from error


def read_object(folder: RunFolder, name: str, sums: Mapping[str, str]) -> dict[str, Any]:
    """A JSON object of a folder, checked; ValueError where it is none."""
    content = read_plain(folder.path, name, most=LARGEST)
    if hashlib.sha256(content).hexdigest() != sums[name]:
        content = folder.read(name)  # replaced since the list was read, or damaged
    found = parse_json(content, folder.path / name)
    if not isinstance(found, dict) or b"\0" in content:  # as UTF-16 has them
        raise ValueError(f"{folder.path / name} holds no JSON object")
    return found


OF_COLUMNS = ("names", "means", "deviations", "label_names")
"""What the world ``table`` remembers of its columns, as long as the table is wide."""


def flatten(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Nested dictionaries as ``outer.inner`` columns; lists stay lists."""
    for key, inner in value.items():
        name = f"{prefix}.{key}" if prefix else str(key)
        if isinstance(inner, Mapping):
            yield from flatten(inner, name)
        else:
            yield name, inner


def _listed(folder: RunFolder) -> dict[str, str]:
    """The list of a folder; DamagedFile where it has lost a name, which only lists of version 0.1.0 do not notice."""
    before, sums = None, folder.sums()
    while sums != before:  # else a file was removed between reading the list and looking for it
        before = sums
        missing = [name for name in sums if not os.path.lexists(f"{folder.path}/{name}")]
        lost = _unlisted(folder, sums) if missing or "config.json" not in sums else ""
        if not lost:
            return sums
        sums = folder.sums()
    raise DamagedFile(f"{folder.path / SUMS} is damaged: it does not list {lost}")


def _unlisted(folder: RunFolder, sums: Mapping[str, str]) -> str:
    """A file that tells of a run and stands there without its line; empty where there is none."""
    for name in TELLING if sums else ():
        if name not in sums and os.path.lexists(f"{folder.path}/{name}"):
            return name
    for kind in ("measures", "failures") if sums else ():
        with contextlib.suppress(OSError):
            for name in sorted(os.listdir(f"{folder.path}/{kind}")):
                if not name.startswith(".") and f"{kind}/{name}" not in sums:
                    return f"{kind}/{name}"
    return ""


def _state(folder: RunFolder, sums: Mapping[str, str]) -> str:
    there = {name for name in (WEIGHTS, LEFT_WEIGHTS) if name in sums and (folder.path / name).is_file()}
    if WEIGHTS in sums and not there:
        raise FileNotFoundError(f"{folder.path / WEIGHTS} is missing")
    return "done" if there else "failed" if FAILURE in sums else "unfinished"


def _columns(folder: RunFolder, sums: Mapping[str, str]) -> Row:
    def read(name: str) -> dict[str, Any]:
        return read_object(folder, name, sums) if name in sums else {}

    columns = dict(flatten(_own(read("config.json")))) | dict(flatten(read("cost.json"), "cost"))
    if strange := [name for name in columns if "@" in name]:
        raise ValueError(f"{folder.path} has a setting called {strange[0][:80]!r}, and no experiment has")
    for name in sums:
        if name.startswith("measures/"):
            columns |= _of_measure(name, dict(flatten(read(name))))
        elif name.startswith(OF_MEASURES):
            columns |= _of_measure(name, {FAILURE_KEY: reason_of(read(name))})
    if FAILURE in sums:
        columns["failure"] = reason_of(read(FAILURE))
    return columns | _scores(read("scores.json"))


def _of_measure(file: str, values: Row) -> Row:
    stem = file.rpartition("/")[2].removesuffix(".json")
    measure, _, settings = stem.rpartition("-") if "-" in stem else (stem, "", "")
    return {raw_name(measure, settings, key): value for key, value in values.items()}


def _own(config: dict[str, Any]) -> dict[str, Any]:
    """Settings without names that a table gives a meaning of its own, and without what a table of data looks like."""
    kept = {key: value for key, value in config.items() if key not in ("id", "state", "failure", "signature")}
    if isinstance(world := kept.get("world"), dict):
        kept["world"] = {key: value for key, value in world.items() if key not in OF_COLUMNS}
    return kept


def _scores(scores: Mapping[str, Any]) -> Row:
    if not scores:
        return {}
    settings = f"{EVALUATED}-{_protocol(scores)}"
    found = {
        raw_name("scores", settings, f"{codes}.{metric}"): number["value"]
        for codes in ("mean", "sampled")
        for metric, number in scores.get(codes, {}).get("scores", {}).items()
    }
    types = scores.get("latents", {}).get("types", [])
    return found | ({raw_name("latents", settings, kind): types.count(kind) for kind in TYPES} if types else {})


def _protocol(scores: Mapping[str, Any]) -> str:
    """A short hash of how ``unweave evaluate`` was called: what was asked for, since worlds have fewer examples."""
    first: Mapping[str, Any] = next((scores[codes] for codes in ("mean", "sampled") if codes in scores), {})
    settings = first.get("settings") or {}
    asked = {name: settings[name] for name in PROTOCOL if settings.get(name)}
    asked |= {name: value for name, value in (scores.get("asked") or {}).items() if value != USUAL.get(name)}
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:8]
