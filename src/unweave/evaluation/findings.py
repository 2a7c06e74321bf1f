"""What stands out in a model, in plain words: the one source of `show`, `diagnose`, the pages and the explorer."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from unweave.data.factors import FactorSpace
from unweave.evaluation.decoder import Decoder
from unweave.evaluation.describe import Description
from unweave.evaluation.diagnosis import Diagnosis, diagnose_codes
from unweave.evaluation.finding import Expected, Finding, Weight
from unweave.evaluation.findings_in_codes import findings_in_codes
from unweave.evaluation.findings_in_runs import findings_in_decoder, findings_in_training
from unweave.evaluation.over_training import OverTraining
from unweave.models.posteriors import Code
from unweave.words import number_of


def findings(
    diagnosis: Diagnosis,
    expected: Expected | None = None,
    decoder: Decoder | None = None,
    training: OverTraining | None = None,
    no_decoder: str = "",
    without_kl: str = "",
) -> tuple[Finding, ...]:
    """Everything that stands out, problems first; nothing for a healthy model.

    ``no_decoder`` is the sentence about a method that trains none, ``without_kl`` the name of one that has no KL.
    """
    found = [*findings_in_codes(diagnosis, expected)]
    if no_decoder:
        advice = "What is measured at a decoder is left out; score the codes with: unweave evaluate"
        found.append(Finding("no_decoder", "note", f"{no_decoder}.", f"{advice}.", "docs, methods"))
    if decoder is not None:
        found += findings_in_decoder(diagnosis, decoder)
    if training is not None:
        found += findings_in_training(diagnosis, training)
    if without_kl:
        found = [*_without_kl(without_kl, diagnosis, found)]
    weights: tuple[Weight, ...] = ("problem", "advice", "note")
    return tuple(sorted(found, key=lambda finding: weights.index(finding.weight)))


def sentences(description: Description, expected: Expected | None = None) -> list[str]:
    """A described run in words: how many latents are of which type, and what its codes show, each with its advice."""
    diagnosis = diagnose_described(description)
    active, mixed, passive = (diagnosis.types.count(kind) for kind in ("active", "mixed", "passive"))
    words = [f"{active} of {number_of(len(diagnosis.types), 'latent')} are active, {mixed} mixed, {passive} passive."]
    if expected is not None and active == expected.n_factors and mixed == 0:
        words.append(f"That is exactly as many as the world has factors: {expected.n_factors}.")
    found = findings(diagnosis, expected, no_decoder=description.no_decoder, without_kl=description.without_kl)
    return words + [f"{finding.text} {finding.advice}" for finding in found]


OF_A_KL = {"collapse", "mixed", "passive", "not_polarised", "prior_mismatch", "over_pruned", "not_pruned"}
"""Findings that say what a KL has done, or has not."""
OF_NOISE = {"faint_noise", "loud_noise"}


def _without_kl(method: str, diagnosis: Diagnosis, found: Sequence[Finding]) -> Iterator[Finding]:
    """What still holds where no KL has pressed on the codes; nobody is told to raise a β that there is not."""
    if diagnosis.stochastic:
        yield Finding(
            "no_kl",
            "note",
            f"{method} has no KL: the variances of its codes say how sure the encoder is, and types of latents and the"
            " polarised regime mean little here.",
            "Look at samples and traversals, and score the codes with: unweave evaluate.",
            "docs, methods",
        )
    for finding in found:
        if finding.name in ("correlated", "not_orthogonal"):
            yield replace(finding, advice="Compare with other seeds (unweave compare).")
        elif finding.name not in OF_A_KL | OF_NOISE:
            yield finding


def diagnose_described(description: Description) -> Diagnosis:
    """The diagnosis of the codes that a run was described by."""
    return diagnose_code(description.code, rule=description.rule)


def diagnose_code(code: Code, *, rule: str = "variance", seed: int = 0) -> Diagnosis:
    """The diagnosis of a model's code of some examples, held against the model's own prior."""
    return diagnose_codes(
        code.mean,
        code.variance,
        sampled=code.sampled,
        kl=code.kl,
        prior_mean=code.prior_mean,
        prior_variance=code.prior_variance,
        rule=rule,
        seed=seed,
    )


def expected_of(space: FactorSpace | None, n_factors: int | None = None) -> Expected | None:
    """What a world's factors need, or a number of factors that the user knows; None where nothing is known."""
    if n_factors is not None:
        if n_factors < 1:
            raise ValueError(f"the number of factors must be at least 1, not {n_factors}")
        return Expected(n_factors, 2 * n_factors)
    if space is None:
        return None
    # a ring needs a plane to lie in, and k categories at most k − 1 directions
    room = {"ordinal": lambda size: 1, "cyclic": lambda size: 2, "categorical": lambda size: max(1, size - 1)}
    return Expected(len(space.factors), sum(room[axis.kind](axis.size) for axis in space.axes))
