"""What ``unweave dimension`` may be told: the method, what to vary, where to begin, how long to train."""

import math
from dataclasses import dataclass, field
from typing import Literal

from unweave.algorithms.fondue import CRITERIA, METHODS
from unweave.config import hints, unknown
from unweave.data.world import Data
from unweave.shapes import Scalar
from unweave.training.experiment import Experiment

AHEAD_ON_GPU = 15
"""Four answers deep: a fleet of so many takes little longer there than one model."""

MOST = {"doubling": 1024, "bisection": 200}
"""Upper bounds where none is given; a code larger than the example itself is never tried."""


MethodName = Literal[
    "fondue", "fondue_ide", "fondue_ib", "bs_fondue", "ib", "fondue_ide_stable", "fondue_ib_100", "elbow"
]


@dataclass(frozen=True)
class DimensionSearch:
    """What is searched for and how; every field is an option of ``unweave dimension``."""

    method: MethodName = field(
        default="fondue", metadata={"help": "which published algorithm; elbow draws curves only"}
    )
    over: str = field(
        default="latents", metadata={"help": "what to vary: latents, or a number of the objective such as beta"}
    )
    start: float | None = field(
        default=None, metadata={"help": "where to begin; else the data's intrinsic dimension, or the objective's value"}
    )
    threshold: float | None = field(
        default=None, metadata={"help": "largest difference that passes; else 1, or −0.01 for ib"}
    )
    least: float | None = field(default=None, metadata={"help": "lower bound, for bs_fondue and ib"})
    most: float | None = field(default=None, metadata={"help": "upper bound, never passed; else 1024, 200 to bisect"})
    resolution: float = field(default=0.5, metadata={"help": "distance of two values, when not over latents"})
    epochs: int = field(default=2, metadata={"help": "times that a model sees the data"})
    least_steps: int = field(
        default=2000, metadata={"help": "steps below which no model is judged, however small the data"}
    )
    steps: int | None = field(default=None, metadata={"help": "exactly so many steps, in place of epochs"})
    until_stable: bool = field(default=False, metadata={"help": "double the training until the answer stays"})
    examples: int = field(default=10_000, metadata={"help": "examples on which a model is judged"})
    elbow: tuple[int, ...] = field(default=(), metadata={"help": "numbers of latents at which to draw elbow curves"})
    ahead: int | None = field(
        default=None, metadata={"help": "models that may be needed, trained at a time; else 15 on a GPU, 1 on a CPU"}
    )


def check_search(base: Experiment, search: DimensionSearch) -> None:
    """One sentence for whatever cannot be searched."""
    objective = base.objective
    numbers = [name for name, kind in hints(type(objective)).items() if kind in (Scalar, float)]
    if search.over not in ("latents", *numbers):
        raise unknown(f"thing to search over with {objective.name}", search.over, ("latents", *numbers))
    if objective.posterior.name == "deterministic" and search.method not in (
        "elbow",
        "fondue_ib",
        "fondue_ib_100",
        "ib",
    ):
        raise ValueError(
            f"{objective.name} has no noise: its mean and sampled codes are one, so every number of latents passes."
            " Search with a VAE (the answer holds for autoencoders too), or use --method elbow or ib."
        )
    if search.over != "latents" and (search.method == "elbow" or search.elbow):
        raise ValueError(f"elbow curves go over latents, not over {search.over}; leave out --elbow or --over")
    if search.elbow and (len(set(search.elbow)) < 3 or min(search.elbow) < 1):
        raise ValueError(
            f"elbow curves take three numbers of latents or more, all positive, given {list(search.elbow)}"
        )
    for name in ("resolution", "epochs", "least_steps", "steps", "start", "least", "most", "ahead"):
        given = getattr(search, name)
        if given is not None and not given > 0:
            raise ValueError(f"{name} must be positive, not {given}")
    if search.examples < 4:
        raise ValueError(f"examples must be at least 4 to judge a model, not {search.examples}")


def threshold_of(search: DimensionSearch) -> float | None:
    """The largest difference that passes: the one given, or the published one."""
    if search.threshold is not None or search.method not in METHODS:
        return search.threshold
    return CRITERIA[METHODS[search.method].criterion].threshold


def ahead_of(search: DimensionSearch, base: Experiment) -> int:
    """Models that are trained at a time: the one that is asked for, and those that may be asked for next."""
    if search.ahead is not None:
        return search.ahead
    return AHEAD_ON_GPU if base.plan.resolve().device.startswith("cuda") else 1


def value_of(search: DimensionSearch, n: int) -> float | int:
    """What the n-th value is: n latents, or n times the resolution."""
    return n if search.over == "latents" else n * search.resolution


def bounds(search: DimensionSearch, shape: tuple[int, ...]) -> tuple[int, int]:
    """The first and the last n that may be tried, for examples of this shape."""
    unit = 1.0 if search.over == "latents" else search.resolution
    most = MOST["bisection"] if search.over != "latents" else MOST[METHODS[search.method].search]
    if search.most is not None:
        most = max(1, round(search.most / unit))
    elif search.over == "latents":
        most = min(most, math.prod(shape))
    return (1 if search.least is None else max(1, round(search.least / unit))), most


def steps_of(search: DimensionSearch, base: Experiment, data: Data) -> int:
    """Updates of every model."""
    if search.steps is not None:
        return search.steps
    # an epoch of dSprites is 11,520 updates and one of the micro-world 32: few epochs of few examples say nothing
    n_examples = len(data) - round(base.holdout * len(data))
    return max(search.least_steps, math.ceil(search.epochs * n_examples / base.batch_size))
