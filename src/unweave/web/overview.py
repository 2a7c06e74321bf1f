"""A run without its model: what it was meant to be, how far it came, what its folder holds."""

from pathlib import Path
from typing import Any

from unweave.data.columns import Columns
from unweave.data.world import called
from unweave.files import as_typed
from unweave.models.method import NoDecoder
from unweave.runs.folder import RunFolder
from unweave.runs.row import read_object
from unweave.runs.state import State, failure_of, state_of
from unweave.training.run import Run
from unweave.trusted import Untrusted
from unweave.web.schema import ColumnAnswer, Factor, RunAnswer


def run_answer(path: Path, run_id: str) -> RunAnswer:
    """Everything that is known of a run before its model is opened."""
    run = Run(path)
    try:
        experiment, state = run.experiment, state_of(run.files, thorough=True)
    except Untrusted as error:
        return _without_code(run.files, run_id, untrusted_words(error))
    card = experiment.world.card()
    step = experiment.n_updates if state.word == "done" else state.step
    return RunAnswer(
        id=run_id,
        path=as_typed(path),
        title=f"{experiment.objective.name} on {called(experiment.world)}, seed {experiment.seed}",
        state=state.column,
        message=_message(run.files, state, experiment.n_updates),
        world=card.title,
        objective=experiment.objective.name,
        latents=experiment.latents,
        step=step,
        steps=experiment.n_updates,
        shape=list(card.shape),
        is_image=len(card.shape) == 3 and card.shape[0] in (1, 3),
        no_decoder=None if run.decodes else str(NoDecoder(experiment.objective.name)),
        factors=[Factor(name=one.name, size=one.size, kind=one.kind) for one in card.space.factors]
        if card.space
        else [],
        columns=_columns(experiment.world.known_columns()),
        config=run.files.read_json("config.json"),
        environment=_environment(run.files),
        files=_files(run.files),
    )


def _columns(known: Columns | None) -> list[ColumnAnswer]:
    if known is None:
        return []
    found = zip(known.names, known.means, known.deviations)
    return [ColumnAnswer(name=name, mean=mean, deviation=deviation) for name, mean, deviation in found]


def _without_code(files: RunFolder, run_id: str, sentence: str) -> RunAnswer:
    """A run that names code of somebody else's: all that its files say, and how to allow it."""
    config, state = files.read_json("config.json"), state_of(files, thorough=True)
    world, objective, steps = config.get("world"), config.get("objective"), _whole(config.get("steps"))
    return RunAnswer(
        id=run_id,
        path=as_typed(files.path),
        title=f"{_named(objective)} on {_named(world)}, seed {_whole(config.get('seed'))}",
        state=state.column,
        message=f"{sentence[:1].upper()}{sentence[1:]}.",
        world=_named(world),
        objective=_named(objective),
        latents=_whole(config.get("latents")),
        step=steps if state.word == "done" else state.step,
        steps=steps,
        shape=[],
        is_image=False,
        factors=[],
        config=config,
        environment=_environment(files),
        files=_files(files),
    )


def untrusted_words(error: Untrusted) -> str:
    """What to do about it in a browser: the explorer has to be told when it starts."""
    words = str(error).partition(", or uw.trust(")[0]
    return words.replace("add --trust", "start the explorer again with --trust")


def _named(component: Any) -> str:
    name = component.get("name") if isinstance(component, dict) else component
    return name[:80] if isinstance(name, str) else "?"


def _whole(value: Any) -> int:
    return value if isinstance(value, int) and 0 <= value <= 2**53 else 0


def _files(files: RunFolder) -> list[str]:
    return [name for name in files.names() if not name.startswith(("checkpoints/", "."))]


def _message(files: RunFolder, state: State, steps: int) -> str | None:
    if state.word == "done":
        return None
    if state.word == "damaged":
        return f"This run is damaged: {state.reason}."
    if state.word == "failed":
        advice = "" if "reason" in (failure_of(files) or {}) else " Try a smaller learning rate."
        return f"Training failed: {state.reason}.{advice}"
    saved = f"step {state.step:,} of {steps:,} is saved" if state.step else "nothing is saved yet"
    if state.word == "training":
        return f"Still training: {saved}. This page follows it by itself."
    return f"Interrupted: {saved}. Go on with: unweave resume {as_typed(files.path)}"


def _environment(files: RunFolder) -> dict[str, Any]:
    try:
        found = read_object(files, "environment.json", files.sums())
    except (OSError, KeyError, ValueError, RecursionError):
        return {}
    return {name: value for name, value in found.items() if isinstance(value, str | int | float | list | None)}
