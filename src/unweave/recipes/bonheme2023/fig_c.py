"""b-fig-C: classifiers, snapshots over all of training, and convergence.

Bonheme (2023), Appendix C, Figures C.1 to C.5.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from unweave.models.objectives import DIPVAEII, BetaVAE
from unweave.pages.outcome import Outcome
from unweave.plots.curves import line_bands
from unweave.plots.matrices import heat_map
from unweave.recipes.bonheme2023.layers import Wanted, layer_map
from unweave.recipes.bonheme2023.results import SOURCE, Measured, chosen, finished, measured, notes
from unweave.recipes.bonheme2023.settings import EXTENTS, N_SEEDS, Setting, settings_study
from unweave.recipes.bonheme2023.similarity import EARLY, Pair, learned, size_notes
from unweave.recipes.controls import untrained
from unweave.recipes.extent import check_size
from unweave.recipes.reproduction import Control, Reproduction
from unweave.studies.measures.classifier import ClassifierSimilarity
from unweave.studies.measures.layer_similarity import AGAIN, END
from unweave.studies.results import Results
from unweave.studies.study import Study
from unweave.studies.verdicts import Comparison, compare_difference, compare_trend

TITLE = "Classifiers, all snapshots, and convergence"
CLASSIFIED = tuple(Setting(world, BetaVAE(1.0)) for world in ("cars3d", "dsprites", "smallnorb"))
SAME_TIME = 0.1
"""Shares of training that are no farther apart count as the same time."""
WEAK, STRONG = (Setting("dsprites", DIPVAEII(strength)) for strength in (1.0, 20.0))


def study(size: str) -> Study:
    """β-VAEs for the classifiers, the three settings of Figure 7.2, and two strengths."""
    check_size(size)
    settings = {one.at(size): None for one in (*CLASSIFIED, *EARLY, WEAK, STRONG)}
    maps = [one for setting in EARLY for end in (END, AGAIN) for one in _maps(setting, size, end)]
    return settings_study("b-fig-C", tuple(settings), (classifier_measure(size),), size, tuple(dict.fromkeys(maps)))


def classifier_measure(size: str) -> ClassifierSimilarity:
    """A classifier is trained for a tenth of a VAE's steps: it converges much sooner."""
    extent = EXTENTS[size]
    steps = extent.steps // (2 if size == "smoke" else 10)
    return ClassifierSimilarity(extent.n_samples, steps, "beta_vae")


def judge(results: Results, size: str) -> Outcome:
    """C.1, then C.2 to C.4, then C.5."""
    return judge_with(results, size)


def judge_with(results: Results, size: str, random: np.random.Generator | None = None, end: str = END) -> Outcome:
    """The same; with a generator, the times of convergence are drawn and not read.

    ``end`` stands in the place of trained models.
    """
    shown = results if end == END else untrained(results, again=True)
    classified, first = (
        [row for row in measured(one, classifier_measure(size)) if row.found] for one in (shown, untrained(results))
    )
    comparisons = [*_classifiers(classified, first)]
    figures: dict[str, Any] = {}
    for world in dict.fromkeys(row.experiment.world.name for row in classified):
        figures[f"C.1: β-VAE and classifier, {world}"] = _map(
            [r for r in classified if r.experiment.world.name == world]
        )
    for setting in dict.fromkeys(one.at(size) for one in EARLY):
        similar, ways = _over_training(setting, results, size, end), _ways(setting, results, size, end)
        if similar is None or ways is None:
            continue
        comparisons += [*_learned(setting, similar, ways)]
        figures[f"{setting.name} over training"] = line_bands(
            _lines(similar), "share of training", "CKA with the end", even=False
        )
    comparisons += [*_converged(shown, size, random)]
    extent = EXTENTS[size]
    words = "Classifiers learn every factor of their world; the source does not say which labels its own learned."
    return Outcome(
        tuple(comparisons), figures, notes=notes(size, *size_notes(extent.steps, extent.n_samples, size), words)
    )


Similar = dict[str, dict[float, dict[int, float]]]
"""Of encoder and decoder: similarity to the end of training by share of training and seed."""
Ways = dict[str, dict[int, float]]
"""Of encoder and decoder: share of the way to the end of training, by seed."""


def _classifiers(after: Sequence[Measured], before: Sequence[Measured]) -> Iterator[Comparison]:
    """C.1: what an encoder learns is what a classifier learns, more so than by its first weights."""
    for world in dict.fromkeys(row.experiment.world.name for row in after):
        learned, first = (
            {row.seed: _same(row, "encoder") for row in chosen(one, world=world)} for one in (after, before)
        )
        what = f"C.1, {world}: similarity of encoder and classifier, after less before training the encoder"
        yield compare_difference(what, learned, first, 1)


def _learned(setting: Setting, similar: Similar, ways: Ways) -> Iterator[Comparison]:
    """C.2 to C.4: first the encoder, then the decoder."""
    points = [(share, value, seed) for share, one in similar["decoder"].items() for seed, value in one.items()]
    x, y, seeds = zip(*points)
    yield compare_trend(f"{setting.name}: the decoder's similarity to its end over training", x, y, 1, seeds=seeds)
    what = f"{setting.name}: share of the way to the end at the first snapshot, encoder less decoder"
    yield compare_difference(what, ways["encoder"], ways["decoder"], 1)


def _converged(results: Results, size: str, random: np.random.Generator | None) -> Iterator[Comparison]:
    """C.5: models converge at the same time, however strongly they are regularised."""
    since = []
    for setting in (WEAK, STRONG):
        # networks that were never trained have no history
        runs = [run for run in finished(results, setting.experiments(size)) if run.files.names("history.")]
        since.append(
            {run.experiment.seed: convergence(run.history.column("loss").numpy()) for run in runs}
            if random is None
            else {seed: float(random.random()) for seed in range(N_SEEDS)}
        )
    what = "C.5: share of training after which the loss has converged, weakly less strongly regularised DIP-VAE-II"
    yield compare_difference(what, since[0], since[1], 0, tolerance=SAME_TIME)


def convergence(loss: Sequence[float] | np.ndarray) -> float:
    """The share of training after which the loss stays within a twentieth of all that it falls above its end."""
    course = np.asarray(loss, dtype=np.float64)
    end = float(course[-max(1, len(course) // 10) :].mean())
    above = np.flatnonzero(course > end + 0.05 * max(float(course[0]) - end, 0.0))
    return float((above[-1] + 1) / len(course)) if len(above) else 0.0


def _over_training(setting: Setting, results: Results, size: str, end: str) -> Similar | None:
    similar: Similar = {"encoder": {}, "decoder": {}}
    for place, share in enumerate(setting.shares(size)):
        wanted = Pair(setting, setting, place).maps(size, end)[0]
        found = layer_map(wanted.wanted, results, wanted.left, wanted.right)
        if found is None:
            return None
        similar["encoder"][share] = found.diagonal(found.encoder)
        similar["decoder"][share] = found.diagonal(found.decoder)
    return similar


def _ways(setting: Setting, results: Results, size: str, end: str) -> Ways | None:
    """How much of the way to their end encoder and decoder have gone at the first snapshot."""
    found = learned(Pair(setting, setting, 0).maps(size, end), results)
    if found is None:
        return None
    return {"encoder": found.share(found.after.encoder), "decoder": found.share(found.after.decoder)}


def _maps(setting: Setting, size: str, end: str) -> list[Wanted]:
    pairs = [Pair(setting, setting, place) for place in range(len(setting.shares(size)))]
    return [one.wanted for pair in pairs for one in pair.maps(size, end)]


def _lines(similar: Similar) -> dict[str, dict[float, list[float]]]:
    return {part: {share: list(one.values()) for share, one in line.items()} for part, line in similar.items()}


def _map(rows: Sequence[Measured]) -> Any:
    first = rows[0].found
    mean = np.mean([row.found["cka"] for row in rows], axis=0)
    title = "CKA, mean over seeds"
    return heat_map(mean, first["rows"], first["columns"], title, limits=(0.0, 1.0), splits=((first["n_encoder"],), ()))


def _same(row: Measured, part: str) -> float:
    """Mean similarity of layer n of the encoder with layer n of the classifier."""
    names, columns = row.found["rows"], row.found["columns"]
    pairs = [
        (place, columns.index(name.replace(part, "classifier"))) for place, name in enumerate(names) if part in name
    ]
    return float(np.mean([row.found["cka"][i][j] for i, j in pairs]))


CONTROLS = (
    Control(
        "untrained",
        "the same networks before their first step, with seeds of their own, measured and judged the same way.",
        lambda results, size, draw: judge_with(results, size, end=AGAIN),
        about="^(?!C.5)",
    ),
    Control(
        "random times",
        "times of convergence drawn at random.",
        lambda results, size, draw: judge_with(results, size, np.random.default_rng(draw)),
        about="^C.5",
    ),
)

REPRODUCTION = Reproduction("b-fig-C", TITLE, f"{SOURCE}, Appendix C", study, judge, CONTROLS)
