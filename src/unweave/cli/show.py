"""unweave show: what a run has learned."""

from collections.abc import Mapping, Sequence
from typing import Any

from unweave.cli.console import patiently, print_json, print_table, say
from unweave.cli.options import add_quiet, command, parse, whole
from unweave.data.world import called
from unweave.evaluation.describe import Description, describe
from unweave.evaluation.findings import diagnose_described, expected_of, findings, sentences
from unweave.evaluation.scores import plain
from unweave.metrics.polarised.types import RULES
from unweave.runs.folder import DamagedFile
from unweave.runs.state import failure_of, saved_step, state_of
from unweave.training.experiment import experiment_to, resume_words
from unweave.training.history import History
from unweave.training.results import kept_words
from unweave.training.run import Run
from unweave.words import number_of

EXAMPLES = """examples:
  unweave show runs/demo
  unweave show runs/demo --rule kl --json"""


def run(argv: Sequence[str]) -> None:
    """Print a run's state, settings, latents and losses."""
    parser = command("unweave show", "What a run is and what it has learned.", examples=EXAMPLES)
    parser.add_argument("run", metavar="RUN", help="the run's folder")
    parser.add_argument("--rule", default="variance", help=f"how latents are told apart: {', '.join(RULES)}")
    parser.add_argument(
        "--examples", type=whole(1, 10**7), default=2048, metavar="N", help="examples to look at (2048)"
    )
    parser.add_argument("--json", action="store_true", help="print as JSON")
    add_quiet(parser)
    given = parse(parser, argv)
    shown = Run(given.run)
    if shown.state != "done":
        _unfinished(shown, given.json)
        return
    if not shown.encodes:
        _manipulation(shown, given.json)
        return
    with patiently(f"looking at {given.run}", given.json or given.quiet):
        description = describe(shown, n=given.examples, rule=given.rule)
    if given.json:
        print_json(_plain(shown, description))
        return
    show_latents(shown, description)
    names = ", ".join(shown.files.names())
    say(f"files in {shown.path}: {names}")


def show_latents(run: Run, description: Description) -> None:
    """The table of latents, the losses, and what they mean in words."""
    experiment = run.experiment
    steps = number_of(experiment.steps, "step")
    title = f"{experiment.objective.name} on {called(experiment.world)}, seed {experiment.seed}, {steps}"
    names = ("latent", "type", "KL (nats)", "mean σ²", "var σ²", "var μ")
    print_table(title, names, [tuple(row.values()) for row in description.rows()])
    total = description.kl.sum().item()
    if description.reconstruction is not None:
        say(f"reconstruction loss {description.reconstruction:.2f} at the mean code, KL {total:.2f} nats")
    for sentence in sentences(description, expected_of(experiment.world.card().space)):
        say(sentence)


def _manipulation(run: Run, as_json: bool) -> None:
    """What a manipulation was made from, and both sides' losses."""
    from unweave.recipes.perturb import Made, attack_of

    made = Made(run.path, attack_of(run))
    if as_json:
        print_json({"state": run.state, "experiment": experiment_to(run.experiment)} | made.to_plain())
        return
    first, last = made.losses.first, made.losses.last
    rows = [(name, first[name], last[name]) for name in first]
    steps = number_of(run.experiment.steps, "step")
    title = f"a manipulation of {called(run.experiment.world)}, ε {made.attack.epsilon:g}, {steps}"
    print_table(title, ("reconstruction loss", "at first", "at the end"), rows)
    for sentence in made.sentences():
        say(sentence)
    say(f"files in {run.path}: {', '.join(run.files.names())}")


def _unfinished(run: Run, as_json: bool) -> None:
    state = state_of(run.files)
    if state.word == "damaged":
        raise DamagedFile(f"{run.path} is {state}")
    failure, step = failure_of(run.files), saved_step(run.files)
    history = run.history if state.word == "failed" and run.files.names("history.") else None
    if as_json:
        told = {"folder": str(run.path), "state": state.column, "saved_step": step, "failure": failure}
        recorded = {} if history is None else {"history": {"steps": history.steps, "loss": plain(_losses(history))}}
        print_json(told | recorded | {"experiment": experiment_to(run.experiment)})
        return
    say(f"{run.path}: {state.column}, saved at step {step:,} of {run.experiment.n_updates:,}")
    if state.word == "failed":
        say(f"it failed: {state.reason}")
        _failed(run, failure or {}, history)
    elif state.word == "interrupted":
        say(f"go on with: {resume_words(run.path, run.experiment)}")


def _failed(run: Run, failure: Mapping[str, Any], history: History | None) -> None:
    """Where the weights are, what the loss was before, and how to try again."""
    if "term" in failure:
        say(kept_words(run.files, failure))
    if history is not None and history.steps:
        losses = _losses(history)
        span = f"step {history.steps[0]} to {history.steps[-1]}"
        say(f"its history has {number_of(len(losses), 'row')}, {span}: loss {losses[0]:.4g} to {losses[-1]:.4g}")
    say(f"try again with: {resume_words(run.path, run.experiment)}")


def _losses(history: History) -> list[float]:
    return [float(value) for value in history.column("loss")] if "loss" in history.columns else []


def _plain(run: Run, description: Description) -> dict[str, Any]:
    expected, diagnosis = expected_of(run.experiment.world.card().space), diagnose_described(description)
    without: dict[str, Any] = {"no_decoder": description.no_decoder, "without_kl": description.without_kl}
    return {
        "folder": str(run.path),
        "state": run.state,
        "id": run.experiment.id,
        "experiment": experiment_to(run.experiment),
        "examples": description.n_examples,
        "reconstruction": description.reconstruction,
        "latents": description.rows(),
        "findings": plain(findings(diagnosis, expected, **without)),
        "files": run.files.names(),
    }
