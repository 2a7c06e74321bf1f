"""All models of a round in as few fleets as there are structures, in this process: what a search trains ahead."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from unweave.config import to_plain
from unweave.studies.executors.executor import Ended, Executor
from unweave.studies.executors.here import Here
from unweave.studies.pack import Pack
from unweave.training.fleet.members import structure
from unweave.training.running import RunOptions


@dataclass(frozen=True)
class Together(Executor):
    """As :class:`Here`, but models with codes of different sizes share a fleet."""

    def __call__(self, packs: Sequence[Pack], root: Path, how: RunOptions, ended: Ended) -> None:
        fleets: dict[str, list[Pack]] = {}
        for pack in packs:
            alike = structure(pack.experiments[0]) if pack.trains else {"measured": pack.experiments[0].id}
            fleets.setdefault(json.dumps(to_plain(alike), sort_keys=True), []).append(pack)
        merged = [_merged(alike) for alike in fleets.values()]
        Here()(merged, root, how, ended)


def _merged(packs: Sequence[Pack]) -> Pack:
    return replace(packs[0], experiments=tuple(one for pack in packs for one in pack.experiments))
