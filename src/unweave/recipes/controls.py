"""Controls: what a judge must refuse, and the judgement of a reproduction beside them."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from unweave.pages.outcome import Outcome
from unweave.recipes.reproduction import Control, Judge, Reproduction
from unweave.studies.measures.measure import Measure
from unweave.studies.results import Results
from unweave.studies.store import Store
from unweave.studies.train_and_measure import loaded, take_measures
from unweave.studies.verdicts import Checked, Comparison, at_size, with_controls
from unweave.training.alone import Alone
from unweave.training.experiment import Experiment
from unweave.training.results import claim, keep_snapshot, weights_file

if TYPE_CHECKING:
    import polars as pl

N_DRAWS = 5
"""Of what is left to chance: that three of five agree by chance at 5 % happens once in nine hundred."""

Alter = Callable[[Results, np.random.Generator], Results]
Invent = Callable[[Experiment, Measure], Mapping[str, Any] | None]


def judged(one: Reproduction, results: Results, size: str) -> Outcome:
    """What a reproduction has come to: every claim beside its controls, and no more said than its size allows."""
    outcome = one.judge(results, size)
    checked = checks(one, results, size) if outcome.comparisons else {}
    compared = (with_controls(claim, checked.get(claim.what, ())) for claim in outcome.comparisons)
    told = tuple(f"Control, {control.name}: {control.sentence}" for control in one.controls)
    return replace(
        outcome,
        comparisons=tuple(at_size(claim, size) for claim in compared),
        notes=(*outcome.notes, *told),
    )


def checks(one: Reproduction, results: Results, size: str) -> dict[str, list[Checked]]:
    """By claim: what its controls came to."""
    found: dict[str, list[Checked]] = {}
    for control in one.controls:
        drawn = [_by_claim(control.judge(results, size, draw).comparisons, control) for draw in range(control.draws)]
        for what, first in drawn[0].items():
            agreed = sum(what in draw and draw[what].verdict == "agrees" for draw in drawn)
            told = Checked(control.name, first.ours, first.interval, agreed, control.draws)
            found.setdefault(what, []).append(told)
    return found


def _by_claim(comparisons: Iterable[Comparison], control: Control) -> dict[str, Comparison]:
    return {one.what: one for one in comparisons if re.search(control.about, one.what)}


def altered(judge: Judge, name: str, sentence: str, alter: Alter, *, draws: int = N_DRAWS, about: str = "") -> Control:
    """The same judge on altered results."""

    def judged(results: Results, size: str, draw: int) -> Outcome:
        return judge(alter(results, np.random.default_rng(draw)), size)

    return Control(name, sentence, judged, draws, about)


def shuffled(judge: Judge, sentence: str, columns: Sequence[str], *, about: str = "") -> Control:
    """All numbers of these columns of the table thrown together and dealt to the runs at random."""

    def deal(results: Results, generator: np.random.Generator) -> Results:
        kept = [name for name in columns if name in results.table.columns]
        values = results.table.select(kept).to_numpy().astype(np.float64)
        dealt = generator.permutation(values.reshape(-1)).reshape(values.shape)
        return with_columns(results, dict(zip(kept, dealt.T)))

    return altered(judge, "shuffled", sentence, deal, about=about)


def apart(judge: Judge, sentence: str, columns: Sequence[str], *, about: str = "") -> Control:
    """Each of these columns dealt to other runs by itself: every column keeps its values, none goes with another."""

    def deal(results: Results, generator: np.random.Generator) -> Results:
        kept = [name for name in columns if name in results.table.columns]
        return with_columns(results, {name: generator.permutation(_numbers(results.table, name)) for name in kept})

    return altered(judge, "shuffled", sentence, deal, about=about)


def dealt(judge: Judge, sentence: str, *, about: str = "") -> Control:
    """What was measured of a run is given to another one, whatever its setting."""

    def deal(results: Results, generator: np.random.Generator) -> Results:
        order = generator.permutation(len(results.experiments))
        partner = dict(zip(results.experiments, (results.experiments[place] for place in order)))
        return Invented.of(results, lambda experiment, measure: results.found(partner[experiment], measure))

    return altered(judge, "shuffled", sentence, deal, about=about)


def invented(
    judge: Judge,
    name: str,
    sentence: str,
    invent: Callable[[Results, np.random.Generator], Invent],
    *,
    draws: int = N_DRAWS,
    about: str = "",
) -> Control:
    """The same judge on measures that were made up."""

    def made(results: Results, generator: np.random.Generator) -> Results:
        return Invented.of(results, invent(results, generator))

    return altered(judge, name, sentence, made, draws=draws, about=about)


def types_dealt(judge: Judge, *, about: str = "") -> Control:
    """Types given to the latents of every run at random, as many of each as it has."""

    def invent(results: Results, generator: np.random.Generator) -> Invent:
        def found(experiment: Experiment, measure: Measure) -> Mapping[str, Any] | None:
            given = results.found(experiment, measure)
            if given is None or "types" not in given:
                return given
            return {**given, "types": [str(kind) for kind in generator.permutation(given["types"])]}

        return found

    sentence = "types are given to the latents of every model at random, as many of each as it has."
    return invented(judge, "random types", sentence, invent, about=about)


def before_training(judge: Judge, *, about: str = "") -> Control:
    """The same networks before their first step, measured and judged the same way."""
    sentence = "the same networks with the weights they began with, measured and judged the same way."
    return Control("untrained", sentence, lambda results, size, draw: judge(untrained(results), size), 1, about)


def untrained(results: Results) -> Results:
    """The runs of a study before their first step, kept and measured in a store of their own inside the store."""
    store = Store(results.store.home / "controls" / "untrained").prepare()
    for experiment in results.experiments:
        folder = store.folder(experiment.id)
        if not folder.has("model.safetensors"):
            _keep_untrained(experiment, store)
        take_measures(results.study.measures, experiment.id, store)
    return Results(results.study, store, results.experiments)


def _keep_untrained(experiment: Experiment, store: Store) -> None:
    folder = store.folder(experiment.id)
    here = replace(experiment, plan=replace(experiment.plan, device="cpu", precision="fp32"))
    engine = Alone(here, loaded(experiment.world))
    with folder.locked():
        claim(folder, experiment)
        environment = folder.read_json("environment.json")
        folder.write_json("environment.json", environment | {"weights": "as initialised: a control, never trained"})
        for step in experiment.snapshots:
            keep_snapshot(folder, engine, 0, step)
        folder.write("model.safetensors", weights_file(engine.weights(0), engine.form))


@dataclass(frozen=True)
class Invented(Results):
    """Results whose measures are made up."""

    invent: Invent = lambda experiment, measure: None

    @classmethod
    def of(cls, results: Results, invent: Invent) -> "Invented":
        """These results, with other measures."""
        return cls(results.study, results.store, results.experiments, invent)

    def found(self, experiment: Experiment, measure: Measure) -> Mapping[str, Any] | None:
        """What was made up."""
        return self.invent(experiment, measure)


def with_columns(results: Results, columns: Mapping[str, Any]) -> Results:
    """The results with some columns of their table replaced."""
    import polars as pl

    made = Results(results.study, results.store, results.experiments)
    series = [pl.Series(name, values) for name, values in columns.items()]
    made.__dict__["table"] = results.table.with_columns(series)
    return made


def _numbers(table: "pl.DataFrame", name: str) -> np.ndarray:
    return np.array(table[name].to_list(), dtype=np.float64)
