"""A dimension search as version 0.1.0 kept it, ``dimension-…/latents-3-steps-1800``, moved into its store."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unweave.algorithms.fondue import METHODS
from unweave.recipes.dimension import page_folder
from unweave.recipes.dimension_search import DimensionSearch
from unweave.recipes.dimension_study import plain_search, search_name
from unweave.runs.folder import RunFolder
from unweave.studies.measures.elbow import ElbowPoint
from unweave.studies.measures.fondue import FondueReading
from unweave.studies.measures.measure import Measure
from unweave.studies.record import Record, write_record
from unweave.studies.store import Store
from unweave.training.experiment import Experiment, read_experiment

READINGS = "dimension/"
"""Where 0.1.0 kept what it had read of a model: ``dimension/trace-10000.json``, the criterion and the examples."""


@dataclass(frozen=True)
class Model:
    """A model of the old search, where it is now."""

    experiment: Experiment
    started: str
    readings: dict[str, int]
    """Examples by criterion, or ``elbow``."""


def convert_search(old: Path | str, root: Path | str | None = None) -> Iterator[str]:
    """Move every model to its id in the store, its readings to its measures, and copy the pages to the reports.

    The store is the folder above, unless told. Says what it does, line by line; what the store has already stays.
    """
    source = Path(old)
    found = sorted(path.parent for path in source.glob("*-steps-*/config.json"))
    if not found:
        raise FileNotFoundError(f"{source} holds no models of a dimension search of version 0.1.0")
    store = Store(source.resolve().parent if root is None else root).prepare()
    models = []
    for path in found:
        experiment = read_experiment(RunFolder(path))
        target = store.folder(experiment.id)
        if target.path.exists():
            yield f"{path} stays: {target.path} is there already"
            continue
        with RunFolder(path).locked():  # not under the hands of whoever trains it
            path.rename(target.path)
        models.append(_converted(experiment, target))
        yield f"{path} moved to {target.path}"
    for search in _searches(source, models):
        yield from _record(source, store, search, models)
    yield f"{source} has nothing left that is needed" if len(models) == len(found) else f"{source} is kept"


def _converted(experiment: Experiment, folder: RunFolder) -> Model:
    """Readings become measures; the old files go."""
    readings = {}
    for name in folder.names(READINGS):
        kind, _, examples = Path(name).stem.rpartition("-")
        found = folder.read_json(name)
        folder.write_json(_measure(kind, int(examples)).file, found if kind == "elbow" else {kind: found})
        folder.remove(name)
        readings[kind] = int(examples)
    environment = folder.read_json("environment.json") if folder.has("environment.json") else {}
    return Model(experiment, str(environment.get("started", "")), readings)


def _searches(source: Path, models: list[Model]) -> Iterator[DimensionSearch]:
    """Every search that was made, as far as its files say; the one that was begun last may not have ended."""
    begun = _json(source / "search.json")
    for method in (*METHODS, "elbow"):
        said = _json(source / f"{method}.json") or (begun if begun.get("method") == method else {})
        examples = next((model.readings[_kind(method)] for model in models if _kind(method) in model.readings), None)
        if said and examples is not None:
            over, threshold = str(said.get("over", "latents")), said.get("threshold")
            yield DimensionSearch(method, over, threshold=threshold, examples=examples)  # type: ignore[arg-type]


def _record(source: Path, store: Store, search: DimensionSearch, models: list[Model]) -> Iterator[str]:
    kind = _kind(search.method)
    mine = sorted((model for model in models if kind in model.readings), key=lambda model: model.started)
    name, measure = search_name(mine[0].experiment, search), _measure(kind, search.examples)
    ids, options = tuple(model.experiment.id for model in mine), {"search": plain_search(search)}
    write_record(store.home, Record(name, experiments=ids, measures=(measure.file,), options=options))
    yield f"study {name}: {len(mine)} models"
    pages = RunFolder(page_folder(store.root, name))
    for path in sorted([*source.glob(f"{search.method}.*"), *source.glob(f"figures/{search.method}-*")]):
        pages.write(path.relative_to(source).as_posix(), path.read_bytes())
        yield f"{path} copied to {pages.path}"


def _kind(method: str) -> str:
    return METHODS[method].criterion if method in METHODS else "elbow"


def _measure(kind: str, examples: int) -> Measure:
    return ElbowPoint(examples) if kind == "elbow" else FondueReading(kind, examples)


def _json(path: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return found
