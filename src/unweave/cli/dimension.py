"""unweave dimension: how many latents a world needs."""

import argparse
import contextlib
import functools
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from unweave.algorithms.fondue import METHODS
from unweave.cli.console import patiently, print_json, print_table, say
from unweave.cli.options import add_component, add_fields, collect, command, parse
from unweave.cli.own_data import fitting, usual_components, usual_settings, with_world
from unweave.cli.study import add_execution_options, make_executor
from unweave.cli.train import read_config, stopping
from unweave.config import from_plain
from unweave.data import World
from unweave.data.world import called
from unweave.files import as_typed
from unweave.recipes import dimension_micro
from unweave.recipes.dimension import Dimension, bars, dimension, write_dimension
from unweave.recipes.dimension_search import DimensionSearch
from unweave.recipes.dimension_study import search_name
from unweave.training.experiment import TABLES, Experiment, experiment_from, experiment_to
from unweave.training.running import RunOptions

EXAMPLES = """examples:
  unweave dimension micro
  unweave dimension dsprites --objective vae --network conv_2x2 --until-stable true
  unweave dimension photos/ --objective vae --start 20 --most 100
  unweave dimension micro --method ib --elbow 1,2,3,4,6
  unweave dimension dsprites --over beta --latents 5 --start 4
  unweave dimension --convert runs/dimension-micro-beta_vae-9f6ffbeeccbe      a search of version 0.1.0 into its store

Every model that is tried is a run of the store: the same command again goes on where it stopped, and another method,
start or threshold asks the models that are there. micro takes a small model of its own, unless told otherwise."""

SEARCHED = ("steps",)
"""Settings of an experiment that the search itself decides."""


def run(argv: Sequence[str]) -> None:
    """Search, write the page, and say the number."""
    argv = with_world(argv)
    world = argv[0].replace("-", "_") if argv and not argv[0].startswith("-") else None
    given = vars(parse(_parser(argv, world), argv[1:] if world else argv))
    if given["convert"]:
        _convert(given["convert"], given["folder"])
        return
    base = _base(given["config"], world, given.get("objective"))
    if world is None and "world" not in base:
        raise ValueError("say what to learn from: unweave dimension WORLD; `unweave worlds` lists them")
    search = from_plain(DimensionSearch, _search(given, world), {}, "search")
    if search.over == "latents" and "latents" in given:
        raise ValueError("the number of latents is what is searched for; leave out --latents, or say --over beta")
    settings = {name: value for name, value in given.items() if name not in SEARCHED}
    settings |= {"world": world} if world else {}
    experiment = experiment_from(collect(settings, Experiment, TABLES, base))
    found = _search_with(experiment, search, given)
    page = write_dimension(found, f"How many {search.over} for {called(experiment.world)}?")
    if given["json"]:
        print_json(found.to_plain() | {"page": str(page)})
    else:
        _show(found, page)


def _base(config: str | None, world: str | None, objective: str | None) -> dict[str, Any]:
    """Another run's settings where they are asked for; for the micro-world those under which it is quickly learned."""
    if config:
        return read_config(config)
    return (
        fitting(experiment_to(dimension_micro.experiment()), objective) if world == "micro" else usual_settings(world)
    )


def _search(given: dict[str, Any], world: str | None) -> dict[str, Any]:
    told = collect(given, DimensionSearch, {}, {})
    if world != "micro" or given["config"] or {"epochs", "least_steps"} & set(told):
        return told
    return {"steps": dimension_micro.STEPS} | told


def _search_with(experiment: Experiment, search: DimensionSearch, given: dict[str, Any]) -> Dimension:
    """One model after the other, with a bar for each, unless workers are asked for."""
    _remind(Path(given["folder"] or "runs"), experiment, search)
    alone = given["executor"] is None and given["workers"] is None
    execute = None if alone else make_executor(given)
    with contextlib.ExitStack() as stack:
        watchers = (stack.enter_context(bars()),) if alone and not given["quiet"] else ()
        how = RunOptions(watchers, given["save_every"] or 30.0, stack.enter_context(stopping()))
        tell = _count if not alone and not given["quiet"] else lambda done, total: None
        wait = functools.partial(patiently, quiet=given["quiet"])
        return dimension(experiment, search, given["folder"], execute=execute, how=how, tell=tell, wait=wait)


def _remind(store: Path, experiment: Experiment, search: DimensionSearch) -> None:
    """Models that version 0.1.0 has trained for this search are not seen where it has put them."""
    old = store / search_name(experiment.resolve(), search).rpartition("-")[0]
    if any(old.glob("*-steps-*/config.json")):
        convert = f"unweave dimension --convert {as_typed(old)} --folder {as_typed(store)}"
        words = f"{old} has models of version 0.1.0; to use them: {convert}"
        print(words, file=sys.stderr, flush=True)


def _count(done: int, total: int) -> None:
    print(f"{done} of {total} models", file=sys.stderr, flush=True)


def _convert(old: str, store: str | None) -> None:
    from unweave.recipes.convert_search import convert_search

    for line in convert_search(old, store):
        say(line)


def _show(found: Dimension, page: Path) -> None:
    if found.rows:
        readings = list(found.rows[0])[2:4]
        keys = (found.search.over, "passes", *readings, "difference", "active", "mixed", "passive")
        rows = [tuple(_word(row[key]) for key in keys) for row in found.rows]
        begun = f"begun at {found.start:g}: {found.start_from}"
        names = (found.search.over, "verdict", *readings, "gap", "active", "mixed", "passive")
        print_table(f"{METHODS[found.search.method].title}, {begun}", names, rows)
    if found.curves is not None:
        points = list(zip(found.curves.sizes, *found.curves.values.values()))
        print_table("elbow curves", ("latents", *found.curves.values), points)
    for sentence in found.findings:
        say(sentence)
    say(f"page: {page}    models: {found.folder} ({found.n_trained} trained now)")


def _word(value: Any) -> Any:
    return ("passes" if value else "fails") if isinstance(value, bool) else value


def _parser(argv: Sequence[str], world: str | None) -> argparse.ArgumentParser:
    parser = command(
        "unweave dimension",
        "How many latents does a world need? Trains models briefly and searches the largest number of"
        " latents of which none is idle (FONDUE).",
        usage="unweave dimension WORLD [options]",
        examples=EXAMPLES,
    )
    parser.add_argument("--folder", help="the store: where to keep the models (default: runs)")
    parser.add_argument("--convert", metavar="DIR", help="move the models of a search of version 0.1.0 into the store")
    parser.add_argument("--config", metavar="FILE", help="start from the config.json of another run")
    add_execution_options(parser)
    add_fields(parser, DimensionSearch, argv, {}, title="the search")
    if world is not None:
        add_component(parser, "world", World, argv, TABLES, chosen=world)
    usual, left_out = usual_components(world), ("world", *SEARCHED)
    add_fields(parser, Experiment, argv, TABLES, skip=left_out, usual=usual, title="the models")
    return parser
