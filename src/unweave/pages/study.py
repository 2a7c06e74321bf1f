"""The page of any study: every measured number as a table, how the numbers go together, and how they are spread."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from unweave.pages.column_names import column_names
from unweave.pages.outcome import Outcome
from unweave.pages.result_folder import write_result_page
from unweave.plots.format import in_words
from unweave.plots.matrices import heat_map
from unweave.plots.violins import violins
from unweave.studies.record import Record
from unweave.studies.results import Results
from unweave.studies.statistics.intervals import mean_interval
from unweave.studies.statistics.rank_correlations import rank_correlations
from unweave.studies.statistics.settings import column, numeric_columns, with_settings
from unweave.studies.statistics.variance_explained import variance_explained
from unweave.studies.store import Store
from unweave.studies.study import Study

if TYPE_CHECKING:
    import matplotlib.figure
    import polars as pl

CONFIG = ("world", "objective", "network", "likelihood", "optimiser", "plan", "cost")
"""Columns that say what a run is, not what it came to."""

OTHER = ("seed", "latents", "steps", "batch_size", "warmup", "holdout", "history_every", "strength")

MOST_NUMBERS, MOST_VIOLINS, MOST_SETTINGS = 24, 8, 40


def write_study_page(store: Store, record: Record, output: Path | str | None = None) -> Path:
    """Write the page of a study that a store knows, with its numbers and figures; the page's path is returned."""
    results = Recorded(Study(record.name, (), title=record.title), store, (), record)
    if not results.table.height:
        raise ValueError(f"no run of {record.name} is finished, so there is nothing to report")
    return write_result_page(
        Path(output) if output else store.home / "reports" / record.name,
        record.title or record.name,
        study_outcome(results),
        results,
        command=" ".join(record.command) or f"unweave study report {record.name} --store {store.root}",
        meta={"study": record.name, "models": results.table.height, "seeds": results.table["seed"].n_unique()},
        kicker="unweave study",
    )


@dataclass(frozen=True)
class Recorded(Results):
    """The results of a study by the ids of its runs: ten thousand experiments need not be built for their table."""

    record: Record = Record("")

    @property
    def ids(self) -> tuple[str, ...]:
        """As the study's record has them."""
        return self.record.experiments

    @property
    def measures(self) -> tuple[str, ...] | None:
        """As the study's record has them; all there are where a study has none of its own."""
        return self.record.measures or None

    @property
    def protocols(self) -> Mapping[str, Any]:
        """As the study's record has them; records of version 0.1.0 name the files alone."""
        return {file: self.record.protocols.get(file, {}) for file in self.record.measures}


def study_outcome(results: Results) -> Outcome:
    """What can be said of any study without knowing what it is about, world by world."""
    table = with_settings(results.table)
    numbers = measured(table)
    worlds = by_world(table)
    notes = [f"{table.height} finished runs, {table['setting'].n_unique()} settings, {len(numbers)} measured numbers."]
    if len(numbers) > MOST_NUMBERS:
        notes.append(f"Figures show the first {MOST_NUMBERS} numbers; tables and CSV hold all.")
    if len(worlds) > 1:
        notes.append("Runs of different worlds are never correlated with each other: every world has its own figures.")
    figures: dict[str, matplotlib.figure.Figure] = {}
    for world, part in worlds.items():
        ending = f", {world}" if len(worlds) > 1 else ""
        figures |= {f"{name}{ending}": figure for name, figure in _figures(part, numbers).items()}
    tables = {
        "By setting: mean over seeds with its 95 % interval": _by_setting(worlds, numbers),
        "Share of variance explained": _each(worlds, lambda part: _explained(part, numbers)),
        "Rank correlations": _each(worlds, lambda part: _correlations(part, numbers[:MOST_NUMBERS])),
    }
    return Outcome((), figures, {name: rows for name, rows in tables.items() if rows}, tuple(notes))


def by_world(table: "pl.DataFrame") -> "dict[str, pl.DataFrame]":
    """The runs of every world, by its name and the options in which worlds of that name differ."""
    options = [
        name for name in table.columns if name.startswith("world.") and name not in ("world.name", "world.called")
    ]
    found = {}
    for (world,), part in table.group_by(["world"], maintain_order=True):
        varied = [name for name in options if part[name].n_unique() > 1]
        if not varied:
            found[str(world)] = part
            continue
        for values, own in part.group_by(varied, maintain_order=True):
            told = [
                f"{name.removeprefix('world.').replace('_', ' ')} {in_words(value)}"
                for name, value in zip(varied, values)
                if value is not None
            ]
            found[", ".join([str(world), *told])] = own
    return found


def _each(
    worlds: "dict[str, pl.DataFrame]", make: "Callable[[pl.DataFrame], list[dict[str, Any]]]"
) -> list[dict[str, Any]]:
    """The rows of every world, one below the other."""
    told = {world: {"world": world} if len(worlds) > 1 else {} for world in worlds}
    return [told[world] | row for world, part in worlds.items() for row in make(part)]


def measured(table: "pl.DataFrame") -> list[str]:
    """Columns of numbers that were measured, and differ between runs."""
    return [name for name in numeric_columns(table) if name.partition(".")[0] not in CONFIG and name not in OTHER]


def _figures(table: "pl.DataFrame", numbers: list[str]) -> "dict[str, matplotlib.figure.Figure]":
    figures = {}
    shown = [name for name in numbers[:MOST_NUMBERS] if table[name].drop_nulls().n_unique() > 1]
    words = column_names(shown)
    if len(shown) > 1 and table.height > 2:
        value = rank_correlations({name: column(table, name) for name in shown}, n_draws=0).value
        names = list(words.values())
        figures["Rank correlation of the measured numbers"] = heat_map(
            value, names, names, "Spearman's correlation", limits=(-1, 1), diverging=True
        )
    settings = table["setting"].unique(maintain_order=True).to_list()
    by = "setting" if len(settings) <= MOST_SETTINGS else "objective"
    groups = table[by].unique(maintain_order=True).to_list()
    objectives = table["objective"].unique(maintain_order=True).to_list()
    own = np.array(table[by].to_list())
    families = [objectives.index(table["objective"][int(np.flatnonzero(own == group)[0])]) for group in groups]
    for name in shown[:MOST_VIOLINS]:
        samples = [column(table, name)[own == group] for group in groups]
        drawn = violins(samples, groups, words[name], words[name], by, families=families)
        figures[f"{words[name]} by {by}"] = drawn
    return figures


def _by_setting(worlds: "dict[str, pl.DataFrame]", numbers: list[str]) -> list[dict[str, Any]]:
    rows = []
    groups = ((world, table.group_by(["setting"], maintain_order=True)) for world, table in worlds.items())
    for world, setting, part in ((world, setting, part) for world, own in groups for (setting,), part in own):
        row: dict[str, Any] = {"world": world, "setting": setting, "runs": part.height}
        for name in numbers:
            values = column(part, name)
            values = values[np.isfinite(values)]
            row[name] = float(values.mean()) if len(values) else None
            if len(values) > 1:
                row[f"{name} ±"] = mean_interval(values)[1] - float(values.mean())
        rows.append(row)
    return rows


def _explained(table: "pl.DataFrame", numbers: list[str]) -> list[dict[str, Any]]:
    rows = []
    for name in numbers:
        row: dict[str, Any] = {"number": name}
        for grouping in ("objective", "setting"):
            try:
                found = variance_explained(column(table, name), table[grouping].to_list())
            except ValueError:
                continue
            row |= {f"by {grouping}": found.adjusted, "low": found.interval[0], "high": found.interval[1]}
        if len(row) > 1:
            rows.append(row)
    return rows


def _correlations(table: "pl.DataFrame", numbers: list[str]) -> list[dict[str, Any]]:
    if len(numbers) < 2 or table.height < 4:
        return []
    return list(rank_correlations({name: column(table, name) for name in numbers}).rows())
