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
from unweave.studies.verdicts import Checked, Comparison, at_size, with_controls, with_seeds
from unweave.training.alone import Alone
from unweave.training.experiment import Experiment
from unweave.training.results import claim, keep_snapshot, weights_file

if TYPE_CHECKING:
    import polars as pl

N_DRAWS = 5
"""Of what is left to chance: that three of five agree by chance at 5 % happens once in nine hundred."""

CONTROLS, OTHER_SEEDS = "controls", 1_000_000
"""Where a store keeps untrained networks, and how far their second seeds are from the first."""

Alter = Callable[[Results, np.random.Generator], Results]
Change = Callable[[Mapping[str, Any], np.random.Generator], Mapping[str, Any]]
Invent = Callable[[Experiment, Measure], Mapping[str, Any] | None]


def judged(one: Reproduction, results: Results, size: str) -> Outcome:
    """What a reproduction has come to: every claim beside its controls, and no more said than its size allows."""
    outcome = one.judge(results, size)
    checked = checks(one, results, size) if outcome.comparisons else {}
    compared = (with_controls(claim, checked.get(claim.what, ())) for claim in outcome.comparisons)
    if results.experiments:
        n_seeds = _n_seeds(results)
        compared = (with_seeds(claim, n_seeds) for claim in compared)
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
        for what, first in {what: one for draw in reversed(drawn) for what, one in draw.items()}.items():
            agreed, differed = (
                sum(what in draw and draw[what].verdict == verdict for draw in drawn)
                for verdict in ("agrees", "differs")
            )
            told = Checked(control.name, first.ours, first.interval, agreed, control.draws, differed)
            found.setdefault(what, []).append(told)
    return found


def _n_seeds(results: Results) -> int:
    """Seeds of the models that are there."""
    return results.table["seed"].n_unique() if "seed" in results.table.columns else 0


def _by_claim(comparisons: Iterable[Comparison], control: Control) -> dict[str, Comparison]:
    return {one.what: one for one in comparisons if re.search(control.about, one.what)}


def altered(judge: Judge, name: str, sentence: str, alter: Alter, *, draws: int = N_DRAWS, about: str = "") -> Control:
    """The same judge on altered results."""

    def judged(results: Results, size: str, draw: int) -> Outcome:
        return judge(alter(results, np.random.default_rng(draw)), size)

    return Control(name, sentence, judged, draws, about)


def shuffled(judge: Judge, sentence: str, *groups: Sequence[str], about: str = "") -> Control:
    """All numbers of the columns of a group thrown together and dealt to the runs at random, group by group."""

    def deal(results: Results, generator: np.random.Generator) -> Results:
        columns: dict[str, np.ndarray] = {}
        for group in groups:
            kept = [name for name in group if name in results.table.columns]
            values = np.array([_numbers(results.table, name) for name in kept])
            columns |= dict(zip(kept, generator.permutation(values.reshape(-1)).reshape(values.shape)))
        return with_columns(results, columns)

    return altered(judge, "shuffled", sentence, deal, about=about)


def apart(judge: Judge, sentence: str, columns: Sequence[str], *, about: str = "") -> Control:
    """Each of these columns dealt to other runs by itself: every column keeps its values, none goes with another."""
    return shuffled(judge, sentence, *((name,) for name in columns), about=about)


def dealt(judge: Judge, sentence: str, *, about: str = "") -> Control:
    """What was measured of a run is given to another one, whatever its setting."""

    def deal(results: Results, generator: np.random.Generator) -> Results:
        order = generator.permutation(len(results.experiments))
        partner = dict(zip(results.experiments, (results.experiments[place] for place in order)))
        return Invented.of(results, lambda experiment, measure: results.found(partner[experiment], measure))

    return altered(judge, "shuffled", sentence, deal, about=about)


def changed(
    judge: Judge, name: str, sentence: str, change: Change, *, draws: int = N_DRAWS, about: str = ""
) -> Control:
    """The same judge, after something was changed in what was measured of every run."""

    def alter(results: Results, generator: np.random.Generator) -> Results:
        def found(experiment: Experiment, measure: Measure) -> Mapping[str, Any] | None:
            given = results.found(experiment, measure)
            return given and change(given, generator)

        return Invented.of(results, found)

    return altered(judge, name, sentence, alter, draws=draws, about=about)


def types_dealt(judge: Judge, *, about: str = "") -> Control:
    """Types given to the latents of every run at random, as many of each as it has."""

    def change(found: Mapping[str, Any], generator: np.random.Generator) -> Mapping[str, Any]:
        return {**found, "types": [str(kind) for kind in generator.permutation(found["types"])]}

    sentence = "types are given to the latents of every model at random, as many of each as it has."
    return changed(judge, "random types", sentence, change, about=about)


def swapped(judge: Judge, *, about: str = "") -> Control:
    """Mean codes in the place of sampled ones, and sampled ones in the place of mean ones."""

    def change(found: Mapping[str, Any], generator: np.random.Generator) -> Mapping[str, Any]:
        return {**found, "mean": found["sampled"], "sampled": found["mean"]}

    sentence = "mean codes in the place of sampled ones, and the other way round."
    return changed(judge, "swapped", sentence, change, draws=1, about=about)


def before_training(judge: Judge, *, again: bool = True, about: str = "") -> Control:
    """The same networks before their first step, measured and judged the same way; ``again`` as for untrained."""
    own = ", with seeds of their own" if again else ""
    sentence = f"the same networks before their first step{own}, measured and judged the same way."

    def judged(results: Results, size: str, draw: int) -> Outcome:
        return judge(untrained(results, again=again), size)

    return Control("untrained", sentence, judged, 1, about)


def untrained(results: Results, *, again: bool = False) -> Results:
    """The runs of a study before their first step, kept and measured in a store of their own inside the store.

    ``again`` draws their weights by other seeds: a second sample, for what is compared with the first.
    """
    root = results.store.root
    home = root.parent.parent if root.parent.name == CONTROLS else results.store.home
    store = Store(home / CONTROLS / ("untrained-again" if again else "untrained")).prepare()
    for experiment in results.experiments:
        if not store.folder(experiment.id).has("model.safetensors"):
            _keep_untrained(experiment, store, experiment.seed + OTHER_SEEDS * again)
        take_measures(results.study.measures, experiment.id, store)
    return Results(results.study, store, results.experiments)


def _keep_untrained(experiment: Experiment, store: Store, seed: int) -> None:
    folder = store.folder(experiment.id)
    here = replace(experiment, seed=seed, plan=replace(experiment.plan, device="cpu", precision="fp32"))
    engine = Alone(here, loaded(experiment.world))
    with folder.locked():
        claim(folder, experiment)
        environment = folder.read_json("environment.json")
        words = f"as initialised by seed {seed}: a control, never trained"
        folder.write_json("environment.json", environment | {"weights": words})
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
