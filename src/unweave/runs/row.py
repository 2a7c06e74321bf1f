"""A run as one row of a table: its settings, measures, failures, cost and scores, each from a file that was checked."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from unweave.runs.failures import FAILURE, OF_MEASURES, reason_of
from unweave.runs.folder import LEFT_WEIGHTS, WEIGHTS, RunFolder
from unweave.runs.names import read_plain

LARGEST = 64 * 2**20
"""Bytes of a file up to which a table reads it."""

TYPES = ("active", "mixed", "passive")

Row = dict[str, Any]


def row_of(folder: RunFolder) -> Row | None:
    """``id``, ``state``, ``failure`` and what a run's files say, flattened with dots; None where there is no run.

    The state is the files' alone: ``done``, ``failed``, ``unfinished``, or ``damaged``, with the reason as failure.
    Whatever a folder holds, it is a row, and never an error.
    """
    row: Row = {"id": folder.path.name, "state": "damaged", "failure": None}
    try:
        sums = folder.sums()
        if "config.json" not in sums and not (folder.path / "config.json").is_file():
            return None
        columns = {"state": _state(folder, sums)} | _columns(folder, sums)
    except Exception as error:  # a stranger's folder may hold anything
        return row | {"failure": str(error) or type(error).__name__}
    return row | columns | {"id": folder.path.name}


def read_object(folder: RunFolder, name: str, sums: Mapping[str, str]) -> dict[str, Any]:
    """A JSON object of a folder, checked; ValueError where it is none."""
    content = read_plain(folder.path, name, most=LARGEST)
    if hashlib.sha256(content).hexdigest() != sums[name]:
        content = folder.read(name)  # replaced since the list was read, or damaged
    text = content.decode()
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError(f"{folder.path / name} holds no JSON object")
    if "\\ud" in text.lower():
        json.dumps(found, ensure_ascii=False).encode()  # half a character is no text
    return found


def flatten(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Nested dictionaries as ``outer.inner`` columns; lists stay lists."""
    for key, inner in value.items():
        name = f"{prefix}.{key}" if prefix else str(key)
        if isinstance(inner, Mapping):
            yield from flatten(inner, name)
        else:
            yield name, inner


def _state(folder: RunFolder, sums: Mapping[str, str]) -> str:
    there = {name for name in (WEIGHTS, LEFT_WEIGHTS) if name in sums and (folder.path / name).is_file()}
    if WEIGHTS in sums and not there:
        raise FileNotFoundError(f"{folder.path / WEIGHTS} is missing")
    return "done" if there else "failed" if FAILURE in sums else "unfinished"


def _columns(folder: RunFolder, sums: Mapping[str, str]) -> Row:
    def read(name: str) -> dict[str, Any]:
        return read_object(folder, name, sums) if name in sums else {}

    columns = dict(flatten(_own(read("config.json"))))
    for name in sums:
        measure = name.rpartition("/")[2].rpartition("-")[0]
        if name.startswith("measures/"):
            columns |= flatten(read(name), measure)
        elif name.startswith(OF_MEASURES):
            columns[f"{measure}.failure"] = reason_of(read(name))
    if FAILURE in sums:
        columns["failure"] = reason_of(read(FAILURE))
    return columns | dict(flatten(read("cost.json"), "cost")) | _scores(read("scores.json"))


def _own(config: dict[str, Any]) -> dict[str, Any]:
    """Settings without names that a table gives a meaning of its own."""
    return {key: value for key, value in config.items() if key not in ("id", "state", "failure", "signature")}


def _scores(scores: Mapping[str, Any]) -> Row:
    found = {
        f"scores.{codes}.{metric}": number["value"]
        for codes in ("mean", "sampled")
        for metric, number in scores.get(codes, {}).get("scores", {}).items()
    }
    types = scores.get("latents", {}).get("types", [])
    return found | ({f"latents.{kind}": types.count(kind) for kind in TYPES} if types else {})
