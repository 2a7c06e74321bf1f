"""z-fig-4.11: planes of two latents of the four most entangled models (Zietlow, 2022, §4.3.6)."""

from typing import TYPE_CHECKING, Any

import numpy as np

from unweave.pages.outcome import Outcome
from unweave.recipes.reproduction import Reproduction
from unweave.recipes.zietlow2022.bias import about, bias_study, places_of
from unweave.recipes.zietlow2022.bias_planes import ASKED, NOTE, ends, plane_rows, planes_figures, polar_claim
from unweave.recipes.zietlow2022.bias_table import undecided
from unweave.recipes.zietlow2022.settings import SOURCE
from unweave.studies.results import Results
from unweave.studies.statistics.intervals import mean_interval
from unweave.studies.study import Study
from unweave.studies.verdicts import Comparison, compare_sign

if TYPE_CHECKING:
    import matplotlib.figure

TITLE = "Entangled models hold two factors as angle and radius"


def study(size: str) -> Study:
    """The models to choose from, on the original images."""
    return bias_study("z-fig-4.11", size, TITLE, ASKED)


def judge(results: Results, size: str) -> Outcome:
    """The planes, and a number for each."""
    figures: dict[str, matplotlib.figure.Figure] = {}
    rows: list[dict[str, Any]] = []
    claims: list[Comparison] = []
    for place in places_of(size, ASKED):
        models = ends(results, place, size)[1]
        shown = plane_rows(results, place, models, "entangled")
        figures |= planes_figures(results, place, models, "entangled")
        rows += shown
        claims.append(polar_claim(results, place, size))
        scores = [row["polar − cartesian"] for row in shown]
        what = f"{place.title}: polar − cartesian of the entangled models"
        claims.append(compare_sign(what, *_mean(scores), len(scores), 1, "t-interval of the mean over models"))
    if size == "smoke":
        claims = [undecided(one, "this size shows that the chain runs, and gives no verdict") for one in claims]
    return Outcome(tuple(claims), figures, {"Planes": rows}, (*about(size), NOTE))


def _mean(scores: list[float]) -> tuple[float, tuple[float, float] | None]:
    values = np.array(scores)
    return (float(values.mean()) if len(values) else float("nan")), mean_interval(values) if len(values) > 2 else None


REPRODUCTION = Reproduction("z-fig-4.11", TITLE, f"{SOURCE}, Figure 4.11", study, judge)
