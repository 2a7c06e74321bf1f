"""Columns of a study's table in words: ``scores.mean.dci.disentanglement`` is «DCI-D», ``objective.beta`` is «β»."""

import re
from collections.abc import Sequence

from unweave.metrics import METRICS

LABELS = {name: label for row in METRICS.values() for name, label in row.labels.items()}
WORDS = {
    "world.name": "world",
    "world.called": "called",
    "objective.name": "objective",
    "objective.beta": "β",
    "objective.gamma": "γ",
    "objective.capacity": "C",
    "objective.off_diagonal": "λ",
    "network.name": "network",
    "polarised.n_active": "active (measured)",
    "polarised.n_mixed": "mixed (measured)",
    "polarised.n_passive": "passive (measured)",
}
SETTINGS = re.compile(r"^([^.@]+)@([^.]+)(?=\.)")
"""A measure that was taken with several settings carries their hash: ``scores@699e.mean.mig``."""


def column_name(name: str) -> str:
    """One column in words, as the explorer has it."""
    if name in WORDS:
        return WORDS[name]
    if found := SETTINGS.match(name):
        return f"{column_name(_plain(name))} ({found[2]})"
    if found := re.match(r"scores\.(mean|sampled)\.(.+)$", name):
        label = LABELS.get(found[2], found[2].replace("_", " "))
        return label if found[1] == "mean" else f"{label} (sampled)"
    family, *rest = name.replace("_", " ").split(".")
    if not rest:
        return family
    words = " ".join(rest)
    return words if family == "objective" else f"{family}: {words.removeprefix('n ')}"


def column_names(names: Sequence[str]) -> dict[str, str]:
    """Some columns in words; settings are named where a measure was taken with several of them."""
    plain = [_plain(name) for name in names]
    return {name: column_name(name if plain.count(one) > 1 else one) for name, one in zip(names, plain)}


def _plain(name: str) -> str:
    return SETTINGS.sub(r"\1", name)
