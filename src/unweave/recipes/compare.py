"""The comparison of runs, written: one self-contained page, its numbers as JSON, and its heat maps as pictures."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from unweave.evaluation.scores import plain
from unweave.evaluation.similarity import Comparison, Similarity
from unweave.files import write_atomically, write_text


def write_comparison(found: Similarity, folder: Path | str) -> Path:
    """Write ``comparison.html``, ``comparison.json`` and ``figures/*.png``; the page's path is returned."""
    import json

    from unweave.plots.similarity import similarity_report

    folder = Path(folder)
    made = similarity_report(found, {"models": len(found.members)})
    for name, content in made.pictures.items():
        write_atomically(folder / "figures" / name, _writer(content))
    write_text(folder / "comparison.json", json.dumps(comparison_to_plain(found), indent=2, allow_nan=False) + "\n")
    write_text(folder / "comparison.html", made.html)
    return folder / "comparison.html"


def comparison_to_plain(found: Similarity) -> dict[str, Any]:
    """Everything as JSON takes it."""
    return {
        "members": list(found.members),
        "n_examples": found.n_examples,
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


def _writer(content: bytes) -> Callable[[Path], int]:
    return lambda aside: aside.write_bytes(content)


def _plain(comparison: Comparison) -> dict[str, Any]:
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
