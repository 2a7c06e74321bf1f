"""The words of :mod:`unweave.rng` on a GPU: one Triton kernel in place of hundreds of operations, bit for bit."""

# ruff: noqa: N803
# mypy: disable-error-code="no-untyped-def"
import torch
import triton
import triton.language as tl

from unweave.shapes import Int, Tensor

BLOCK = 256


def words(
    seed: Int[Tensor, "*key"], purpose: int, step: Int[Tensor, "*key"], rows: int, columns: int
) -> Int[Tensor, "*key rows columns"]:
    """As :func:`unweave.rng.words`, of seeds and steps of one shape."""
    blocks = -(-columns // 4)
    drawn = torch.empty(*seed.shape, rows, 4 * blocks, dtype=torch.int64, device=seed.device)
    size = seed.numel() * rows * blocks
    if size:
        _words[(triton.cdiv(size, BLOCK),)](
            drawn, seed.contiguous(), step.contiguous(), int(purpose), rows, blocks, size, BLOCK
        )
    return drawn[..., :columns]


def shuffled(
    position: Int[Tensor, " place"], size: int, seed: Int[Tensor, " place"], purpose: int, epoch: Int[Tensor, " place"]
) -> Int[Tensor, " place"]:
    """As :func:`unweave.rng.shuffled`, of flat tensors: every place goes on by itself until it is inside."""
    # one model's seed is one number, expanded
    position, seed, epoch = (given.contiguous() for given in (position, seed, epoch))
    place = torch.empty_like(position)
    if len(position):
        half = max(1, ((size - 1).bit_length() + 1) // 2)
        _shuffled[(triton.cdiv(len(position), BLOCK),)](
            place, position, seed, epoch, int(purpose), size, half, len(position), BLOCK
        )
    return place


@triton.jit
def _words(drawn, seed, step, purpose, rows, blocks, size, BLOCK: tl.constexpr):
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = place < size
    block = place % blocks
    row = place // blocks % rows
    key = place // blocks // rows
    key_seed = tl.load(seed + key, mask=inside, other=0)
    key_step = tl.load(step + key, mask=inside, other=0)
    low = (key_step & 0xFFFFFFFF).to(tl.uint32)
    high = (purpose | ((key_step >> 32) << 8)).to(tl.uint32)
    w0, w1, w2, w3 = tl.philox(key_seed, block.to(tl.uint32), row.to(tl.uint32), low, high)
    tl.store(drawn + 4 * place, w0.to(tl.int64), mask=inside)
    tl.store(drawn + 4 * place + 1, w1.to(tl.int64), mask=inside)
    tl.store(drawn + 4 * place + 2, w2.to(tl.int64), mask=inside)
    tl.store(drawn + 4 * place + 3, w3.to(tl.int64), mask=inside)


@triton.jit
def _shuffled(out, position, seed, epoch, purpose, size, half, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = row < n
    key = tl.load(seed + row, mask=inside, other=0)
    round_of = (tl.load(epoch + row, mask=inside, other=0) & 0xFFFFFFFF).to(tl.uint32)
    place = _encipher(tl.load(position + row, mask=inside, other=0), half, key, purpose, round_of)
    outside = inside & (place >= size)
    while tl.max(outside.to(tl.int32), axis=0) > 0:
        place = tl.where(outside, _encipher(place, half, key, purpose, round_of), place)
        outside = inside & (place >= size)
    tl.store(out + row, place, mask=inside)


@triton.jit
def _encipher(place, half, key, purpose, round_of):
    mask = (tl.full(place.shape, 1, tl.int64) << half) - 1
    left = place >> half
    right = place & mask
    for turn in range(6):
        counter = right.to(tl.uint32)
        mixed, _1, _2, _3 = tl.philox(
            key, counter, tl.zeros_like(counter) + turn, round_of, tl.zeros_like(counter) + purpose
        )
        new = left ^ (mixed.to(tl.int64) & mask)
        left = right
        right = new
    return (left << half) | right
