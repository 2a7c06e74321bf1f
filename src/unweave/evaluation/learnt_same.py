"""Did these models learn the same? The answer in one sentence, with the rule behind it."""

from dataclasses import dataclass

from unweave.evaluation.similarity import Matched, Similarity

SAME = 0.8
"""How alike mean codes must be: the smaller of CKA and Procrustes. Both ignore turned axes and the scale of codes."""

AXES = 0.9
"""Mean |correlation| of matched latents from which codes agree latent by latent too."""

RULE = f"the smaller of CKA and Procrustes; {SAME} or more counts as the same"


@dataclass(frozen=True)
class Answer:
    """Whether every two of the models learnt the same."""

    same: bool
    sentence: str


def learnt_same(found: Similarity) -> Answer | None:
    """The answer for the ends of all runs; None where there is only one."""
    if not found.matched:
        return None
    if len(found.matched) == 1:
        return learnt_two(found.matched[0])
    different = [one for one in found.matched if not _same(one)]
    least = min(found.matched, key=_alike)
    n = len(found.matched)
    if not different:
        words = f"all {n} pairs do, the least alike to {_alike(least):.2f} ({RULE})"
        return Answer(True, f"They learnt the same: {words}.")
    pairs = f"{len(different)} of {n} pairs, most of all {least.left} and {least.right}"
    return Answer(False, f"They differ: {pairs}, whose mean codes are alike to {_alike(least):.2f} ({RULE}).")


def learnt_two(one: Matched) -> Answer:
    """The answer for two models."""
    return Answer(_same(one), _of_two(one))


def _of_two(one: Matched) -> str:
    if one.identical:
        return "They learnt the same: their weights are equal to the last bit."
    if not any(one.n_used):
        return "They learnt the same, and that is nothing: neither uses a latent."
    if not all(one.n_used):
        words = (f"{name} uses {n or 'no'} latent{'' if n == 1 else 's'}" for name, n in zip(one.names, one.n_used))
        return f"They differ: {', '.join(words)}."
    if not _same(one):
        return f"They differ: their mean codes are alike to {one.alike:.2f} ({RULE})."
    return f"They learnt the same: their mean codes are alike to {one.alike:.2f} ({RULE}){_axes(one)}."


def _axes(one: Matched) -> str:
    score = one.matching.score
    if score >= AXES:
        return f", and latent by latent ({score:.2f})"
    return f", but not latent by latent: matched latents correlate by {score:.2f}, so their axes lie otherwise"


def _same(one: Matched) -> bool:
    return _alike(one) >= SAME


def _alike(one: Matched) -> float:
    """1 for equal weights and for two models that use no latent, 0 where one of them uses none."""
    if one.identical or not any(one.n_used):
        return 1.0
    return one.alike if all(one.n_used) else 0.0
