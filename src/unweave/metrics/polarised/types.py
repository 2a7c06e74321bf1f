"""Variable types: active, mixed and passive latents, by each published rule.

The thesis's rule (Bonheme, 2023, §6.4.1) looks at the posterior variances; the dissertation's (Zietlow, 2023) at the
spread of the means (§3.3.2) or at the mean variance alone (§4.3.4); a fourth common one at the KL.
"""

from collections.abc import Callable
from typing import Literal

import torch

from unweave.shapes import Float, Tensor

Type = Literal["active", "mixed", "passive"]
Rule = Literal["variance", "spread", "mean_variance", "kl"]


def variable_types(
    mean: Float[Tensor, "sample latent"],
    variance: Float[Tensor, "sample latent"],
    *,
    rule: Rule = "variance",
    threshold: float | None = None,
    prior_variance: Float[Tensor, "latent"] | None = None,
) -> list[Type]:
    """The type of every latent, from the means and variances of its posterior over a sample.

    ``variance``: passive if E[σ²] is within ``threshold`` (0.1) of the prior's variance and Var[σ²] is below it; active
    if both are below it; else mixed. ``spread``: active if std(μ) > 0.5. ``mean_variance``: active if E[σ²] < 0.8.
    ``kl``: active if the mean KL exceeds 0.01. The last three know no mixed latents.
    """
    if mean.shape != variance.shape or mean.ndim != 2 or len(mean) < 2:
        raise ValueError(
            f"mean and variance must be two equal tables (sample × latent), given {tuple(mean.shape)}"
            f" and {tuple(variance.shape)}"
        )
    if rule not in RULES:
        raise ValueError(f"rule must be one of {', '.join(RULES)}, not {rule!r}")
    if bool((variance < 0).any()):
        raise ValueError("variance has negative entries; give variances, not their logarithms")
    prior = torch.ones_like(mean[0]) if prior_variance is None else prior_variance
    decide, default = RULES[rule]
    return decide(mean, variance, prior, default if threshold is None else threshold)


def _by_variance(mean: Tensor, variance: Tensor, prior: Tensor, threshold: float) -> list[Type]:
    average, spread = variance.mean(0), variance.var(0, correction=0)
    passive = ((average - prior).abs() <= threshold) & (spread <= threshold)
    active = (average <= threshold) & (spread <= threshold)
    return ["passive" if p else "active" if a else "mixed" for p, a in zip(passive.tolist(), active.tolist())]


def _by_spread(mean: Tensor, variance: Tensor, prior: Tensor, threshold: float) -> list[Type]:
    return _two(mean.std(0, correction=0) > threshold)


def _by_mean_variance(mean: Tensor, variance: Tensor, prior: Tensor, threshold: float) -> list[Type]:
    return _two(variance.mean(0) < threshold)


def _by_kl(mean: Tensor, variance: Tensor, prior: Tensor, threshold: float) -> list[Type]:
    # KL_j = ½ (μ²/p + σ²/p − log σ²/p − 1) for a prior of variance p
    share = variance / prior
    kl = 0.5 * (mean.square() / prior + share - share.clamp_min(1e-30).log() - 1.0)
    return _two(kl.mean(0) > threshold)


def _two(used: Tensor) -> list[Type]:
    return ["active" if value else "passive" for value in used.tolist()]


Decision = Callable[[Tensor, Tensor, Tensor, float], list[Type]]
RULES: dict[str, tuple[Decision, float]] = {
    "variance": (_by_variance, 0.1),
    "spread": (_by_spread, 0.5),
    "mean_variance": (_by_mean_variance, 0.8),
    "kl": (_by_kl, 0.01),
}
