"""A run over its training: losses and KL, from its history, or while it trains from its newest checkpoint."""

from pathlib import Path

from unweave.runs.folder import RunFolder
from unweave.training.checkpoint import history_so_far
from unweave.training.history import History, read_history
from unweave.training.many import home_and_place
from unweave.web.numbers import number, numbers, thinned
from unweave.web.schema import HistoryAnswer

MOST_ROWS, MOST_SPARKS = 400, 40


def history_of(path: Path) -> History | None:
    """What a run has recorded so far; None before its first checkpoint."""
    files = RunFolder(path)
    if files.has("history.parquet") or files.has("history.csv"):
        return read_history(files)
    home, place = home_and_place(files)
    return history_so_far(home, place)[1]


def history_answer(path: Path) -> HistoryAnswer:
    """Loss terms and KL per latent, at a few hundred steps."""
    history = history_of(path)
    if history is None or not history.steps:
        return HistoryAnswer(steps=[], terms={}, kl=[])
    places = thinned(len(history.steps), MOST_ROWS)
    values = history.values()[places]
    return HistoryAnswer(
        steps=[history.steps[place] for place in places],
        terms={name: numbers(values[:, history.columns.index(name)]) for name in history.terms},
        kl=[numbers(values[:, place]) for place, name in enumerate(history.columns) if name.rpartition("_")[0] == "kl"],
    )


def sparkline(path: Path) -> list[float]:
    """The loss at a few steps; a run that cannot be read has none."""
    try:
        history = history_of(path)
        if history is None or not history.steps:
            return []
        losses = history.column("loss")
        found = [number(losses[place].item()) for place in thinned(len(losses), MOST_SPARKS)]
    except (OSError, KeyError, ValueError):
        return []
    return [float(f"{value:.5g}") for value in found if value is not None]
