"""Find the best division of work for the inner convolutions: compile all candidates side by side, then time them."""

import itertools
import json
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import torch

from unweave.models.kernels import convolutions
from unweave.models.kernels.convolutions import Join, Tiles, correlate, down, up

SHAPES = ((16, 32, 32), (8, 32, 64), (4, 64, 64))


def candidates(what: str, shape: tuple[int, int, int]) -> list[Tiles]:
    if what == "correlate":
        spans = (1, 2, 4) if shape[1] == 32 else (1, 2)
        every = itertools.product((32, 64, 128), spans, (4, 8), (1, 3))
        return [Tiles(*c) for c in every if c[1] * shape[1] * 4 * shape[2] <= 8192 * c[2] // 2 and c[0] * c[1] <= 128]
    sizes = ((64, 4), (128, 4), (128, 8), (256, 8))
    if what == "up":
        return [Tiles(rows, 0, warps, stages) for (rows, warps), stages in itertools.product(sizes, (1, 2))]
    runs = (64, 128)
    return [Tiles(r, run, w, stages) for (r, w), run, stages in itertools.product(sizes, runs, (1, 2, 3))]


def once(what: str, shape: tuple[int, int, int], tiles: Tiles, tensors: tuple[torch.Tensor, ...]) -> None:
    convolutions.TUNED[what, shape[1], shape[2]] = tiles
    join = Join(shape[0], shape[0], shape[1], shape[2], 4, 64, 0)
    big, small, weights, gradients = tensors
    if what == "down":
        down(join, big, weights, "ieee", activate=True)
    elif what == "up":
        up(join, small, weights, "ieee", like=big)
    else:
        correlate(join, big, small, gradients, "ieee", bias="small")


def tensors_of(shape: tuple[int, int, int], n: int) -> tuple[torch.Tensor, ...]:
    height, n_big, n_small = shape
    big = torch.randn(n, 64, 2 * height, 2 * height, n_big, device="cuda", dtype=torch.bfloat16)
    small = torch.randn(n, 64, height, height, n_small, device="cuda", dtype=torch.bfloat16)
    weights = torch.randn(n, 128 + 16 * n_big * n_small, device="cuda", dtype=torch.bfloat16)
    return big, small, weights, torch.zeros_like(weights, dtype=torch.float32)


def compile_some(jobs: list[tuple[str, tuple[int, int, int], Tiles]]) -> None:
    held = {shape: tensors_of(shape, 16) for shape in SHAPES}
    for what, shape, tiles in jobs:
        try:
            once(what, shape, tiles, held[shape])
        except Exception as error:
            print(what, shape, tiles, str(error)[:80])


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 128
    jobs = [(w, s, t) for w in ("down", "up", "correlate") for s in SHAPES for t in candidates(w, s)]
    begin = time.monotonic()
    with ProcessPoolExecutor(15, mp_context=get_context("spawn")) as pool:
        list(pool.map(compile_some, [jobs[i::15] for i in range(15)]))
    print(f"{len(jobs)} candidates compiled in {time.monotonic() - begin:.0f} s", flush=True)
    timed: dict[tuple[str, tuple[int, int, int]], list[tuple[float, Tiles]]] = {}
    for shape in SHAPES:
        tensors = tensors_of(shape, n)
        for what, _, tiles in (job for job in jobs if job[1] == shape):
            try:
                spent = measure(what, shape, tiles, tensors) / n
            except Exception:
                continue
            timed.setdefault((what, shape), []).append((spent, tiles))
    for (what, shape), found in timed.items():
        found.sort(key=lambda pair: pair[0])
        print(
            what,
            shape,
            " | ".join(f"{t:.2f} {c.rows},{c.run},{c.warps},{c.stages}" for t, c in found[:8]),
            "| worst",
            f"{found[-1][0]:.2f}",
        )
        convolutions.TUNED[what, shape[1], shape[2]] = found[0][1]
    if "OUT" in os.environ:
        plain = {f"{w} {s}": [(t, vars(c)) for t, c in found] for (w, s), found in timed.items()}
        Path(os.environ["OUT"], "tune.json").write_text(json.dumps(plain))


def measure(what: str, shape: tuple[int, int, int], tiles: Tiles, tensors: tuple[torch.Tensor, ...]) -> float:
    for _ in range(2):
        once(what, shape, tiles, tensors)
    times = []
    for _ in range(5):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        once(what, shape, tiles, tensors)
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1000)
    return sorted(times)[2]


if __name__ == "__main__":
    main()
    sys.argv = sys.argv[:1] + sys.argv[2:]
    import kernels  # beside this file

    kernels.main()
