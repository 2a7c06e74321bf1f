"""unweave trains, measures and explains variational autoencoders.

>>> import unweave as uw
>>> run = uw.train("micro", objective=uw.BetaVAE(beta=6), latents=6, steps=2000)   # doctest: +SKIP
>>> code = run.encode(run.images(100))                                             # doctest: +SKIP
"""

import importlib
from typing import Any

__version__ = "0.1.0"

PLACES = {
    "api": ("load", "world", "worlds"),
    "evaluation.evaluation": ("evaluate",),
    "training.notebook": ("train",),
    "evaluation.measure": ("Measurer", "Yardstick", "measure"),
    "evaluation.scorer": ("Scorer",),
    "training.experiment": ("Experiment", "Plan"),
    "training.export": ("export", "from_pretrained"),
    "training.loop": ("resume",),
    "training.run": ("Run",),
    "metrics.polarised.types": ("variable_types",),
    "studies.study": ("Study",),
    "studies.run": ("run_study",),
    "recipes.notebook": ("compare", "diagnose", "dimension", "intrinsic"),
    "models.networks": ("MLP", "Conv", "ConvStudy", "Linear"),
    "models.likelihoods": ("Bernoulli", "Gaussian", "LearnedGaussian", "SquaredError"),
    "models.optimisers": ("AdaGrad", "Adam"),
    "models.objectives": (
        "AE", "VAE", "AnnealedVAE", "BetaTCVAE", "BetaVAE", "BetaVAEFull", "DIPVAEI", "DIPVAEII", "FactorVAE",
    ),
}  # fmt: skip
"""Where every public name lives; it is imported when it is first used, so that ``import unweave`` stays light. What
stands under no module is a subpackage that can be called."""

WHERE = {name: place for place, names in PLACES.items() for name in names}
__all__ = sorted(WHERE)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name not in WHERE:
        raise AttributeError(f"module 'unweave' has no attribute {name!r}")
    if not WHERE[name]:
        return importlib.import_module(f"unweave.{name}")
    return getattr(importlib.import_module(f"unweave.{WHERE[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *WHERE])
