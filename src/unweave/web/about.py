"""A run without its model: what it was meant to be, how far it came, what its folder holds."""

from pathlib import Path
from typing import Any

from unweave.runs.folder import RunFolder
from unweave.studies.failures import reason_of
from unweave.training.run import Run
from unweave.web.answers import Factor, RunAnswer
from unweave.web.catalogue import read_row
from unweave.web.shelf import is_locked, locked_files


def run_answer(path: Path, run_id: str) -> RunAnswer:
    """Everything that is known of a run before its model is opened."""
    row = read_row(path, is_locked(path, locked_files()))
    run = Run(path)
    experiment, state = run.experiment, "unfinished" if row is None else str(row["state"])
    card = experiment.world.card()
    step = experiment.n_updates if state == "done" else (row or {}).get("step") or 0
    return RunAnswer(
        id=run_id,
        title=f"{experiment.objective.name} on {experiment.world.name}, seed {experiment.seed}",
        state=state,
        message=_message(run.files, state, step, experiment.n_updates),
        world=card.title,
        objective=experiment.objective.name,
        latents=experiment.latents,
        step=step,
        steps=experiment.n_updates,
        shape=list(card.shape),
        is_image=len(card.shape) == 3 and card.shape[0] in (1, 3),
        factors=[Factor(name=one.name, size=one.size, kind=one.kind) for one in card.space.factors]
        if card.space
        else [],
        config=run.files.read_json("config.json"),
        environment=_environment(run.files),
        files=[name for name in run.files.names() if not name.startswith(("checkpoints/", "."))],
    )


def _message(files: RunFolder, state: str, step: int, steps: int) -> str | None:
    if state == "done":
        return None
    if state == "failed":
        failure = _json(files, "failure.json")
        advice = "" if "reason" in failure else " Try a smaller learning rate."
        return f"Training failed: {reason_of(failure)}.{advice}"
    saved = f"step {step:,} of {steps:,} is saved" if step else "nothing is saved yet"
    if state == "running":
        return f"Still training: {saved}. This page follows it by itself."
    return f"Interrupted: {saved}. Go on with: unweave resume {files.path.name}"


def _environment(files: RunFolder) -> dict[str, Any]:
    found = _json(files, "environment.json")
    return {name: value for name, value in found.items() if isinstance(value, str | int | float | list | None)}


def _json(files: RunFolder, name: str) -> dict[str, Any]:
    try:
        found = files.read_json(name)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
