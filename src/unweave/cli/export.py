"""unweave export: a trained model for others to load."""

from collections.abc import Sequence

from unweave.cli.console import patiently, say
from unweave.cli.options import add_quiet, command, parse
from unweave.files import as_typed
from unweave.training.export import export
from unweave.training.run import Run

EXAMPLES = """examples:
  unweave export runs/demo models/demo      then, in Python: uw.from_pretrained("models/demo")"""


def run(argv: Sequence[str]) -> None:
    """Write config.json, model.safetensors and a model card."""
    parser = command("unweave export", "Write a finished run in the layout of the Hugging Face hub.", examples=EXAMPLES)
    parser.add_argument("run", metavar="RUN", help="the run's folder")
    parser.add_argument("target", metavar="TARGET", help="the folder to write")
    add_quiet(parser)
    given = parse(parser, argv)
    opened = Run(given.run)
    with patiently(f"writing {given.target}", given.quiet):
        path = export(opened, given.target)
    use = f"train on it with: unweave train perturbed --world.run {as_typed(path)}"
    say(f"written: {path}\n{f'load it with: uw.from_pretrained({str(path)!r})' if opened.encodes else use}")
