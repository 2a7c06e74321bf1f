"""unweave reproduce: a published result again, at a size of your choice, with a verdict."""

import shlex
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from unweave.cli.console import print_json, print_table, say
from unweave.recipes.reproductions import REPRODUCTIONS, find_reproduction

if TYPE_CHECKING:
    import argparse

    from unweave.recipes.part import Part
    from unweave.studies.results import Results
    from unweave.studies.study import Study

EXAMPLES = """examples:
  unweave reproduce --list
  unweave reproduce k-theorem-1
  unweave reproduce k-1 k-2 k-3 --size smoke --store runs/k --workers 2
  unweave reproduce k-1 --size small --store runs/k --train-only      on a GPU machine with PyTorch alone
  unweave reproduce k-1 --size small --store runs/k --trained         measure and judge what was trained there
  unweave reproduce k-1 --size paper --store runs/k --minutes 9 --portion found/    what fits into nine minutes
  unweave reproduce k-1 --size paper --store runs/k --portion found/ --trained      judge what portions have found
  unweave reproduce b-table-8.1 --size paper --worlds dsprites --seeds 5            where not all can be had

Reproductions that ask the same models share them when they share a store. The same command again goes on where it
stopped, or writes the page anew."""


def run(argv: Sequence[str]) -> int:
    """Reproduce, and say what was found and where the page is."""
    if set(argv) <= {"--list", "--json"}:  # before anything is imported that only training needs
        return _list("--json" in argv)
    from unweave.cli.options import parse

    given = vars(parse(_parser(), argv))
    if given["list"] or not given["id"]:
        return _list(given["json"])
    if unknown := [name for name in given["id"] if name not in REPRODUCTIONS]:
        find_reproduction(unknown[0])
    if given["output"] and len(given["id"]) > 1:
        raise ValueError("--output takes one reproduction at a time; without it each has its folder in the store")
    if given["minutes"] is not None:
        return _portion(given)
    if given["train_only"]:
        return _train(given)
    if given["portion"]:
        _take_in(given)
    return _reproduce(given, f"unweave reproduce {shlex.join(argv)}")


def _reproduce(given: dict[str, Any], command: str) -> int:
    from unweave.cli.study import execute_study
    from unweave.recipes.part import check_on_hand
    from unweave.recipes.reproduce import reproduce

    brought: list[Results] = []

    def bring(study: "Study") -> "Results":
        if not given["trained"] and given["executor"] not in ("ray", "slurm"):
            check_on_hand(study)
        found: Results = _taken(study, given) if given["trained"] else execute_study(study, given, given["store"])
        brought.append(found)
        return found

    told = []
    for name, part in zip(given["id"], _parts(given)):
        where = {"output": given["output"], "part": part}
        found = reproduce(name, given["size"], given["store"], bring, command=command, **where)
        told.append(found.to_plain())
        if not given["json"]:
            _show(found)
    if given["json"]:
        print_json(told if len(told) > 1 else told[0])
    return max(map(_failures, brought), default=0)


def _failures(results: "Results") -> int:
    """1 where runs of a study failed, or their measures: they are missing in what was judged, and it is said."""
    failed, columns = results.failed.height, [name for name in results.table.columns if name.endswith(".failure")]
    measures = sum(results.table[name].count() for name in columns)
    if failed:
        print(f"unweave: {failed} of {len(results.ids)} runs of {results.study.name} failed", file=sys.stderr)
    if measures:
        print(f"unweave: {measures} measures of {results.study.name} failed", file=sys.stderr)
    return 1 if failed or measures else 0


def _taken(study: "Study", given: dict[str, Any]) -> "Results":
    from unweave.cli.study import make_executor
    from unweave.cli.train import stopping
    from unweave.studies.measure_only import measure_only, missing
    from unweave.training.running import RunOptions

    with stopping() as stop:
        results = measure_only(study, given["store"], execute=make_executor(given), how=RunOptions((), 30.0, stop))
    if absent := missing(study, results):
        there = f"{given['store']} has {len(results.experiments)} finished runs of {study.name} and lacks {absent}"
        if not given["portion"]:
            raise ValueError(f"{there}; train them with the same command without --trained, or with --train-only")
        print(f"unweave: {there}; what is there is judged", file=sys.stderr)
    return results


def _train(given: dict[str, Any]) -> int:
    import contextlib
    from pathlib import Path

    from unweave.cli.study import make_executor
    from unweave.cli.train import stopping
    from unweave.recipes.train_only import train_only
    from unweave.training.running import RunOptions

    if not Path(given["store"]).is_dir():
        Path(given["store"]).mkdir(parents=True)
    studies = _studies(given)
    with contextlib.ExitStack() as stack:
        stop = stack.enter_context(stopping())
        how = RunOptions((), given["save_every"] or 600.0, stop)
        executor = make_executor(given | {"executor": given["executor"] or "here"})
        found = train_only(
            studies, given["store"], execute=executor, how=how, seconds=given["seconds"], compact=given["compact"]
        )
    # plain JSON: a machine that only trains may have nothing to draw tables with
    print_json({"trained": len(found.done), "left": len(found.left), "seconds": round(found.seconds, 1)})
    return 130 if stop() else 1 if found.left else 0


def _portion(given: dict[str, Any]) -> int:
    from dataclasses import asdict

    from unweave.cli.study import make_executor
    from unweave.cli.train import stopping
    from unweave.recipes.portions import run_portion
    from unweave.training.running import RunOptions

    if not given["portion"]:
        raise ValueError("--minutes needs --portion FOLDER, where what was found is written")
    studies = _studies(given)
    with stopping() as stop:
        how = RunOptions((), given["save_every"] or 60.0, stop)
        executor = make_executor(given)
        minutes, models = given["minutes"], given["models"]
        found = run_portion(
            studies, given["store"], given["portion"], minutes=minutes, models=models, execute=executor, how=how
        )
    print_json(asdict(found) | {"seconds": round(found.seconds, 1)})
    return 130 if stop() else 0


def _studies(given: dict[str, Any]) -> "list[Study]":
    from unweave.recipes.part import check_on_hand, part_of

    whole = [find_reproduction(name).study(given["size"]) for name in given["id"]]
    studies = [part_of(study, part) for study, part in zip(whole, _parts(given))]
    for study in studies:
        check_on_hand(study)
    return studies


def _parts(given: dict[str, Any]) -> "list[Part]":
    """What is wanted of each reproduction."""
    from unweave.recipes.part import Part, parts_for

    worlds, methods = (
        tuple(filter(None, map(str.strip, (given[key] or "").split(",")))) for key in ("worlds", "methods")
    )
    part = Part(worlds, given["seeds"], methods)
    if part == Part():
        return [part] * len(given["id"])
    return parts_for([find_reproduction(name).study(given["size"]) for name in given["id"]], part)


def _take_in(given: dict[str, Any]) -> None:
    from pathlib import Path

    from unweave.recipes.portions import RECORD, take_in
    from unweave.studies.store import Store

    if not (Path(given["portion"]) / RECORD).exists():
        raise FileNotFoundError(f"there is no {RECORD} in {given['portion']}; --minutes writes one")
    taken = take_in(given["portion"], Store(given["store"]).prepare())
    if not given["json"]:
        say(f"{taken} runs taken in from {given['portion']}")


def _list(as_json: bool) -> int:
    if as_json:
        print_json([{"id": n, "title": one.title, "source": one.source} for n, one in REPRODUCTIONS.items()])
        return 0
    print("what can be reproduced:")
    paper = ""
    for name, one in REPRODUCTIONS.items():
        if one.paper != paper:
            paper = one.paper
            print(f"\n{paper}")
        print(f"  {name:<12} {one.title} ({one.place})")
    return 0


def _show(found: Any) -> None:
    from unweave.pages.result import control_words
    from unweave.plots.format import number
    from unweave.studies.verdicts import VERDICTS

    rows = [
        (
            one.verdict,
            one.what,
            _word(one.published),
            "–" if one.ours is None else number(one.ours),
            str(one.n),
            "; ".join(map(control_words, one.controls)) or "–",
        )
        for one in found.outcome.comparisons
    ]
    counts = ", ".join(f"{found.count(verdict)} {verdict}" for verdict in VERDICTS if found.count(verdict))
    headings = ("verdict", "claim", "published", "ours", "n", "control")
    print_table(f"{found.id} at {found.size} size", headings, rows, counts)
    say(f"page: {found.page}")


def _word(value: Any) -> str:
    from unweave.plots.format import number

    return value if isinstance(value, str) else number(value)


def _parser() -> "argparse.ArgumentParser":
    from unweave.cli.options import command, real, whole
    from unweave.cli.study import add_execution_options
    from unweave.studies.study import SIZES

    parser = command(
        "unweave reproduce",
        "Train, measure and judge a published result; write a page that sets ours beside it.",
        usage="unweave reproduce ID [ID …] [options]",
        examples=EXAMPLES,
    )
    parser.add_argument("id", metavar="ID", nargs="*", help="one or several of --list")
    parser.add_argument("--list", action="store_true", help="say what can be reproduced")
    parser.add_argument(
        "--size", default="smoke", choices=SIZES, help="minutes, half an hour on a GPU, or as published"
    )
    parser.add_argument("--worlds", metavar="NAMES", help="only models on these, with commas: what can be had here")
    parser.add_argument("--methods", metavar="NAMES", help="only models of these objectives, with commas: ae,beta_vae")
    parser.add_argument("--seeds", type=whole(least=1), metavar="N", help="only the first N seeds of every setting")
    parser.add_argument("--store", default="runs", metavar="DIR", help="folder of all runs (runs)")
    parser.add_argument("--output", metavar="DIR", help="where to write the page (in the store)")
    group = parser.add_argument_group("training and judging apart")
    group.add_argument("--train-only", action="store_true", help="train and stop: needs PyTorch alone")
    group.add_argument(
        "--seconds", type=real(above=0), metavar="S", help="stop training after so long; the same command goes on"
    )
    group.add_argument(
        "--compact", action="store_true", help="round trained weights to 16 bits, half the bytes to carry"
    )
    group.add_argument(
        "--minutes", type=real(above=0), metavar="M", help="train and measure what fits, bring it back, and stop"
    )
    group.add_argument(
        "--portion", metavar="DIR", help="what portions have found, without weights: read, and written with --minutes"
    )
    group.add_argument("--models", type=whole(least=1), metavar="N", help="models trained at a time in a portion")
    group.add_argument("--trained", action="store_true", help="train nothing: judge the runs that the store has")
    add_execution_options(parser)
    return parser
