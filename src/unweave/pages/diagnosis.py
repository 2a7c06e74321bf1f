"""The page of a diagnosis: findings in words, every latent with its evidence, histograms, and what depends on what."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from unweave.evaluation.decoder import Decoder
from unweave.evaluation.diagnosis import Diagnosis
from unweave.evaluation.finding import Finding
from unweave.evaluation.over_training import OverTraining
from unweave.metrics.polarised.by_type import Dependence
from unweave.pages.html import Html, chart, chip, element, facts, joined, paragraphs, table
from unweave.pages.page import Section, page
from unweave.plots import latents
from unweave.plots.arrays import TYPES
from unweave.plots.format import count, number
from unweave.plots.matrices import heat_map
from unweave.plots.training import loss_curves
from unweave.words import number_of

MOST_SHOWN = 2000
"""Examples behind the histograms."""


def diagnosis_page(
    title: str,
    diagnosis: Diagnosis,
    found: Sequence[Finding],
    summary: Mapping[str, Any],
    decoder: Decoder | None = None,
    training: OverTraining | None = None,
) -> str:
    """The whole page, self-contained. ``summary`` are the numbers that belong to no single latent, by name."""
    sections = [
        _in_short(diagnosis, found),
        _every_latent(diagnosis),
        _spread(diagnosis),
        _dependence(diagnosis),
        Section("All numbers", facts(_rounded(summary))),
    ]
    if training is not None and training.regime is not None:
        sections.insert(4, _over_training(training, diagnosis))
    if decoder is not None:
        sections.insert(-1, _decoder(decoder))
    kinds = diagnosis.types
    lead = (
        f"{kinds.count('active')} of {count(len(kinds), 'latent')} active, {kinds.count('mixed')} mixed,"
        f" {kinds.count('passive')} passive, over {number_of(diagnosis.n_examples, 'example')}."
    )
    return page(title, sections, {"rule": diagnosis.rule, "examples": diagnosis.n_examples}, lead, "unweave diagnose")


def _in_short(diagnosis: Diagnosis, found: Sequence[Finding]) -> Section:
    kinds: list[str] = [*diagnosis.types]
    tiles = [
        element("div", element("b", kinds.count(kind)), element("span", kind), class_=f"tile {kind}") for kind in TYPES
    ]
    tiles.append(
        element("div", element("b", number(diagnosis.rate)), element("span", "rate (KL in all), nats"), class_="tile")
    )
    if not found:
        words = element("p", "Nothing stands out: the latents are precise, independent, and as many as are needed.")
    else:
        words = element("ul", *(_item(finding) for finding in found))
    return Section("Findings", joined(element("div", *tiles, class_="tiles"), words))


def _item(finding: Finding) -> Html:
    return element(
        "li", element("b", f"{finding.weight.capitalize()}. "), finding.text, " ", element("i", finding.advice),
        " ", element("small", f"[{finding.reference}]"),
    )  # fmt: skip


def _every_latent(diagnosis: Diagnosis) -> Section:
    columns = ["latent", "type", "KL (nats)", "mean σ²", "var σ²", "var μ", "strongest correlation", "with", "evidence"]
    rows = [
        (
            str(one.latent), chip(one.type), one.kl, one.mean_variance, one.variance_of_variance,
            one.variance_of_mean, one.correlation, "–" if one.partner is None else str(one.partner), one.evidence,
        )
        for one in sorted(diagnosis.latents, key=lambda one: -one.kl)
    ]  # fmt: skip
    kl = [one.kl for one in diagnosis.latents]
    spread = [one.variance_of_variance for one in diagnosis.latents]
    scatter = latents.variance_scatter([one.mean_variance for one in diagnosis.latents], spread, diagnosis.types)
    charts = element(
        "div",
        chart(latents.kl_bars(kl, diagnosis.types), "kl", "Bars: the KL of every latent, the largest first."),
        chart(scatter, "variances", "Scatter: mean and variance of σ² of every latent."),
        class_="charts",
    )
    return Section("Every latent", joined(charts, table(columns, rows)))


def _spread(diagnosis: Diagnosis) -> Section:
    order = np.argsort([-one.kl for one in diagnosis.latents], kind="stable")
    mean, sampled = (codes[:MOST_SHOWN][:, order.tolist()].numpy() for codes in (diagnosis.mean, diagnosis.sampled))
    kinds = [diagnosis.types[place] for place in order]
    words = paragraphs(
        "Filled: the means that the encoder answers. Outline: the samples that the decoder sees. Dashed: the prior."
        " For an active latent both spread alike. A passive one has all its means at 0, and its samples are the"
        " prior's noise. A mixed one has a peak of means at 0 on a wider ground."
    )
    figure = latents.histograms(mean, sampled, kinds, latents=order.tolist())
    alt = "Small histograms of mean and sampled codes, one panel a latent."
    return Section("Mean and sampled codes", joined(words, chart(figure, "histograms", alt, wide=True)))


def _dependence(diagnosis: Diagnosis) -> Section:
    columns = ["codes", "latents", "how many", "total correlation (nats)", "averaged MI (nats)", "effective rank"]
    rows = [
        (one.representation, one.subset, one.n_latents, *map(_or_dash, _shared(one))) for one in diagnosis.dependence
    ]
    words = paragraphs(
        "Passive latents are independent noise in the sampled codes. In the mean codes nothing keeps their tiny values"
        " from following the others: compare the lines with and without them before calling a model entangled."
    )
    names = [str(one.latent) for one in diagnosis.latents]
    matrix = diagnosis.correlations.correlation.numpy()
    figure = heat_map(matrix, names, names, "Correlation of the mean codes", limits=(-1.0, 1.0), diverging=True)
    drawn = chart(figure, "correlations", "Matrix: the correlation of every latent's mean with every other's.")
    return Section("How latents depend on each other", joined(words, table(columns, rows), drawn))


def _over_training(training: OverTraining, diagnosis: Diagnosis) -> Section:
    regime = training.regime
    assert regime is not None
    words = [
        f"Δ_KL stayed below {100 * regime.threshold:.0f} % for the last {100 * regime.share:.1f} % of the training."
    ]
    if training.correlations is None:
        words.append("The run kept no snapshots, so nothing is known of the codes on the way.")
        charts = element("div", *_charts_over_training(training, diagnosis), class_="charts")
        return Section("Over training", joined(paragraphs(*words), charts))
    often = training.correlations.often
    rows = [(str(one.latent), chip(one.type), 100 * float(often[one.latent])) for one in diagnosis.latents]
    caption = (
        f"Share of {len(training.snapshots)} snapshots in which a latent's mean correlates above 0.2 with another."
    )
    charts = element("div", *_charts_over_training(training, diagnosis), class_="charts")
    told = table(["latent", "type", "snapshots (%)"], rows, caption)
    return Section("Over training", joined(paragraphs(*words), charts, told))


def _charts_over_training(training: OverTraining, diagnosis: Diagnosis) -> list[Html]:
    """How KL, Δ_KL and correlations went, each where it is known."""
    drawn = []
    if training.kl is not None:
        figure = latents.latent_history(np.array(training.steps), training.kl.numpy(), diagnosis.types)
        drawn.append(chart(figure, "kl over training", "Lines: the KL of every latent over the steps of the training."))
    if training.regime is not None and len(training.regime_steps) > 1:
        figure = loss_curves(np.array(training.regime_steps), {"Δ_KL (%)": 100 * training.regime.delta.numpy()})
        drawn.append(chart(figure, "delta kl over training", "Line: Δ_KL over the steps of the training."))
    if training.correlations is not None and len(training.snapshots) > 1:
        strongest = training.correlations.strongest.numpy()
        title = "Strongest correlation at every snapshot"
        at = np.array(training.snapshots)
        figure = latents.latent_history(at, strongest, diagnosis.types, title, "|correlation|")
        drawn.append(chart(figure, "correlations over training", "Lines: each latent's strongest correlation."))
    return drawn


def _decoder(decoder: Decoder) -> Section:
    words = paragraphs(
        "Each latent moves the decoded picture in some direction. DtO is 0 when these are the directions of largest"
        " variation, as in PCA, and near its chance value when they are arbitrary. The IMA contrast is 0 when they are"
        " orthogonal, whatever their lengths."
    )
    shown = {
        "DtO": decoder.dto,
        "DtO of random directions": decoder.dto_chance,
        "IMA contrast": decoder.ima,
        "self-consistency of encoder and decoder": decoder.consistency,
        "rate (nats)": decoder.rate_distortion.rate,
        "distortion (nats)": decoder.rate_distortion.distortion,
        "squared error at the mean code": decoder.split.deterministic,
        "squared error that the noise adds": decoder.split.stochastic,
    }
    return Section("The decoder", joined(words, facts(_rounded(shown))))


def _shared(one: Dependence) -> tuple[float | None, ...]:
    return one.total_correlation, one.averaged_mi, one.effective_rank


def _rounded(described: Mapping[str, Any]) -> dict[str, Any]:
    return {name: number(value, 4) if isinstance(value, float) else value for name, value in described.items()}


def _or_dash(value: float | None) -> float:
    """A number that the table shows as a dash where there is none."""
    return float("nan") if value is None else value
