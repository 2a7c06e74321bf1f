"""What a step sees: which examples and which noise, as a pure function of the experiments and the step.

Everything is drawn for all models of a source at once, over a leading model axis; a model alone is a source of one.
The parts of a batch, of which a method names those it needs:

- ``images`` the examples of the step, and ``noise``, standard normal, one number a latent;
- ``second_images`` and ``second_noise`` the same of other examples, drawn independently;
- ``permutation`` an order of the batch for every latent.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from unweave import rng
from unweave.data.world import Data
from unweave.models.objectives import Batch
from unweave.rng import Purpose
from unweave.shapes import Float, Int, Shaped, Tensor
from unweave.training.experiment import Experiment

BLOCK = 64
"""Steps whose draws are made together: the draws are the same, the overhead is shared."""

MOST_DRAWS = 1 << 22
"""Noise values drawn at once; fewer steps make a block where there are many models."""

IMAGES = {"images": Purpose.NUISANCE, "second_images": Purpose.SECOND_NUISANCE}
"""Parts that are examples, and what their nuisances are drawn for."""

PLACES = {"images": Purpose.BATCH, "second_images": Purpose.SECOND_BATCH}
NOISE = {"noise": Purpose.NOISE, "second_noise": Purpose.SECOND_NOISE}

Draws = dict[str, Tensor]
"""Random numbers by the part they are for: of one step, or of several along a first axis."""


@dataclass(frozen=True)
class Source:
    """The data and everything that decides which of it comes when, for models that train together."""

    data: Data
    first: Experiment
    parts: frozenset[str]
    latents: int
    seeds: Int[Tensor, " model"]
    rows: Int[Tensor, "model sample"] | None
    latent_mask: Float[Tensor, "model 1 latent"] | None

    @property
    def block(self) -> int:
        """Steps whose draws are made together."""
        sized = len(self.seeds) * self.first.batch_size * self.latents
        return max(1, min(BLOCK, MOST_DRAWS // sized))


def source_of(experiments: Sequence[Experiment], data: Data) -> Source:
    """The source of these models' batches, on the data's device."""
    device = data.store.device
    kept = [training_rows(experiment, len(data)) for experiment in experiments]
    sizes = [experiment.latents for experiment in experiments]
    return Source(
        data,
        experiments[0],
        frozenset(part for experiment in experiments for part in experiment.objective.batch),
        max(sizes),
        torch.tensor([experiment.seed for experiment in experiments], device=device),
        None if kept[0] is None else torch.stack([rows.to(device) for rows in kept if rows is not None]),
        _latent_mask(sizes, device),
    )


def training_rows(experiment: Experiment, n_examples: int) -> Int[Tensor, " sample"] | None:
    """The rows that may be trained on; None for all of them."""
    if experiment.holdout == 0.0:
        return None
    kept = ~rng.split_rows(n_examples, experiment.holdout, experiment.seed)
    rows = kept.nonzero()[:, 0]
    if not len(rows):
        raise ValueError(f"a holdout of {experiment.holdout} leaves none of the {n_examples} examples to train on")
    return rows


def draw(source: Source, steps: Int[Tensor, " step"]) -> Draws:
    """All random numbers of some steps, ``places`` of examples among them."""
    size, latents = source.first.batch_size, source.latents
    seeds, steps = source.seeds[None, :], steps[:, None]
    drawn = {"steps": steps[:, 0]}
    for part, purpose in PLACES.items():
        if part in source.parts:
            drawn[_places_of(part)] = _places(source, seeds, steps, purpose)
    for part, purpose in NOISE.items():
        if part in source.parts:
            noise = rng.normal(seeds, purpose, steps, size, latents)
            # latents that a member does not have get no noise, so they stay silent
            drawn[part] = noise if source.latent_mask is None else noise * source.latent_mask
    if "permutation" in source.parts:
        drawn["permutation"] = rng.permutations(seeds, Purpose.PERMUTATION, steps, size, latents)
    return drawn


def stored(source: Source, draws: Draws, part: str) -> Shaped[Tensor, "model batch ..."]:
    """The examples of a step as they lie in the store: bits, bytes or floats."""
    places = draws[_places_of(part)]
    rows = places if source.rows is None else torch.gather(source.rows, 1, places)
    return source.data.store[rows]


def images(source: Source, draws: Draws, part: str) -> Float[Tensor, "model batch ..."]:
    """The examples of a step as the models see them, nuisances included."""
    nuisance, chosen = source.data.nuisance, stored(source, draws, part)
    plain = source.data.images(chosen.flatten(0, 1))
    if nuisance is not None:
        drawn = rng.uniform(source.seeds, IMAGES[part], draws["steps"], chosen.shape[1], nuisance.n_draws)
        plain = nuisance.apply(plain, drawn.flatten(0, 1))
    return plain.unflatten(0, chosen.shape[:2])


class Drawing:
    """The draws of any step, made for a block of steps at once; they stay on the device.

    With ``in_place`` a new block is written over the old one, for those who hold on to its tensors.
    """

    def __init__(self, source: Source, *, in_place: bool = False) -> None:
        self.source, self.in_place = source, in_place
        self.first, self.drawn = 0, Draws()

    def block_of(self, step: int) -> Draws:
        """The block with this step in it; the step's place in it is ``step - first``."""
        block = self.source.block
        if not self.drawn or step - step % block != self.first:
            self.first = step - step % block
            fresh = draw(self.source, torch.arange(self.first, self.first + block, device=self.source.seeds.device))
            if self.in_place and self.drawn:
                for name, drawn in self.drawn.items():
                    drawn.copy_(fresh[name])
            else:
                self.drawn = fresh
        return self.drawn

    def __call__(self, step: int) -> Draws:
        """The draws of one step."""
        return {name: drawn[step - self.first] for name, drawn in self.block_of(step).items()}


def batch_of_one(source: Source, draws: Draws) -> Batch:
    """The batch of a source's only model, without the model axis."""
    parts = {part: images(source, draws, part)[0] for part in IMAGES if part in source.parts}
    return parts | {part: drawn[0] for part, drawn in draws.items() if part in source.parts}


def batches(experiment: Experiment, data: Data, first: int, last: int) -> Iterator[Batch]:
    """The batches of steps first … last − 1 of one model, on the data's device."""
    source = source_of([experiment], data)
    drawing = Drawing(source)
    for step in range(first, last):
        yield batch_of_one(source, drawing(step))


def _places_of(part: str) -> str:
    return f"places of {part}"


def _places(source: Source, seeds: Tensor, steps: Tensor, purpose: Purpose) -> Int[Tensor, "step model batch"]:
    size, n_rows = source.first.batch_size, len(source.data) if source.rows is None else source.rows.shape[1]
    if source.first.order == "iid":
        return rng.integers(n_rows, seeds, purpose, steps, size, 1)[..., 0]
    count = steps[..., None] * size + torch.arange(size, device=steps.device)
    count = count.expand(-1, seeds.shape[1], -1)
    return rng.shuffled(count % n_rows, n_rows, seeds[..., None], 256 + purpose, count // n_rows)


def _latent_mask(sizes: Sequence[int], device: torch.device) -> Float[Tensor, "model 1 latent"] | None:
    if len(set(sizes)) == 1:
        return None
    latent = torch.arange(max(sizes), device=device)
    return (latent < torch.tensor(sizes, device=device)[:, None]).to(torch.float32)[:, None]
