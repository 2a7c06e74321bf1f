"""What a study has found so far: a table with one row a finished run, and the runs behind it."""

import html
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from unweave.runs.folder import WEIGHTS
from unweave.studies.identity import identity, identity_of_asked
from unweave.studies.measures.measure import Measure, protocol_of
from unweave.studies.store import Store
from unweave.studies.study import Study
from unweave.training.experiment import Experiment
from unweave.training.run import Run
from unweave.words import number_of

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Results:
    """The finished runs of a study."""

    study: Study
    store: Store
    experiments: tuple[Experiment, ...]
    """Resolved, the follow-ups included, in the order they were asked for."""

    @property
    def ids(self) -> tuple[str, ...]:
        """Of all these runs, finished or not."""
        return tuple(experiment.id for experiment in self.experiments)

    @property
    def measures(self) -> tuple[str, ...] | None:
        """The files that the study's measures are kept in: its table has these and nothing else that was measured."""
        return tuple(measure.file for measure in self.study.measures)

    @property
    def protocols(self) -> Mapping[str, Any]:
        """What its measures are taken with, by the names of their files."""
        return {measure.file: protocol_of(measure) for measure in self.study.measures}

    @cached_property
    def table(self) -> "pl.DataFrame":
        """One row a finished run in the order of the study: id, config columns (``objective.beta``), measures."""
        import polars as pl

        return self.store.table(self.ids, measures=self.measures).filter(pl.col("state") == "done")

    @cached_property
    def failed(self) -> "pl.DataFrame":
        """One row a failed run, with its reason in the column ``failure``."""
        import polars as pl

        return self.store.table(self.ids, measures=self.measures).filter(pl.col("state") == "failed")

    def found(self, experiment: Experiment, measure: Measure) -> Mapping[str, Any] | None:
        """What a measure says of an experiment's run, whatever machine trained it; None where it was not taken."""
        run_id = self._by_identity.get(identity_of_asked(experiment))
        if run_id is None:
            return None
        if (run_id, measure.file) not in self._read:
            folder = self.store.folder(run_id)
            self._read[run_id, measure.file] = folder.read_json(measure.file) if folder.has(measure.file) else None
        return self._read[run_id, measure.file]

    def __repr__(self) -> str:
        return f"Results of {self.study.name!r} in {self.store.root}: {self._how_far()}; .table has a row a model"

    def _repr_html_(self) -> str:
        """How far the study came, and its table, for notebooks."""
        title = html.escape(self.study.title or self.study.name)
        return f"<p><b>{title}</b><br>{self._how_far()}</p>{self.table._repr_html_() if len(self.table) else ''}"

    def _how_far(self) -> str:
        return f"{len(self.table):,} of {number_of(len(self.ids), 'model')} done"

    @cached_property
    def _by_identity(self) -> Mapping[str, str]:
        return {identity(experiment): experiment.id for experiment in self.experiments}

    @cached_property
    def _read(self) -> dict[tuple[str, str], Mapping[str, Any] | None]:
        return {}

    def has_weights(self, run_id: str) -> bool:
        """Whether a run's model is here; a portion brings its measures alone."""
        return self.store.folder(run_id).has(WEIGHTS)

    def run(self, run_id: str) -> Run:
        """A run that can be asked: its model, its codes, its history."""
        return self.store.run(run_id)
