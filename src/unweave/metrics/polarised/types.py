"""Variable types: active, mixed and passive latents, by each published rule.

The thesis's rule (Bonheme, 2023, §6.4.1) looks at the posterior variances; the dissertation's (Zietlow, 2022) at the
spread of the means (§3.3.2) or at the mean variance alone (§4.3.4); a fourth common one at the KL. A learned prior
takes the place of the 1 that a passive latent's variance goes to (Bonheme, 2023, Proposition 5.2.2).
"""

from collections.abc import Callable
from typing import Literal

import numpy as np
import torch
from numpy.typing import ArrayLike

from unweave.shapes import Float, Tensor

Type = Literal["active", "mixed", "passive"]
Rule = Literal["variance", "spread", "mean_variance", "kl"]


def variable_types(
    mean: Float[Tensor, "sample latent"] | ArrayLike,
    variance: Float[Tensor, "sample latent"] | ArrayLike,
    *,
    rule: str = "variance",
    threshold: float | None = None,
    prior_variance: Float[Tensor, " latent"] | Float[Tensor, "sample latent"] | None = None,
    prior_mean: Float[Tensor, " latent"] | Float[Tensor, "sample latent"] | None = None,
) -> list[Type]:
    """The type of every latent, from the means and variances of its posterior over a sample.

    ``variance``: passive if E[σ²] is within ``threshold`` (0.1) of 1 and Var[σ²] is below it; active if both are below
    it; else mixed. ``spread``: active if std(μ) > 0.5. ``mean_variance``: active if E[σ²] < 0.8. ``kl``: active if the
    mean KL exceeds 0.01. The last three know no mixed latents.

    A learned prior, the same for all examples or one for each, is divided out first: σ² is read as σ²/σ†², μ as
    (μ − μ†)/σ†. A deterministic autoencoder (variance 0 everywhere) has active latents only, by every rule but
    ``spread``.

    >>> import torch
    >>> import unweave as uw
    >>> mean = torch.randn(100, 2) * torch.tensor([1.0, 0.0])
    >>> uw.variable_types(mean, torch.tensor([[0.01, 1.0]]).expand(100, 2))
    ['active', 'passive']
    """
    mean, variance = (
        one if isinstance(one, Tensor) else torch.from_numpy(np.asarray(one, float)) for one in (mean, variance)
    )
    if mean.shape != variance.shape or mean.ndim != 2 or len(mean) < 2:
        raise ValueError(
            f"mean and variance must be two equal tables (sample × latent), given {tuple(mean.shape)}"
            f" and {tuple(variance.shape)}"
        )
    if rule not in RULES:
        raise ValueError(f"rule must be one of {', '.join(RULES)}, not {rule!r}")
    if bool((variance < 0).any()):
        raise ValueError("variance has negative entries; give variances, not their logarithms")
    if prior_variance is not None and bool((prior_variance <= 0).any()):
        raise ValueError("prior_variance must be positive; give variances, not their logarithms")
    prior = torch.ones_like(mean[0]) if prior_variance is None else prior_variance
    shifted = mean if prior_mean is None else mean - prior_mean
    decide, default = RULES[rule]
    return decide(shifted / prior.sqrt(), variance / prior, default if threshold is None else threshold)


def _by_variance(mean: Tensor, variance: Tensor, threshold: float) -> list[Type]:
    average, spread = variance.mean(0), variance.var(0, correction=0)
    passive = ((average - 1.0).abs() <= threshold) & (spread <= threshold)
    active = (average <= threshold) & (spread <= threshold)
    return ["passive" if p else "active" if a else "mixed" for p, a in zip(passive.tolist(), active.tolist())]


def _by_spread(mean: Tensor, variance: Tensor, threshold: float) -> list[Type]:
    return _two(mean.std(0, correction=0) > threshold)


def _by_mean_variance(mean: Tensor, variance: Tensor, threshold: float) -> list[Type]:
    return _two(variance.mean(0) < threshold)


def _by_kl(mean: Tensor, variance: Tensor, threshold: float) -> list[Type]:
    # KL_j = ½ (μ² + σ² − log σ² − 1)
    kl = 0.5 * (mean.square() + variance - variance.clamp_min(1e-30).log() - 1.0)
    return _two(kl.mean(0) > threshold)


def _two(used: Tensor) -> list[Type]:
    return ["active" if value else "passive" for value in used.tolist()]


Decision = Callable[[Tensor, Tensor, float], list[Type]]
RULES: dict[str, tuple[Decision, float]] = {
    "variance": (_by_variance, 0.1),
    "spread": (_by_spread, 0.5),
    "mean_variance": (_by_mean_variance, 0.8),
    "kl": (_by_kl, 0.01),
}
