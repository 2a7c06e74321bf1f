"""unweave demo: see a model switch off the latents it does not need."""

from collections.abc import Sequence
from dataclasses import replace

from unweave.cli.console import print_json, say
from unweave.cli.options import command, parse, whole
from unweave.cli.show import show_latents
from unweave.cli.train import add_running_options, train_watched
from unweave.evaluation.describe import describe
from unweave.pages.run_folder import write_run_page
from unweave.recipes.demo import experiment
from unweave.training.run import Run

STORY = """A small world: a white disc whose x, y and size vary. Three factors, 2,048 pictures.
A model with six latents learns to squeeze every picture into its code and to draw it again from there.
Every latent it uses has a price. Watch how many it keeps."""

EXAMPLES = """examples:
  unweave demo
  unweave demo --seed 3 --folder runs/third"""


def run(argv: Sequence[str]) -> None:
    """Train the demo's model, show its latents, write its report."""
    parser = command("unweave demo", "Train a small model and see what its latents do.", examples=EXAMPLES)
    parser.add_argument("--seed", type=whole(0), default=0, help="another random start (0)")
    parser.add_argument("--steps", type=whole(1, 10**12), help="train for another number of steps")
    parser.add_argument("--folder", help="where to keep the run (runs/demo; with a seed, runs/demo-SEED)")
    add_running_options(parser)
    given = vars(parse(parser, argv))
    chosen = experiment(given["seed"])
    chosen = chosen if given["steps"] is None else replace(chosen, steps=given["steps"])
    folder = given["folder"] or ("runs/demo" if given["seed"] == 0 else f"runs/demo-{given['seed']}")
    if not given["json"]:
        say(STORY + "\n")
    finished = Run(train_watched(chosen, given | {"folder": folder}))
    description = describe(finished)
    page = write_run_page(finished, description)
    if given["json"]:
        print_json({"folder": folder, "report": str(page), "types": description.types, "kl": description.kl.tolist()})
        return
    show_latents(finished, description)
    say(f"\nNow open {page} in your browser and move the sliders. Pictures: {finished.path / 'figures'}")
