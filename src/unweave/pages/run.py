"""The page of one run: what the model learned, in pictures and plain words, from arrays alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from unweave.pages.html import Html, chart, chip, element, facts, joined, paragraphs, table
from unweave.pages.page import Page, Section, page
from unweave.pages.sliders import latent_sliders, pixel_change
from unweave.plots import columns, images, latents, training
from unweave.plots.arrays import TYPES, checked, checked_types
from unweave.plots.format import count, number, short
from unweave.plots.save import to_png

STRIP_COLUMNS = 11
"""Frames of a traversal that the still picture shows."""

MEANINGS = {
    "active": "In use. For every picture the encoder picks a value and hardly blurs it: σ² is near 0. Move the latent"
    " and the picture changes. What it says has a price, its KL.",
    "mixed": "In use for some pictures and not for others. Its σ² is small for the first and near 1 for the second, so"
    " the average lies in between or varies. Often a sign that training was short or the pressure too weak.",
    "passive": "Switched off. Whatever the picture, the encoder answers with the prior: noise with σ² = 1 around 0."
    " The decoder has learned not to listen: move the latent and nothing happens. It costs next to no KL.",
}


@dataclass(frozen=True)
class LatentTable:
    """What is known of every latent, each [latent]: type, KL, mean and variance of σ² over examples, variance of μ."""

    types: Sequence[str]
    kl: ArrayLike
    mean_variance: ArrayLike
    variance_of_variance: ArrayLike
    variance_of_mean: ArrayLike


@dataclass(frozen=True)
class TrainingCurves:
    """History at steps [row]: every term of the loss [row] by name, and the KL of every latent [row, latent]."""

    steps: ArrayLike
    terms: Mapping[str, ArrayLike]
    kl: ArrayLike


@dataclass(frozen=True)
class Pictures:
    """What can be shown when the data are images.

    ``traversals`` [latent, step, channel, height, width] at ``values`` [step]; originals and their reconstructions
    [image, channel, height, width].
    """

    traversals: ArrayLike
    values: ArrayLike
    originals: ArrayLike
    reconstructed: ArrayLike


@dataclass(frozen=True)
class TableRows:
    """What can be shown when the data are a table, in the units of its columns.

    ``traversals`` [latent, step, column] at ``values`` [step]; rows and their reconstructions [row, column].
    """

    names: Sequence[str]
    deviations: ArrayLike
    traversals: ArrayLike
    values: ArrayLike
    rows: ArrayLike
    reconstructed: ArrayLike

    def moves(self) -> np.ndarray:
        """How far every latent moves every column, in deviations of the column [latent, column]."""
        return np.ptp(np.asarray(self.traversals), axis=1) / np.asarray(self.deviations)


@dataclass(frozen=True)
class CodeSamples:
    """Codes of examples, each [sample, latent]."""

    mean: ArrayLike
    sampled: ArrayLike


def run_page(
    *,
    title: str,
    experiment: Mapping[str, Any],
    latent_table: LatentTable,
    curves: TrainingCurves,
    shown: Pictures | None = None,
    rows: TableRows | None = None,
    codes: CodeSamples | None = None,
    findings: Sequence[str] = (),
    summary: Mapping[str, Any] | None = None,
    environment: Mapping[str, Any] | None = None,
    command: str = "",
    alpha: float = 0.1,
    protocol: str = "",
) -> Page:
    """The page and its pictures. ``summary`` are a few facts for its head; ``findings`` are sentences.

    ``protocol`` says what the numbers of latents were measured on.
    """
    kl = checked("latent_table.kl", latent_table.kl, "latent")
    kinds = checked_types(latent_table.types, len(kl))
    order = np.argsort(-kl, kind="stable")
    drawn = _figures(latent_table, curves, shown, rows, codes, order, alpha)
    sections = [
        _in_short(kinds, kl, curves, findings),
        *_moving(shown, kinds, kl, "picture" if rows is None else "row"),
        *_rebuilding(shown, drawn),
        *_of_columns(rows, drawn),
        _every_latent(latent_table, shown, rows, drawn, order, alpha, protocol),
        _over_training(drawn, curves),
        *_distributions(codes, drawn),
        *_traversals(shown, drawn),
        _how_made(experiment, environment or {}, command),
    ]
    pngs = {f"{name}.png": to_png(figure) for name, figure in drawn.items()}
    return Page(page(title, sections, summary or {}, _lead(kinds, shown)), pngs)


def _figures(
    latent_table: LatentTable,
    curves: TrainingCurves,
    shown: Pictures | None,
    rows: TableRows | None,
    codes: CodeSamples | None,
    order: np.ndarray,
    alpha: float,
) -> dict[str, Any]:
    """Every figure by name; rows of latents stand in the order of their KL."""
    kinds = [latent_table.types[latent] for latent in order]
    drawn = {
        "kl": latents.kl_bars(latent_table.kl, latent_table.types),
        "variances": latents.variance_scatter(
            latent_table.mean_variance, latent_table.variance_of_variance, latent_table.types, alpha
        ),
        "kl_history": latents.latent_history(curves.steps, curves.kl, latent_table.types),
        "losses": training.loss_curves(curves.steps, curves.terms),
    }
    if shown is not None:
        steps = _spread(len(np.asarray(shown.values)))
        frames = np.asarray(shown.traversals)[order][:, steps]
        values = np.asarray(shown.values)[steps]
        drawn["traversals"] = images.traversals(
            frames, kinds, np.asarray(latent_table.kl)[order], values, order.tolist()
        )
        drawn["reconstructions"] = images.reconstructions(shown.originals, shown.reconstructed)
    if rows is not None:
        frames = np.asarray(rows.traversals)[order]
        drawn["traversals"] = columns.column_traversals(
            frames, rows.names, kinds, rows.values, order.tolist(), rows.deviations
        )
        drawn["reconstructions"] = columns.column_reconstructions(rows.rows, rows.reconstructed, rows.names)
    if codes is not None:
        mean, sampled = np.asarray(codes.mean)[:, order], np.asarray(codes.sampled)[:, order]
        across = min((5, 4, 3), key=lambda across: -len(order) % across)
        drawn["histograms"] = latents.histograms(mean, sampled, kinds, across, order.tolist())
    return drawn


def _lead(kinds: list[str], shown: Pictures | None) -> str:
    n_active, n_passive = kinds.count("active"), kinds.count("passive")
    said = f"The model had {count(len(kinds), 'latent')} to describe its data. It uses {n_active} of them fully"
    if n_passive:
        said += f" and has switched {n_passive} off"
    mixed = f"; {count(kinds.count('mixed'), 'latent')} hang between the two" if "mixed" in kinds else ""
    mixed = mixed.replace("1 latent hang", "1 latent hangs")
    return said + mixed + (". Move the sliders below to see which is which." if shown is not None else ".")


def _in_short(kinds: list[str], kl: np.ndarray, curves: TrainingCurves, findings: Sequence[str]) -> Section:
    tiles = [_tile(str(kinds.count(kind)), kind, kind if kind in kinds else "") for kind in TYPES]
    tiles.append(_tile(number(float(kl.sum())), "KL in all, in nats"))
    if "reconstruction" in curves.terms:
        last = checked("reconstruction", curves.terms["reconstruction"], "row", finite=False)[-1]
        tiles.append(_tile(number(float(last)), "reconstruction loss at the end"))
    words = element("ul", *(element("li", finding) for finding in findings)) if findings else Html()
    return Section("In short", joined(element("div", *tiles, class_="tiles"), words))


def _tile(value: str, words: str, kind: str = "") -> Html:
    return element("div", element("b", value), element("span", words), class_=f"tile {kind}".strip())


def _moving(shown: Pictures | None, kinds: list[str], kl: np.ndarray, what: str) -> list[Section]:
    if shown is None:
        return [Section("What the three types mean", _meanings(what))]
    words = paragraphs(
        "Each card shows what the decoder draws when one latent moves and all others stay where they are."
        " Drag a slider, or let all of them run: active latents move the picture, passive ones leave it alone.",
    )
    strip = latent_sliders(shown.traversals, kinds, kl, shown.values)
    return [Section("Move the latents yourself", joined(words, strip, _meanings(what)))]


def _meanings(what: str) -> Html:
    told = {kind: words.replace("picture", what) for kind, words in MEANINGS.items()}
    parts = (element("div", chip(kind), element("p", words), class_=kind) for kind, words in told.items())
    return element("div", *parts, class_="types")


def _rebuilding(shown: Pictures | None, drawn: Mapping[str, Any]) -> list[Section]:
    if shown is None:
        return []
    words = paragraphs(
        "Above, pictures from the data; below each, what is left of it after passing through the code. What"
        " survives is what the latents in use have to say: the passive ones hold nothing.",
    )
    alt = "Rows of original pictures, each with its reconstruction below it."
    return [
        Section(
            "Originals and reconstructions", joined(words, _still(drawn["reconstructions"], "reconstructions", alt))
        )
    ]


def _of_columns(rows: TableRows | None, drawn: Mapping[str, Any]) -> list[Section]:
    """What latents do to columns, and what is left of every column after passing through the code."""
    if rows is None:
        return []
    moving = paragraphs(
        "Each panel is a column, in its own units, and each line a latent that moves while all others stay where they"
        " are. A panel is never lower than two deviations of its column: what looks flat there is flat."
    )
    alt = "Small panels, one a column: how its value changes as each latent moves."
    rebuilding = paragraphs(
        "Across, what stands in the table; upwards, what is left of it after passing through the code. The error is the"
        " root of the mean square, in the units of the column; explained is the share of the column's variance that"
        " survives."
    )
    dots = "Small panels, one a column: reconstructed values against those of the table."
    head = ["column", "mean", "deviation", "error", "explained"]
    return [
        Section("What latents do to columns", joined(moving, _still(drawn["traversals"], "traversals", alt))),
        Section(
            "Rows and reconstructions",
            joined(rebuilding, _still(drawn["reconstructions"], "reconstructions", dots), table(head, _errors(rows))),
        ),
    ]


def _errors(rows: TableRows) -> list[list[Any]]:
    first, second = np.asarray(rows.rows), np.asarray(rows.reconstructed)
    squares, spreads = np.square(first - second).mean(axis=0), first.var(axis=0)
    # 1 − E (x − x̂)² / Var x
    explained = [f"{100 * (1 - left / all_):.0f} %" if all_ > 0 else "–" for left, all_ in zip(squares, spreads)]
    explained = [share.replace("-", "−") for share in explained]
    numbers = np.stack([first.mean(axis=0), np.asarray(rows.deviations), np.sqrt(squares)], axis=1)
    return [[name, *map(float, line), share] for name, line, share in zip(rows.names, numbers, explained)]


def _still(figure: Any, name: str, alt: str, caption: str = "") -> Html:
    return chart(figure, name, alt, caption, wide=True)


def _every_latent(
    latent_table: LatentTable,
    shown: Pictures | None,
    of_table: TableRows | None,
    drawn: Mapping[str, Any],
    order: np.ndarray,
    alpha: float,
    protocol: str,
) -> Section:
    head = ["latent", "type", "KL (nats)", "mean σ²", "variance of σ²", "variance of μ"]
    numbers = np.stack(
        [
            checked(name, getattr(latent_table, name), "latent", latent=len(order))
            for name in ("kl", "mean_variance", "variance_of_variance", "variance_of_mean")
        ]
    )
    rows = [[f"latent {i}", chip(latent_table.types[i]), *map(float, numbers[:, i])] for i in order]
    if shown is not None:
        head.append("mean pixel change")
        changes = pixel_change(shown.traversals)
        rows = [[*row, float(changes[i])] for row, i in zip(rows, order)]
    if of_table is not None:
        head.append("moves most")
        most = of_table.moves().argmax(axis=1)
        rows = [[*row, of_table.names[most[i]]] for row, i in zip(rows, order)]
    words = paragraphs(
        "KL is what a latent costs: how far its code strays from the prior, in nats, on average over examples."
        f" A latent is called active when mean and variance of σ² are at most {short(alpha)}, passive when the mean is"
        f" within {short(alpha)} of 1 and the variance at most {short(alpha)}, and mixed otherwise."
        + (f" {protocol}" if protocol else ""),
    )
    charts = element(
        "div",
        chart(drawn["kl"], "kl", "Bars: the KL of every latent, the largest first, coloured by type."),
        chart(
            drawn["variances"],
            "variances",
            "Scatter: mean and variance of σ² of every latent, with the rule's regions.",
        ),
        class_="charts",
    )
    return Section("Every latent", joined(words, charts, table(head, rows)))


def _over_training(drawn: Mapping[str, Any], curves: TrainingCurves) -> Section:
    words = paragraphs(
        "Latents often wake up one after the other: each rise is the model finding something worth its price."
        " One that does not pay for itself sinks to zero.",
    )
    figures = [chart(drawn["kl_history"], "kl-history", "Lines: the KL of every latent over training.")]
    for place, (name, values) in enumerate(curves.terms.items()):
        figure = training.loss_curves(curves.steps, {name: values})
        figures.append(chart(figure, f"term-{place}", f"Line: {name.replace('_', ' ')} over training."))
    note = element("figcaption", "Strong lines are running means; pale ones are single batches.")
    return Section("Over training", joined(words, element("div", *figures, class_="charts"), note))


def _distributions(codes: CodeSamples | None, drawn: Mapping[str, Any]) -> list[Section]:
    if codes is None:
        return []
    words = paragraphs(
        "How the codes of many examples are spread. Filled: the means that the encoder answers. Outline: the samples"
        " that the decoder sees. Dashed: the prior. For an active latent both spread alike; a passive one has all its"
        " means at zero, and its samples are the prior's noise. Every curve is scaled to the same height.",
    )
    alt = "Small histograms of mean and sampled codes, one panel a latent."
    return [Section("How codes are spread", joined(words, _still(drawn["histograms"], "histograms", alt)))]


def _traversals(shown: Pictures | None, drawn: Mapping[str, Any]) -> list[Section]:
    if shown is None:
        return []
    words = paragraphs(
        "The frames of the sliders side by side, for print and for slides. One row a latent, the largest KL first."
    )
    alt = "One row of pictures a latent: how the picture changes as the latent's value grows."
    return [Section("All traversals", joined(words, _still(drawn["traversals"], "traversals", alt)))]


def _how_made(experiment: Mapping[str, Any], environment: Mapping[str, Any], command: str) -> Section:
    parts = [facts(experiment)]
    if environment:
        parts += [element("h3", "Environment"), facts(environment)]
    if command:
        parts += [element("h3", "Command"), element("pre", element("code", command))]
    return Section("How this was made", joined(*parts))


def _spread(n_steps: int) -> np.ndarray:
    """At most STRIP_COLUMNS of the steps, evenly spread, both ends among them."""
    return np.unique(np.linspace(0, n_steps - 1, min(n_steps, STRIP_COLUMNS)).round().astype(int))
