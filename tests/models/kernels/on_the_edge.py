"""Run in a process of its own on a GPU: one number, expanded, in the last block of mapped memory, given to kernels.

What reads behind it has nowhere to read. A kernel that does so is launched last: it takes the process's GPU with it.
"""

# ruff: noqa: N803
import json
import os

os.environ["PYTORCH_CUDA_ALLOC_CONF"] = os.environ["PYTORCH_ALLOC_CONF"] = "expandable_segments:True"

import sys

import torch
import triton
import triton.language as tl

from unweave import rng_kernels
from unweave.models.kernels.convolutions import Join
from unweave.models.kernels.last import last_backward

BLOCK, PAGE = 512, 2**21
"""Bytes that PyTorch gives for a number, and that it maps at a time."""

DEVICE = sys.argv[1] if len(sys.argv) > 1 else "cuda"


@triton.jit
def _sum(given, out, SIZE: tl.constexpr):  # type: ignore[no-untyped-def]
    tl.store(out, tl.sum(tl.load(given + tl.arange(0, SIZE)), axis=0))


def edge(dtype: torch.dtype) -> torch.Tensor:
    """A one in the last block of the last page that is mapped for small tensors."""
    while True:
        KEPT.append(torch.ones(1, dtype=dtype, device=DEVICE))
        place = KEPT[-1].data_ptr()
        HIGHEST[0] = max(HIGHEST[0], place)
        if DEVICE == "cpu" or (place == HIGHEST[0] and (place + BLOCK) % PAGE == 0):
            return KEPT[-1]


KEPT: list[torch.Tensor] = []
HIGHEST = [0]


def main() -> None:
    join, models, batch = Join(4, 4, 1, 16, 4, 0, 256), 16, 64
    small, pixels = (
        torch.rand(models, batch, 4, 4, 16, device=DEVICE),
        torch.rand(models, batch, 4, 4, 4, device=DEVICE),
    )
    weights, bias = torch.rand(models, 320, device=DEVICE), torch.zeros(models, 16, device=DEVICE)
    gradients, out = torch.zeros_like(weights), torch.zeros(1, device=DEVICE)
    place = torch.arange(1000, device=DEVICE)
    found = {}
    given = (join, 1, pixels, edge(torch.float32).expand(models, batch), small, weights, gradients, "tf32x3")
    found["slope"] = last_backward(*given, bias_gradient=bias).isfinite().all().item()
    drawn = rng_kernels.shuffled(place, 1000, edge(torch.int64).expand(1000), 257, place // 500)
    found["places"] = ((drawn >= 0) & (drawn < 1000)).all().item()
    try:
        _sum[(1,)](edge(torch.float32).expand(4096), out, 4096)
        out.item()
        found["planted"] = "nothing was said"
    except RuntimeError as error:
        found["planted"] = str(error).splitlines()[0]
    print(json.dumps(found))


if __name__ == "__main__":
    main()
