"""unweave report: the page and the pictures of a run."""

from collections.abc import Sequence
from pathlib import Path

from unweave.cli.console import patiently, say
from unweave.cli.options import add_quiet, command, parse
from unweave.pages.run_folder import write_run_page
from unweave.training.run import Run

EXAMPLES = """examples:
  unweave report runs/demo      writes runs/demo/report.html and runs/demo/figures"""


def run(argv: Sequence[str]) -> None:
    """Write report.html and figures/ into the run's folder."""
    parser = command("unweave report", "Write a run's page and pictures into its folder.", examples=EXAMPLES)
    parser.add_argument("run", metavar="RUN", help="the run's folder")
    add_quiet(parser)
    given = parse(parser, argv)
    opened = Run(given.run)
    with patiently(f"drawing the page of {given.run}", given.quiet):
        page = write_run_page(opened) if opened.encodes else _manipulation(opened)
    say(f"written: {page}")


def _manipulation(opened: Run) -> Path:
    from unweave.recipes.perturb import Made, attack_of

    return Made(opened.path, attack_of(opened)).write_page()
