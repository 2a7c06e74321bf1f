"""The page of a comparison: heat maps of layers with encoder and decoder marked, and the matched latents.

With it go its numbers as JSON and its heat maps as pictures.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from unweave.evaluation.learnt_same import learnt_same
from unweave.evaluation.scores import plain
from unweave.evaluation.similarity import LayerComparison, Matched, Similarity
from unweave.files import write_atomically, write_text
from unweave.pages.html import Html, chart, element, joined, paragraphs, table
from unweave.pages.page import Page, Section, page
from unweave.plots.matrices import heat_map
from unweave.plots.save import to_png
from unweave.words import number_of

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


def write_comparison(found: Similarity, folder: Path | str) -> Path:
    """Write ``comparison.html``, ``comparison.json`` and ``figures/*.png``; the page's path is returned."""
    folder = Path(folder)
    made = comparison_page(found, {"models": len(found.members)})
    for name, content in made.pictures.items():
        write_atomically(folder / "figures" / name, _writer(content))
    write_text(folder / "comparison.json", json.dumps(comparison_to_plain(found), indent=2, allow_nan=False) + "\n")
    write_text(folder / "comparison.html", made.html)
    return folder / "comparison.html"


def comparison_page(found: Similarity, meta: Mapping[str, Any]) -> Page:
    """The page of a comparison and its pictures."""
    drawn = [{measure: _map(one, measure) for measure in MEASURES} for one in found.comparisons]
    pictures = {f"{n}_{name}.png": to_png(figure) for n, maps in enumerate(drawn) for name, figure in maps.items()}
    sections = [Section("Which to trust", paragraphs(*TRUST))]
    sections += [_section(one, place, maps) for place, (one, maps) in enumerate(zip(found.comparisons, drawn))]
    if found.matched:
        sections.append(_matched(found))
    answer = learnt_same(found)
    examples = number_of(found.n_examples, "example")
    lead = f"{number_of(len(found.members), 'model')} compared layer by layer on {examples}."
    lead = lead if answer is None else f"{answer.sentence} {lead}"
    return Page(page("How alike are these models?", sections, meta, lead, "unweave compare"), pictures)


def comparison_to_plain(found: Similarity) -> dict[str, Any]:
    """Everything as JSON takes it."""
    return {
        "members": list(found.members),
        "n_examples": found.n_examples,
        "answer": plain(learnt_same(found)),
        "comparisons": [_plain(comparison) for comparison in found.comparisons],
        "matched": [
            {
                "left": one.left,
                "right": one.right,
                "score": one.matching.score,
                "partner": one.matching.partner.tolist(),
                "correlation": one.matching.correlation.tolist(),
                "identical": one.identical,
            }
            for one in found.matched
        ],
    }


def _map(comparison: LayerComparison, measure: str) -> "matplotlib.figure.Figure":
    """One measure of all pairs of layers; lines mark where encoders end."""
    return heat_map(
        getattr(comparison, measure).numpy(),
        comparison.rows,
        comparison.columns,
        MEASURES[measure],
        limits=(0.0, 1.0),
        splits=(_inside(comparison.splits[0], comparison.rows), _inside(comparison.splits[1], comparison.columns)),
        row_label=comparison.left,
        column_label=comparison.right,
    )


def _inside(split: int, names: Sequence[str]) -> tuple[int, ...]:
    """Where the decoder begins; nothing for a model without one."""
    return (split,) if split < len(names) else ()


def _section(comparison: LayerComparison, place: int, maps: Mapping[str, Any]) -> Section:
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


def _chance(comparison: LayerComparison) -> str:
    chance = int((comparison.p_values > 0.05).sum())
    if chance == comparison.p_values.numel():
        return "No cell has p ≤ 0.05 among shuffled examples; fewer than 19 shuffles cannot show it."
    return f"The similarity could be chance in {chance or 'none'} of them (p > 0.05 among shuffled examples)."


def _title(comparison: LayerComparison) -> str:
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


def _writer(content: bytes) -> Callable[[Path], int]:
    return lambda aside: aside.write_bytes(content)


def _plain(comparison: LayerComparison) -> dict[str, Any]:
    names = ("cka", "procrustes", "svcca", "p_values", "saturated")
    return {
        "left": comparison.left,
        "right": comparison.right,
        "rows": list(comparison.rows),
        "columns": list(comparison.columns),
        "decoder_from": list(comparison.splits),
        "n_pairs": comparison.n_pairs,
        "estimator": comparison.estimator,
        "quoted": comparison.averaged.quoted.tolist(),
        "spread": comparison.averaged.spread.tolist(),
        "disagree": comparison.averaged.disagree.tolist(),
        **{name: plain(getattr(comparison, name).tolist()) for name in names},
    }
