"""Packs: runs that are trained together, and what is measured of each. A result never depends on its pack."""

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import torch

from unweave.config import find, from_plain, to_plain
from unweave.runs.names import check_name
from unweave.studies.measures.measure import Measure
from unweave.training.experiment import TABLES, Experiment, experiment_from, experiment_to, form_of_card
from unweave.training.fleet.choice import side_by_side
from unweave.training.fleet.members import structure
from unweave.trusted import carried_files, is_trusted, trust, trust_file, trusted_modules

MOST_ON_CPU, MOST_ON_GPU, MOST_MEASURED = 32, 512, 8
"""Models in a pack. On a GPU the worker trains as many of them at a time as its memory holds."""

LEAST_ON_GPU = 16
"""Models that one GPU trains in little more time than one."""

SMALL = 1_000_000
"""Parameters up to which dense networks gain from being stacked on a CPU."""


@dataclass(frozen=True)
class Pack:
    """Runs that one worker brings to their end."""

    experiments: tuple[Experiment, ...]
    measures: tuple[Measure, ...] = ()
    trains: bool = True
    """Whether runs that are not trained are trained; else only measured."""

    @property
    def needs_gpu(self) -> bool:
        return self.trains and self.experiments[0].plan.device.startswith("cuda")

    @property
    def threads(self) -> int:
        return self.experiments[0].plan.threads if self.trains else 1


def pack(
    experiments: Sequence[Experiment],
    measures: Sequence[Measure] = (),
    *,
    workers: int = 1,
    gpus: int = 1,
    begun: Iterable[Sequence[str]] = (),
) -> list[Pack]:
    """Group resolved experiments into packs, evenly over so many workers, or over so many GPUs (0: one a worker).

    ``begun`` are the ids of fleets that were interrupted: their members stay together, so that they go on from their
    checkpoint.
    """
    waiting = {experiment.id: experiment for experiment in experiments}
    together = [[waiting.pop(id) for id in ids] for ids in begun if all(id in waiting for id in ids)]
    groups: dict[str, list[Experiment]] = {}
    for experiment in waiting.values():
        groups.setdefault(_key(experiment), []).append(experiment)
    places = gpus or workers
    share = math.ceil(sum(map(_on_gpu, waiting.values())) / places)
    for group in groups.values():
        size = _size(group, workers, share, places)
        together += [group[first : first + size] for first in range(0, len(group), size)]
    return [Pack(tuple(members), tuple(measures)) for members in together]


def measuring(experiments: Sequence[Experiment], measures: Sequence[Measure], *, workers: int = 1) -> list[Pack]:
    """Packs that only measure, evenly over so many workers: what follows a fleet on a GPU, on the cores."""
    size = max(1, min(MOST_MEASURED, math.ceil(len(experiments) / workers)))
    places = range(0, len(experiments), size)
    return [Pack(tuple(experiments[p : p + size]), tuple(measures), trains=False) for p in places]


def pack_to(pack: Pack) -> str:
    """A pack as text: how it travels to any worker. A measure goes by its import path."""
    measures = [{"name": _path(type(m)), "fields": to_plain(m)} for m in pack.measures]
    experiments = [experiment_to(experiment) for experiment in pack.experiments]
    plain = {"experiments": experiments, "measures": measures, "trains": pack.trains}
    return json.dumps(plain | {"trusts": sorted(_modules(pack)), "files": carried_files()})


def pack_from(text: str, modules: Path | None = None) -> Pack:
    """The inverse of :func:`pack_to`, for a worker of the same user: it trusts what whoever sent the pack does.

    ``modules`` is where a study's own file was carried to; it runs if it is the file that was sent.
    """
    plain = json.loads(text)
    trust(*plain["trusts"])
    for name, found in plain["files"].items():
        if modules is not None:
            trust_file(modules / f"{check_name(name)}.py", found)
    experiments = tuple(experiment_from(experiment) for experiment in plain["experiments"])
    return Pack(experiments, tuple(_measure(measure) for measure in plain["measures"]), plain["trains"])


def _measure(plain: dict[str, Any]) -> Measure:
    cls = find("measure", plain["name"], {})
    if not (isinstance(cls, type) and issubclass(cls, Measure)):
        raise ValueError(f"{plain['name']} is not a measure")
    fields = {key: value for key, value in plain["fields"].items() if key != "name"}
    found: Measure = from_plain(cls, fields, TABLES, plain["name"])
    return found


def _modules(pack: Pack) -> set[str]:
    """Modules outside this package whose objects the pack holds, and those that were named."""
    parts = [getattr(e, field.name) for e in pack.experiments for field in fields(e)]
    used = {type(part).__module__ for part in (*parts, *pack.measures) if is_dataclass(part)}
    return {*trusted_modules(), *(module for module in used if not is_trusted(module))}


def _path(cls: type) -> str:
    return f"{cls.__module__}:{cls.__qualname__}"


def _key(experiment: Experiment) -> str:
    # latents may differ in a fleet, but a wider stack sums in another order, and the last bits are others
    return json.dumps(to_plain(structure(experiment) | {"latents": experiment.latents}), sort_keys=True)


def _on_gpu(experiment: Experiment) -> bool:
    return experiment.plan.device.startswith("cuda")


def _size(group: Sequence[Experiment], workers: int, share: int, places: int) -> int:
    """How many of a group go into a pack; ``share`` is what each of so many places on GPUs has to train in all."""
    first = group[0]
    if side_by_side(first):
        return 1
    if _on_gpu(first) and first.objective.at_once < LEAST_ON_GPU:
        # a fleet takes its turns with these: other places may take them meanwhile
        return max(first.objective.at_once, math.ceil(len(group) / places))
    if _on_gpu(first):
        # small fleets cost more for each model: a group is parted only where there is enough for all
        n_parts = math.ceil(len(group) / min(MOST_ON_GPU, max(share, LEAST_ON_GPU)))
        return math.ceil(len(group) / n_parts)
    if _n_parameters(first) > SMALL:
        return 1
    return min(MOST_ON_CPU, math.ceil(len(group) / max(1, workers)))


def _n_parameters(experiment: Experiment) -> int:
    form = form_of_card(experiment.world.card())
    with torch.device("meta"):
        model = experiment.objective.model(experiment.architecture(form.shape, form.labels))
    return sum(parameter.numel() for parameter in model.parameters())
