"""unweave resume: go on with an interrupted run."""

from collections.abc import Sequence

from unweave.cli.console import print_json, say
from unweave.cli.options import command, parse
from unweave.cli.train import add_running_options, train_watched
from unweave.training.run import Run


def run(argv: Sequence[str]) -> None:
    """Bring a run to its end, from its folder alone."""
    parser = command("unweave resume", "Go on with an interrupted run, exactly.")
    parser.add_argument("run", metavar="RUN", help="the run's folder")
    add_running_options(parser)
    given = vars(parse(parser, argv))
    path = train_watched(Run(given["run"]).experiment, given | {"folder": given["run"]})
    if given["json"]:
        print_json({"folder": str(path), "state": Run(path).state})
    else:
        say(f"done: {path}")
