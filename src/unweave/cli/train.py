"""unweave train: one model from the command line."""

import argparse
import contextlib
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from unweave.cli.console import print_json, print_table, say
from unweave.cli.download import shown
from unweave.cli.options import add_component, add_fields, collect, command, grid, numbers, parse, real
from unweave.cli.own_data import usual_components, usual_settings, with_world
from unweave.config import own_modules
from unweave.data import Data, World
from unweave.data.world import called
from unweave.files import as_typed, read_json
from unweave.runs.folder import RunFolder
from unweave.runs.state import state_of
from unweave.training.batches import check_before_fetching
from unweave.training.experiment import TABLES, Experiment, config_near, experiment_from, experiment_to
from unweave.training.loop import train as train_experiment
from unweave.training.memory import keep_freed_memory
from unweave.training.progress import progress
from unweave.training.results import for_all
from unweave.training.run import Run
from unweave.training.running import RunOptions
from unweave.training.wake import wake
from unweave.trusted import trust_words
from unweave.words import number_of

EXAMPLES = """examples:
  unweave train micro --objective beta_vae --objective.beta 6 --latents 6 --steps 2000 --optimiser.learning-rate 2e-3
  unweave train dsprites --objective factor_vae --network conv_2x2 --seed 3
  unweave train photos/ --world.size 64 --steps 20000
  unweave train people.csv --world.labels species,age --latents 4 --steps 20000
  unweave train micro --seeds 0:10 --objective.beta 1,2,4      thirty models, side by side or in one fleet
  unweave train --config runs/x/config.json --seed 1

The same command again goes on where it stopped, or returns at once."""

TRACKING = {
    "tensorboard": "also write TensorBoard scalars",
    "mlflow": "also log to MLflow",
    "wandb": "also log to Weights & Biases, offline",
}


def run(argv: Sequence[str]) -> int:
    """Train, then say where the run is and what it uses; 1 where a model failed."""
    argv = with_world(argv)
    world = argv[0].replace("-", "_") if argv and not argv[0].startswith("-") else None
    parser = _parser(argv, world)
    given = vars(parse(parser, argv[1:] if world else argv))
    base = read_config(given["config"]) if given["config"] else usual_settings(world)
    if world is None and "world" not in base:
        raise ValueError("say what to learn from: unweave train WORLD; `unweave worlds` lists them")
    given |= {"world": world} if world else {}
    given |= {"seed": numbers(given["seeds"])} if given["seeds"] else {}
    chosen = [
        experiment_from(collect(values, Experiment, TABLES, base)) for values in grid(given, Experiment, TABLES, base)
    ]
    if given["print_config"]:
        configs = [experiment_to(experiment.resolve()) for experiment in chosen]
        print_json(configs if len(configs) > 1 else configs[0])
    elif len(chosen) > 1:
        return _tell_all(train_all(chosen, given), given["json"])
    else:
        _tell(chosen[0], train_watched(chosen[0], given), given)
    return 0


def read_config(file: str) -> dict[str, Any]:
    """The settings of another run, from the file that ``--config`` names; its world may have moved with that file."""
    return config_near(read_json(file, "the config.json of a run"), Path(file).absolute().parent)


def _tell(experiment: Experiment, path: Path, given: dict[str, Any]) -> None:
    finished = Run(path)
    if given["json"]:
        print_json(
            {"folder": str(path), "id": experiment.resolve().id, "loss": finished.history.column("loss")[-1].item()}
        )
    else:
        place = f"{as_typed(path)}{trust_words(own_modules(experiment))}"
        say(f"done: {path}\nsee it with: unweave show {place}    or: unweave report {place}")


def _tell_all(paths: list[Path], as_json: bool) -> int:
    found = for_all(lambda path: state_of(RunFolder(path), thorough=True), paths)
    states = {str(path): state for path, state in zip(paths, found)}
    failed = [state for state in states.values() if state.word != "done"]
    if as_json:
        print_json([{"folder": folder, "state": state.column} for folder, state in states.items()])
    else:
        told = [(folder, str(state)) for folder, state in states.items()]
        print_table(number_of(len(states), "model"), ("folder", "state"), told)
    if failed:
        print(f"unweave: {len(failed)} of {number_of(len(states), 'model')} failed", file=sys.stderr)
    return 1 if failed else 0


def add_running_options(parser: argparse.ArgumentParser) -> None:
    """Options that say how to run, and do not change the result."""
    group = parser.add_argument_group("running")
    group.add_argument(
        "--save-every", type=real(0), default=30.0, metavar="SECONDS", help="time between checkpoints (30)"
    )
    for name, what in TRACKING.items():
        group.add_argument(f"--{name}", action="store_true", help=what)
    group.add_argument("--quiet", action="store_true", help="no progress bar")
    group.add_argument("--json", action="store_true", help="print the result as JSON")


def train_watched(experiment: Experiment, given: dict[str, Any]) -> Path:
    """Train with progress, trackers and a clean stop on Ctrl-C."""
    keep_freed_memory()
    resolved = experiment.resolve()
    folder = Path(given.get("folder") or Path("runs") / resolved.id)
    data = None if RunFolder(folder).has("model.safetensors") else load_watched(resolved, given["quiet"])
    with running(f"{resolved.objective.name} on {called(resolved.world)}", given) as how:
        return train_experiment(resolved, folder, data=data, how=how)


def train_all(experiments: list[Experiment], given: dict[str, Any]) -> list[Path]:
    """Train many models together, in one fleet on a GPU and side by side on a CPU."""
    from unweave.training.many import train_many

    keep_freed_memory()
    resolved = experiments[0].resolve()
    data = load_watched(resolved, given["quiet"])
    with running(f"{number_of(len(experiments), 'model')} on {called(resolved.world)}", given) as how:
        return train_many(experiments, given["folder"] or "runs", data=data, how=how)


@contextlib.contextmanager
def running(title: str, given: dict[str, Any]) -> Iterator[RunOptions]:
    """Progress, trackers, time between checkpoints and a clean stop on Ctrl-C, as the options say."""
    with contextlib.ExitStack() as stack:
        watchers = () if given["quiet"] else (stack.enter_context(progress(title)),)
        trackers = tuple(name for name in TRACKING if given.get(name))
        yield RunOptions(watchers, given["save_every"], stack.enter_context(stopping()), trackers)


def load_watched(experiment: Experiment, quiet: bool) -> Data:
    """The data, with a bar where it has to be rendered or converted first."""
    check_before_fetching(experiment)
    wake(experiment.plan.device)
    if quiet:
        return experiment.world.load()
    with shown() as progress:
        data = experiment.world.load(progress)
    if line := experiment.world.told(data):
        print(line, file=sys.stderr)
    return data


@contextlib.contextmanager
def stopping() -> Iterator[Callable[[], bool]]:
    """The first Ctrl-C or SIGTERM asks for a checkpoint and an end; the second ends at once."""
    asked: list[int] = []

    def ask(number: int, frame: Any) -> None:
        if asked:
            raise KeyboardInterrupt
        asked.append(number)

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: bool(asked)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _parser(argv: Sequence[str], world: str | None) -> argparse.ArgumentParser:
    parser = command(
        "unweave train",
        "Train one model on a world and keep everything about it in one folder.",
        usage="unweave train WORLD [options]",
        examples=EXAMPLES,
    )
    parser.add_argument("--folder", help="where to keep the run (default: runs/ and its id)")
    parser.add_argument("--config", metavar="FILE", help="start from the config.json of another run")
    parser.add_argument("--seeds", metavar="FIRST:END", help="several models: seeds 0:50, or 0,3,7")
    parser.add_argument("--print-config", action="store_true", help="print the whole config and stop")
    add_running_options(parser)
    if world is not None:
        add_component(parser, "world", World, argv, TABLES, chosen=world)
    add_fields(parser, Experiment, argv, TABLES, skip=("world",), usual=usual_components(world))
    return parser
