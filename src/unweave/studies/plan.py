"""The plan of a study: every experiment resolved, and checked before anything is trained."""

from collections.abc import Sequence
from dataclasses import replace

import torch

from unweave.config import fingerprint
from unweave.training.batches import rehearse_anywhere
from unweave.training.experiment import Experiment, Plan, form_of_card
from unweave.training.given import check_given


class Poisoned(ValueError):
    """An experiment of a study that can never be run."""


def plan(experiments: Sequence[Experiment], *, needs_data: bool = True) -> dict[str, Experiment]:
    """Resolved experiments by id, equal ones once. One that cannot be run is named, before anything is trained.

    On a CPU an automatic number of threads becomes one: results do not depend on the machine, and workers run side by
    side. ``needs_data`` asks for worlds to be on this machine; executors on other machines leave it out.
    """
    return {one.id: one for one in resolved_each(experiments, needs_data=needs_data)}


def resolved_each(experiments: Sequence[Experiment], *, needs_data: bool = True) -> list[Experiment]:
    """The same, one for each that is given, in their order."""
    found: list[Experiment] = []
    tried: set[str] = set()
    for place, experiment in enumerate(experiments):
        try:
            resolved = _steady(experiment).resolve() if needs_data or _can(experiment) else _for_others(experiment)
            _try(resolved, needs_data, tried)
        except Exception as error:
            name = f"number {place + 1} of {len(experiments)} ({_words(experiment)})"
            raise Poisoned(f"experiment {name} cannot be run: {_reason(error)}") from error
        found.append(resolved)
    return found


def _steady(experiment: Experiment) -> Experiment:
    plan = experiment.plan
    on_cpu = plan.device == "cpu" or (plan.device == "auto" and not torch.cuda.is_available())
    return replace(experiment, plan=replace(plan, threads=1)) if on_cpu and plan.threads == 0 else experiment


def _can(experiment: Experiment) -> bool:
    return torch.cuda.is_available() or not experiment.plan.device.startswith("cuda")


def _for_others(experiment: Experiment) -> Experiment:
    """Resolved for machines with a GPU, from one without."""
    given = experiment.plan
    precision = "bf16" if given.precision == "auto" else given.precision
    chosen = replace(given, threads=given.threads or 1, precision=precision)
    return replace(replace(experiment, plan=Plan("cpu", 1)).resolve(), plan=chosen)


def _try(experiment: Experiment, needs_data: bool, tried: set[str]) -> None:
    """Build the model and run it once where nothing costs memory or time."""
    # one try serves all that share a structure; a seed or a strength changes no shape
    key = fingerprint((experiment.world, experiment.network, experiment.likelihood, experiment.latents)) + str(
        (type(experiment.objective), experiment.objective.posterior, experiment.init)
    )
    if key in tried:
        return
    card = experiment.world.card()
    if needs_data and not card.on_disk:
        raise experiment.world.absent()
    if needs_data:
        check_given(experiment.objective)
    form = form_of_card(card)
    with torch.device("meta"):
        networks = experiment.objective.networks(experiment.architecture(form.shape, form.labels))
    rehearse_anywhere(replace(experiment, batch_size=2), networks, form)
    tried.add(key)


def _words(experiment: Experiment) -> str:
    try:
        return (
            f"{experiment.objective} on {experiment.world.name}, {experiment.latents} latents, seed {experiment.seed}"
        )
    except Exception:
        return type(experiment).__name__


def _reason(error: Exception) -> str:
    text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    return text.splitlines()[0] if text else type(error).__name__
