"""What FONDUE and its kin decide by: two readings of a run and the types of its latents (Bonheme, 2023, ch. 8)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from unweave.algorithms.fondue import CRITERIA, Batch, Evidence
from unweave.config import unknown
from unweave.evaluation.encode import BATCH_SIZE, Encoded
from unweave.evaluation.types import types_of
from unweave.metrics.polarised.types import Type
from unweave.studies.measures.encoded import encoded
from unweave.studies.measures.measure import Measure
from unweave.training.run import Run

TYPES: tuple[Type, ...] = ("active", "mixed", "passive")


@dataclass(frozen=True)
class FondueReading(Measure):
    """``fondue.trace.first``, ``.second`` and the numbers of active, mixed and passive latents, for one criterion."""

    name: ClassVar[str] = "fondue"
    criterion: str = "trace"
    n_samples: int = 10_000

    def __call__(self, run: Run) -> Mapping[str, Any]:
        return {self.criterion: read_latents(run, self.criterion, self.n_samples)}


def read_latents(run: Run, criterion: str, n_samples: int) -> dict[str, Any]:
    """The two numbers whose difference a search compares with its threshold, and how many latents are of each type."""
    if criterion not in CRITERIA:
        raise unknown("criterion", criterion, CRITERIA)
    code = encoded(run, n_samples)
    plain = code.standardised()
    evidence = Evidence(plain.mean, plain.variance, plain.sampled, lambda size: _batches(run, code, size))
    reading = CRITERIA[criterion].read(evidence)
    types = types_of(code)
    return {"first": reading.first, "second": reading.second} | {kind: types.count(kind) for kind in TYPES}


def _batches(run: Run, code: Encoded, size: int) -> Iterator[Batch]:
    # by the batches of the encoder, so that a nuisance is the one that was encoded
    for step, rows in enumerate(code.rows.split(BATCH_SIZE)):
        images = run.data.examples(rows, step=step).cpu()
        sampled = code.sampled[step * BATCH_SIZE : step * BATCH_SIZE + len(rows)]
        for shown, codes in zip(images.split(size), sampled.split(size)):
            # an entropy depends on the number of examples: none but whole batches, where there is one
            if len(codes) == min(size, len(code.rows)):
                yield codes, shown, run.decode(codes)
