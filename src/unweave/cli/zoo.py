"""unweave zoo: trained models to begin with, and folders of them for others."""

from collections.abc import Sequence
from pathlib import Path

from unweave.cli.console import print_json, print_table, say
from unweave.cli.options import command, parse
from unweave.files import as_typed
from unweave.recipes.opened import Run
from unweave.recipes.zoo import SHOWN, build_zoo, pull, push, zoo

EXAMPLES = """examples:
  unweave zoo
  unweave zoo pull demo-0 runs/demo-0
  unweave zoo pull owner/model runs/theirs        from the Hugging Face hub
  unweave zoo build my-zoo runs/a runs/b          a folder to put on any server
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
    given = parse(parser, argv)
    if given.action not in ACTIONS:
        raise ValueError(f"unweave zoo does not know {given.action!r}; it can {', '.join(ACTIONS)}")
    {"list": _list, "pull": _pull, "build": _build, "push": _push}[given.action](given.what, given.zoo, given.json)


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
    rows = [
        [one.name, one.world, one.objective, str(one.latents), *(_score(one.scores.get(name)) for name in scores)]
        for one in found
    ]
    titles = [name.partition(".")[0].removesuffix("_score") for name in scores]
    print_table(f"zoo at {found.place}", ["name", "world", "objective", "latents", *titles], rows)
    say("scores are of mean codes. Open one with uw.load('zoo:NAME'), or bring it here with: unweave zoo pull NAME")


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


def _build(what: Sequence[str], place: str | None, as_json: bool) -> None:
    if len(what) < 2:
        raise ValueError(
            "unweave zoo build takes a folder to write and at least one run: unweave zoo build my-zoo runs/a"
        )
    made = build_zoo(what[1:], what[0])
    if as_json:
        print_json({"folder": made.place, "models": [one.name for one in made]})
        return
    say(f"written: {made.place}, {len(made)} models. See it with: unweave zoo --zoo {as_typed(made.place)}")


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
