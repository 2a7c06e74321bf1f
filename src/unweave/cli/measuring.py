"""What measure and evaluate share: options, progress, rows of numbers, and pictures."""

import argparse
import contextlib
import inspect
import shlex
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from unweave.cli.console import PATIENCE, patiently
from unweave.cli.options import add_quiet, read, typed, whole
from unweave.evaluation.matrices import matrices
from unweave.evaluation.rows import find_rows, row_among
from unweave.evaluation.scores import Number, Scores
from unweave.evaluation.tables import CodeTable, Roles
from unweave.metrics import METRICS, Metric

Watch = Callable[[int, int, str], None]
ROLES = ("codes", "factors")

LONG = 24
"""Characters of a metric's name that a table has room for."""


def add_measuring_options(parser: argparse.ArgumentParser) -> None:
    """Which metrics, how often, and what is printed."""
    group = parser.add_argument_group("measuring")
    group.add_argument(
        "--metrics",
        metavar="A,B",
        help=f"only these, or module:function of yours; all adds downstream learners: {', '.join(METRICS)}",
    )
    group.add_argument(
        "--seeds", type=whole(0, 10_000), default=5, metavar="K", help="random halves behind every interval (5)"
    )
    group.add_argument("--seed", type=whole(0), default=0, metavar="N", help="seed of everything drawn at random (0)")
    group.add_argument("--adjust", metavar="chance", help="chance: compare with the same codes in random order")
    group.add_argument("--dci-trees", metavar="NAME", help="tree learner of DCI: fast, or sklearn as in the original")
    group.add_argument(
        "--factor-bins", type=whole(1, 10**6), metavar="N", help="put factors that hold fractions into N bins"
    )
    group.add_argument(
        "--set", action="append", default=[], metavar="METRIC.OPTION=VALUE", help="an option of a metric; repeatable"
    )
    add_quiet(group)
    group.add_argument("--json", action="store_true", help="print as JSON, parts and draws included")


def add_role_options(parser: argparse.ArgumentParser, factors: str) -> None:
    """Which columns are what, where their names do not say it."""
    parser.add_argument("--codes", metavar="A,B", help="columns of a csv, or arrays of an npz, that are codes: 'z*'")
    parser.add_argument("--factors", metavar="A,B", help=factors)


def roles_of(given: argparse.Namespace) -> Roles:
    """The roles that ``--codes`` and ``--factors`` give to columns."""
    names = {part: tuple(filter(None, map(str.strip, (getattr(given, part) or "").split(",")))) for part in ROLES}
    return Roles(names["codes"], names["factors"])


def role_words(roles: Mapping[str, Sequence[str]]) -> str:
    """What was taken for codes and for factors: ``codes: z0, z1; factors: x, y``."""
    return "; ".join(f"{part}: {_listed(names)}" for part, names in roles.items() if names)


def tell_unused(table: CodeTable, roles: Roles) -> None:
    """Columns that nothing was made of are named, with what to type."""
    if not table.unused or roles.factors:
        return
    wanted = ",".join([*table.roles["factors"], *table.unused])
    verb = "column is" if len(table.unused) == 1 else "columns are"
    say = f"{_listed(table.unused)}: {verb} not used; if they are factors, add --factors {shlex.quote(wanted)}"
    print(f"{table.name}: {say}", file=sys.stderr)


def _listed(names: Sequence[str], most: int = 8) -> str:
    shown = list(names) if len(names) <= most else [*names[:3], "…", names[-1]]
    return ", ".join(shown) + (f" ({len(names)})" if len(names) > most else "")


def measured_settings(given: argparse.Namespace) -> dict[str, Any]:
    """The fields of a Measurer that the options stand for."""
    options: dict[str, dict[str, Any]] = {}
    names = None if given.metrics is None else [typed(name.strip()) for name in given.metrics.split(",")]
    rows = find_rows(names) if given.set else []
    for text in given.set:
        metric, key, value = _setting(text, rows)
        options.setdefault(metric, {})[key] = value
    if given.dci_trees is not None:
        options.setdefault("dci", {})["backend"] = given.dci_trees
    return {
        "metrics": names,
        "seeds": given.seeds,
        "seed": given.seed,
        "adjust": given.adjust,
        "options": options,
        "factor_bins": given.factor_bins,
    }


@contextlib.contextmanager
def watching(title: str, quiet: bool = False) -> Iterator[Watch | None]:
    """A progress bar on standard error once it takes longer than two seconds; plain lines without a terminal."""
    if quiet:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        at: list[Any] = [0, 0, "begun"]
        with patiently(lambda: f"{title}: {at[0]} of {at[1]}, {at[2]}"):
            yield lambda done, total, name: at.__setitem__(slice(None), [done, total, name])
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(title, total=None, visible=False)
        late = threading.Timer(PATIENCE, lambda: bar.update(task, visible=True))
        late.start()
        try:
            yield lambda done, total, name: bar.update(
                task, completed=done, total=total, description=f"{title}, {name}"
            )
        finally:
            late.cancel()


def metric_words(name: str) -> str:
    """A name that is too long for a narrow table in words, which can be broken."""
    if len(name) <= LONG:
        return name
    return next((row.labels[name] for row in METRICS.values() if name in row.labels), name)


def number_row(name: str, number: Number, adjusted: bool) -> tuple[Any, ...]:
    """A number as cells; a fleet as its mean and extremes."""
    better = {True: "more", False: "less", None: "–"}[number.higher_is_better]
    if np.ndim(number.value):
        values = np.asarray(number.value)
        cells: tuple[Any, ...] = (
            metric_words(name),
            float(values.mean()),
            f"{values.min():.4g} … {values.max():.4g}",
            better,
        )
        levels: tuple[Any, Any] = (_mean(number.chance), _mean(number.adjusted))
    else:
        ends = number.interval
        cells = (metric_words(name), number.value, f"{ends[0]:.4g} … {ends[1]:.4g}" if ends else "–", better)
        levels = (number.chance, number.adjusted)
    return (*cells, *levels) if adjusted else cells


def save_pictures(
    scores: Scores,
    codes: Any,
    factors: Any,
    latent_names: Sequence[str],
    factor_names: Sequence[str],
    *,
    factor_bins: int | None = None,
) -> dict[str, bytes]:
    """Every picture of one representation as PNG, by name."""
    from unweave.pages.scores import ScoreArrays, score_figures
    from unweave.plots.save import to_png

    found = matrices(codes, factors, factor_bins=factor_bins)
    shown = {name: n for name, n in scores.numbers.items() if n.range[1] == 1.0 and np.isfinite(n.value)}
    dci = scores.parts.get("dci")
    n_factors = len(factor_names)
    per_factor = {name: getattr(part, "per_factor", None) for name, part in scores.parts.items()}
    arrays = ScoreArrays(
        values={name: float(number.value) for name, number in shown.items()},
        intervals={name: number.interval for name, number in shown.items() if number.interval},
        information=_array(found.information),
        importance=None if dci is None else dci.importance.numpy(),
        correlation=_array(found.correlation),
        code_correlation=_array(found.code_correlation),
        per_factor={name: v.cpu().numpy() for name, v in per_factor.items() if v is not None and len(v) == n_factors},
        latent_names=latent_names,
        factor_names=factor_names,
    )
    return {name: to_png(figure) for name, figure in score_figures(arrays).items()}


def _array(matrix: Any) -> Any:
    return None if matrix is None else matrix.cpu().numpy()


def _mean(values: Any) -> float | None:
    return None if values is None else float(np.mean(values))


def _setting(text: str, rows: Sequence[Metric]) -> tuple[str, str, Any]:
    place, equals, value = text.partition("=")
    metric, dot, key = place.rpartition(".")
    if not equals or not dot or not key:
        raise ValueError(f"--set must be METRIC.OPTION=VALUE, as in mig.normalise=ceiling, not {text!r}")
    key = key.replace("-", "_")
    parameter = inspect.signature(row_among(typed(metric), rows).function).parameters.get(key)
    default = None if parameter is None else parameter.default
    if isinstance(default, bool | int | float | str):
        return metric, key, read(type(default), value, f"set {place}")
    return metric, key, _number_or_text(value)


def _number_or_text(text: str) -> Any:
    """For options whose default does not tell their type."""
    if "," in text:
        return [_number_or_text(part) for part in text.split(",") if part]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
