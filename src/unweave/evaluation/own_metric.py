"""A metric of one's own: any function of arrays that gives a number."""

import functools
import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from unweave.metrics.row import NEEDS, Direction, Metric

TAKEN = tuple(word for word in NEEDS if word not in ("split", "pairs", "models"))
"""What the arguments of such a function may be called."""


@dataclass(frozen=True)
class OwnScore:
    """The number that a function gave."""

    score: float


def own_metric(
    function: Callable[..., Any],
    *,
    range: tuple[int | float, int | float] = (-math.inf, math.inf),
    better: Direction = "neither",
) -> Metric:
    """The row of a function, for ``metrics=`` and ``--metrics``; its name and what it needs are read from it.

    The arguments before the star are arrays of NumPy by name: ``codes``, ``factors``, ``variance``, ``sampled`` (sample
    × latent or factor) or ``kl`` (latent); those after it are settings, ``seed`` among them where it draws. It returns
    a number, or an object whose ``score`` is one. ``better`` is more, less or neither.

    >>> import numpy as np
    >>> import unweave as uw
    >>> def spread(codes, *, power: int = 2):
    ...     return np.mean(np.abs(codes) ** power)
    >>> uw.measure(np.full((4, 2), 3.0), metrics=[uw.own_metric(spread, range=(0, np.inf))], seeds=0)["spread"].value
    9.0
    """
    names = _arguments(function)
    return Metric(
        _in_numpy(function),
        name=function.__name__,
        title=function.__name__.replace("_", " "),
        tells=(inspect.getdoc(function) or "").partition("\n")[0],
        kind="supervised" if "factors" in names else "unsupervised",
        needs=" ".join(names),
        range=(float(range[0]), float(range[1])),
        better=better,
        invariant_to=(),
        at_chance="",
        paper="",
        example="",
        ordered="factors" in names,
    )


def _arguments(function: Callable[..., Any]) -> list[str]:
    parameters = inspect.signature(function).parameters.values()
    before = [one.name for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    draws = ["seed"] if any(one.name == "seed" and one.kind is one.KEYWORD_ONLY for one in parameters) else []
    if strange := [name for name in before if name not in TAKEN or name == "seed"]:
        raise ValueError(
            f"{function.__name__} takes {strange[0]}: arguments before the star are {', '.join(TAKEN[:-1])}, and"
            " settings stand after it, as in def f(codes, factors, *, power=2)"
        )
    if not before:
        raise ValueError(f"{function.__name__} takes no array: begin with def {function.__name__}(codes, …)")
    return before + draws


def _in_numpy(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def scored(*arrays: Any, **settings: Any) -> Any:
        found = function(*(_array(one) for one in arrays), **settings)
        if hasattr(found, "score"):
            return found
        if np.ndim(found) or not np.issubdtype(np.asarray(found).dtype, np.number):
            raise TypeError(f"{function.__name__} gave {type(found).__name__}; a metric gives one number")
        return OwnScore(float(found))

    return scored


def _array(one: Any) -> Any:
    return one.detach().cpu().numpy() if isinstance(one, torch.Tensor) else one
