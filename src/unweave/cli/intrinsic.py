"""unweave intrinsic: in how many dimensions data or codes lie."""

import argparse
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from unweave.cli.console import patiently, print_json, print_table, say
from unweave.cli.options import add_component, collect, command, parse, read, real, typed, whole
from unweave.config import from_plain, unknown
from unweave.data import WORLDS, World
from unweave.data.own import named_world
from unweave.evaluation.points import Points, points_of_file, points_of_run, points_of_world
from unweave.evaluation.scores import plain
from unweave.metrics.dimension.intrinsic import Intrinsic, intrinsic
from unweave.metrics.dimension.mle import AVERAGING
from unweave.training.experiment import TABLES, Experiment
from unweave.training.run import Run
from unweave.trusted import plug_in
from unweave.words import number_of

EXAMPLES = """examples:
  unweave intrinsic dsprites
  unweave intrinsic photos/ --world.size 64
  unweave intrinsic people.csv --world.labels species
  unweave intrinsic codes.npz --neighbours 3,5,10,20,40
  unweave intrinsic runs/demo            its data, its mean codes and its sampled codes"""


def run(argv: Sequence[str]) -> None:
    """Estimate, and print the estimates over neighbours and seeds."""
    target = argv[0] if argv and not argv[0].startswith("-") else None
    parser = command(
        "unweave intrinsic",
        "Intrinsic dimension by maximum likelihood over several neighbourhoods, and by TwoNN.",
        usage="unweave intrinsic WORLD|FILE|RUN [options]",
        examples=EXAMPLES,
    )
    parser.add_argument(
        "--neighbours", default="3,5,10,20", metavar="K,K", help="neighbourhoods of the MLE (3,5,10,20)"
    )
    parser.add_argument(
        "--averaging",
        default="levina_bickel",
        metavar="NAME",
        help="which of the two decides: levina_bickel or mackay_ghahramani (levina_bickel)",
    )
    parser.add_argument(
        "--anchor", type=real(above=0, most=1), default=0.9, metavar="X", help="share of ratios that TwoNN fits (0.9)"
    )
    parser.add_argument(
        "--examples",
        type=whole(2, 10**7),
        metavar="N",
        help="points of one draw (10000, or nine tenths of fewer points)",
    )
    parser.add_argument("--seeds", type=whole(1, 10_000), default=5, metavar="N", help="draws behind the spread (5)")
    parser.add_argument("--json", action="store_true", help="print as JSON")
    world = _world(target)
    if world is not None:
        add_component(parser, "world", World, argv, TABLES, chosen=world)
    given = parse(parser, argv[1:] if target else argv)
    if target is None:
        raise ValueError(
            "say of what: unweave intrinsic WORLD, a folder of images, an npz of points, a table, or a run"
        )
    with patiently(f"estimating the dimension of {target}", given.json):
        found = {points.name: (points, _estimate(points, given)) for points in _points(target, world, vars(given))}
    if given.json:
        print_json({name: _plain(points, one) for name, (points, one) in found.items()})
        return
    for points, one in found.values():
        _show(points, one)


def _world(target: str | None) -> str | None:
    """The world that a target stands for; None for a run and for points."""
    if target is None:
        return None
    name, path = target.replace("-", "_"), Path(target)
    if name in WORLDS:
        return name
    if not path.exists() and (":" in target or plug_in("world", name)):
        return typed(target)
    if not path.exists():
        raise unknown("world or file", target, WORLDS)
    is_run = (path / "config.json").exists()
    return None if is_run or path.suffix in (".npz", ".npy") else str(named_world(path)["name"])


def _points(target: str, world: str | None, given: dict[str, Any]) -> list[Points]:
    if world is None:
        return points_of_run(Run(target)) if Path(target).is_dir() else [points_of_file(target)]
    own = {"world.path": target} if world in ("images", "table") and target != world else {}
    options = {name: value for name, value in given.items() if name.startswith("world.")}
    chosen = collect({"world": world} | own | options, Experiment, TABLES, {})["world"]
    described: World = from_plain(World, chosen, TABLES, "world")
    return [points_of_world(described)]


def _estimate(points: Points, given: argparse.Namespace) -> Intrinsic:
    neighbours = read(tuple[int, ...], given.neighbours, "neighbours")
    if given.seeds < 1:
        raise ValueError(f"--seeds must be at least 1, not {given.seeds}")
    if not neighbours or min(neighbours) < 2:
        raise ValueError(f"--neighbours must be numbers of at least 2, as in 3,5,10,20, not {given.neighbours!r}")
    if given.averaging not in AVERAGING:
        raise unknown("averaging", given.averaging, AVERAGING)
    # fewer points than that would all be drawn every time, and nothing be known of the spread
    n = given.examples or min(10_000, max(3, round(0.9 * len(points.table))))
    return intrinsic(
        points.table,
        neighbours=neighbours,
        averaging=given.averaging,
        anchor=given.anchor,
        n_samples=n,
        seeds=range(given.seeds),
    )


def _plain(points: Points, one: Intrinsic) -> dict[str, Any]:
    first = one.mle_runs[0]
    return {
        "n_points": len(points.table),
        "n_features": points.table.shape[1],
        "mle": plain(one.score),
        "mle_spread": plain(one.spread),
        "two_nn": plain(one.two_nn),
        "two_nn_spread": plain(one.two_nn_spread),
        "neighbours": list(first.neighbours),
        "levina_bickel": plain([run.levina_bickel for run in one.mle_runs]),
        "mackay_ghahramani": plain([run.mackay_ghahramani for run in one.mle_runs]),
        "stable": plain([run.stable for run in one.mle_runs]),
        "distinct_points": [run.n_points for run in one.mle_runs],
    }


def _show(points: Points, one: Intrinsic) -> None:
    first = one.mle_runs[0]
    rows = [
        (f"{k}{' *' if k in first.stable.neighbours else ''}", *(_over(one, rule, place) for rule in AVERAGING))
        for place, k in enumerate(first.neighbours)
    ]
    n_points, n_features = points.table.shape
    title = f"{points.name}: {number_of(n_points, 'point')} of {number_of(n_features, 'number')}"
    draws = "one draw" if len(one.mle_runs) == 1 else f"{len(one.mle_runs)} draws"
    note = f"over {draws} of {first.n_points:,} distinct points; * the stable range of k"
    print_table(title, ("k", "Levina–Bickel", "MacKay–Ghahramani"), rows, note)
    how = "" if first.stable.found else " (no two neighbouring k agree within 10 %: take it with care)"
    n_draws = len(one.mle_runs)
    say(f"MLE over the stable range: {_with_spread(one.score, one.spread, n_draws)}{how}")
    say(f"TwoNN: {_with_spread(one.two_nn, one.two_nn_spread, n_draws)}")
    if one.two_nn == float("inf"):
        say("Every point has two nearest neighbours at one distance, as on a grid: TwoNN has no answer there.")


def _over(one: Intrinsic, rule: str, place: int) -> str:
    values = [float(getattr(run, rule)[place]) for run in one.mle_runs]
    return _with_spread(statistics.fmean(values), statistics.pstdev(values), len(values))


def _with_spread(value: float, spread: float, n_draws: int) -> str:
    """One draw has no spread."""
    return f"{value:.2f} ± {spread:.2f}" if n_draws > 1 else f"{value:.2f}"
