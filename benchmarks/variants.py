"""Check and time variants of the convolution kernels on a GPU in one call, then whole steps, before and after in turns.

``PYTHONPATH=src python benchmarks/variants.py``: all candidates are compiled and compared with float64 side by side,
timed one after the other, and the best of each goes into the steps. Full numbers go to ``$OUT/variants.json``.
"""

# ruff: noqa: E402
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, nullcontext
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tests" / "models" / "kernels")]

import against_float64
import kernels
from before import before_first, before_last
from tune import FIRST, LAYERS, _image, _seen, measure

from unweave.models.kernels import conv_stack, convolutions, dense, encoder, first, last, resident, together
from unweave.models.kernels.convolutions import PRECISIONS, Join, Tiles
from unweave.models.kernels.dense import Affine, dense_forward, dense_input_gradient, dense_weight_gradient
from unweave.models.kernels.pixels import BITS
from unweave.training.batches import draw
from unweave.training.fleet.fleet import advance
from unweave.training.fleet.stepper import Stepper

Key = tuple[str, int, int]
MODELS = 256
CANDIDATES: dict[Key, list[tuple[int, int, int, int] | None]] = {
    ("together first", 32, 32): [
        None, (128, 16, 4, 1), (128, 16, 4, 2), (128, 16, 8, 1), (128, 16, 8, 2), (64, 16, 4, 1), (64, 16, 4, 2),
        (64, 16, 4, 3), (128, 8, 4, 2), (128, 32, 4, 2), (64, 32, 4, 2),
    ],
    ("together down", 32, 32): [None, (64, 16, 8, 2), (64, 16, 8, 1), (128, 16, 8, 1), (64, 32, 8, 2), (64, 8, 8, 2)],
    ("together up", 32, 64): [
        None, (128, 16, 8, 1), (128, 16, 4, 2), (64, 16, 4, 1), (64, 16, 4, 2), (64, 16, 8, 2), (64, 64, 8, 2),
        (64, 32, 8, 2),
    ],
    ("together up", 64, 64): [None, (64, 64, 8, 1), (64, 64, 8, 2), (64, 32, 8, 2), (64, 16, 8, 2)],
    ("resident down", 32, 32): [None, (128, 8, 4, 1), (64, 8, 4, 1), (64, 8, 4, 2), (128, 8, 8, 1), (128, 16, 8, 1)],
    ("resident down", 32, 64): [None, (64, 16, 4, 1), (64, 16, 8, 1), (128, 16, 8, 1)],
    ("resident up", 32, 32): [None, (128, 8, 8, 1), (64, 8, 4, 1), (64, 8, 4, 2), (64, 8, 4, 3), (128, 8, 8, 2)],
    ("resident up", 32, 64): [None, (64, 16, 4, 1), (64, 16, 8, 1), (128, 16, 8, 1)],
    ("resident up", 64, 64): [None, (64, 64, 8, 1), (64, 32, 8, 1)],
    ("resident down", 64, 64): [None, (64, 64, 4, 1)],
    ("first", 0, 0): [None, (256, 0, 4, 1), (128, 0, 4, 1), (512, 0, 8, 1), (256, 0, 8, 1)],
    ("narrow", 0, 0): [
        (64, 64, 4, 3), (64, 128, 4, 3), (64, 64, 4, 4), (64, 64, 4, 1), (64, 128, 8, 3), (64, 256, 8, 3),
    ],
    ("down", 32, 64): [(128, 64, 4, 3), (128, 64, 4, 1), (64, 64, 4, 1), (128, 128, 4, 1), (128, 128, 8, 1)],
    ("down", 64, 64): [(128, 64, 4, 3), (128, 64, 4, 1), (64, 64, 4, 1), (128, 128, 4, 1), (64, 128, 4, 1)],
    ("correlate", 32, 64): [(64, 1, 4, 4), (64, 1, 4, 1), (128, 1, 4, 1), (64, 2, 8, 1), (128, 1, 8, 1)],
    ("correlate", 64, 64): [(64, 2, 8, 3), (64, 1, 4, 1), (64, 1, 8, 1), (128, 1, 8, 1)],
    ("loss", 0, 0): [
        None, (128, 528, 4, 1), (128, 660, 4, 1), (256, 264, 8, 1), (256, 528, 4, 1), (512, 264, 8, 1),
        (512, 132, 16, 1), (512, 264, 16, 1),
    ],
    ("last", 0, 0): [
        None, (64, 0, 4, 1), (128, 0, 4, 1), (128, 0, 8, 1), (256, 0, 8, 1), (128, 0, 4, 2), (256, 0, 4, 1),
    ],
}  # fmt: skip
"""None is the way before. The second number is images a program (together, resident) or programs (loss)."""


def choose(key: Key, tiles: tuple[int, int, int, int] | None) -> None:
    """Make the kernels use this."""
    (what, *sizes), chosen = key, None if tiles is None else Tiles(*tiles)
    if what == "narrow":
        assert chosen
        dense.TUNED[what] = chosen
        return
    if not key[1]:
        user, name, now, then = {
            "loss": (conv_stack, "last_forward", last, before_last),
            "last": (conv_stack, "last_backward", last, before_last),
            "first": (encoder, "first_forward", first, before_first),
        }[what]
        setattr(user, name, getattr(now if chosen else then, name))
        if chosen:
            now.TUNED[what] = chosen  # type: ignore[attr-defined]
        return
    module, _, short = what.rpartition(" ")
    table: dict[Any, Any] = {"together": together, "resident": resident, "": convolutions}[module].TUNED
    table.pop((short, *sizes), None)
    if chosen:
        table[short, *sizes] = chosen
    if key[0] == "together first":
        together.first_backward = before_first.first_backward  # type: ignore[assignment]


@contextmanager
def before() -> Iterator[None]:
    """Inside, everything is as it was."""
    kept = [dict(module.TUNED) for module in (together, resident, convolutions, dense)]  # type: ignore[call-overload]
    new = conv_stack.last_forward, conv_stack.last_backward, encoder.first_forward, conv_stack.ready
    together.TUNED.clear()
    resident.TUNED.clear()
    for key in (key for key in CANDIDATES if key[0] in ("down", "correlate", "narrow")):
        choose(key, CANDIDATES[key][0])
    conv_stack.last_forward, conv_stack.last_backward = before_last.last_forward, before_last.last_backward
    encoder.first_forward, conv_stack.ready = before_first.first_forward, before_first.ready
    yield
    for module, table in zip((together, resident, convolutions, dense), kept):
        module.TUNED.clear()
        module.TUNED.update(table)  # type: ignore[arg-type]
    conv_stack.last_forward, conv_stack.last_backward, encoder.first_forward, conv_stack.ready = new


def runner(key: Key, n: int) -> Callable[[], object]:
    """A call of the kernels on random inputs for n models, as one layer of a step makes it."""
    what, n_big, n_small = key
    weights = torch.randn(n, 4096 + 16 * 64 * 64, device="cuda", dtype=torch.bfloat16)
    gradients = torch.zeros(n, weights.shape[1], device="cuda")
    if what == "narrow":
        return _dense(weights, n)
    if what in ("first", "loss", "last", "together first"):
        image, bias = _image(n, 32, 32), gradients[:, :32]
        seen = _seen(n, False)[0]
        if what == "together first":
            second, slope = Join(16, 16, 32, 32, 4, 4096, 0), _image(n, 16, 32)
            return lambda: together.first_gradients(FIRST, second, *seen, slope, image, weights, gradients, "ieee")
        if what == "first":
            return lambda: encoder.first_forward(FIRST, *seen, weights, torch.bfloat16, "ieee")
        if what == "loss":
            return lambda: conv_stack.last_forward(FIRST, *seen, image, weights, "ieee")
        pixels, scale = _image(n, 32, 4), torch.rand(n, 64, device="cuda")
        return lambda: conv_stack.last_backward(
            FIRST, 1, pixels, scale, image, weights, gradients, "ieee", bias_gradient=bias
        )
    height = LAYERS[n_big, n_small]
    join = Join(height, height, n_big, n_small, 4, 4096, 0)
    big, small = _image(n, 2 * height, n_big), _image(n, height, n_small)
    calls: dict[str, Callable[[], object]] = {
        "together down": lambda: together.down_gradients(
            join, big, small, weights, gradients, "ieee", bias_gradient=gradients[:, :n_small]
        ),
        "together up": lambda: together.up_gradients(
            join, small, big, weights, gradients, "ieee", bias_gradient=gradients[:, :n_big]
        ),
        "resident down": lambda: resident.down_forward(join, big, weights, "ieee"),
        "resident up": lambda: resident.up_forward(join, small, weights, "ieee"),
        "down": lambda: convolutions.down(join, big, weights, "ieee", like=small, bias_gradient=gradients[:, :n_small]),
        "correlate": lambda: convolutions.correlate(join, big, small, gradients, "ieee"),
    }
    return calls[what]


def _dense(weights: torch.Tensor, n: int) -> Callable[[], object]:
    """The products of a model's two larger dense layers, forward and back."""
    weights = torch.randn(n, 1024 + 1024 * 256, device="cuda", dtype=torch.bfloat16)
    gradients, layers = (
        torch.zeros(weights.shape, device="cuda"),
        (Affine(1024, 256, 1024, 0), Affine(256, 1024, 1024, 0)),
    )
    wide, slim = (torch.randn(n, 64, size, device="cuda", dtype=torch.bfloat16) for size in (1024, 256))

    def both() -> None:
        for layer, x, slope in zip(layers, (wide, slim), (slim, wide)):
            dense_forward(layer, x, weights, "ieee", activate=True, dtype=torch.bfloat16)
            dense_input_gradient(layer, slope, weights, "ieee", dtype=torch.bfloat16, like=x)
            dense_weight_gradient(layer, slope, x, gradients, "ieee")

    return both


def checked(key: Key) -> dict[str, float]:
    """Distances from float64 of what a candidate computes."""
    against_float64.BATCH = 48
    what, n_big, n_small = key
    if what == "narrow":
        return kernels.dense_errors(PRECISIONS["bf16"])
    if what == "first":
        kernels.first_forward = encoder.first_forward
        return {"out": kernels.end_errors(PRECISIONS["bf16"], 1, BITS)["first out"]}
    if not n_big:
        against_float64.last_forward, against_float64.last_backward = conv_stack.last_forward, conv_stack.last_backward
        return against_float64.last(1, 32)
    height = LAYERS[n_big, n_small]
    if what == "together first":
        return against_float64.first(1, 32)
    if what.startswith("resident"):
        return against_float64.forward(what.split()[1], height, n_big, n_small)
    if what in ("down", "correlate"):  # by the pair that is made of them
        together.TUNED.pop(("down", n_big, n_small), None)
    return against_float64.inner("up" if what == "together up" else "down", height, n_big, n_small)


Found = tuple[Key, tuple[int, int, int, int] | None, str, dict[str, float]]


def try_out(jobs: list[Any]) -> list[Found]:
    """Compile and check candidates; ``step`` and ``before`` are the first steps of a fleet."""
    found: list[Found] = []
    for job in jobs:
        if job in ("step", "before"):
            time.sleep(10)  # meanwhile the others compile most of what it needs
            try:
                with before() if job == "before" else nullcontext():
                    stepper_of(MODELS, graph=False)(0, record=True)
            except Exception as error:
                print(job, repr(error)[:500], flush=True)
            continue
        key, tiles = job
        choose(key, tiles)
        try:
            with torch.device("cuda"):
                far = checked(key)
            runner(key, MODELS if key[0] == "loss" else 16)()
            torch.cuda.synchronize()
            found.append((key, tiles, "", far))
        except Exception as error:
            found.append((key, tiles, str(error).strip().splitlines()[-1][:90] if str(error) else repr(error), {}))
    return found


def stepper_of(n: int, *, graph: bool = True) -> Stepper:
    fleet, source = kernels.fleet_of(kernels.experiments(n), kernels.examples(), "bf16")
    return Stepper(fleet, source, print, graph=graph)


def bits() -> bool:
    """Whether seed 0 comes out the same, bit for bit, in fleets of 1, 7 and 64, after 5 steps."""
    rows = []
    for n in (64, 7, 1):
        fleet, source = kernels.fleet_of(kernels.experiments(n)[::-1], kernels.examples(), "bf16")
        draws = draw(source, torch.arange(5, device="cuda"))
        for place in range(5):
            with torch.device("cuda"):
                advance(fleet, source, {name: d[place] for name, d in draws.items()}, record=True)
        rows.append(fleet.parameters[fleet.members.given.index(n - 1)].clone())
    return all(torch.equal(row, rows[0]) for row in rows)


def main() -> None:
    begin, report = time.monotonic(), {}

    def tell(*words: object) -> None:
        print(f"[{time.monotonic() - begin:4.0f} s]", *words, flush=True)

    jobs = [(key, tiles) for key, all_tiles in CANDIDATES.items() for tiles in all_tiles]
    portions = [["step"], ["before"], *(jobs[i::13] for i in range(13))]
    pools = [ProcessPoolExecutor(1, mp_context=get_context("spawn")) for _ in portions]
    waiting, found = [pool.submit(try_out, portion) for pool, portion in zip(pools, portions)], []
    for portion, future in zip(portions, waiting):
        try:
            found += future.result()
        except Exception as error:  # its process is gone; the others go on
            tell("LOST", portion, repr(error)[:200])
    tell(len(jobs), "candidates compiled and compared with float64")
    good = set()
    for key, tiles, error, far in found:
        # weights and sums are fp32 sums of bf16 products; the last layer's go through rounded slopes
        wrong = error or [name for name, e in far.items() if not e < 6e-3]
        if wrong:
            tell("LEFT OUT", key, tiles, wrong, far)
        else:
            good.add((key, tiles))
    tell("worst distance", max(max(far.values()) for _, _, _, far in found if far))
    rows = []
    for key, all_tiles in CANDIDATES.items():
        call, timed = runner(key, MODELS), []
        for tiles in (tiles for tiles in all_tiles if (key, tiles) in good):
            choose(key, tiles)
            timed.append((measure(call) / MODELS, tiles))
        del call
        torch.cuda.empty_cache()
        if not timed:
            continue
        first_time = timed[0][0]
        timed.sort(key=lambda pair: pair[0])
        choose(key, timed[0][1])
        report[str(key)] = timed
        rows.append(f"{key[0]:15s} {key[1]:2d} {key[2]:2d} before {first_time:5.2f} | "
                    + " | ".join(f"{t:.2f} {c}" for t, c in timed[:5]))  # fmt: skip
        tell(rows[-1])
    tell("candidates timed")
    with before():
        old = stepper_of(MODELS)
        kernels.time_steps(old, MODELS, 8)
    new = stepper_of(MODELS)
    turns = [(kernels.time_steps(old, MODELS, 32), kernels.time_steps(new, MODELS, 32)) for _ in range(3)]
    report["steps"] = turns
    tell("µs a model-step, before and after, in turns:", turns)
    del old, new
    torch.cuda.empty_cache()
    report["same bits"] = bits()
    tell("same bits in fleets of 1, 7, 64:", report["same bits"])
    if "OUT" in os.environ:
        Path(os.environ["OUT"], "variants.json").write_text(json.dumps(report, indent=1))
    if time.monotonic() - begin < 85:
        kernels.profile(MODELS)
    print(*rows, sep="\n")
    tell("same bits:", report["same bits"], "| before and after:", [tuple(round(t, 2) for t in pair) for pair in turns])


if __name__ == "__main__":
    main()
