"""The page of a comparison: heat maps of layers with encoder and decoder marked, and the matched latents."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from unweave.evaluation.similarity import Comparison, Matched, Similarity
from unweave.plots.html import Html, chart, element, joined, paragraphs, table
from unweave.plots.matrices import heat_map
from unweave.plots.report import Section, page
from unweave.plots.save import to_png

if TYPE_CHECKING:
    import matplotlib.figure

TRUST = (
    "CKA hardly sees small differences; Procrustes sees them, but overrates similarity when there are fewer examples"
    " than features. Where the two differ, one of them is too high: quote the smaller (Bonheme, 2023, §7.2.2).",
    "Layers of different kinds, as those of an encoder and of a decoder, look less alike than they are: compare cells"
    " within a quadrant, and the two off-diagonal quadrants with each other. SVCCA ignores the scale of directions: it"
    " is a third opinion, and nearly 1 by itself where it keeps more directions than there are examples.",
)
MEASURES = {"cka": "CKA", "procrustes": "Procrustes", "svcca": "SVCCA"}


@dataclass(frozen=True)
class SimilarityReport:
    """The page, self-contained, and every heat map of it as a PNG by file name."""

    html: str
    pictures: dict[str, bytes]


def similarity_report(found: Similarity, meta: Mapping[str, Any]) -> SimilarityReport:
    """The page of a comparison and its pictures."""
    drawn = [{measure: similarity_map(one, measure) for measure in MEASURES} for one in found.comparisons]
    pictures = {f"{n}_{name}.png": to_png(figure) for n, maps in enumerate(drawn) for name, figure in maps.items()}
    sections = [Section("Which to trust", paragraphs(*TRUST))]
    sections += [_section(one, place, maps) for place, (one, maps) in enumerate(zip(found.comparisons, drawn))]
    if found.matched:
        sections.append(_matched(found))
    lead = f"{len(found.members)} models compared layer by layer on {found.n_examples:,} examples."
    return SimilarityReport(page("How alike are these models?", sections, meta, lead, "unweave compare"), pictures)


def similarity_map(comparison: Comparison, measure: str) -> "matplotlib.figure.Figure":
    """One measure of all pairs of layers; lines mark where encoders end."""
    return heat_map(
        getattr(comparison, measure).numpy(),
        comparison.rows,
        comparison.columns,
        MEASURES[measure],
        limits=(0.0, 1.0),
        splits=((comparison.splits[0],), (comparison.splits[1],)),
        row_label=comparison.left,
        column_label=comparison.right,
    )


def _section(comparison: Comparison, place: int, maps: Mapping[str, Any]) -> Section:
    disagree = int(comparison.averaged.disagree.sum())
    n_cells = comparison.cka.numel()
    words = paragraphs(
        f"Rows: {comparison.left}. Columns: {comparison.right}. The lines part encoder from decoder."
        f" {_pairs(comparison.n_pairs)} {comparison.estimator.capitalize()} CKA.",
        f"CKA and Procrustes differ by more than 0.1 in {disagree or 'none'} of {n_cells} cells. {_chance(comparison)}",
    )
    charts = [
        chart(
            maps[measure],
            f"{measure}-{place}",
            f"Heat map: {name} of every layer of {comparison.left} with every layer of {comparison.right}.",
            wide=True,
        )
        for measure, name in MEASURES.items()
    ]
    title = _title(comparison)
    # one below the other: side by side the numbers in the cells would be too small to read
    return Section(title, joined(words, *charts))


def _chance(comparison: Comparison) -> str:
    chance = int((comparison.p_values > 0.05).sum())
    if chance == comparison.p_values.numel():
        return "No cell has p ≤ 0.05 among shuffled examples; fewer than 19 shuffles cannot show it."
    return f"The similarity could be chance in {chance or 'none'} of them (p > 0.05 among shuffled examples)."


def _title(comparison: Comparison) -> str:
    if comparison.left == comparison.right:
        return f"{comparison.left}, {'seeds' if comparison.n_pairs > 1 else 'its layers'} with each other"
    return f"{comparison.left} and {comparison.right}"


def _pairs(count: int) -> str:
    return "One pair of models." if count == 1 else f"The mean over {count} pairs of models."


def _matched(found: Similarity) -> Section:
    words = paragraphs(
        "Latents in use, matched one to one so that their mean codes correlate as much as can be. A score of 1 means"
        " the same latents up to order, sign and scale."
    )
    overview = table(
        ["first", "second", "score", ""],
        [(one.left, one.right, one.matching.score, "same weights" if one.identical else "") for one in found.matched],
    )
    return Section("Matched latents", joined(words, overview, *(_details(one) for one in found.matched[:6])))


def _details(one: Matched) -> Html:
    rows = [
        (str(left), str(int(right)), float(value))
        for left, (right, value) in enumerate(zip(one.matching.partner, one.matching.correlation))
        if int(right) >= 0
    ]
    if not rows:
        return element("p", f"{one.left} and {one.right}: no latent in use to match.")
    order = sorted(rows, key=lambda row: -np.abs(row[2]))
    return table([f"latent of {one.left}", f"latent of {one.right}", "correlation"], order)
