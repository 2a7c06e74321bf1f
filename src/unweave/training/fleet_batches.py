"""What every model of a fleet sees in a step: the draws of :mod:`unweave.training.batches`, for all seeds at once."""

from dataclasses import dataclass

import torch

from unweave import rng
from unweave.data.world import Data
from unweave.rng import Purpose
from unweave.shapes import Float, Int, Shaped, Tensor
from unweave.training.batches import BLOCK, training_rows
from unweave.training.fleet_members import Members

MOST_DRAWS = 1 << 22
"""Noise values drawn at once; fewer steps make a block where the fleet is large."""


@dataclass(frozen=True)
class Source:
    """The data and everything that decides which of it comes when."""

    data: Data
    members: Members
    seeds: Int[Tensor, " model"]
    rows: Int[Tensor, "model sample"] | None
    latent_mask: Float[Tensor, "model 1 latent"]
    second: bool
    permuted: bool

    @property
    def block(self) -> int:
        """Steps whose draws are made together."""
        sized = len(self.seeds) * self.members.experiments[0].batch_size * self.members.latents
        return max(1, min(BLOCK, MOST_DRAWS // sized))


def source_of(members: Members, data: Data) -> Source:
    """The source of a fleet's batches, on the data's device."""
    device, experiments = data.store.device, members.experiments
    kept = [training_rows(experiment, len(data)) for experiment in experiments]
    latent = torch.arange(members.latents, device=device)
    sizes = torch.tensor([experiment.latents for experiment in experiments], device=device)
    return Source(
        data,
        members,
        torch.tensor([experiment.seed for experiment in experiments], device=device),
        None if kept[0] is None else torch.stack([rows.to(device) for rows in kept if rows is not None]),
        (latent < sizes[:, None]).to(torch.float32)[:, None],
        any(experiment.objective.needs_second_batch for experiment in experiments),
        any(experiment.objective.has_discriminator for experiment in experiments),
    )


def draw(source: Source, steps: Int[Tensor, " step"]) -> dict[str, Shaped[Tensor, "step ..."]]:
    """All random numbers of some steps. Latents that a member does not have get no noise, so they stay silent."""
    size, latents = source.members.experiments[0].batch_size, source.members.latents
    seeds, steps = source.seeds[None, :], steps[:, None]
    drawn = {
        "steps": steps[:, 0],
        "places": _places(source, seeds, steps, Purpose.BATCH),
        "noise": rng.normal(seeds, Purpose.NOISE, steps, size, latents) * source.latent_mask,
    }
    if source.second:
        drawn["second_places"] = _places(source, seeds, steps, Purpose.SECOND_BATCH)
        drawn["second_noise"] = rng.normal(seeds, Purpose.SECOND_NOISE, steps, size, latents) * source.latent_mask
    if source.permuted:
        drawn["permutation"] = rng.permutations(seeds, Purpose.PERMUTATION, steps, size, latents)
    return drawn


def stored(source: Source, places: Int[Tensor, "model batch"]) -> Shaped[Tensor, "model batch ..."]:
    """The chosen examples as they lie in the store: bits, bytes or floats."""
    rows = places if source.rows is None else torch.gather(source.rows, 1, places)
    return source.data.store[rows]


def images(
    source: Source, places: Int[Tensor, "model batch"], step: Int[Tensor, ""], purpose: Purpose
) -> Float[Tensor, "model batch ..."]:
    """The chosen examples as the models see them, nuisances included."""
    nuisance = source.data.nuisance
    plain = source.data.images(stored(source, places).flatten(0, 1))
    if nuisance is not None:
        drawn = rng.uniform(source.seeds, purpose, step, places.shape[1], nuisance.n_draws)
        plain = nuisance.apply(plain, drawn.flatten(0, 1))
    return plain.unflatten(0, places.shape)


def _places(source: Source, seeds: Tensor, steps: Tensor, purpose: Purpose) -> Int[Tensor, "step model batch"]:
    first = source.members.experiments[0]
    size, n_rows = first.batch_size, len(source.data) if source.rows is None else source.rows.shape[1]
    if first.order == "iid":
        return rng.integers(n_rows, seeds, purpose, steps, size, 1)[..., 0]
    count = steps[..., None] * size + torch.arange(size, device=steps.device)
    count = count.expand(-1, seeds.shape[1], -1)
    return rng.shuffled(count % n_rows, n_rows, seeds[..., None], 256 + purpose, count // n_rows)
