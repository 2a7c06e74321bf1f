"""z-fig-4.8: histograms of MIG on modified images (Zietlow, 2022, §4.3.5)."""

from dataclasses import replace

from unweave.pages.outcome import Outcome
from unweave.plots.histogram import histogram
from unweave.recipes.reproduction import Reproduction
from unweave.recipes.zietlow2022.bias import (
    COLUMNS,
    CONDITIONS,
    MODIFIED,
    ORIGINAL,
    VARIATIONAL,
    Asked,
    about,
    bias_study,
    grouped,
    methods_of,
    places_of,
)
from unweave.recipes.zietlow2022.bias_table import controls_of, undecided
from unweave.recipes.zietlow2022.settings import SOURCE, by_seed
from unweave.studies.results import Results
from unweave.studies.study import Study
from unweave.studies.verdicts import Comparison, compare_difference, compare_exact

TITLE = "Some models disentangle modified images all the same"

ASKED = Asked(VARIATIONAL, CONDITIONS)


def study(size: str) -> Study:
    """Every VAE on original and on modified images, and on noisy ones for a control."""
    return bias_study("z-fig-4.8", size, TITLE, ASKED)


def judge(results: Results, size: str) -> Outcome:
    """How the scores are spread, and whether the best model on modified images reaches the mean on original ones."""
    groups, figures = grouped(results), {}
    claims: list[Comparison] = []
    for place in places_of(size, ASKED):
        series, reached = {}, 0
        for method in methods_of(size, ASKED):
            found = [groups.get((place.title, method, condition)) for condition in (MODIFIED, ORIGINAL)]
            modified, original = (
                [] if part is None else list(by_seed(part, COLUMNS["MIG"]).values()) for part in found
            )
            if modified and original:
                series[method] = modified
                lower = compare_difference(method, original, modified, 1).verdict == "agrees"
                reached += lower and max(modified) >= sum(original) / len(original)
        if series:
            figures[f"MIG on modified {place.title}"] = histogram(series, "", "MIG", limits=(0.0, 1.0))
            what = (
                f"{place.title}: the mean is lower on modified images, and yet some model reaches its method's mean on"
                " original ones (1 is yes)"
            )
            compared = compare_exact(what, float(reached > 0), 1.0, 0.0, note=f"{reached} of {len(series)} methods")
            compared = replace(compared, kind="order")
            few = size != "paper" and not reached
            claims.append(undecided(compared, "a few models cannot refute that some do") if few else compared)
    if size == "smoke":
        claims = [undecided(one, "this size shows that the chain runs, and gives no verdict") for one in claims]
    return Outcome(tuple(claims), figures, {}, about(size))


CONTROLS = controls_of(judge, drops=False)

REPRODUCTION = Reproduction("z-fig-4.8", TITLE, f"{SOURCE}, Figure 4.8", study, judge, CONTROLS)
