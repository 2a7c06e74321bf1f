"""Looking inside models in one call, for notebooks: what ``uw.diagnose``, ``uw.dimension`` and their kin do."""

import contextlib
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from unweave.config import from_plain
from unweave.data import WORLDS, World
from unweave.evaluation.diagnosis import diagnose as diagnose_codes
from unweave.evaluation.findings import expected_of, findings
from unweave.evaluation.points import Points, points_of_file, points_of_run, points_of_world
from unweave.evaluation.similarity import Similarity, compare_runs
from unweave.metrics.dimension.intrinsic import Intrinsic
from unweave.metrics.dimension.intrinsic import intrinsic as intrinsic_of
from unweave.metrics.estimators.arrays import as_codes
from unweave.recipes import dimension_micro
from unweave.recipes.diagnose import Diagnosed, diagnose_file, diagnose_run
from unweave.recipes.dimension import Dimension, bars
from unweave.recipes.dimension import dimension as search_dimension
from unweave.recipes.dimension_search import DimensionSearch
from unweave.shapes import Tensor
from unweave.training.experiment import TABLES, experiment_from, experiment_to
from unweave.training.loop import Manner
from unweave.training.run import Run


def diagnose(what: Any, variance: Any = None, *, n_factors: int | None = None, **options: Any) -> Diagnosed:
    """Which latents a model uses, and how: of a run, a run's folder, an npz of posteriors, or arrays from anywhere.

    ``uw.diagnose(run)`` takes the options of :func:`unweave.recipes.diagnose.diagnose_run`, ``uw.diagnose(mean,
    variance)`` those of :func:`unweave.evaluation.diagnosis.diagnose`. The result has ``findings``, ``summary()``,
    ``diagnosis`` with every latent, and ``page()``.
    """
    if isinstance(what, Run):
        return diagnose_run(what, n_factors=n_factors, **options)
    if isinstance(what, str | Path):
        if Path(what).is_dir():
            return diagnose_run(Run(what), n_factors=n_factors, **options)
        return diagnose_file(what, n_factors=n_factors, **options)
    found = diagnose_codes(what, variance, **options)
    expected = expected_of(None, n_factors)
    return Diagnosed("codes", found, findings(found, expected), expected)


def dimension(
    world: str | World | dict[str, Any], folder: str | Path | None = None, *, quiet: bool = False, **settings: Any
) -> Dimension:
    """How many latents a world needs: ``uw.dimension("micro", start=20.0).answer``.

    Settings are the fields of :class:`DimensionSearch` and of :class:`Experiment`; the micro-world has its own where
    nothing is said. Every model that is tried is a run of the store (``folder``), and the same call again goes on.
    """
    searched = {field.name for field in fields(DimensionSearch)}
    told = {name: value for name, value in settings.items() if name in searched}
    model = {name: value for name, value in settings.items() if name not in searched}
    if world == "micro":
        search = replace(dimension_micro.search(), **told)
        base = experiment_to(dimension_micro.experiment())
    else:
        search, base = DimensionSearch(**told), {}
    experiment = experiment_from(base | {"world": world} | model)
    with contextlib.nullcontext() if quiet else bars() as watch:
        how = Manner(() if watch is None else (watch,))
        return search_dimension(experiment, search, folder, how=how)


def compare(*runs: Run | str | Path, **options: Any) -> Similarity:
    """Layer-by-layer similarity of runs or their folders; options as in :func:`compare_runs`."""
    return compare_runs([run if isinstance(run, Run) else Run(run) for run in runs], **options)


def intrinsic(what: Any, **options: Any) -> Intrinsic | dict[str, Intrinsic]:
    """In how many dimensions points lie: those of an array, of an npy or npz file, or of a world by name.

    For a run, a dictionary with the answers for its data, its mean codes and its sampled codes. Options as in
    :func:`unweave.metrics.dimension.intrinsic.intrinsic`.
    """
    found = {points.name: intrinsic_of(points.table, **options) for points in _points(what)}
    return found if isinstance(what, Run) or _is_folder(what) else next(iter(found.values()))


def _points(what: Any) -> list[Points]:
    if isinstance(what, Run) or _is_folder(what):
        return points_of_run(what if isinstance(what, Run) else Run(what))
    if isinstance(what, World):
        return [points_of_world(what)]
    if isinstance(what, str | Path):
        if str(what) not in WORLDS:
            return [points_of_file(what)]
        named: World = from_plain(World, {"name": str(what)}, TABLES, "world")
        return [points_of_world(named)]
    table = what if isinstance(what, Tensor) else np.asarray(what)
    return [Points("points", as_codes(table.reshape(len(table), -1) if table.ndim > 2 else table, "points"))]


def _is_folder(what: Any) -> bool:
    return isinstance(what, str | Path) and str(what) not in WORLDS and Path(what).is_dir()
