"""unweave measure: score codes from anywhere against their factors."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from unweave.cli.console import print_json, print_table, say
from unweave.cli.measuring import (
    add_measuring_options,
    add_role_options,
    measured_settings,
    metric_words,
    number_row,
    role_words,
    roles_of,
    save_pictures,
    tell_unused,
    watching,
)
from unweave.cli.options import command, parse, whole_number
from unweave.evaluation.measure import Measurer
from unweave.evaluation.score_differences import Difference, differences_to_plain, score_differences
from unweave.evaluation.scores import Scores, about_few, about_one_factor
from unweave.evaluation.tables import CodeTable, read_tables
from unweave.files import write_atomically
from unweave.words import number_of

EXAMPLES = """files:
  codes.npz               arrays codes (sample × latent), factors (sample × factor), perhaps variance;
                          codes may be model × sample × latent
  codes.npy factors.npy   a pair
  table.csv, .parquet     columns code_*, latent_*, mu* or z*; factor_*, label_* or y*; variance_*, logvar*, std*;
                          with other names: --codes 'z*' --factors x,y,size
  `unweave diagnose` reads the same files.

examples:
  unweave measure codes.npz
  unweave measure codes.npz --metrics mig,dci --split 10000:5000 --json
  unweave measure table.csv --codes 'z*' --factors x,y,size
  unweave measure before.npz after.npz --adjust chance
  unweave measure codes.npz --set mig.normalise=ceiling --set factor_vae.prune=relative"""


def run(argv: Sequence[str]) -> None:
    """Measure one table, or compare two."""
    parser = command(
        "unweave measure",
        "Score codes against the factors that generated the data; no model is needed.",
        usage="unweave measure FILE [FILE] [options]",
        examples=EXAMPLES,
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="one table, or two to compare")
    parser.add_argument("--split", metavar="N:M", help="fit on the first N rows, test on the next M, in file order")
    parser.add_argument("--pictures", metavar="FOLDER", help="write matrices and bars as PNG")
    add_role_options(parser, "columns of a csv, or arrays of an npz, that are factors: x,y,size")
    add_measuring_options(parser)
    given = parse(parser, argv)
    roles = roles_of(given)
    tables = read_tables(given.files, roles)
    if len(tables) > 2:
        raise ValueError(f"one table is measured or two are compared, given {len(tables)}")
    for table in tables:
        tell_unused(table, roles)
    settings = measured_settings(given) | {"split": _split(given.split)}
    scores = _measure(tables, settings, quiet=given.quiet)
    if given.pictures:
        for place, (table, found) in enumerate(zip(tables, scores), start=1):
            inner = f"{place}_{table.name}" if len(tables) > 1 else ""
            _pictures(table, found, Path(given.pictures) / inner, settings["factor_bins"])
    (_report_two if len(tables) == 2 else _report_one)(tables, scores, given.json)


def _measure(tables: list[CodeTable], settings: dict[str, Any], quiet: bool) -> list[Scores]:
    found = []
    for table in tables:
        with watching(f"measuring {table.name}", quiet) as watch:
            measurer = Measurer(table.factors, **settings)
            found.append(measurer.measure(table.codes, table.variance, watch=watch))
    return found


def _report_one(tables: list[CodeTable], scores: list[Scores], as_json: bool) -> None:
    table, found = tables[0], scores[0]
    if as_json:
        names = {"latent_names": list(table.latent_names), "factor_names": list(table.factor_names)}
        roles = {"roles": {part: list(columns) for part, columns in table.roles.items()}}
        print_json({"table": table.name} | names | roles | found.to_plain())
        return
    if table.roles:
        say(role_words(table.roles))
    show_scores(f"{table.name}: {_size(table, found)}", found, len(table.factor_names))


def show_scores(title: str, scores: Scores, n_factors: int = 0) -> None:
    """The table of numbers, what to make of them, and why others are missing."""
    adjusted = any(number.chance is not None for number in scores.numbers.values())
    second = "95 % interval" if scores.n_models is None else "over models"
    columns = ["metric", "score", second, "better"] + (["chance", "adjusted"] if adjusted else [])
    rows = [number_row(name, number, adjusted) for name, number in scores.numbers.items()]
    print_table(title, columns, rows, _note(scores))
    for told in (about_one_factor(scores, n_factors), about_few(scores) if n_factors else ""):
        if told:
            say(told)
    tell_left_out(scores.left_out)


def tell_left_out(left_out: Mapping[str, str]) -> None:
    """Each reason once, with what it leaves out."""
    for reason in dict.fromkeys(left_out.values()):
        say(f"left out: {', '.join(name for name in left_out if left_out[name] == reason)}: {reason}")


def _note(scores: Scores) -> str:
    seeds = scores.settings["seeds"]
    if scores.n_models is not None:
        return f"means over {number_of(scores.n_models, 'model')}; --json has every model's number and interval"
    if seeds < 2:
        return "no intervals: they take at least two --seeds"
    return f"intervals: {seeds} random halves of the rows, Student's t"


def _report_two(tables: list[CodeTable], scores: list[Scores], as_json: bool) -> None:
    paired = _same_samples(*tables)
    differences = score_differences(scores[0], scores[1], paired=paired)
    if as_json:
        both = {part: {"table": t.name} | s.to_plain() for part, t, s in zip(("first", "second"), tables, scores)}
        print_json(both | {"paired": paired, "differences": differences_to_plain(differences)})
        return
    for place, table in enumerate(tables, start=1):
        if table.roles:
            say(f"{place}: {table.name}: {role_words(table.roles)}")
    columns = ("metric", f"1: {tables[0].name}", f"2: {tables[1].name}", "2 − 1", "95 % interval", "clearly better")
    rows = [_difference_row(name, one) for name, one in differences.items()]
    how = "paired: both tables have the same factors, row by row" if paired else "not paired: the factors differ"
    print_table("difference", columns, rows, f"{how}; {_note(scores[0])}")
    if scores[0].settings["adjust"]:
        for table, found in zip(tables, scores):
            show_scores(table.name, found, len(table.factor_names))
    tell_left_out(scores[0].left_out | scores[1].left_out)


def _difference_row(name: str, one: Difference) -> tuple[Any, ...]:
    ends = one.interval
    shown = f"{ends[0]:+.3g} … {ends[1]:+.3g}" if ends else "–"
    return (
        metric_words(name),
        one.first,
        one.second,
        one.value,
        shown,
        {"first": "1", "second": "2", None: "–"}[one.better],
    )


def _same_samples(first: CodeTable, second: CodeTable) -> bool:
    if first.factors is None or second.factors is None:
        return first.factors is second.factors and first.codes.shape[-2] == second.codes.shape[-2]
    return first.factors.shape == second.factors.shape and bool(np.all(first.factors == second.factors))


def _split(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    try:
        first, second = map(whole_number, text.split(":"))
    except ValueError as error:
        message = f"--split must be N:M, two whole numbers of rows as in 10000:5000, not {text!r}"
        raise ValueError(message) from error
    return first, second


def _size(table: CodeTable, scores: Scores) -> str:
    fleet = f"{number_of(scores.n_models, 'model')} of " if scores.n_models else ""
    n_factors = len(table.factor_names)
    told = f", {n_factors} factor{'' if n_factors == 1 else 's'}" if table.factors is not None else ", no factors"
    return f"{fleet}{number_of(scores.n_samples, 'sample')}, {number_of(len(table.latent_names), 'latent')}{told}"


def _pictures(table: CodeTable, scores: Scores, folder: Path, factor_bins: int | None) -> None:
    if scores.n_models is not None:
        raise ValueError("--pictures draws one representation, not a fleet; save one model's codes by themselves")
    made = save_pictures(
        scores, table.codes, table.factors, table.latent_names, table.factor_names, factor_bins=factor_bins
    )
    for name, content in made.items():
        _write(folder / f"{name}.png", content)


def _write(path: Path, content: bytes) -> None:
    write_atomically(path, lambda aside: aside.write_bytes(content))
