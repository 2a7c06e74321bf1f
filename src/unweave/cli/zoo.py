"""unweave zoo: trained models to begin with, and folders of them for others."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from unweave.cli.console import print_json, print_table, say
from unweave.cli.options import add_quiet, command, numbers, parse, whole
from unweave.files import as_typed
from unweave.recipes.opened import Run
from unweave.recipes.zoo import SHOWN, Filter, Put, build_zoo, pull, push, runs_in, zoo

EXAMPLES = """examples:
  unweave zoo
  unweave zoo pull demo-0 runs/demo-0
  unweave zoo pull owner/model runs/theirs        from the Hugging Face hub
  unweave zoo build my-zoo runs/a runs/b          a folder to put on any server
  unweave zoo build my-zoo runs --method beta_vae,factor_vae --world dsprites --seeds 0:10 --bits 16 --measure
  unweave zoo push runs/a owner/model             onto the hub"""
ACTIONS = ("list", "pull", "build", "push")


def run(argv: Sequence[str]) -> None:
    """List, fetch, build or push."""
    parser = command(
        "unweave zoo",
        "Trained models to begin with: those of the package, of a folder, or of a server by https.",
        usage="unweave zoo [list|pull|build|push] [WHAT…] [options]",
        examples=EXAMPLES,
    )
    parser.add_argument("action", nargs="?", default="list", metavar="ACTION", help="list, pull, build or push (list)")
    parser.add_argument("what", nargs="*", metavar="WHAT", help="names and folders, as in the examples")
    parser.add_argument("--zoo", metavar="PLACE", help="a folder or an https address (the package's own)")
    parser.add_argument("--json", action="store_true", help="print the list as JSON")
    add_quiet(parser)
    building = parser.add_argument_group("building")
    building.add_argument("--method", metavar="A,B", help="of a folder of runs, only those of these methods")
    building.add_argument("--world", metavar="A,B", help="only those on these worlds")
    building.add_argument("--seeds", metavar="FIRST:END", help="only those with these seeds: 0:10, or 0,3,7")
    building.add_argument("--bits", type=int, choices=(8, 16, 32), help="of a weight (as they are)")
    building.add_argument(
        "--measure", action="store_true", help="measure models that have no scores, or rounded weights"
    )
    building.add_argument("--metrics", metavar="A,B", help="what to measure (what `unweave evaluate` does)")
    building.add_argument(
        "--samples", type=whole(1, 10**7), default=15_000, metavar="N", help="examples to encode (15000)"
    )
    building.add_argument(
        "--draws", type=whole(0, 1000), default=5, metavar="N", help="random halves for intervals (5)"
    )
    given = parse(parser, argv)
    if given.action not in ACTIONS:
        raise ValueError(f"unweave zoo does not know {given.action!r}; it can {', '.join(ACTIONS)}")
    if given.action == "build":
        _build(given)
    else:
        {"list": _list, "pull": _pull, "push": _push}[given.action](given.what, given.zoo, given.json)


def _list(what: Sequence[str], place: str | None, as_json: bool) -> None:
    if what:
        raise ValueError(f"unweave zoo list takes no {what[0]!r}; name the place with --zoo")
    found = zoo(place)
    if as_json:
        print_json([{"name": one.name, "world": one.world, "objective": one.objective, "latents": one.latents,
                     "steps": one.steps, "seed": one.seed, "bytes": one.n_bytes, "scores": dict(one.scores)}
                    for one in found])  # fmt: skip
        return
    scores = [name for name in SHOWN if any(name in one.scores for one in found)]
    rows = [[one.name, one.world, one.objective, *(_score(one.scores.get(name)) for name in scores)] for one in found]
    titles = [name.partition(".")[0].removesuffix("_vae_score") for name in scores]
    print_table(f"zoo at {found.place}", ["name", "world", "objective", *titles], rows)
    where = f" --zoo {as_typed(place)}" if place else ""
    load = f"uw.zoo({place!r}).load('NAME')" if place else "uw.load('zoo:NAME')"
    say(f"scores are of mean codes. Open one with {load}, or bring it here with: unweave zoo pull NAME{where}")


def _pull(what: Sequence[str], place: str | None, as_json: bool) -> None:
    if not 1 <= len(what) <= 2:
        raise ValueError(
            "unweave zoo pull takes a name and, if you like, a folder: unweave zoo pull demo-0 runs/demo-0"
        )
    name, target = what[0], Path(what[1] if len(what) > 1 else f"runs/{what[0].rpartition('/')[2]}")
    opened = pull(name, target, place)
    if as_json:
        print_json({"folder": str(opened.path)})
        return
    say(f"here: {opened.path}\nsee it with: unweave show {as_typed(opened.path)}")


def _build(given: argparse.Namespace) -> None:
    if len(given.what) < 2:
        raise ValueError(
            "unweave zoo build takes a folder to write and at least one run, or a folder of runs: unweave zoo build"
            " my-zoo runs/a"
        )
    seeds = [int(one) for one in numbers(given.seeds).split(",")] if given.seeds else []
    wanted = Filter(_words(given.method), _words(given.world), seeds)
    measure = {"n_samples": given.samples, "seeds": given.draws, "interventions": "table"}
    measure |= {"metrics": _words(given.metrics)} if given.metrics else {}
    way = Put(given.bits, measure if given.measure else None)
    watch = _keep_quiet if given.quiet or given.json or not given.measure else _tell
    made = build_zoo(runs_in(given.what[1:], wanted), given.what[0], way, watch)
    total = sum(one.n_bytes for one in made)
    if given.json:
        sizes = {one.name: one.n_bytes for one in made}
        print_json({"folder": made.place, "models": [one.name for one in made], "bytes": total, "sizes": sizes})
        return
    rows = [[one.name, one.world, one.objective, str(one.seed), _size(one.n_bytes)] for one in made]
    print_table(f"zoo at {made.place}", ["name", "world", "objective", "seed", "size"], rows)
    say(
        f"written: {made.place}, {len(made)} model{'' if len(made) == 1 else 's'}, {_size(total)}."
        f" See it with: unweave zoo --zoo {as_typed(made.place)}"
    )


def _tell(name: str, place: int, total: int) -> None:
    print(f"{name}, {place} of {total}", file=sys.stderr, flush=True)


def _keep_quiet(name: str, place: int, total: int) -> None:
    """Nothing is told of models that are only copied: they take no time."""


def _words(text: str | None) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",")) if text else ()


def _size(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:.1f} MB" if n_bytes >= 100_000 else f"{n_bytes / 1e3:.1f} kB"


def _push(what: Sequence[str], place: str | None, as_json: bool) -> None:
    if len(what) != 2 or what[1].count("/") != 1:
        raise ValueError("unweave zoo push takes a run and a name on the hub: unweave zoo push runs/a owner/model")
    address = push(Run(what[0]), what[1])
    if as_json:
        print_json({"address": address})
        return
    say(f"pushed: {address}")


def _score(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"
