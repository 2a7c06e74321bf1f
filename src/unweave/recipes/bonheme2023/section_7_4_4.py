"""b-section-7.4.4: models whose mean codes are alike have as many active latents.

Bonheme (2023), §7.4.4.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from unweave.pages.outcome import Outcome
from unweave.plots.scatter import scatter
from unweave.recipes.bonheme2023.layers import CKA, layer_map
from unweave.recipes.bonheme2023.results import SOURCE, notes
from unweave.recipes.bonheme2023.settings import EXTENTS, Setting, settings_study
from unweave.recipes.bonheme2023.similarity import beta_vae, dip_vae
from unweave.recipes.controls import before_training, changed
from unweave.recipes.extent import at_size
from unweave.recipes.reproduction import Reproduction
from unweave.studies.measures.by_type import ByType
from unweave.studies.results import Results
from unweave.studies.study import Study
from unweave.studies.verdicts import LEVEL, Comparison, Verdict

if TYPE_CHECKING:
    import matplotlib.figure

TITLE = "Models whose mean codes are alike have as many active latents"
SETTINGS = (
    *(beta_vae("dsprites", beta) for beta in (1.0, 8.0)),
    *(dip_vae("dsprites", strength) for strength in (1.0, 20.0)),
)
N_DRAWS = 1_999
RULE = (
    "Agrees when Spearman's correlation over pairs of models is negative with p ≤ 0.05, differs when it is positive"
    " with p ≤ 0.05, by a test that exchanges the models' numbers of active latents (Mantel's): pairs share models."
)


@dataclass(frozen=True)
class Pairs:
    """All pairs of models: similarity of their mean codes; and the number of active latents of every model."""

    first: np.ndarray
    second: np.ndarray
    cka: np.ndarray
    active: np.ndarray

    def correlation(self, active: np.ndarray) -> float:
        """Of the similarity with the difference in numbers of active latents; 0 where all are equal."""
        from scipy.stats import rankdata

        apart = rankdata(np.abs(active[self.first] - active[self.second]))
        if np.ptp(apart) == 0:
            return 0.0
        return float(np.corrcoef(rankdata(self.cka), apart)[0, 1])


def study(size: str) -> Study:
    """β-VAE and DIP-VAE-II, weak and strong, with the types of their latents."""
    return settings_study("b-section-7.4.4", SETTINGS, (type_measure(size),), size)


def judge(results: Results, size: str) -> Outcome:
    """Every pair of models: how alike their mean codes are, and by how many active latents they differ."""
    pairs = _pairs(results, size)
    words = (
        "All pairs of models of β-VAE (β 1 and 8) and DIP-VAE-II (λ 1 and 20), five seeds each. The source shows that"
        " codes of a CKA of 1 have as many active latents; what is judged is that likeness goes with it below 1.",
        "Theorem 7.4.2, from which it follows there, does not hold as stated: centring takes away the constant columns"
        " that passive latents are, so that variance codes with a CKA of 1 may have other numbers of active latents"
        " (tests/theory/test_b_theorems.py has two).",
    )
    figures = {"Similarity and numbers of active latents": _figure(pairs)}
    return Outcome((_mantel(pairs),), figures, notes=notes(size, *words))


def type_measure(size: str) -> ByType:
    """On as many examples as layers are compared on."""
    return ByType(at_size(size, EXTENTS).n_samples)


def _pairs(results: Results, size: str) -> Pairs:
    settings: Sequence[Setting] = tuple(dict.fromkeys(one.at(size) for one in SETTINGS))
    groups = [setting.group(results, size) for setting in settings]
    active: list[float] = []
    for setting, group in zip(settings, groups):
        experiments = {one.seed: one for one in setting.experiments(size)}
        found = (results.found(experiments[seed], type_measure(size)) for seed in group.seeds)
        active += [float("nan") if one is None else float(one["n_active"]) for one in found]
    starts = np.cumsum([0, *(len(group.seeds) for group in groups)])
    rows: list[tuple[int, int, float]] = []
    for i, j in itertools.combinations_with_replacement(range(len(groups)), 2):
        alike = layer_map(groups[i], groups[j])
        place = alike.names.index("mean")
        for a, b in itertools.product(range(len(groups[i].seeds)), range(len(groups[j].seeds))):
            if i != j or a < b:
                rows.append((int(starts[i]) + a, int(starts[j]) + b, float(alike.scores[CKA][a, b, place, place])))
    table = np.array(rows)
    return Pairs(table[:, 0].astype(int), table[:, 1].astype(int), table[:, 2], np.array(active))


def _mantel(pairs: Pairs) -> Comparison:
    observed, generator = pairs.correlation(pairs.active), np.random.default_rng(0)
    drawn = np.array([pairs.correlation(generator.permutation(pairs.active)) for _ in range(N_DRAWS)])
    smaller, larger = ((int(kept.sum()) + 1) / (N_DRAWS + 1) for kept in (drawn <= observed, drawn >= observed))
    verdict: Verdict = "agrees" if smaller <= LEVEL else "differs" if larger <= LEVEL else "cannot tell"
    what = "difference in numbers of active latents against the CKA of mean codes, over pairs of models"
    note = f"p = {smaller:.2g}, {len(pairs.active)} models"
    return Comparison(what, "falls", observed, None, len(pairs.cka), RULE, verdict, note, "order")


def _figure(pairs: Pairs) -> "matplotlib.figure.Figure":
    apart = np.abs(pairs.active[pairs.first] - pairs.active[pairs.second])
    names = [f"models {a} and {b}" for a, b in zip(pairs.first, pairs.second)]
    x, y = "CKA of mean codes", "difference in active latents"
    return scatter({"pairs of models": (pairs.cka, apart)}, "", x, y, names={"pairs of models": names})


def _any_number(found: Mapping[str, Any], generator: np.random.Generator) -> Mapping[str, Any]:
    return {**found, "n_active": int(generator.integers(0, len(found["types"]) + 1))}


CONTROLS = (
    before_training(judge),
    changed(judge, "random numbers", "numbers of active latents drawn at random.", _any_number),
)

REPRODUCTION = Reproduction("b-section-7.4.4", TITLE, f"{SOURCE}, Section 7.4.4", study, judge, CONTROLS)
