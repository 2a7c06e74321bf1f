"""A part of a reproduction: fewer worlds where not all can be had, fewer methods or seeds to save time; never steps."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from unweave.recipes.zietlow2022.bias import FIRST_CANDIDATE
from unweave.studies.results import Results
from unweave.studies.study import FollowUp, Study
from unweave.training.experiment import Experiment


@dataclass(frozen=True)
class Part:
    """Which worlds and methods, by name, and how many seeds of every setting; all where nothing is said."""

    worlds: tuple[str, ...] = ()
    seeds: int | None = None
    methods: tuple[str, ...] = ()

    def has(self, experiment: Experiment) -> bool:
        """Whether an experiment belongs to it; an altered world goes by its own name and by its base's."""
        named = not self.worlds or bool({*_names(experiment.world)} & {*self.worlds})
        # a manipulation of images is no method that is compared
        method = experiment.objective
        named = named and (not self.methods or method.name in self.methods or not method.encodes)
        # models to choose from have seeds of their own, and a chain needs all of them
        return named and (self.seeds is None or not self.seeds <= experiment.seed < FIRST_CANDIDATE)

    def words(self) -> dict[str, Any]:
        """What a page says of it."""
        said = {"worlds, of those published": ", ".join(self.worlds), "seeds at most": self.seeds}
        said |= {"methods, of those published": ", ".join(self.methods)}
        return {name: value for name, value in said.items() if value}


def part_of(study: Study, part: Part) -> Study:
    """The study with this part of its experiments, and of those that follow; refused where none is left."""
    if part == Part() or not study.experiments:
        return study
    kept = tuple(one for one in study.experiments if part.has(one))
    known, methods = _worlds_of(study), _methods_of(study)
    if unknown := [name for name in part.worlds if name not in known]:
        raise ValueError(f"{study.name} has no models on {', '.join(unknown)}; its worlds are {', '.join(known)}")
    if unknown := [name for name in part.methods if name not in methods]:
        raise ValueError(f"{study.name} has no models of {', '.join(unknown)}; its methods are {', '.join(methods)}")
    follow_up = None if study.follow_up is None else partial(_following, study.follow_up, part)
    return replace(study, experiments=kept, follow_up=follow_up)


def parts_for(studies: Sequence[Study], part: Part) -> list[Part]:
    """The part for each of several studies that are asked together: names that only others of them know are left out.

    A name that none of them knows stays, and so do all where a study knows none: :func:`part_of` refuses them.
    """
    worlds, methods = [_worlds_of(study) for study in studies], [_methods_of(study) for study in studies]
    return [
        replace(part, worlds=_known(part.worlds, own, worlds), methods=_known(part.methods, its, methods))
        for own, its in zip(worlds, methods)
    ]


def check_on_hand(study: Study) -> None:
    """Refuse a study with worlds that are not on this machine, and say which part of it can be had."""
    worlds = {one.world.name: one.world for one in study.experiments}
    cards = {name: world.card() for name, world in worlds.items()}
    absent = [name for name, card in cards.items() if not card.on_disk]
    if not absent:
        return
    here = [name for name in cards if name not in absent]
    part = f"; for what can be had here add --worlds {','.join(here)}" if here else ""
    how = "; ".join(str(worlds[name].absent()) for name in absent)
    raise FileNotFoundError(f"{study.name} cannot be had in full{part}: {how}")


def _following(follow_up: FollowUp, part: Part, results: Results) -> Sequence[Experiment]:
    return [one for one in follow_up(results) if part.has(one)]


def _known(names: tuple[str, ...], own: list[str], every: list[list[str]]) -> tuple[str, ...]:
    elsewhere = {name for known in every for name in known} - {*own}
    return tuple(name for name in names if name not in elsewhere) or names


def _worlds_of(study: Study) -> list[str]:
    return sorted({name for one in study.experiments for name in _names(one.world)})


def _methods_of(study: Study) -> list[str]:
    return sorted({one.objective.name for one in study.experiments})


def _names(world: Any) -> list[str]:
    base = getattr(world, "base", None)
    return [world.name, *([] if base is None else _names(base))]
