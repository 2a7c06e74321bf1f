"""unweave perturb: change a world's images a little, so that VAEs stop disentangling it."""

import argparse
import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from unweave.cli.console import print_json, print_table, say
from unweave.cli.options import add_component, add_fields, collect, command, parse, whole
from unweave.cli.own_data import with_world
from unweave.cli.study import add_execution_options, make_executor
from unweave.cli.train import read_config, stopping
from unweave.config import from_plain
from unweave.data import World
from unweave.files import require_folder
from unweave.recipes import perturb as recipe
from unweave.recipes.dimension import bars
from unweave.recipes.perturb import Attack, Made
from unweave.studies.one_by_one import OneByOne
from unweave.training.experiment import TABLES, Experiment, experiment_from, experiment_to
from unweave.training.running import RunOptions

EXAMPLES = """examples:
  unweave perturb micro
  unweave perturb dsprites --objective beta_vae --objective.beta 8 --latents 5 --models 20
  unweave perturb shapes3d_like --objective.beta 32 --latents 6 --ensemble 4 --epsilon 0.175
  unweave perturb --foster runs/entangled --diminish runs/disentangled       two models of your own
  unweave perturb --among runs/dsprites-beta_vae-*                            chosen from models of your own
  unweave perturb micro --control                the same models on both sides: nothing should come of it
  unweave train perturbed --world.run FOLDER     what it is for; noise is the other altered world

Every model is a run of the store: the same command again goes on where it stopped, or returns at once."""


def run(argv: Sequence[str]) -> None:
    """Train or take models, choose, train the manipulation, write its page, and say what came of it."""
    if argv and (Path(argv[0]) / "config.json").is_file():
        raise ValueError(f"{argv[0]} is a run: name runs by --foster RUN --diminish RUN, or --among RUN RUN …")
    argv = with_world(argv)
    world = argv[0].replace("-", "_") if argv and not argv[0].startswith("-") else None
    given = vars(parse(_parser(argv, world), argv[1:] if world else argv))
    _check_words(given)
    base, attack = _asked(given, world)
    made = _make(base, attack, given)
    page = made.write_page()
    target = given["export_images"]
    exported = export_images(made, target, given["images"], given["quiet"]) if target else None
    if given["json"]:
        print_json(made.to_plain() | {"page": str(page), "images": None if exported is None else str(exported)})
    else:
        _show(made, page, exported)


def export_images(made: Made, folder: str, n: int | None, quiet: bool) -> Path:
    """Write altered images as PNG files named by their rows, all of them or the first n, and their factors as CSV."""
    from unweave.cli.measuring import watching
    from unweave.recipes.altered_files import write_altered

    with watching("writing", quiet) as watch:
        tell = (lambda done, total: None) if watch is None else lambda done, total: watch(done, total, "images")
        return write_altered(made.world, Path(folder), n, tell)


def _check_words(given: dict[str, Any]) -> None:
    """Refuse options that do not go together, and those that would do nothing, before anything is trained."""
    if given["same"] and given["reverse"]:
        raise ValueError("--control and --reverse are two controls: ask for one at a time")
    if given["images"] and not given["export_images"]:
        raise ValueError("--images says how many are written: say where to, with --export-images DIR")
    if given["export_images"]:
        require_folder(given["export_images"], "a folder for the altered images")
    sided, among = bool(given["foster"] or given["diminish"]), bool(given["among"])
    recipe.check_said((f"--{name.replace('_', '-')}" for name in given), given=sided, among=among)
    if given["config"] and (sided or among):
        raise ValueError("given runs bring their settings: leave out --config")


def _asked(given: dict[str, Any], world: str | None) -> tuple[Experiment, Attack]:
    """The models and the attack: the micro-world has settings of its own, given runs bring theirs."""
    runs = [*given["foster"], *given["diminish"], *given["among"]]
    attack, plain = Attack(), read_config(given["config"]) if given["config"] else {}
    if runs or (world is None and "world" not in plain):
        plain = dict(experiment_to(recipe.base_of(runs)))
    elif world == "micro" and not given["config"]:
        usual, attack = recipe.micro()
        plain = dict(experiment_to(usual))
    told = collect(given, Attack, {}, {name: value for name, value in vars(attack).items() if name != "control"})
    control = "same" if given["same"] else "reversed" if given["reverse"] else ""
    settings = given | ({"world": world} if world else {})
    experiment = experiment_from(collect(settings, Experiment, TABLES, plain))
    return experiment, from_plain(Attack, told | {"control": control}, {}, "attack")


def _make(base: Experiment, attack: Attack, given: dict[str, Any]) -> Made:
    alone = given["executor"] is None and given["workers"] is None
    execute = OneByOne() if alone else make_executor(given)
    with contextlib.ExitStack() as stack:
        watchers = (stack.enter_context(bars()),) if alone and not given["quiet"] else ()
        how = RunOptions(watchers, given["save_every"] or 30.0, stack.enter_context(stopping()))
        tell = _count if not alone and not given["quiet"] else lambda done, total: None
        return recipe.perturb(
            base,
            attack,
            given["folder"],
            foster=given["foster"],
            diminish=given["diminish"],
            among=given["among"],
            execute=execute,
            how=how,
            tell=tell,
        )


def _count(done: int, total: int) -> None:
    print(f"{done} of {total} models", file=sys.stderr, flush=True)


def _show(made: Made, page: Path, exported: Path | None) -> None:
    if made.candidates:
        columns = ("seed", made.attack.by.upper(), "latents in use", "side", "run")
        ordered = sorted(made.candidates, key=lambda one: -one.score)
        rows = [(one.seed, one.score, one.n_active, recipe.side_words(one), one.id) for one in ordered]
        print_table("models, the most disentangled first", columns, rows)
    for sentence in made.sentences():
        say(sentence)
    say(f"page: {page}    manipulation: {made.folder}")
    if exported is not None:
        say(f"images: {exported}")


def _parser(argv: Sequence[str], world: str | None) -> argparse.ArgumentParser:
    parser = command(
        "unweave perturb",
        "Make a world on which VAEs stop disentangling: train models, choose the most and the least disentangled, and"
        " train a small change of the images that suits the entangled ones (Zietlow et al., 2021).",
        usage="unweave perturb WORLD [options]",
        examples=EXAMPLES,
    )
    parser.add_argument("--folder", help="the store: where to keep the models (default: runs)")
    parser.add_argument("--config", metavar="FILE", help="start from the config.json of another run")
    whom = {
        "foster": "that the change is to suit",
        "diminish": "that it is to hurt",
        "among": "to choose both sides from",
    }
    for side, words in whom.items():
        parser.add_argument(
            f"--{side}", metavar="RUN", nargs="+", action="extend", default=[], help=f"finished runs {words}"
        )
    parser.add_argument("--control", dest="same", action="store_true", help="the same models on both sides")
    parser.add_argument("--reverse", action="store_true", help="foster the disentangled models: the other control")
    parser.add_argument("--export-images", metavar="DIR", help="also write the altered images as PNG files")
    parser.add_argument("--images", type=whole(1), metavar="N", help="how many of them (all)")
    add_execution_options(parser)
    add_fields(parser, Attack, argv, {}, skip=("control",), title="the change")
    if world is not None:
        add_component(parser, "world", World, argv, TABLES, chosen=world)
    add_fields(parser, Experiment, argv, TABLES, skip=("world",), title="the models")
    return parser
