"""b-section-7.4.4: models whose mean codes are alike have as many active latents.

Bonheme (2023), §7.4.4.
"""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from unweave.pages.outcome import Outcome
from unweave.plots.scatter import scatter
from unweave.recipes.bonheme2023.layers import CKA, Wanted, layer_map
from unweave.recipes.bonheme2023.results import SOURCE, notes
from unweave.recipes.bonheme2023.settings import EXTENTS, Setting, settings_study
from unweave.recipes.bonheme2023.similarity import beta_vae, dip_vae
from unweave.recipes.controls import changed, untrained
from unweave.recipes.extent import at_size
from unweave.recipes.reproduction import Control, Reproduction
from unweave.studies.measures.by_type import ByType
from unweave.studies.measures.layer_similarity import AGAIN, END
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
    maps = tuple(one for end in (END, AGAIN) for one in _maps(size, end).values())
    return settings_study("b-section-7.4.4", SETTINGS, (type_measure(size),), size, maps)


def judge(results: Results, size: str) -> Outcome:
    """Every pair of models: how alike their mean codes are, and by how many active latents they differ."""
    return judge_with(results, results, size)


def judge_with(results: Results, typed: Results, size: str, end: str = END) -> Outcome:
    """The same, with types of latents from other results, and ``end`` in the place of trained models."""
    pairs = _pairs(results, typed, size, end)
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


def _maps(size: str, end: str) -> dict[tuple[int, int], Wanted]:
    """The maps of all pairs of settings, by their places."""
    groups = [setting.experiments(size) for setting in _settings(size)]
    n = EXTENTS[size].n_samples
    places = itertools.combinations_with_replacement(range(len(groups)), 2)
    return {(i, j): Wanted(groups[i], groups[j], (end, end), n) for i, j in places}


def _settings(size: str) -> tuple[Setting, ...]:
    return tuple(dict.fromkeys(one.at(size) for one in SETTINGS))


def _pairs(results: Results, typed: Results, size: str, end: str) -> Pairs:
    asked = results.study.experiments
    groups = [tuple(one for one in setting.experiments(size) if one in asked) for setting in _settings(size)]
    found = (typed.found(one, type_measure(size)) for group in groups for one in group)
    active = [float("nan") if one is None else float(one["n_active"]) for one in found]
    starts = np.cumsum([0, *map(len, groups)])
    rows: list[tuple[int, int, float]] = []
    for (i, j), wanted in _maps(size, end).items():
        alike = layer_map(wanted, results, "", "")
        if alike is None:
            raise ValueError("models of §7.4.4, or how alike they are, are missing; see `unweave study status`")
        place = alike.names.index("mean")
        for a, b in itertools.product(range(len(groups[i])), range(len(groups[j]))):
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
    if "types" not in found:
        return found  # how alike models are stays as it is
    return {**found, "n_active": int(generator.integers(0, len(found["types"]) + 1))}


CONTROLS = (
    Control(
        "untrained",
        "the same networks before their first step, with seeds of their own, measured and judged the same way.",
        lambda results, size, draw: judge_with(results, untrained(results, again=True), size, AGAIN),
    ),
    changed(judge, "random numbers", "numbers of active latents drawn at random.", _any_number),
)

REPRODUCTION = Reproduction("b-section-7.4.4", TITLE, f"{SOURCE}, Section 7.4.4", study, judge, CONTROLS)
