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
from unweave.recipes.bonheme2023.layers import layer_map
from unweave.recipes.bonheme2023.results import SOURCE, Measured, chosen, finished, measured, notes
from unweave.recipes.bonheme2023.settings import EXTENTS, Setting, settings_study
from unweave.recipes.bonheme2023.similarity import EARLY, HIGH, size_notes
from unweave.recipes.extent import check_size
from unweave.recipes.reproduction import Reproduction
from unweave.studies.measures.classifier import ClassifierSimilarity
from unweave.studies.results import Results
from unweave.studies.study import Study
from unweave.studies.verdicts import Comparison, compare_difference, compare_trend

TITLE = "Classifiers, all snapshots, and convergence"
CLASSIFIED = tuple(Setting(world, BetaVAE(1.0)) for world in ("cars3d", "dsprites", "smallnorb"))
WEAK, STRONG = (Setting("dsprites", DIPVAEII(strength)) for strength in (1.0, 20.0))


def study(size: str) -> Study:
    """β-VAEs for the classifiers, the three settings of Figure 7.2, and two strengths."""
    check_size(size)
    settings = {one.at(size): None for one in (*CLASSIFIED, *EARLY, WEAK, STRONG)}
    return settings_study("b-fig-C", tuple(settings), (classifier_measure(size),), size)


def classifier_measure(size: str) -> ClassifierSimilarity:
    """A classifier is trained for a tenth of a VAE's steps: it converges much sooner."""
    extent = EXTENTS[size]
    steps = extent.steps // (2 if size == "smoke" else 10)
    return ClassifierSimilarity(extent.n_samples, steps, "beta_vae")


def judge(results: Results, size: str) -> Outcome:
    """C.1, then C.2 to C.4, then C.5."""
    classified = [row for row in measured(results, classifier_measure(size)) if row.found]
    comparisons = [*_classifiers(classified)]
    figures: dict[str, Any] = {}
    for world in dict.fromkeys(row.experiment.world.name for row in classified):
        figures[f"C.1: β-VAE and classifier, {world}"] = _map(
            [r for r in classified if r.experiment.world.name == world]
        )
    for setting in dict.fromkeys(one.at(size) for one in EARLY):
        similar = _over_training(setting, results, size)
        comparisons += [*_learned(setting, similar)]
        figures[f"{setting.name} over training"] = line_bands(
            _lines(similar), "share of training", "CKA with the end", even=False
        )
    comparisons += [*_converged(results, size)]
    extent = EXTENTS[size]
    words = "Classifiers learn every factor of their world; the source does not say which labels its own learned."
    return Outcome(
        tuple(comparisons), figures, notes=notes(size, *size_notes(extent.steps, extent.n_samples, size), words)
    )


Similar = dict[str, dict[float, dict[int, float]]]
"""Of encoder and decoder: similarity to the end of training by share of training and seed."""


def _classifiers(rows: Sequence[Measured]) -> Iterator[Comparison]:
    """C.1: a classifier's layers are those of an encoder, but not its codes."""
    for world in dict.fromkeys(row.experiment.world.name for row in rows):
        mine = chosen(rows, world=world)
        layers = {row.seed: _same(row, "encoder") for row in mine}
        codes = {row.seed: _codes(row) for row in mine}
        high = dict.fromkeys(layers, HIGH)
        yield compare_difference(f"C.1, {world}: encoder and classifier, less {HIGH:g}", layers, high, 1)
        yield compare_difference(f"C.1, {world}: encoder less codes, with the classifier", layers, codes, 1)


def _learned(setting: Setting, similar: Similar) -> Iterator[Comparison]:
    """C.2 to C.4: first the encoder, then the decoder."""
    points = [(share, value, seed) for share, one in similar["decoder"].items() for seed, value in one.items()]
    x, y, seeds = zip(*points)
    yield compare_trend(f"{setting.name}: the decoder's similarity to its end over training", x, y, 1, seeds=seeds)
    first = min(similar["encoder"])
    encoder, decoder = similar["encoder"][first], similar["decoder"][first]
    yield compare_difference(f"{setting.name}: encoder less decoder, first snapshot", encoder, decoder, 1)


def _converged(results: Results, size: str) -> Iterator[Comparison]:
    """C.5: less regularised models reach lower losses."""
    losses = []
    for setting in (WEAK, STRONG):
        runs = finished(results, setting.experiments(size))
        losses.append({run.experiment.seed: float(run.history.column("loss")[-10:].mean()) for run in runs})
    yield compare_difference("C.5: final loss, weakly less strongly regularised DIP-VAE-II", losses[0], losses[1], -1)


def _over_training(setting: Setting, results: Results, size: str) -> Similar:
    end = setting.group(results, size)
    similar: Similar = {"encoder": {}, "decoder": {}}
    for share in setting.shares(size):
        found = layer_map(setting.group(results, size, share), end)
        similar["encoder"][share] = found.diagonal(found.encoder)
        similar["decoder"][share] = found.diagonal(found.decoder)
    return similar


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


def _codes(row: Measured) -> float:
    """Mean similarity of mean, variance and sampled codes with the classifier's layers."""
    places = [row.found["rows"].index(name) for name in ("mean", "variance", "sampled")]
    columns = [place for place, name in enumerate(row.found["columns"]) if name.startswith("classifier")]
    return float(np.mean([row.found["cka"][i][j] for i in places for j in columns]))


REPRODUCTION = Reproduction("b-fig-C", TITLE, f"{SOURCE}, Appendix C", study, judge)
