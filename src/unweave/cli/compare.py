"""unweave compare: did these models learn the same thing?"""

from collections.abc import Sequence
from pathlib import Path

from unweave.cli.console import print_json, print_table, say
from unweave.cli.measuring import watching
from unweave.cli.options import add_quiet, command, parse, whole
from unweave.evaluation.learnt_same import learnt_same
from unweave.evaluation.similarity import LayerComparison, Similarity, compare_runs
from unweave.pages.comparison import comparison_to_plain, write_comparison
from unweave.training.run import Run

EXAMPLES = """examples:
  unweave compare runs/a runs/b
  unweave compare runs/seed-*              runs that differ in their seed alone are averaged
  unweave compare runs/a                   its layers with each other, and its snapshots with its end
  unweave compare runs/a runs/b --snapshots --examples 2000"""


def run(argv: Sequence[str]) -> None:
    """Compare, print the layers that correspond, and write page, numbers and pictures."""
    parser = command(
        "unweave compare",
        "Layer-by-layer CKA, Procrustes and SVCCA between runs, seeds and snapshots; matched latents.",
        examples=EXAMPLES,
    )
    parser.add_argument("runs", nargs="+", metavar="RUN", help="folders of finished runs on one world")
    parser.add_argument("--snapshots", action="store_true", help="compare every snapshot with the end of its run, too")
    parser.add_argument(
        "--examples", type=whole(2, 10**6), default=500, metavar="N", help="examples to compare on (500)"
    )
    parser.add_argument(
        "--estimator", default="unbiased", metavar="NAME", help="unbiased, or biased as in published studies (unbiased)"
    )
    parser.add_argument(
        "--permutations", type=whole(0, 10**6), default=99, metavar="N", help="shuffles behind the p-values (99)"
    )
    parser.add_argument("--seed", type=whole(0), default=0, metavar="N", help="which examples and which noise (0)")
    parser.add_argument("--folder", default="comparison", help="where page, numbers and pictures go (comparison)")
    add_quiet(parser)
    parser.add_argument("--json", action="store_true", help="print as JSON")
    given = parse(parser, argv)
    opened = [Run(folder) for folder in given.runs]
    with watching("comparing", given.quiet) as watch:
        found = compare_runs(
            opened,
            n=given.examples,
            seed=given.seed,
            snapshots=given.snapshots,
            estimator=given.estimator,
            n_permutations=given.permutations,
            watch=watch,
        )
    page = write_comparison(found, Path(given.folder))
    if given.json:
        print_json({"page": str(page)} | comparison_to_plain(found))
        return
    _show(found, opened)
    say(f"\nwritten: {page}")


def _show(found: Similarity, runs: list[Run]) -> None:
    if answer := learnt_same(found):
        say(answer.sentence + "\n")
    for comparison in found.comparisons:
        if comparison.left != comparison.right or comparison.n_pairs > 1:
            _show_layers(comparison, found)
    say("Where CKA and Procrustes differ, one of them is too high: quote the smaller.")
    for one in found.matched:
        same = " (the same weights)" if one.identical else ""
        score = f"{one.matching.score:.3f}" if bool((one.matching.partner >= 0).any()) else "none in use to match"
        say(f"matched latents of {one.left} and {one.right}: {score}{same}")
    if len(runs) == 1 and not runs[0].snapshots:
        say("The run kept no snapshots (train with --snapshots 0,1000,…), so it is compared with itself only.")


def _title(comparison: LayerComparison, found: Similarity) -> str:
    """Two runs by their names; more by what they have in common."""
    if len(found.matched) == 1 and "@" not in comparison.left:
        return f"{found.matched[0].left}  –  {found.matched[0].right}, layer by layer"
    if comparison.left == comparison.right:
        n = comparison.n_pairs // 2
        return f"seeds of {comparison.left}, {f'mean of {n} pairs' if n > 1 else 'one pair'}"
    pairs = "" if comparison.n_pairs == 1 else f", mean of {comparison.n_pairs} pairs"
    return f"{comparison.left}  –  {comparison.right}{pairs}"


def _show_layers(comparison: LayerComparison, found: Similarity) -> None:
    """Layers of the same name side by side; the page has all pairs."""
    rows = []
    for place, name in enumerate(comparison.rows):
        if name in comparison.columns:
            cell = (place, comparison.columns.index(name))
            scores = [float(f"{float(getattr(comparison, m)[cell]):.3g}") for m in ("cka", "procrustes", "svcca")]
            rows.append((name, *scores, float(comparison.averaged.quoted[cell]), float(comparison.p_values[cell])))
    print_table(_title(comparison, found), ("layer", "CKA", "Procrustes", "SVCCA", "quote", "p"), rows)
