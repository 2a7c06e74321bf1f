"""What stands out in a decoder and over a training, beyond what codes alone can tell."""

from collections.abc import Iterator

from unweave.evaluation.decoder import Decoder
from unweave.evaluation.diagnosis import Diagnosis
from unweave.evaluation.finding import NOTABLE, Finding, named
from unweave.evaluation.over_training import OverTraining

FAINT, LOUD = 0.02, 0.8
"""Shares of the squared error that the encoder's noise adds: below, it presses nothing; above, it drowns the rest."""
CURVED = 0.2
"""Share of the squared error that is neither part: 0 where the decoder is linear over the noise."""
SEEN = 3
"""Snapshots from which latents can be said to go together over the training."""


def findings_in_decoder(diagnosis: Diagnosis, decoder: Decoder) -> Iterator[Finding]:
    """Directions that are not aligned with the latents, and noise that plays the wrong part in the loss."""
    yield from _directions(decoder)
    if diagnosis.stochastic and diagnosis.numbers("active", "mixed"):
        yield from _noise(decoder)


def findings_in_training(diagnosis: Diagnosis, training: OverTraining) -> Iterator[Finding]:
    """Passive latents that go with others not only now: over most of the snapshots."""
    if training.correlations is None or len(training.snapshots) < SEEN:
        return
    often = training.correlations.often
    follow = [latent for latent in diagnosis.numbers("passive") if float(often[latent]) >= 0.5]
    if follow:
        total = len(training.snapshots)
        least = round(total * min(float(often[latent]) for latent in follow))
        many = f"all {total} snapshots" if least == total else f"at least {least} of {total} snapshots"
        yield Finding(
            "passive_over_training",
            "note",
            f"The means of passive {named(follow)} correlated above {NOTABLE} with another latent in {many}:"
            " that is no accident of the last step.",
            "Longer training will not mend it: leave passive latents out, or use sampled codes.",
            "Bonheme and Grzes (2021); Bonheme (2023), §6.5 and Figure 6.10",
        )


def _directions(decoder: Decoder) -> Iterator[Finding]:
    if decoder.dto is None or decoder.dto_chance is None or decoder.degenerate is None:
        return
    if decoder.dto_chance > 0 and decoder.dto > 0.8 * decoder.dto_chance:
        cause = (
            f" In {100 * decoder.degenerate:.0f} % of the examples two singular values are equal, where no direction is"
            " preferred."
            if decoder.degenerate > 0.5
            else ""
        )
        yield Finding(
            "not_orthogonal",
            "advice",
            f"The decoder's directions are not aligned with its latents: DtO {decoder.dto:.2f}, and random directions"
            f" have {decoder.dto_chance:.2f}.{cause}",
            "Do not read single latents as directions of variation; raise β, or compare with other seeds.",
            "Rolínek, Zietlow and Martius (2019); Zietlow (2022), §3.3.4",
        )


def _noise(decoder: Decoder) -> Iterator[Finding]:
    split = decoder.split
    if not split.total > 0.0:
        return
    share = split.stochastic / (split.deterministic + split.stochastic)
    if share < FAINT:
        yield Finding(
            "faint_noise",
            "advice",
            f"The encoder's noise adds {100 * share:.2g} % to the squared error of reconstructions: the model acts like"
            " an autoencoder without noise, and nothing presses its latents towards orthogonal directions.",
            "Raise β, or the variance of the likelihood, until the noise costs something.",
            "Rolínek, Zietlow and Martius (2019); Zietlow (2022), equations 3.8 to 3.10",
        )
    if share > LOUD:
        yield Finding(
            "loud_noise",
            "advice",
            f"{100 * share:.0f} % of the squared error of reconstructions comes from the encoder's noise, and"
            f" {100 - 100 * share:.0f} % from what the mean code misses: the code is less precise than it could be.",
            "Lower β, or the variance of the likelihood; more latents will not help.",
            "Zietlow (2022), equations 3.8 to 3.10",
        )
    if abs(split.rest) > CURVED * split.total:
        yield Finding(
            "curved_decoder",
            "note",
            f"The decoder bends within the encoder's noise: {100 * abs(split.rest) / split.total:.0f} % of the squared"
            " error is neither that of the mean code nor that of the noise around it.",
            "Do not trust DtO, IMA contrast and other linear pictures of this decoder.",
            "Zietlow (2022), §3.2.3, Proposition 4",
        )
