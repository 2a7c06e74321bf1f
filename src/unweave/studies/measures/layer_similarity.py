"""How alike the layers of runs of one store are (Kornblith et al., 2019; Bonheme, 2023, eq. 7.8 and 7.9)."""

import contextlib
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import torch

from unweave import rng
from unweave.config import fingerprint
from unweave.data.world import Data
from unweave.evaluation.activations import activations, noise_of
from unweave.metrics.similarity.cka import cka_of_grams, gram_rows
from unweave.metrics.similarity.layers import centred
from unweave.metrics.similarity.procrustes import nuclear, reduced
from unweave.models import Model
from unweave.runs.folder import WEIGHTS, RunFolder
from unweave.shapes import Float, Tensor
from unweave.studies.identity import identity
from unweave.studies.measures.measure import Measure
from unweave.training.alone import Alone
from unweave.training.checkpoint import model_with, read_tensors
from unweave.training.experiment import read_experiment
from unweave.training.results import weights_file
from unweave.training.run import Run

END, FIRST, AGAIN = "end", "first", "again"
"""A model at the end of its training; before its first step; before the first step of another seed. Anything else is a
share of training, of which the nearest snapshot is taken."""

OTHER_SEEDS = 1_000_000
"""How far the seed of a second untrained network is from a run's own."""

LOOSE = 1e-3
"""By how much a nuclear norm may be off: small singular values of thousands drown in rounding."""

Scores = list[list[float | None]]
"""By layer of the left model and layer of the right one."""


@dataclass(frozen=True)
class LayerSimilarity(Measure):
    """CKA of all layers of some runs with those of others, on the same examples of their world: every pair of runs.

    The biased estimator, as published. With ``procrustes``, the beginnings of some layers' names, these layers are held
    against the same layers of the other model by Procrustes instead: what all pairs would take is hours. A model is
    never held against itself. Without ``left`` and ``right`` a run is held against its own other weights.
    """

    name: ClassVar[str] = "layer_similarity"
    left: tuple[str, ...] = ()
    """What the runs of the rows are examples of (``identity``); the first of them keeps what is found."""
    right: tuple[str, ...] = ()
    weights: tuple[str, str] = (FIRST, END)
    """Of the left models and of the right ones."""
    n_samples: int = 5_000
    procrustes: tuple[str, ...] = ()

    @property
    def others(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.left[1:], *self.right)))

    @property
    def file(self) -> str:
        """Apart from the measures that all runs of a study have: a table has no columns for groups."""
        return f"between/{self.name}-{fingerprint(self, 12)}.json"

    def __call__(self, run: Run) -> Mapping[str, Any]:
        lefts, rights = (self._places(one, run) for one in (self.left, self.right))
        rows = rows_of(len(run.data), self.n_samples)
        images = run.data.examples(rows)
        with _full_precision():
            partners = [(place, self._seen(place, self.weights[1], run.data, rows, images)) for place in rights]
            scores: list[list[Scores | None]] = []
            for place in lefts:
                seen = self._seen(place, self.weights[0], run.data, rows, images)
                itself = self.weights[0] == self.weights[1]
                scores.append(
                    [None if itself and place == there else self._held(seen, other) for there, other in partners]
                )
        return {"names": list(seen.names), "n_encoder": seen.n_encoder, "scores": scores}

    def _places(self, wanted: tuple[str, ...], run: Run) -> list[Path]:
        return folders_of(wanted, run.path.parent) if wanted else [run.path]

    def _held(self, left: "_Seen", right: "_Seen") -> Scores:
        return _same_places(left, right) if self.procrustes else _all_pairs(left, right)

    @torch.no_grad()
    def _seen(self, place: Path, weights: str, data: Data, rows: Tensor, images: Tensor) -> "_Seen":
        run = Run(place, "cuda" if torch.cuda.is_available() else "cpu")
        run.data = data
        model, checksum = _model(run, weights)
        # codes that are mostly noise must not look alike for having the same noise
        found = activations(model, images, run.labels(rows=rows), seed=noise_of(checksum, 0))
        if not self.procrustes:
            return _Seen(found.names, found.n_encoder, gram_rows(found.layers), {})
        chosen = {name: layer for name, layer in zip(found.names, found.layers) if name.startswith(self.procrustes)}
        tables = {name: reduced(centred(layer.double())).float() for name, layer in chosen.items()}
        return _Seen(found.names, found.n_encoder, None, tables)


def rows_of(n_examples: int, n: int) -> Tensor:
    """Some rows of a world, the same for all models: held-out ones are other ones for every seed."""
    return rng.words(0, rng.Purpose.EVALUATE, 0, n_examples, 1)[:, 0].argsort(stable=True)[:n]


@dataclass(frozen=True)
class _Seen:
    """What similarity takes of a model: Gram matrices of all layers, or some layers in no more columns than rows."""

    names: tuple[str, ...]
    n_encoder: int
    grams: Float[Tensor, "layer entry"] | None
    tables: Mapping[str, Float[Tensor, "sample column"]]


def _all_pairs(left: _Seen, right: _Seen) -> Scores:
    assert left.grams is not None
    assert right.grams is not None
    found: Scores = cka_of_grams(left.grams, right.grams).cpu().numpy().round(6).tolist()
    return found


def _same_places(left: _Seen, right: _Seen) -> Scores:
    scores: Scores = [[None] * len(right.names) for _ in left.names]
    for name in left.tables.keys() & right.tables.keys():
        value = nuclear(left.tables[name].double(), right.tables[name].double(), LOOSE)
        scores[left.names.index(name)][right.names.index(name)] = round(min(1.0, value), 6)
    return scores


def _model(run: Run, weights: str) -> tuple[Model, str]:
    """A run's model with these weights, and their checksum."""
    if weights in (FIRST, AGAIN):
        seed = run.experiment.seed + OTHER_SEEDS * (weights == AGAIN)
        return _untrained(run, seed)
    name = _file(run, weights)
    return run.load_weights(name), run.files.sums()[name]


def _file(run: Run, weights: str) -> str:
    if weights == END:
        return WEIGHTS
    steps, step = run.snapshots, float(weights) * run.experiment.n_updates
    return steps[min(steps, key=lambda one: abs(one - step))]


def _untrained(run: Run, seed: int) -> tuple[Model, str]:
    """The network of a run before its first step, as if its seed were this one."""
    one = replace(run.experiment, seed=seed, plan=replace(run.experiment.plan, device="cpu", precision="fp32"))
    engine = Alone(one, run.data)
    content = weights_file(engine.weights(0), engine.form)
    place = run.path / WEIGHTS
    architecture = one.architecture(engine.form.shape, engine.form.labels)
    model = model_with(one.objective, architecture, read_tensors(content, place)[0], place)
    placed = model.to(run.device, memory_format=torch.channels_last).eval().requires_grad_(False)  # type: ignore[call-overload]
    return placed, hashlib.sha256(content).hexdigest()


@contextlib.contextmanager
def _full_precision() -> Iterator[None]:
    """Products in full: a fleet that trained in this process may have left shorter ones. Memory is given back."""
    kinds: tuple[Any, ...] = (torch.backends.cuda.matmul, torch.backends.cudnn)
    before = [kind.allow_tf32 for kind in kinds]
    try:
        for kind in kinds:
            kind.allow_tf32 = False
        yield
    finally:
        for kind, allowed in zip(kinds, before):
            kind.allow_tf32 = allowed
        if torch.cuda.is_available():
            torch.cuda.empty_cache()  # gigabytes that other processes on the card may want


def folders_of(wanted: Sequence[str], root: Path) -> list[Path]:
    """The runs of a store that are examples of these, with their weights."""
    paths = [path for path in sorted(root.iterdir()) if (path / "config.json").exists()]
    found = {identity(read_experiment(RunFolder(path))): path for path in paths if RunFolder(path).has(WEIGHTS)}
    if absent := [one for one in wanted if one not in found]:
        raise FileNotFoundError(f"{root} has no run with weights that is an example of {', '.join(absent)}")
    return [found[one] for one in wanted]
