"""Which examples and which noise a step sees: a pure function of the experiment and the step."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from unweave import rng
from unweave.data.world import Data
from unweave.rng import Purpose
from unweave.shapes import Float, Int, Tensor
from unweave.training.experiment import Experiment

BLOCK = 64
"""Steps whose draws are made together: the draws are the same, the overhead is shared."""


@dataclass(frozen=True)
class Batch:
    """All that is random in one step. ``second`` and ``permutation`` are for objectives with a discriminator."""

    images: Float[Tensor, "batch ..."]
    noise: Float[Tensor, "batch latent"]
    second_images: Float[Tensor, "batch ..."] | None = None
    second_noise: Float[Tensor, "batch latent"] | None = None
    permutation: Int[Tensor, "batch latent"] | None = None


def training_rows(experiment: Experiment, n_examples: int) -> Int[Tensor, " sample"] | None:
    """The rows that may be trained on; None for all of them."""
    if experiment.holdout == 0.0:
        return None
    kept = ~rng.split_rows(n_examples, experiment.holdout, experiment.seed)
    rows = kept.nonzero()[:, 0]
    if not len(rows):
        raise ValueError(f"a holdout of {experiment.holdout} leaves none of the {n_examples} examples to train on")
    return rows


def batches(experiment: Experiment, data: Data, first: int, last: int) -> Iterator[Batch]:
    """The batches of steps first … last − 1, on the data's device."""
    rows = training_rows(experiment, len(data))
    rows = rows if rows is None else rows.to(data.store.device)
    for begin in range(first - first % BLOCK, last, BLOCK):
        steps = torch.arange(begin, min(begin + BLOCK, last), device=data.store.device)
        draws = _draw(experiment, steps, len(data) if rows is None else len(rows))
        for place in range(max(first - begin, 0), len(steps)):
            yield _batch(experiment, data, rows, {name: drawn[place] for name, drawn in draws.items()}, begin + place)


def _draw(experiment: Experiment, steps: Int[Tensor, " step"], n_rows: int) -> dict[str, Tensor]:
    seed, size, latents = experiment.seed, experiment.batch_size, experiment.latents
    drawn = {
        "places": _places(experiment, steps, n_rows, Purpose.BATCH),
        "noise": rng.normal(seed, Purpose.NOISE, steps, size, latents),
    }
    if experiment.objective.needs_second_batch:
        drawn["second_places"] = _places(experiment, steps, n_rows, Purpose.SECOND_BATCH)
        drawn["second_noise"] = rng.normal(seed, Purpose.SECOND_NOISE, steps, size, latents)
    if experiment.objective.has_discriminator:
        drawn["permutation"] = rng.permutations(seed, Purpose.PERMUTATION, steps, size, latents)
    return drawn


def _places(experiment: Experiment, steps: Int[Tensor, " step"], n_rows: int, purpose: Purpose) -> Tensor:
    size, seed = experiment.batch_size, experiment.seed
    if experiment.order == "iid":
        return rng.integers(n_rows, seed, purpose, steps, size, 1)[..., 0]
    count = steps[:, None] * size + torch.arange(size, device=steps.device)
    return rng.shuffled(count % n_rows, n_rows, seed, 256 + purpose, count // n_rows)


def _batch(
    experiment: Experiment, data: Data, rows: Int[Tensor, " sample"] | None, draws: dict[str, Tensor], step: int
) -> Batch:
    def images(places: Tensor, purpose: Purpose) -> Tensor:
        chosen = places if rows is None else rows[places]
        return data.examples(chosen, seed=experiment.seed, step=step, purpose=purpose)

    second = draws.get("second_places")
    return Batch(
        images(draws["places"], Purpose.NUISANCE),
        draws["noise"],
        None if second is None else images(second, Purpose.SECOND_NUISANCE),
        draws.get("second_noise"),
        draws.get("permutation"),
    )
