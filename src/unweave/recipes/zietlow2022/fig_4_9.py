"""z-fig-4.9: MIG of every factor, on original and on modified images (Zietlow, 2022, §4.3.5)."""

from typing import TYPE_CHECKING, Any

from unweave.pages.outcome import Outcome
from unweave.plots.violins import violins
from unweave.recipes.reproduction import Reproduction
from unweave.recipes.zietlow2022.bias import (
    CONDITIONS,
    MODIFIED,
    ORIGINAL,
    Asked,
    Place,
    about,
    bias_study,
    grouped,
    places_of,
)
from unweave.recipes.zietlow2022.bias_table import (
    Groups,
    controls_of,
    factors_of,
    undecided,
    with_effect,
)
from unweave.recipes.zietlow2022.settings import SOURCE, by_seed
from unweave.studies.results import Results
from unweave.studies.study import Study
from unweave.studies.verdicts import Comparison, compare_difference

if TYPE_CHECKING:
    import matplotlib.figure

TITLE = "MIG falls for every factor"

ASKED = Asked(("β-VAE",), CONDITIONS)


def study(size: str) -> Study:
    """β-VAEs on original and on modified images, and on noisy ones for a control."""
    return bias_study("z-fig-4.9", size, TITLE, ASKED)


def judge(results: Results, size: str) -> Outcome:
    """Every factor's drop, paired by seed."""
    groups, figures = grouped(results), {}
    claims: list[Comparison] = []
    for place in places_of(size, ASKED):
        for name in factors_of(place):
            first, second = (_values(groups, place, name, condition) for condition in (ORIGINAL, MODIFIED))
            what = f"{place.title}: MIG of {name} on original beside modified images"
            claims.append(with_effect(compare_difference(what, first, second, 1), first, second))
        figures[f"MIG of every factor of {place.title}"] = _figure(groups, place)
    if size == "smoke":
        claims = [undecided(one, "this size shows that the chain runs, and gives no verdict") for one in claims]
    return Outcome(tuple(claims), figures, {}, about(size))


def _values(groups: Groups, place: Place, name: str, condition: str) -> dict[int, float]:
    part = groups.get((place.title, "β-VAE", condition))
    return {} if part is None else by_seed(part, f"alignment.per_factor.{name}")


def _figure(groups: Groups, place: Place) -> "matplotlib.figure.Figure":
    shown: list[tuple[str, list[Any], int]] = [
        (f"{name} {condition}", list(_values(groups, place, name, condition).values()), number)
        for name in factors_of(place)
        for number, condition in enumerate(CONDITIONS)
    ]
    names, samples, families = zip(*shown)
    return violins(list(samples), list(names), "", "MIG", families=list(families))


CONTROLS = controls_of(judge)

REPRODUCTION = Reproduction("z-fig-4.9", TITLE, f"{SOURCE}, Figure 4.9", study, judge, CONTROLS)
