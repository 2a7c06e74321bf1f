"""b-fig-6.5: the stronger the regulariser, the more latents are passive or mixed.

Bonheme (2023), §6.4.1, Figure 6.5.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from unweave.pages.outcome import Outcome
from unweave.plots.curves import stacked_types
from unweave.recipes.bonheme2023.latent_types import counts_by_strength, types_study
from unweave.recipes.bonheme2023.panels import Panel, grid_notes, n_samples, shown
from unweave.recipes.bonheme2023.results import SOURCE, Measured, notes
from unweave.recipes.controls import dealt
from unweave.recipes.reproduction import Reproduction
from unweave.studies.measures.by_type import ByType
from unweave.studies.results import Results
from unweave.studies.study import Study
from unweave.studies.verdicts import Comparison, compare_trend

TITLE = "Types of latents against the strength"
ALL = tuple(Panel("dsprites", name) for name in ("beta_vae", "beta_tcvae", "factor_vae", "dip_vae_i", "dip_vae_ii"))
"""Figure 6.5 names neither its objectives nor its world: every objective but AnnealedVAE (Appendix B.1), dSprites."""


def study(size: str) -> Study:
    """All objectives but AnnealedVAE."""
    return types_study("b-fig-6.5", ALL, size)


def judge(results: Results, size: str) -> Outcome:
    """More passive latents under stronger regularisers."""
    comparisons, figures = [], {}
    for panel in shown(ALL, size):
        rows = panel.rows(results, ByType(n_samples(size)), size)
        comparisons += list(_counts(panel, rows))
        if rows:
            figures[panel.name] = stacked_types(*counts_by_strength(rows), x="strength", title=panel.name)
    return Outcome(tuple(comparisons), figures, notes=notes(size, *grid_notes(size)))


def _counts(panel: Panel, rows: Sequence[Measured]) -> Iterator[Comparison]:
    if not rows:
        return
    x, seeds = np.array([row.strength for row in rows]), [row.seed for row in rows]
    unused = np.array([row.found["n_passive"] + row.found["n_mixed"] for row in rows], dtype=float)
    what = f"{panel.name}: passive and mixed latents against the strength"
    yield compare_trend(what, x, unused, 1, seeds=seeds)


CONTROLS = (dealt(judge, "what was measured of a model given to another one, whatever its strength."),)

REPRODUCTION = Reproduction("b-fig-6.5", TITLE, f"{SOURCE}, Figure 6.5", study, judge, CONTROLS)
