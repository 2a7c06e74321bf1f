"""Find the best division of work for every convolution kernel: compile all candidates side by side, then time them.

``PYTHONPATH=src python benchmarks/tune.py 128`` prints the best of each, to be written into the kernels' tables;
``ONLY=colour,up`` in the environment keeps to kernels with such names.
"""

import itertools
import json
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import torch

from unweave.models.kernels import convolutions, copies, dense, first, first_two, last, resident
from unweave.models.kernels.convolutions import Tiles, correlate, down, up
from unweave.models.kernels.dense import AdamStack, Affine, dense_forward, dense_input_gradient, dense_update
from unweave.models.kernels.first import first_backward, first_forward
from unweave.models.kernels.first_two import first_two_backward
from unweave.models.kernels.join import Join
from unweave.models.kernels.last import last_backward, last_forward
from unweave.models.kernels.pixels import BYTES, MASKS, PADDED, Frame
from unweave.models.kernels.resident import up_forward

Key = tuple[str, int, int]
ONLY = os.environ.get("ONLY", "").split(",") if os.environ.get("ONLY") else []
LAYERS = {(32, 32): 16, (32, 64): 8, (64, 64): 4}
FIRST = Join(32, 32, 1, 32, 4, 64, 0)
COLOUR = Join(32, 32, 3, 32, 4, 64, 0)


def candidates() -> list[tuple[Key, Tiles]]:
    """Everything to try. The second number of a tile means: run (down), parities at a time (up), rows (correlate),
    images of a sum (first two, last) or program (up forward), programs (loss)."""
    found: list[tuple[Key, Tiles]] = []
    for n_big, n_small in LAYERS:
        ups = [
            *itertools.product((64, 128), (1, 2), (4,), (1,)),
            *itertools.product((64, 128), (4,), (4, 8), (1, 2, 3)),
        ]
        found += [(("up", n_big, n_small), Tiles(*c)) for c in ups]
        downs = ((128, 64, 4, 3), (64, 64, 4, 3), (128, 64, 8, 3), (256, 64, 8, 3), (128, 64, 4, 4), (64, 64, 4, 4))
        found += [(("down", n_big, n_small), Tiles(*c)) for c in downs]
        sums = (
            (128, 1, 4, 3),
            (64, 2, 4, 3),
            (64, 1, 4, 3),
            (64, 1, 4, 4),
            (128, 1, 4, 2),
            (64, 2, 4, 2),
            (64, 2, 8, 3),
        )
        found += [(("correlate", n_big, n_small), Tiles(*c)) for c in sums]
    both = itertools.product((64, 128), (2, 4, 8), (4,), (2, 3))
    found += [(("first two", 32, 32), Tiles(*c)) for c in both]
    found += [(("up forward", 32, 32), Tiles(*c)) for c in itertools.product((64, 128), (8, 16), (4, 8), (2,))]
    losses = ((512, 264, 8, 1), (256, 264, 8, 1), (256, 528, 4, 1), (128, 528, 4, 1), (512, 396, 8, 1))
    found += [(("loss", 0, 0), Tiles(*c)) for c in losses]
    for name in (*first.TUNED, *(name for name in last.TUNED if name != "loss")):
        sizes = itertools.product(
            (64, 128, 256),
            (2, 4, 8) if name == "last" else (0,),
            (4, 8),
            (1, 2) if not name.startswith("first") else (1,),
        )
        found += [((name, 0, 0), Tiles(*c)) for c in sizes]
    wide = ((128, 128, 8, 3), (128, 128, 4, 3), (128, 64, 4, 3), (128, 64, 4, 4), (64, 128, 4, 3), (64, 64, 4, 4))
    found += [(("wide", 0, 0), Tiles(*c)) for c in (*wide, (128, 256, 8, 3), (64, 256, 8, 3))]
    updates = itertools.product((32, 64), (32, 64, 128), (4, 8), (2,))
    found += [(("update", 0, 0), Tiles(*c)) for c in updates]
    return [pair for pair in found if not ONLY or any(word in pair[0][0] for word in ONLY)]


def choose(key: Key, tiles: Tiles) -> None:
    """Make the kernels use this."""
    if key[0] in ("first two", "up forward"):
        (first_two if key[0] == "first two" else resident).TUNED[key[1:]] = tiles
    elif key[1]:
        convolutions.TUNED[key] = tiles
    else:
        next(part for part in (first, last, dense) if key[0] in part.TUNED).TUNED[key[0]] = tiles


def runner(key: Key, n: int) -> Callable[[], object]:
    """A call of the kernel on random inputs for n models."""
    what, n_big, n_small = key
    if what in ("wide", "update"):
        return _wide(what, n)
    weights = torch.randn(n, 128 + 16 * 64 * 64, device="cuda", dtype=torch.bfloat16)
    gradients = torch.zeros(n, weights.shape[1], device="cuda")
    if n_big and what != "first two":
        height = LAYERS[n_big, n_small]
        join = Join(height, height, n_big, n_small, 4, 64, 0)
        big, small = _image(n, 2 * height, n_big), _image(n, height, n_small)
        if what == "down":
            return lambda: down(join, big, weights, "ieee", like=small, bias_gradient=gradients[:, :n_small])
        if what == "up forward":
            return lambda: up_forward(join, small, weights, "ieee")
        if what == "up":
            return lambda: up(join, small, weights, "ieee", like=big, bias_gradient=gradients[:, :n_big])
        return lambda: correlate(join, big, small, gradients, "ieee")
    colour = what.endswith("in colour")
    what = what.removesuffix(" in colour")
    join, channels = (COLOUR, 3) if colour else (FIRST, 1)
    seen, shown = _seen(n, colour)
    image, pixels, scale = _image(n, 32, 32), _image(n, 32, 16 if colour else 4), torch.rand(n, 64, device="cuda")
    second, slope, bias = Join(16, 16, 32, 32, 4, 4096, 0), _image(n, 16, 32), gradients[:, :32]
    calls: dict[str, Callable[[], object]] = {
        "first two": lambda: first_two_backward(join, second, *seen, slope, image, weights, gradients, "ieee"),
        "first": lambda: first_forward(join, *seen, weights, torch.bfloat16, "ieee"),
        "inward": lambda: first_backward(join, second, *seen, slope, image, weights, gradients, "ieee"),
        "loss": lambda: last_forward(join, *shown, image, weights, "ieee"),
        "last": lambda: last_backward(
            join, channels, pixels, scale, image, weights, gradients, "ieee", bias_gradient=bias
        ),
    }
    return calls[what]


def _wide(what: str, n: int) -> Callable[[], object]:
    """A thousand to a thousand: forward for 64 rows and back for 128, or the update."""
    layer = Affine(1000, 1000, 1024, 0, 0.2)
    x, master = (
        torch.randn(n, 128, 1000, device="cuda", dtype=torch.bfloat16),
        torch.rand(3, n, 1_001_024, device="cuda"),
    )
    weights = master[0].to(torch.bfloat16)
    if what == "wide":
        return lambda: (
            dense_forward(layer, x[:, :64], weights, "ieee", activate=True, dtype=torch.bfloat16),
            dense_input_gradient(layer, x, weights, "ieee", dtype=torch.bfloat16, like=x, leak=0.2),
        )
    rates, root = torch.full((n,), 1e-4, device="cuda"), torch.ones((), device="cuda")
    state = AdamStack(*master, weights, rates, root, torch.ones(n, dtype=torch.bool, device="cuda"), 0.5, 0.9, 1e-8)
    return lambda: dense_update(layer, x, x, state, "ieee")


def _seen(n: int, colour: bool) -> tuple[tuple[Frame, torch.Tensor], tuple[Frame, torch.Tensor]]:
    """Examples as the first and as the last kernel read them."""
    if not colour:
        masks = torch.randint(0, 1 << 16, (n, 64, 1024), device="cuda", dtype=torch.int32)
        return (Frame(MASKS, 1, 64, 64, 0, 0), masks), (Frame(MASKS, 1, 64, 64, 0, 0), masks)
    padded = torch.rand(n, 64, 66, 66, 4, device="cuda", dtype=torch.bfloat16)
    stored = torch.randint(0, 256, (n, 64, 3, 64, 64), device="cuda", dtype=torch.uint8)
    return (Frame(PADDED, 3, 64, 64, 0, 0), padded), (Frame(BYTES, 3, 64, 64, 0, 0), stored)


def compile_some(jobs: list[tuple[Key, Tiles]]) -> None:
    for key, tiles in jobs:
        choose(key, tiles)
        try:
            runner(key, 16)()
        except Exception as error:
            print(key, tiles, str(error)[:70])


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 128
    jobs, begin = candidates(), time.monotonic()
    with ProcessPoolExecutor(15, mp_context=get_context("spawn")) as pool:
        list(pool.map(compile_some, [jobs[i::15] for i in range(15)]))
    print(f"{len(jobs)} candidates compiled in {time.monotonic() - begin:.0f} s", flush=True)
    timed: dict[str, list[tuple[float, dict[str, int]]]] = {}
    for key in dict.fromkeys(key for key, _ in jobs):
        call, found = runner(key, n), []
        for tiles in (tiles for other, tiles in jobs if other == key):
            choose(key, tiles)
            try:
                found.append((measure(call) / n, tiles))
            except Exception:
                continue
        found.sort(key=lambda pair: pair[0])
        choose(key, found[0][1])
        shown = " | ".join(f"{t:.2f} {c.rows},{c.run},{c.warps},{c.stages}" for t, c in found[:6])
        print(*key, shown, f"| worst {found[-1][0]:.2f}", flush=True)
        timed[str(key)] = [(t, vars(c)) for t, c in found]
    if "OUT" in os.environ:
        Path(os.environ["OUT"], "tune.json").write_text(json.dumps(timed))


def measure(call: Callable[[], object]) -> float:
    """The median of seven calls, in µs."""
    for _ in range(2):
        call()
    times = []
    for _ in range(7):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        call()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1000)
    return sorted(times)[3]


def _image(n: int, height: int, channels: int) -> torch.Tensor:
    return torch.randn(n, 64, height, height, channels, device="cuda", dtype=torch.bfloat16)


if __name__ == "__main__":
    os.environ[copies.SWITCH] = "0"  # tiles are of the kernels whose images do not come by the copy engine
    main()
    if len(sys.argv) > 2:
        sys.argv = sys.argv[:1] + sys.argv[2:]
        del os.environ[copies.SWITCH]
        import kernels  # the checks and timings beside this file, with what was just found

        kernels.main()
