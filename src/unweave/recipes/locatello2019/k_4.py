"""k-4: does a good setting stay good on other data and by other metrics (Locatello et al., 2019, §5.5)."""

from typing import TYPE_CHECKING

import numpy as np

from unweave.pages.outcome import Outcome
from unweave.plots.forest import forest
from unweave.recipes.controls import apart
from unweave.recipes.locatello2019.settings import METRICS, SOURCE, WORLDS, about, grid_study, settled_table
from unweave.recipes.reproduction import Reproduction
from unweave.studies.results import Results
from unweave.studies.statistics.settings import cube
from unweave.studies.statistics.transfer import KINDS, Transfer, transfer
from unweave.studies.study import Study
from unweave.studies.verdicts import Comparison, compare_interval

if TYPE_CHECKING:
    import matplotlib.figure

TITLE = "Good settings hardly transfer"
SAME = 0.03
"""Probabilities that are no farther apart count as the same: the smallest published one is 0.049 from a coin's."""
PUBLISHED = {"same metric and data": 0.807, "same metric, other data": 0.593, "other metric and data": 0.549}


def study(size: str) -> Study:
    """All seven worlds as published; dSprites and Color-dSprites at ``small``."""
    worlds = ("dsprites", "color_dsprites") if size == "small" else tuple(WORLDS)
    return grid_study("k-4", size, worlds, TITLE)


def judge(results: Results, size: str) -> Outcome:
    """The three published probabilities, and the fourth kind of transfer besides."""
    table = settled_table(results)
    whole = cube(table, list(METRICS.values()))
    found = transfer(whole.scores, some_worlds={*whole.worlds} != {*WORLDS})
    comparisons = tuple(_compared(found, kind, len(whole.seeds)) for kind in PUBLISHED)
    rows = [_row(found, kind) for kind in KINDS]
    notes = (
        *about(size, table),
        "The best setting by one metric on one world under one seed is tried under another seed against every other"
        " setting. All selections and trials are counted, where the published study drew 10,000 at random.",
        "Published are means over seven worlds. Fewer stand for these, so that intervals are over worlds too: of one or"
        " two no number is judged.",
        "With a single world nothing can be transferred to other data, and those claims stay open."
        if len(whole.worlds) == 1
        else f"Transfer among {len(whole.worlds)} worlds, where the published study had seven; worlds that are alike,"
        " such as dSprites and Color-dSprites, transfer better than the mean of all.",
    )
    return Outcome(comparisons, {"Probability to beat a random setting": _figure(found)}, {"Transfer": rows}, notes)


def _compared(found: Transfer, kind: str, n_seeds: int) -> Comparison:
    share = found.share[kind]
    what = f"{kind}: probability that the selected setting beats a random one"
    ours = float("nan") if share is None else share
    how = "jackknife over seeds and over worlds"
    return compare_interval(what, ours, found.interval[kind], PUBLISHED[kind], n_seeds, how, tolerance=SAME)


def _row(found: Transfer, kind: str) -> dict[str, object]:
    interval = found.interval[kind] or (None, None)
    return {
        "transfer": kind,
        "published": PUBLISHED.get(kind),
        "ours": found.share[kind],
        "low": interval[0],
        "high": interval[1],
    }


def _figure(found: Transfer) -> "matplotlib.figure.Figure":
    share = np.array([np.nan if (value := found.share[kind]) is None else value for kind in KINDS])
    ends = np.array([found.interval[kind] or (np.nan, np.nan) for kind in KINDS], dtype=float)
    published = np.array([PUBLISHED.get(kind, np.nan) for kind in KINDS])
    return forest(share, ends, published, KINDS, "A coin gives 0.5", "probability")


CONTROLS = (apart(judge, "scores dealt to the models of all settings and worlds at random.", list(METRICS.values())),)

REPRODUCTION = Reproduction("k-4", TITLE, f"{SOURCE}, §5.5", study, judge, CONTROLS)
