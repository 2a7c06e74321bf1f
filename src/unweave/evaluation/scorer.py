"""A scikit-learn scorer from any metric: for estimators that transform data into codes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from unweave.evaluation.measure import Measurer


@dataclass(frozen=True)
class Scorer:
    """Called with (estimator, X, factors), as scikit-learn calls scorers; more is always better.

    >>> GridSearchCV(FastICA(), {"n_components": [3, 5]}, scoring=Scorer("mig"))          # doctest: +SKIP

    ``metric`` is a row by name; ``part`` one of its numbers where it has several (``"completeness"`` of ``"dci"``).
    A metric of which less is better is turned round by its sign. ``options`` are the metric's own settings.
    """

    metric: str
    part: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0

    def __call__(self, estimator: Any, samples: Any, factors: Any = None) -> float:
        """The score of ``estimator.transform(samples)`` against the factors."""
        if not hasattr(estimator, "transform"):
            raise ValueError(f"{type(estimator).__name__} has no transform(); a scorer needs one to get codes from")
        codes = estimator.transform(samples)
        codes = codes.toarray() if hasattr(codes, "toarray") else codes
        measurer = Measurer(factors, [self.metric], seeds=0, seed=self.seed, options={self.metric: self.options})
        numbers = measurer.measure(codes).numbers
        named = {name.partition(".")[2] or "score": number for name, number in numbers.items()}
        if self.part is not None and self.part not in named:
            raise ValueError(f"{self.metric} has no part {self.part!r}; it has {', '.join(named)}")
        number = named[self.part] if self.part is not None else next(iter(named.values()))
        return -float(number.value) if number.higher_is_better is False else float(number.value)
