"""unweave resume: go on with an interrupted run."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from unweave.cli.console import print_json, say
from unweave.cli.options import command, parse
from unweave.cli.train import add_running_options, train_all, train_watched
from unweave.runs.fleets import home_of, members_of
from unweave.runs.folder import WEIGHTS, DamagedFile, RunFolder
from unweave.runs.state import state_of
from unweave.training.run import Run


def run(argv: Sequence[str]) -> int:
    """Bring a run to its end, from its folder alone; a fleet's member with all of its fleet."""
    parser = command("unweave resume", "Go on with an interrupted run, exactly.")
    parser.add_argument("run", metavar="RUN", help="the run's folder")
    add_running_options(parser)
    given = vars(parse(parser, argv))
    found = Run(given["run"])
    _check_weights(found.files)
    home = None if found.files.trained else home_of(found.files)
    if home is None:
        train_watched(found.experiment, given | {"folder": given["run"]})
    else:
        _resume_fleet(home, given)
    state = state_of(found.files)
    if given["json"]:
        print_json({"folder": str(found.path), "state": state.column})
    else:
        say(f"done: {found.path}" if state.word == "done" else f"{found.path} {state}: {state.reason}")
    return 0 if state.word == "done" else 1


def _check_weights(folder: RunFolder) -> None:
    try:
        if folder.has(WEIGHTS):
            folder.read(WEIGHTS)
    except DamagedFile as error:
        raise DamagedFile(f"{error}. Put a good copy there, or delete the file to train the run again.") from error


def _resume_fleet(home: RunFolder, given: dict[str, Any]) -> list[Path]:
    members = members_of(home)
    if not given["json"]:
        say(f"{given['run']} is one of {len(members)} models that are trained together: all go on")
    experiments = [Run(path).experiment for path in members]
    return train_all(experiments, given | {"folder": str(home.path.parent)}, members)
