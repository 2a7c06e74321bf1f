"""What stands out in the codes of a model: collapse, pruning, the polarised regime, and how latents depend."""

from collections.abc import Iterator

import torch

from unweave.evaluation.diagnosis import Diagnosis
from unweave.evaluation.finding import ENOUGH, NOTABLE, STRONG, Expected, Finding, counted, named
from unweave.words import number_of

POLARISED = 0.03
"""Δ_KL below which a model counts as polarised (Zietlow, 2022, Table 3.2)."""
FULL = 0.8
"""A latent with E[σ²] below this counts against over-pruning (Zietlow, 2022, §4.3.4)."""
WIDE = 3.0
"""How far the variance of sampled codes may be from the prior's 1, as a factor."""


def findings_in_codes(diagnosis: Diagnosis, expected: Expected | None) -> Iterator[Finding]:
    """Everything that codes alone can tell; of a collapsed model, that alone."""
    if not diagnosis.stochastic:
        yield _deterministic(diagnosis)
    elif not diagnosis.numbers("active", "mixed"):
        yield _collapse(diagnosis)
        return
    else:
        yield from _passive(diagnosis)
        yield from _mixed(diagnosis)
        yield from _regime(diagnosis)
        yield from _aggregate(diagnosis)
        if expected is not None:
            yield from _pruning(diagnosis, expected)
    yield from _dependence(diagnosis)
    if diagnosis.n_examples < ENOUGH:
        yield Finding(
            "few_examples",
            "note",
            f"Only {diagnosis.n_examples} examples were looked at: correlations and mutual information are too high.",
            f"Look at {ENOUGH} or more.",
            "Bonheme (2023), §6.4.2",
        )


def _collapse(diagnosis: Diagnosis) -> Finding:
    return Finding(
        "collapse",
        "problem",
        f"Posterior collapse: {_all(diagnosis)} passive, and a code carries"
        f" {diagnosis.rate:.2g} nats. Every reconstruction is the same.",
        "Lower the regulariser (β, or the target capacity), let it fade in (--warmup), or use a weaker decoder.",
        "Bowman et al. (2016); Dai, Wang and Wipf (2020); Bonheme (2023), §4.3",
    )


def _all(diagnosis: Diagnosis) -> str:
    return "the only latent is" if len(diagnosis.latents) == 1 else f"all {len(diagnosis.latents)} latents are"


def _deterministic(diagnosis: Diagnosis) -> Finding:
    still = [latent.latent for latent in diagnosis.latents if latent.variance_of_mean < 1e-8]
    dead = f" {named(still).capitalize()} never change{'s' if len(still) == 1 else ''}." if still else ""
    return Finding(
        "deterministic",
        "note",
        f"These codes have no variance: the encoder is deterministic. It has no polarised regime, no latent can be"
        f" passive, and its KL is 0.{dead}",
        "Read the effective rank of the mean codes instead of counting active latents.",
        "Bonheme (2023), §8.4",
    )


def _passive(diagnosis: Diagnosis) -> Iterator[Finding]:
    passive = diagnosis.numbers("passive")
    if not passive:
        return
    kept = ", ".join(map(str, diagnosis.numbers("active", "mixed")))
    strongest = diagnosis.correlations.score
    text = f"{counted(len(passive), len(diagnosis.latents))} passive: {named(passive)}."
    one = len(passive) == 1
    if strongest <= NOTABLE:
        carried = "It carries" if one else "They carry"
        yield Finding(
            "passive", "note", text, f"{carried} nothing; keep {kept}.", "Rolínek, Zietlow and Martius (2019)"
        )
        return
    added = _added_total_correlation(diagnosis)
    more = (
        f" and add{'s' if one else ''} {added:.2g} nats to the total correlation of the mean codes"
        if added > 0.05
        else ""
    )
    means = "Its mean, though tiny, correlates" if one else "Their means, though tiny, correlate"
    them = "it" if one else "them"
    yield Finding(
        "correlated_passive",
        "advice",
        f"{text} {means} up to {strongest:.2f} with latents in use{more}.",
        f"Drop {them} before a linear model or a total correlation (keep {kept}), or use sampled codes.",
        "Bonheme and Grzes (2021); Bonheme (2023), §6.5",
    )


def _added_total_correlation(diagnosis: Diagnosis) -> float:
    whole, used = (diagnosis.dependent("mean", subset).pseudo for subset in ("all", "without passive"))
    return 0.0 if whole is None or used is None else whole - used


def _mixed(diagnosis: Diagnosis) -> Iterator[Finding]:
    mixed = diagnosis.numbers("mixed")
    if mixed:
        used, them = ("It is", "it") if len(mixed) == 1 else ("They are", "them")
        yield Finding(
            "mixed",
            "advice",
            f"{counted(len(mixed), len(diagnosis.latents))} mixed: {named(mixed)}. {used} in use for some examples"
            " only, or imprecisely.",
            f"Train longer or change the regulariser a little; until then count {them} as in use.",
            "Bonheme and Grzes (2021); Bonheme (2023), §6.3",
        )


def _regime(diagnosis: Diagnosis) -> Iterator[Finding]:
    regime = diagnosis.regime
    if regime is not None and regime.delta >= POLARISED:
        yield Finding(
            "not_polarised",
            "advice",
            f"β is below the polarised regime, or training has not reached it: Δ_KL is {100 * regime.delta:.1f} %, and"
            f" {100 * POLARISED:.0f} % is the mark. The theory that ties a VAE to PCA does not hold here.",
            "Train longer; if Δ_KL stays, raise β until every latent is either precise (σ² near 0) or off (σ² near 1).",
            "Rolínek, Zietlow and Martius (2019); Zietlow (2022), §3.2.2 and §3.3.6",
        )


def _aggregate(diagnosis: Diagnosis) -> Iterator[Finding]:
    sizes = diagnosis.aggregate
    far = [n for n in diagnosis.numbers("active", "mixed") if not 1 / WIDE <= float(sizes[n]) <= WIDE]
    if far:
        worst = max(far, key=lambda latent: abs(float(sizes[latent].log())))
        yield Finding(
            "prior_mismatch",
            "advice",
            f"The codes do not fill the prior: the sampled codes of {named(far)} have a variance far from 1"
            f" ({float(sizes[worst]):.2g} for latent {worst}). Codes drawn from the prior will not look like data.",
            "Raise β where they are too wide, train longer where they are too narrow, or draw from the codes' own"
            " distribution.",
            "Hoffman and Johnson (2016)",
        )


def _pruning(diagnosis: Diagnosis, expected: Expected) -> Iterator[Finding]:
    used = sum(latent.mean_variance < FULL for latent in diagnosis.latents)
    if len(diagnosis.latents) < expected.n_factors:
        yield Finding(
            "too_few_latents",
            "problem",
            f"The model has {number_of(len(diagnosis.latents), 'latent')} for {expected.n_factors} factors.",
            f"Train with {expected.n_factors} latents or more; those not needed are switched off.",
            "Bonheme (2023), ch. 8",
        )
    elif used < expected.n_factors:
        yield Finding(
            "over_pruned",
            "problem",
            f"Over-pruned: fewer latents are in use ({used}, with E[σ²] < {FULL}) than the data have factors"
            f" ({expected.n_factors}). Some factors are lost.",
            "Lower the regulariser; scores of disentanglement mean little until then.",
            "Zietlow (2022), §3.3.6 and §4.3.4",
        )
    elif used > expected.most and not diagnosis.numbers("passive"):
        yield Finding(
            "not_pruned",
            "advice",
            f"All {len(diagnosis.latents)} latents are in use, though the data have"
            f" {number_of(expected.n_factors, 'factor')}:"
            " the regulariser does not prune, and factors are spread over several latents.",
            "Raise β until latents switch off, or train with fewer latents (unweave dimension).",
            "Zietlow (2022), §3.3.6; Bonheme (2023), §8.3",
        )


def _dependence(diagnosis: Diagnosis) -> Iterator[Finding]:
    used = diagnosis.numbers("active", "mixed")
    together = diagnosis.dependent("mean", "without passive")
    if together.total_correlation == float("inf"):
        yield Finding(
            "singular",
            "advice",
            f"The mean codes of the latents in use are linearly dependent over these {diagnosis.n_examples} examples:"
            " their covariance is singular, and their total correlation infinite.",
            "Look for latents that say the same; give more examples than latents.",
            "Locatello et al. (2019)",
        )
    matrix = diagnosis.correlations.correlation[used][:, used].abs() - torch.eye(len(used), dtype=torch.float64)
    if len(used) > 1 and float(matrix.max()) > STRONG:
        first, second = divmod(int(matrix.argmax()), len(used))
        yield Finding(
            "correlated",
            "advice",
            f"Latents {used[first]} and {used[second]} correlate {float(matrix.max()):.2f} in their means: they share"
            " what they say.",
            "Compare seeds (unweave compare); a larger β, β-TCVAE or DIP-VAE presses latents apart.",
            "Locatello et al. (2019)",
        )
