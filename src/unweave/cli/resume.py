"""unweave resume: go on with an interrupted run."""

from collections.abc import Sequence
from typing import Any

from unweave.cli.console import print_json, say
from unweave.cli.options import command, parse
from unweave.cli.train import add_running_options, load_watched, running
from unweave.data.world import called
from unweave.runs.fleets import home_of, members_of
from unweave.runs.folder import WEIGHTS, DamagedFile, RunFolder
from unweave.runs.state import state_of
from unweave.training.loop import resume
from unweave.training.memory import keep_freed_memory
from unweave.training.run import Run

EXAMPLES = """examples:
  unweave resume runs/demo
  unweave resume runs/mine --trust mylib      a run that uses code of yours"""


def run(argv: Sequence[str]) -> int:
    """Bring a run to its end, from its folder alone; a fleet's member with all of its fleet."""
    parser = command("unweave resume", "Go on with an interrupted run, exactly.", examples=EXAMPLES)
    parser.add_argument("run", metavar="RUN", help="the run's folder")
    add_running_options(parser)
    given = vars(parse(parser, argv))
    found = Run(given["run"])
    _check_weights(found.files)
    home = None if found.files.trained else home_of(found.files)
    if home is not None and not given["json"]:
        say(f"{found.path} is one of {len(members_of(home))} models that are trained together: all go on")
    _go_on(found, given)
    state = state_of(found.files)
    if given["json"]:
        print_json({"folder": str(found.path), "state": state.column})
    else:
        say(f"done: {found.path}" if state.word == "done" else f"{found.path} {state}: {state.reason}")
    return 0 if state.word == "done" else 1


def _go_on(found: Run, given: dict[str, Any]) -> None:
    keep_freed_memory()
    experiment = found.experiment
    data = None if found.files.trained else load_watched(experiment, given["quiet"])
    with running(f"{experiment.objective.name} on {called(experiment.world)}", given) as how:
        resume(found.path, data=data, how=how)


def _check_weights(folder: RunFolder) -> None:
    try:
        if folder.has(WEIGHTS):
            folder.read(WEIGHTS)
    except DamagedFile as error:
        raise DamagedFile(f"{error}. Put a good copy there, or delete the file to train the run again.") from error
