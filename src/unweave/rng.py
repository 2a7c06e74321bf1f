"""Counter-based randomness: Philox4x32-10 (Salmon et al., 2011) keyed by (seed, purpose, step).

Nothing here has a state. Every draw is a function of its key and of its own place (row, column), so a run draws
the same numbers alone, in a fleet of a thousand, after any interruption, and on any device. A wider draw begins
with the narrower one: column j does not depend on how many columns there are.
"""

import functools
import math
from enum import IntEnum
from types import ModuleType
from typing import cast

import torch

from unweave.shapes import Bool, Float, Int, Tensor

MASK = 0xFFFFFFFF
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
WEYL = (0x9E3779B9, 0xBB67AE85)
N_ROUNDS = 10
PORTION = 1 << 15


class Purpose(IntEnum):
    """What a draw is for. Numbers are part of every run's identity: add new ones, never renumber."""

    INITIALISE = 0
    BATCH = 1
    NOISE = 2
    NUISANCE = 3
    SECOND_BATCH = 4
    SECOND_NOISE = 5
    SECOND_NUISANCE = 6
    PERMUTATION = 7
    SPLIT = 8
    EVALUATE = 9
    WORLD = 10
    PAIR = 11
    RESAMPLE = 12
    ORDER = 13
    LABELLED = 14
    LABELLED_BATCH = 15
    LABELLED_NUISANCE = 16
    ALTERATION = 17
    METHOD = 64


Place = int | Int[Tensor, "..."]


def words(seed: Place, purpose: int, step: Place, rows: int, columns: int) -> Int[Tensor, "*key rows columns"]:
    """Random 32-bit words, shape ``broadcast(seed, step) + (rows, columns)``, as int64."""
    device = next((part.device for part in (seed, step) if isinstance(part, Tensor)), None)
    seed, step = _place(seed, device), _place(step, device)
    if (kernels := _kernels(seed.device)) is not None:
        keys = torch.broadcast_tensors(seed[..., 0, 0], step[..., 0, 0])
        return cast(Tensor, kernels.words(keys[0], purpose, keys[1], rows, columns))
    return _words(seed, purpose, step, rows, columns)


def _words(seed: Tensor, purpose: int, step: Tensor, rows: int, columns: int) -> Int[Tensor, "*key rows columns"]:
    device = seed.device
    blocks = -(-columns // 4)
    column = torch.arange(blocks, device=device).view(1, blocks)
    row = torch.arange(rows, device=device).view(rows, 1)
    counter = (column, row, step & MASK, torch.full_like(step, int(purpose)) | ((step >> 32) << 8))
    drawn = torch.stack(torch.broadcast_tensors(*philox(counter, (seed & MASK, (seed >> 32) & MASK))), dim=-1)
    return drawn.flatten(-2)[..., :columns]


def philox(counter: tuple[Tensor, ...], key: tuple[Tensor, Tensor]) -> tuple[Tensor, ...]:
    """Four words for a counter of four words under a key of two; all are 32-bit values held in int64."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(N_ROUNDS):
        high0, low0 = _multiply(c0, MULTIPLIERS[0])
        high1, low1 = _multiply(c2, MULTIPLIERS[1])
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0, k1 = (k0 + WEYL[0]) & MASK, (k1 + WEYL[1]) & MASK
    return c0, c1, c2, c3


def uniform(seed: Place, purpose: int, step: Place, rows: int, columns: int) -> Float[Tensor, "*key rows columns"]:
    """Uniform in [0, 1), in float32 with 24 random bits."""
    return (words(seed, purpose, step, rows, columns) >> 8).to(torch.float32) * 2.0**-24


def normal(seed: Place, purpose: int, step: Place, rows: int, columns: int) -> Float[Tensor, "*key rows columns"]:
    """Standard normal in float32, by the Box-Muller transform of neighbouring words."""
    pairs = words(seed, purpose, step, rows, columns + columns % 2).unflatten(-1, (-1, 2))
    # u in (0, 1]: a small word keeps all its bits, so the tail reaches 6.6 standard deviations
    radius = torch.sqrt(-2.0 * torch.log((pairs[..., 0].to(torch.float32) + 1.0) * 2.0**-32))
    angle = pairs[..., 1].to(torch.float32) * (2.0**-32 * 2.0 * math.pi)
    both = torch.stack((radius * torch.cos(angle), radius * torch.sin(angle)), dim=-1)
    return both.flatten(-2)[..., :columns]


def integers(
    high: int, seed: Place, purpose: int, step: Place, rows: int, columns: int
) -> Int[Tensor, "*key rows columns"]:
    """Uniform integers in [0, high), for high below 2**31."""
    assert 0 < high < 2**31
    return (words(seed, purpose, step, rows, columns) * high) >> 32


def permutations(seed: Place, purpose: int, step: Place, rows: int, columns: int) -> Int[Tensor, "*key rows columns"]:
    """An independent permutation of the rows for every column."""
    return words(seed, purpose, step, rows, columns).argsort(dim=-2, stable=True)


def shuffled(
    position: Int[Tensor, "*any"], size: int, seed: Place, purpose: int, epoch: Int[Tensor, "*any"]
) -> Int[Tensor, "*any"]:
    """Where ``position`` of [0, size) goes in the random order of ``epoch``: a bijection, without a stored list.

    A Feistel cipher permutes the next power of four; a place outside the range is enciphered again until it is inside.
    """
    place, keys, epochs = (part.flatten() for part in torch.broadcast_tensors(position, _number(seed, position), epoch))
    if (kernels := _kernels(position.device)) is not None:
        return cast(Tensor, kernels.shuffled(place, size, keys, purpose, epochs)).view(position.shape)
    return _shuffled(place, size, keys, purpose, epochs).view(position.shape)


def _shuffled(place: Tensor, size: int, keys: Tensor, purpose: int, epochs: Tensor) -> Int[Tensor, " place"]:
    half = max(1, math.ceil(math.log2(max(size, 2)) / 2))
    place = _encipher(place, half, keys, purpose, epochs)
    while len(outside := (place >= size).nonzero()[:, 0]):
        place[outside] = _encipher(place[outside], half, keys[outside], purpose, epochs[outside])
    return place


def _encipher(place: Tensor, half: int, key: Tensor, purpose: int, epoch: Tensor) -> Int[Tensor, " place"]:
    # in portions whose numbers stay in a core's cache
    portions = zip(place.split(PORTION), key.split(PORTION), epoch.split(PORTION))
    return torch.cat([_enciphered(part, half, keys, purpose, epochs) for part, keys, epochs in portions])


def _enciphered(place: Tensor, half: int, key: Tensor, purpose: int, epoch: Tensor) -> Int[Tensor, " place"]:
    mask = (1 << half) - 1
    left, right = place >> half, place & mask
    for turn in range(6):
        counter = (right, torch.full_like(right, turn), epoch & MASK, torch.full_like(right, int(purpose)))
        mixed = philox(counter, (key & MASK, (key >> 32) & MASK))[0]
        left, right = right, left ^ (mixed & mask)
    return (left << half) | right


def derive(seed: int, purpose: int, step: int = 0) -> int:
    """A seed for a generator that is not ours (numpy, LightGBM): 63 bits from the same stream."""
    low, high = words(seed, purpose, step, 1, 2)[0].tolist()
    return ((high << 32) | low) >> 1


def split_rows(n_rows: int, share: float, seed: int) -> Bool[Tensor, " sample"]:
    """True for a random ``share`` of the rows, rounded to the nearest whole number."""
    order = words(seed, Purpose.SPLIT, 0, n_rows, 1)[:, 0].argsort(stable=True)
    chosen = torch.zeros(n_rows, dtype=torch.bool)
    chosen[order[: round(share * n_rows)]] = True
    return chosen


def _place(value: Place, device: torch.device | None) -> Int[Tensor, "... 1 1"]:
    return _filled(value, device)[..., None, None]


def _number(value: Place, like: Tensor) -> Int[Tensor, "..."]:
    return _filled(value, like.device)


def _filled(value: Place, device: torch.device | None) -> Int[Tensor, "..."]:
    # a number is filled in on the device, not copied there: a CUDA graph can hold the one and not the other
    if isinstance(value, int):
        return torch.full((), value, dtype=torch.int64, device=device)
    return torch.as_tensor(value, dtype=torch.int64, device=device)


@functools.cache
def _kernels(device: torch.device) -> ModuleType | None:
    """The module that draws the same words faster on this device; None where there is none, or it draws others."""
    if device.type != "cuda":
        return None
    try:
        from unweave import rng_kernels

        few = torch.arange(5, device=device)
        same = torch.equal(
            rng_kernels.words(few, 3, few, 7, 6), _words(_place(few, device), 3, _place(few, device), 7, 6)
        )
        same &= torch.equal(rng_kernels.shuffled(few, 5, few, 3, few), _shuffled(few, 5, few, 3, few))
        return rng_kernels if same else None
    except Exception:  # a Triton that is missing or too old: the words are the same, and come later
        return None


def _multiply(word: Tensor, factor: int) -> tuple[Tensor, Tensor]:
    # int64 wraps at 64 bits, which leaves the pattern of the unsigned product; the shift is made unsigned by the mask
    product = word * factor
    return (product >> 32) & MASK, product & MASK
