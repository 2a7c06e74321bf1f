"""unweave study: many runs, planned, trained, measured and reported."""

import argparse
import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from unweave.cli.console import patiently, print_json, say
from unweave.cli.narrow import narrow
from unweave.cli.options import add_quiet, command, parse, real, whole
from unweave.cli.study_look import look, tell_status
from unweave.cli.train import stopping
from unweave.config import find, shown, unknown
from unweave.files import as_typed, write_atomically
from unweave.studies.executors import EXECUTORS
from unweave.studies.failures import clear
from unweave.studies.record import Record, read_record
from unweave.studies.store import Store
from unweave.studies.study import SIZES, Study
from unweave.training.running import RunOptions
from unweave.trusted import Untrusted, carry, is_trusted
from unweave.words import number_of

ACTIONS = {
    "run": "train and measure everything a recipe asks for; the same command again goes on",
    "status": "how far a study is: done, running, failed, waiting, models a day, time left",
    "resume": "go on with a study of a store, as it was called",
    "retry": "forget failures and run again what failed",
    "report": "write the study's page",
    "export": "every run with its config, measures and scores in one parquet or CSV file",
    "sql": "ask the table of runs in SQL",
    "gc": "clear away what kills have left: dead leases, torn files, orphaned fleets",
}

EXAMPLES = """examples:
  unweave study run z-table-3.4 --size smoke --workers 2
  unweave study run my/study.py --size small --store runs/mine --executor ray --address auto
  unweave study status --store runs/mine --watch
  unweave study retry --store runs/mine
  unweave study export all.parquet --store runs/mine

Ctrl-C once: everything is saved and stops. Twice: it stops at once, and nothing is lost but the last seconds."""

KEPT = ("recipe", "size", "executor", "workers", "address", "gpus", "slurm", "save_every")


def run(argv: Sequence[str]) -> int:
    """One action of a study."""
    if not argv or argv[0] == "help":
        say(_usage())
        return 0
    if argv[0] in ("-h", "--help"):
        say(_usage())
        raise SystemExit(0)  # as the parser of any other command ends
    action = argv[0].replace("_", "-")
    if action not in ACTIONS:
        raise unknown("action of study", argv[0], ACTIONS)
    if action in ("run", "resume", "retry"):
        return _work(action, argv[1:])
    return look(action, argv[1:])


def add_execution_options(parser: argparse.ArgumentParser) -> None:
    """Options that say where and how, and do not change any result."""
    group = parser.add_argument_group("where and how")
    group.add_argument("--executor", default=None, metavar="|".join(EXECUTORS), help="where to work (local)")
    group.add_argument(
        "--workers", type=whole(1, 100_000), default=None, metavar="N", help="processes at a time (one a core)"
    )
    group.add_argument("--address", default=None, help="of a Ray cluster: auto, or ray://host:port (a new local one)")
    group.add_argument(
        "--gpus",
        type=real(0),
        default=None,
        metavar="X",
        help="what a fleet takes of a GPU (1); 0.25: four on one",
    )
    group.add_argument("--slurm", default=None, metavar="KEY=VALUE,…", help="for sbatch: partition=gpu,time=240")
    group.add_argument("--save-every", type=real(0), default=None, metavar="SECONDS", help="between checkpoints (30)")
    add_quiet(group)
    group.add_argument("--json", action="store_true", help="print the result as JSON")


def execute_study(study: Study, given: Mapping[str, Any], store: Path | str) -> Any:
    """Run a study with the options of a command line, with progress and a clean stop on Ctrl-C."""
    from unweave.studies.run import run_study

    options = {key: given[key] for key in KEPT if given.get(key) is not None}
    execute = make_executor(given)
    with contextlib.ExitStack() as stack:
        tell = stack.enter_context(_shown(study.name, bool(given.get("quiet"))))
        how = RunOptions((), given.get("save_every") or 30.0, stack.enter_context(stopping()))
        return run_study(study, store, execute=execute, how=how, tell=tell, options=options)


def make_executor(given: Mapping[str, Any]) -> Any:
    """The executor that a command line asks for."""
    name = given.get("executor") or "local"
    if name not in EXECUTORS:
        raise unknown("executor", name, EXECUTORS)
    if given.get("workers") is not None and given["workers"] < 1:
        raise ValueError(f"--workers must be at least 1, not {given['workers']}")
    wanted = {"local": "workers gpus", "ray": "workers address gpus", "slurm": "workers slurm", "here": ""}
    fields = {key: given[key] for key in wanted[name].split() if given.get(key) is not None}
    return find("executor", EXECUTORS[name], {})(**fields)


def _work(action: str, argv: Sequence[str]) -> int:
    from unweave.recipes.find_study import find_study

    given = vars(parse(_parser(action), argv))
    store = Store(given["store"])
    if action == "run":
        given["size"] = given["size"] or SIZES[0]
    else:
        record = read_record(store.home, given["study"] or "")
        _check_cluster(given.get("address"), record.options.get("address"))
        given |= {key: given.get(key) if given.get(key) is not None else record.options.get(key) for key in KEPT}
        if "search" in record.options:
            raise ValueError(f"{record.name} is a dimension search; the unweave dimension it was begun with goes on")
        if not given["recipe"]:
            raise ValueError(f"{record.name} was run from Python, so it goes on from there: call run_study again")
        given["recipe"] = _checked_recipe(given["recipe"], store)
        if action == "retry":
            n = _forget(store, record)
            if not given["json"]:
                say(f"{n} failed runs are tried again")
    study = find_study(given["recipe"], given["size"])
    if given["recipe"].endswith(".py"):
        given["recipe"] = str(Path(given["recipe"]).resolve())
        _carry(Path(given["recipe"]), store)
    execute_study(study, given, store.root)
    return _tell(store, study.name, given["json"])


def _tell(store: Store, name: str, as_json: bool) -> int:
    from unweave.studies.status import status_of

    status = status_of(store, read_record(store.home, name))
    if as_json:
        print_json(status.to_plain())
    else:
        tell_status(status, store)
    return 1 if status.failed or status.damaged or status.failed_measures or status.waiting else 0


def _forget(store: Store, record: Record) -> int:
    return sum(clear(store.folder(run_id)) for run_id in record.experiments if store.folder(run_id).path.is_dir())


def _check_cluster(typed: str | None, recorded: object) -> None:
    """A cluster answers in pickle, so its address is one's own word."""
    if typed is None and recorded not in (None, "", "auto"):
        raise Untrusted(f"this study was run on the cluster at {shown(recorded)}; to go on there, say --address again")


def _checked_recipe(recipe: object, store: Store) -> str:
    """The recipe of a record; of a file that is gone, the copy that the store keeps.

    A record may come with a stranger's store: it may name a recipe of ours, but not make us run a file.
    """
    if not isinstance(recipe, str):
        raise ValueError(f"the record of this study in {store.home / 'studies'} names no recipe")
    file = Path(recipe)
    kept = store.home / "modules" / file.name
    if file.suffix == ".py" and not file.exists() and kept.is_file():
        file, recipe = kept, str(kept)
    if file.suffix == ".py" and not is_trusted(file.stem):
        raise Untrusted(
            f"this study comes from the file {shown(recipe)}, whose code would run; if you trust it, add --trust"
            f" {file.stem}, or run it yourself: unweave study run {as_typed(recipe)} --store {as_typed(store.root)}"
        )
    return recipe


def _carry(path: Path, store: Store) -> None:
    """Keep the user's file in the store, where workers on other machines find it."""
    kept, content = store.prepare().home / "modules" / path.name, path.read_bytes()
    carry(path, content)
    if not kept.exists() or kept.read_bytes() != content:  # workers may be reading it
        write_atomically(kept, lambda aside: aside.write_bytes(content))


def _parser(action: str) -> argparse.ArgumentParser:
    parser = command(f"unweave study {action}", ACTIONS[action])
    if action == "run":
        parser.add_argument("recipe", metavar="RECIPE", help="a name, or a Python file with study(size)")
        parser.add_argument("--size", default=None, metavar="|".join(SIZES), help="how much (smoke)")
    else:
        parser.add_argument("study", metavar="STUDY", nargs="?", help="its name; not needed where there is only one")
    parser.add_argument("--store", default="runs", metavar="DIR", help="folder of all runs (runs)")
    add_execution_options(parser)
    return parser


@contextlib.contextmanager
def _shown(name: str, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    if quiet:
        yield lambda done, total: None
        return
    if not sys.stderr.isatty():
        at = [f"{name}: begun"]
        with patiently(lambda: at[0]):
            yield lambda done, total: at.__setitem__(0, f"{name}: {done:,} of {number_of(total, 'model')}")
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.progress import TimeRemainingColumn as Left

    parts = (TextColumn("[bold]{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("models"))
    with Progress(*parts, TimeElapsedColumn(), TextColumn("left"), Left(), console=Console(stderr=True)) as bar:
        task = bar.add_task(name, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _usage() -> str:
    width = max(map(len, ACTIONS))
    lines = [f"  {name:<{width}}  {text}" for name, text in ACTIONS.items()]
    return narrow("\n".join(["usage: unweave study ACTION [options]", "", *lines, "", EXAMPLES]))
