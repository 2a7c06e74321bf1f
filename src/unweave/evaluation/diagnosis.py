"""What the codes of a model say about it: the type of every latent with its evidence, and how the latents depend."""

from dataclasses import dataclass
from typing import Any

import torch

from unweave import rng
from unweave.metrics.estimators.arrays import as_codes, check_lengths
from unweave.metrics.polarised.by_type import Dependence, Subset, by_type
from unweave.metrics.polarised.passive import PassiveCorrelation, passive_correlation
from unweave.metrics.polarised.regime import Regime, regime
from unweave.metrics.polarised.traces import Traces, traces
from unweave.metrics.polarised.types import RULES, Type, variable_types
from unweave.shapes import Float, Tensor

SMALLEST = 1e-30
"""Variances that underflowed to 0 beside others that did not: the KL of the latent stays finite, at 34 nats."""


@dataclass(frozen=True)
class Latent:
    """One latent over the examples. ``correlation`` is its largest, in size, with the mean code of a ``partner``."""

    latent: int
    type: Type
    evidence: str
    kl: float
    mean_variance: float
    variance_of_variance: float
    variance_of_mean: float
    correlation: float
    partner: int | None


@dataclass(frozen=True)
class Diagnosis:
    """What codes alone tell. ``regime`` is None for a deterministic autoencoder, which has no variances.

    ``aggregate`` is the variance of the sampled codes, Var[μ] + E[σ²] latent by latent: 1 where they fill the prior.
    """

    latents: tuple[Latent, ...]
    rule: str
    stochastic: bool
    n_examples: int
    rate: float
    traces: Traces
    regime: Regime | None
    dependence: tuple[Dependence, ...]
    correlations: PassiveCorrelation
    aggregate: Float[Tensor, " latent"]
    mean: Float[Tensor, "sample latent"]
    sampled: Float[Tensor, "sample latent"]

    @property
    def types(self) -> list[Type]:
        return [latent.type for latent in self.latents]

    def numbers(self, *kinds: Type) -> list[int]:
        """The latents of these types."""
        return [latent.latent for latent in self.latents if latent.type in kinds]

    def dependent(self, representation: str, subset: Subset) -> Dependence:
        """How the latents of a subset depend in the mean or the sampled codes."""
        return next(d for d in self.dependence if (d.representation, d.subset) == (representation, subset))


def diagnose_codes(
    mean: Any,
    variance: Any = None,
    *,
    sampled: Any = None,
    kl: Any = None,
    prior_mean: Any = None,
    prior_variance: Any = None,
    rule: str = "variance",
    seed: int = 0,
    n_bins: int = 20,
) -> Diagnosis:
    """Diagnose the posteriors of a sample of examples, each array sample × latent, from any framework.

    Without ``variance`` (or with zeros) the codes are those of a deterministic autoencoder. Without ``sampled`` codes
    one is drawn for every example. ``kl`` replaces ½(μ² + σ² − log σ² − 1) where the posterior is not diagonal.

    A learned prior, one for all examples (latent) or one for each (sample × latent), is divided out first, as in iVAE:
    all that follows is of (z − μ†)/σ†, whose prior is the standard normal. The KL does not change with that.
    """
    means = as_codes(mean, "mean").double().cpu()
    variances = torch.zeros_like(means) if variance is None else as_codes(variance, "variance").double().cpu()
    _check(means, variances, rule)
    if prior_mean is not None or prior_variance is not None:
        shift, scale = _prior(means, prior_mean, prior_variance)
        means, variances = (means - shift) / scale, variances / scale.square()
        sampled = None if sampled is None else (as_codes(sampled, "sampled").double().cpu() - shift) / scale
    stochastic = bool((variances > 0).any())
    if stochastic:
        variances = variances.clamp(min=SMALLEST)
    drawn = _sampled(means, variances, sampled, seed)
    types = variable_types(means, variances, rule=rule)
    found = regime(means, variances) if stochastic else None
    per_latent = _per_latent_kl(means, found, kl)
    correlations = passive_correlation(means, types)
    return Diagnosis(
        tuple(_latents(means, variances, types, per_latent, correlations, rule)),
        rule,
        stochastic,
        len(means),
        float(per_latent.sum()),
        traces(means, variances),
        found,
        by_type(means, drawn, types, n_bins=n_bins),
        correlations,
        means.var(0, correction=0) + variances.mean(0),
        means,
        drawn,
    )


def _check(mean: Tensor, variance: Tensor, rule: str) -> None:
    check_lengths(mean, variance, ("mean", "variance"))
    if mean.shape != variance.shape:
        raise ValueError(f"mean and variance must be equal tables, given {tuple(mean.shape)}, {tuple(variance.shape)}")
    if len(mean) < 2:
        raise ValueError("a diagnosis needs at least two examples, given one; a hundred times the latents is better")
    if rule not in RULES:
        raise ValueError(f"rule must be one of {', '.join(RULES)}, not {rule!r}")
    if bool((variance < 0).any()):
        raise ValueError("variance has negative entries; give variances, not their logarithms")


def _prior(
    mean: Tensor, prior_mean: Any, prior_variance: Any
) -> tuple[Float[Tensor, "#sample latent"], Float[Tensor, "#sample latent"]]:
    """Mean and deviation of the prior, for all examples or for each."""
    tables = []
    for name, given, usual in (("prior_mean", prior_mean, 0.0), ("prior_variance", prior_variance, 1.0)):
        table = torch.full_like(mean[:1], usual) if given is None else torch.as_tensor(given).detach().double().cpu()
        table = table[None] if table.ndim == 1 else table
        if table.ndim != 2 or table.shape[1] != mean.shape[1] or len(table) not in (1, len(mean)):
            raise ValueError(
                f"{name} must hold one number for each of the {mean.shape[1]} latents, or a row of these for each of"
                f" the {len(mean)} examples, not an array of shape {tuple(table.shape)}"
            )
        if not bool(torch.isfinite(table).all()):
            raise ValueError(f"{name} must be finite: it holds NaN or infinity")
        tables.append(table)
    if bool((tables[1] <= 0).any()):
        raise ValueError("prior_variance must be positive; give variances, not their logarithms")
    return tables[0], tables[1].sqrt()


def _sampled(mean: Tensor, variance: Tensor, sampled: Any, seed: int) -> Tensor:
    if sampled is None:
        noise = rng.normal(seed, rng.Purpose.EVALUATE, 0, *mean.shape).to(mean)
        return mean + variance.sqrt() * noise
    given = as_codes(sampled, "sampled").double().cpu()
    if given.shape != mean.shape:
        raise ValueError(f"mean and sampled must be equal tables, given {tuple(mean.shape)}, {tuple(given.shape)}")
    return given


def _per_latent_kl(mean: Tensor, found: Regime | None, kl: Any) -> Float[Tensor, " latent"]:
    if kl is None:
        return torch.zeros_like(mean[0]) if found is None else found.per_latent
    given = as_codes(kl, "kl").double().cpu()
    if given.shape != mean.shape:
        raise ValueError(f"mean and kl must be equal tables, given {tuple(mean.shape)}, {tuple(given.shape)}")
    return given.mean(0)


def _latents(
    mean: Tensor, variance: Tensor, types: list[Type], kl: Tensor, correlations: PassiveCorrelation, rule: str
) -> list[Latent]:
    columns = (kl, variance.mean(0), variance.var(0, correction=0), mean.var(0, correction=0))
    latents = []
    for place, kind in enumerate(types):
        cost, average, spread, moved = (float(column[place]) for column in columns)
        partner = int(correlations.partner[place])
        signed = float(correlations.correlation[place, partner]) if partner >= 0 else 0.0
        evidence = _evidence(kind, rule, cost, average, spread, moved)
        named = partner if signed != 0.0 else None
        latents.append(Latent(place, kind, evidence, cost, average, spread, moved, signed, named))
    return latents


def _evidence(kind: Type, rule: str, kl: float, average: float, spread: float, moved: float) -> str:
    """What decided: for the rule on variances where σ² lies, and whether it differs between examples."""
    threshold = RULES[rule][1]
    if rule == "spread":
        return f"std of μ {moved**0.5:.3g} {'>' if kind == 'active' else '≤'} {threshold}"
    if rule == "mean_variance":
        return f"mean σ² {average:.3g} {'<' if kind == 'active' else '≥'} {threshold}"
    if rule == "kl":
        return f"KL {kl:.3g} {'>' if kind == 'active' else '≤'} {threshold}"
    if kind == "active":
        return "σ² near 0"
    if kind == "passive":
        return "σ² near 1"
    if spread > threshold:
        return "σ² differs"
    return "σ² above 1" if average > 1.0 else "σ² between"
