"""Run in a process of its own with Triton's interpreter: what the kernels draw beside :mod:`unweave.rng`, as JSON."""

import json
import os

os.environ["TRITON_INTERPRET"] = "1"

import torch

from unweave import rng, rng_kernels


def words() -> dict[str, bool]:
    seeds = torch.tensor([0, 1, 2**32 - 1, 2**40 + 5, 2**63 - 1])
    same = {}
    for rows, columns in ((1, 1), (7, 6), (64, 10), (5, 4)):
        for step in (0, 3, 2**32 + 7):
            steps = torch.full_like(seeds, step)
            drawn = rng_kernels.words(seeds, rng.Purpose.NOISE, steps, rows, columns)
            same[f"words {rows}×{columns} at {step}"] = torch.equal(
                drawn, rng.words(seeds, rng.Purpose.NOISE, steps, rows, columns)
            )
    return same


def shuffles() -> dict[str, bool]:
    same = {}
    for size in (1, 2, 3, 5, 16, 17, 64, 300, 1000):
        position = torch.arange(size).repeat(2)
        seed = torch.tensor([4, 2**40 + 5]).repeat_interleave(size)
        epoch = torch.arange(2 * size) % 3
        drawn = rng_kernels.shuffled(position, size, seed, 257, epoch)
        same[f"shuffled {size}"] = torch.equal(drawn, rng.shuffled(position, size, seed, 257, epoch))
    # of one model, whose seed and epoch are one number each
    place, one = torch.arange(300), torch.tensor(7).expand(300)
    same["shuffled by one seed"] = torch.equal(
        rng_kernels.shuffled(place, 300, one, 257, one), rng.shuffled(place, 300, 7, 257, one)
    )
    return same


if __name__ == "__main__":
    print(json.dumps(words() | shuffles()))
