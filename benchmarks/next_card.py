"""Variants of the standard conv step on a GPU in one call: checked against float64, timed alone, then in whole steps.

    PYTHONPATH=src python3 benchmarks/next_card.py             # about 100 s on an H200; $OUT/next_card.json has all
    TRITON_INTERPRET=1 python benchmarks/next_card.py --dry    # the same lines without a GPU, on a few images

Candidates are compiled and compared with float64 in fifteen processes; what fails is left out by name. The rest are
timed at 256 models in turns with what the package does today; the best of each go into whole steps, in turns with
today's, whose gradients are compared with PyTorch's.
"""

# ruff: noqa: E402
import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from unittest.mock import patch

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "variants"), str(HERE.parent / "tests" / "models" / "kernels")]

import checks
import first_two_images
import last_two_images
import shared_columns
import torch
from way import Way

from unweave.data.micro import Micro
from unweave.data.world import Data
from unweave.models.kernels import conv_stack, convolutions, dense, encoder, first_two, last, resident
from unweave.models.kernels.adam import adam_stack
from unweave.models.kernels.convolutions import Join, correlate
from unweave.models.kernels.dense import AdamStack, Affine, dense_update, dense_weight_gradient
from unweave.models.kernels.first import first_forward
from unweave.models.kernels.first_two import first_two_backward
from unweave.models.kernels.last import last_backward, last_forward
from unweave.models.kernels.pixels import MASKS, Frame
from unweave.models.kernels.resident import up_forward
from unweave.models.objectives import BetaVAE
from unweave.training.batches import draw, images, source_of, stored
from unweave.training.experiment import Experiment, Plan
from unweave.training.fleet.choice import LEAST_ON_GPU
from unweave.training.fleet.fleet import advance, new_fleet, template_of, total_loss_of
from unweave.training.fleet.members import arrange
from unweave.training.fleet.portable import portable
from unweave.training.fleet.stepper import Stepper

PARTS = ("first two", "first two back", "last two", "last two back", "columns", "tiles")
"""Of a step; ``back`` is the way back alone."""
HALVES = {"first two": "first two back", "last two": "last two back"}
PAIRS = HALVES | {half: part for part, half in HALVES.items()}
DRY = os.environ.get("TRITON_INTERPRET") == "1"
DEVICE, MODELS, BATCH, PROCESSES = ("cpu", 1, 1, 0) if DRY else ("cuda", 256, 64, 15)
FURTHEST = 0.02 if DRY else 6e-3
"""From float64, where images and slopes are rounded to bf16 on the way; the interpreter cuts off."""
OUTER, INNER = Join(32, 32, 1, 32, 4, 64, 0), Join(16, 16, 32, 32, 4, 4096, 32)
LAYERS = {(32, 32): 16, (32, 64): 8, (64, 64): 4}
SIZE = 8 if DRY else 16
"""Of the images that are checked."""


@dataclass(frozen=True)
class Question:
    """Something that a step does: how it is done today, another way to do it, and what that is to try with."""

    name: str
    part: str
    ways: Sequence[Way]
    choose: Callable[[Way], None]
    today: Callable[[int], Callable[[], object]]
    other: Callable[[int], Callable[[], object]]
    check: Callable[[], dict[str, float]]


def questions() -> list[Question]:
    """All of them; a whole step has some parts of today's and some others'."""
    small, dear = (Way(64, 16, 4, n) for n in (2, 3))
    found = [
        Question(
            "first two forward", "first two",
            [Way(64, 8, 4, 1), Way(64, 8, 4, 2), Way(64, 8, 4, 1, 128), Way(64, 16, 4, 1), Way(64, 4, 4, 1),
             Way(128, 8, 8, 1)],
            lambda way: setattr(first_two_images, "FORWARD", way), _first_forward_today, _first_forward_other,
            lambda: checks.first_two(BATCH, SIZE),
        ),
        Question(
            "first two backward", "first two",
            [dear, small, Way(64, 16, 4, 2, 128), Way(64, 16, 4, 3, 128), Way(64, 16, 4, 4), Way(64, 32, 4, 2, 128),
             Way(64, 8, 4, 2, 128)],
            lambda way: setattr(first_two_images, "BACKWARD", way), _first_backward_today, _first_backward_other,
            lambda: checks.first_two(BATCH, SIZE),
        ),
        Question(
            "last two forward", "last two",
            [Way(64, 1, 4, 2), Way(64, 2, 4, 2), Way(64, 1, 4, 1), Way(64, 2, 4, 1), Way(64, 1, 4, 1, 128),
             Way(128, 1, 8, 1)],
            _choose_last_forward, _last_forward_today, _last_forward_other, lambda: checks.last_two(BATCH, SIZE),
        ),
        Question(
            "last two backward", "last two",
            [small, dear, Way(64, 16, 4, 2, 168), Way(64, 16, 4, 3, 168), Way(64, 16, 4, 2, 128),
             Way(64, 32, 4, 3, 168)],
            lambda way: setattr(last_two_images, "BACKWARD", way), _last_backward_today, _last_backward_other,
            lambda: checks.last_two(BATCH, SIZE),
        ),
    ]  # fmt: skip
    columns: dict[tuple[str, int, int], list[Way]] = {
        ("down", 32, 32): [Way(64, 0, 4, 3), Way(64, 0, 4, 2), Way(64, 0, 4, 4), Way(128, 0, 4, 3), Way(128, 0, 8, 3)],
        ("down", 32, 64): [Way(64, 0, 4, 3), Way(64, 0, 4, 2), Way(64, 0, 4, 2, 128)],
        ("down", 64, 64): [Way(64, 0, 4, 2), Way(64, 0, 4, 3), Way(64, 0, 8, 2)],
        ("up", 32, 64): [Way(64, 0, 4, 3), Way(64, 0, 4, 2), Way(64, 0, 4, 1), Way(128, 0, 8, 2)],
        ("up", 64, 64): [Way(64, 0, 4, 2), Way(64, 0, 4, 1), Way(64, 0, 8, 2)],
        ("up forward", 32, 32): [Way(64, 0, 4, 3), Way(64, 0, 4, 2), Way(64, 0, 4, 1), Way(128, 0, 4, 2)],
    }
    found += [_of_columns(key, ways) for key, ways in columns.items()]
    tiles: dict[tuple[str, int, int], list[Way]] = {
        ("down", 32, 32): [Way(128, 64, 4, 2), Way(128, 32, 4, 4), Way(128, 128, 4, 2)],
        ("down", 32, 64): [Way(128, 64, 4, 2), Way(128, 32, 4, 4), Way(64, 64, 4, 4)],
        ("down", 64, 64): [Way(128, 64, 4, 2), Way(128, 32, 4, 4), Way(64, 64, 4, 4)],
        ("correlate", 32, 32): [Way(32, 2, 4, 3), Way(32, 2, 4, 4), Way(32, 4, 8, 3), Way(32, 1, 4, 4)],
        ("correlate", 32, 64): [Way(32, 1, 4, 4), Way(32, 2, 4, 3), Way(32, 2, 8, 4)],
        ("correlate", 64, 64): [Way(32, 2, 8, 3), Way(32, 1, 8, 3), Way(32, 1, 4, 3), Way(32, 2, 8, 2)],
    }
    found += [_of_tiles(key, ways) for key, ways in tiles.items()]
    updates = [Way(64, 64, 8, 2), Way(64, 64, 4, 2), Way(32, 64, 4, 2), Way(32, 128, 4, 2), Way(64, 128, 8, 2)]
    return [*found, Question("dense update", "not in steps", updates, _choose_update, _update_today, _update_other,
                             lambda: {})]  # fmt: skip


def _of_columns(key: tuple[str, int, int], ways: list[Way]) -> Question:
    name, n_big, n_small = key
    direction, height = name.split()[0], LAYERS[n_big, n_small]
    forward = name == "up forward"

    def choose(way: Way) -> None:
        shared_columns.WAYS[direction, n_big, n_small] = way

    def calls(n: int, function: Any) -> Callable[[], object]:
        join, weights, gradients, big, small = _layer(n, n_big, n_small)
        if forward:
            return lambda: function(join, small, weights, "ieee")
        given, like, size = (big, small, n_small) if direction == "down" else (small, big, n_big)
        return lambda: function(join, given, weights, "ieee", like=like, bias_gradient=gradients[:, :size])

    def shared_forward(join: Join, given: torch.Tensor, weights: torch.Tensor, product: str) -> torch.Tensor:
        return shared_columns.up(join, given, weights, product, activate=True)

    other = shared_forward if forward else getattr(shared_columns, direction)
    today = up_forward if forward else shared_columns.PLAIN[direction]
    return Question(
        f"columns {name} {n_big} {n_small}", "columns", ways, choose, lambda n: calls(n, today),
        lambda n: calls(n, other), lambda: checks.columns(direction, BATCH, height, n_big, n_small),
    )  # fmt: skip


TODAY = dict(convolutions.TUNED)


def _of_tiles(key: tuple[str, int, int], ways: list[Way]) -> Question:
    name, n_big, n_small = key

    def calls(n: int) -> Callable[[], object]:
        join, weights, gradients, big, small = _layer(n, n_big, n_small)
        if name == "correlate":
            return lambda: correlate(join, big, small, gradients, "ieee")
        sums = gradients[:, :n_small]
        return lambda: shared_columns.PLAIN["down"](join, big, weights, "ieee", like=small, bias_gradient=sums)

    def plain(n: int) -> Callable[[], object]:
        call = calls(n)

        def today() -> None:
            with patch.dict(convolutions.TUNED, {key: TODAY[key]}):
                call()

        return today

    def choose(way: Way) -> None:
        convolutions.TUNED[key] = way

    def check() -> dict[str, float]:
        join, weights, gradients, big, small = _layer(2, n_big, n_small)
        found = []
        for tiles in (convolutions.TUNED[key], TODAY[key]):
            with patch.dict(convolutions.TUNED, {key: tiles}):
                gradients.fill_(float("nan"))
                if name == "correlate":
                    correlate(join, big, small, gradients, "ieee")
                    found.append(gradients[:, 4096 : 4096 + 16 * n_big * n_small].clone())
                else:
                    found.append(shared_columns.PLAIN["down"](join, big, weights, "ieee").float())
        return {"to today's": ((found[0] - found[1]).norm() / found[1].norm()).item()}

    return Question(f"tiles {name} {n_big} {n_small}", "tiles", ways, choose, plain, calls, check)


def _layer(n: int, n_big: int, n_small: int) -> tuple[Join, Any, Any, Any, Any]:
    height = LAYERS[n_big, n_small]
    big, small = _image(n, 2 * height, n_big), _image(n, height, n_small)
    return Join(height, height, n_big, n_small, 4, 4096, 0), *_rows(n), big, small


def _rows(n: int) -> tuple[torch.Tensor, torch.Tensor]:
    weights = torch.randn(n, 4096 + 16 * 64 * 64, device=DEVICE).bfloat16()
    return weights, torch.zeros(weights.shape, device=DEVICE)


def _image(n: int, height: int, channels: int) -> torch.Tensor:
    return torch.randn(n, BATCH, height, height, channels, device=DEVICE, dtype=torch.bfloat16)


def _masks(n: int) -> tuple[Frame, torch.Tensor]:
    masks = torch.randint(0, 1 << 16, (n, BATCH, 1024), device=DEVICE, dtype=torch.int32)
    return Frame(MASKS, 1, 64, 64, 0, 0), masks


def _first_forward_today(n: int) -> Callable[[], object]:
    (weights, _), seen = _rows(n), _masks(n)
    plain = shared_columns.PLAIN["down"]

    def both() -> None:
        image = first_forward(OUTER, *seen, weights, torch.bfloat16, "ieee")
        plain(INNER, image, weights, "ieee", activate=True)

    return both


def _first_forward_other(n: int) -> Callable[[], object]:
    (weights, _), (_, masks) = _rows(n), _masks(n)
    return lambda: first_two_images.two_forward(OUTER, INNER, masks, weights, "ieee")


def _first_backward_today(n: int) -> Callable[[], object]:
    (weights, gradients), seen, slope, image = _rows(n), _masks(n), _image(n, 16, 32), _image(n, 32, 32)
    return lambda: first_two_backward(OUTER, INNER, *seen, slope, image, weights, gradients, "ieee")


def _first_backward_other(n: int) -> Callable[[], object]:
    (weights, gradients), (_, masks), slope = _rows(n), _masks(n), _image(n, 16, 32)
    return lambda: first_two_images.two_backward(OUTER, INNER, masks, slope, weights, gradients, "ieee")


def _choose_last_forward(way: Way) -> None:
    last_two_images.FORWARD = way
    last_two_images.PROGRAMS = 132 * (
        1 if way.warps == 8 else 4 if way.registers == 128 else 3 if way.stages == 1 else 2
    )


def _last_forward_today(n: int) -> Callable[[], object]:
    (weights, _), seen, small = _rows(n), _masks(n), _image(n, 16, 32)
    return lambda: last_forward(OUTER, *seen, up_forward(INNER, small, weights, "ieee"), weights, "ieee")


def _last_forward_other(n: int) -> Callable[[], object]:
    (weights, _), (_, masks), small = _rows(n), _masks(n), _image(n, 16, 32)
    return lambda: last_two_images.two_forward(INNER, OUTER, masks, small, weights, "ieee")


def _last_backward_today(n: int) -> Callable[[], object]:
    (weights, gradients), pixels, small, image = _rows(n), _image(n, 32, 4), _image(n, 16, 32), _image(n, 32, 32)
    scale = torch.rand(n, BATCH, device=DEVICE)

    def both() -> None:
        slope = last_backward(
            OUTER, 1, pixels, scale, image, weights, gradients, "ieee", bias_gradient=gradients[:, :32]
        )
        correlate(INNER, slope, small, gradients, "ieee")

    return both


def _last_backward_other(n: int) -> Callable[[], object]:
    (weights, gradients), pixels, small = _rows(n), _image(n, 32, 4), _image(n, 16, 32)
    scale = torch.rand(n, BATCH, device=DEVICE)
    return lambda: last_two_images.two_backward(INNER, OUTER, pixels, scale, small, weights, gradients, "ieee")


def _choose_update(way: Way) -> None:
    dense.TUNED["update"] = way


def _dense(n: int) -> tuple[Affine, torch.Tensor, torch.Tensor, AdamStack]:
    layer = Affine(1024, 256, 1024, 0)
    x, slope = (torch.randn(n, BATCH, size, device=DEVICE).bfloat16() for size in (1024, 256))
    held = torch.rand(3, n, 1024 + 1024 * 256, device=DEVICE)
    rates, good = torch.full((n,), 1e-4, device=DEVICE), torch.ones(n, dtype=torch.bool, device=DEVICE)
    root = torch.ones((), device=DEVICE)
    return layer, x, slope, AdamStack(*held, held[0].bfloat16(), rates, root, good, 0.9, 0.999, 1e-8)


def _update_today(n: int) -> Callable[[], object]:
    layer, x, slope, state = _dense(n)
    gradients = torch.zeros_like(state.parameters)

    def both() -> None:
        dense_weight_gradient(layer, slope, x, gradients, "ieee")
        adam_stack(
            state.parameters, gradients, state.first, state.second, state.rounded, state.rates, state.root, state.good,
            state.beta1, state.beta2, state.epsilon,
        )  # fmt: skip

    return both


def _update_other(n: int) -> Callable[[], object]:
    layer, x, slope, state = _dense(n)
    return lambda: dense_update(layer, slope, x, state, "ieee")


@contextmanager
def step_of(parts: Sequence[str], chosen: dict[str, Way]) -> Iterator[None]:
    """Inside, stacks make these parts of their steps the other way, with what was chosen."""
    for question in questions():
        if question.part in {part.removesuffix(" back") for part in parts} and question.name in chosen:
            question.choose(chosen[question.name])
    with ExitStack() as stack:
        if "first two" in parts:
            stack.enter_context(patch.object(conv_stack, "encoded_images", first_two_images.encoded_images))
        if {"first two", "first two back"} & {*parts}:
            back = first_two_images.encoded_images_backward
            stack.enter_context(patch.object(conv_stack, "encoded_images_backward", back))
        if "last two" in parts:
            stack.enter_context(patch.object(conv_stack.ConvStack, "_decode", last_two_images.decode))
        if {"last two", "last two back"} & {*parts}:
            stack.enter_context(patch.object(conv_stack.ConvStack, "_decode_backward", last_two_images.decode_backward))
        if "columns" in parts:
            wanted = {name.removeprefix("columns ") for name in chosen if name.startswith("columns ")}
            ways = {key: way for key, way in shared_columns.WAYS.items() if _name(key) in wanted}
            stack.enter_context(patch.dict(shared_columns.WAYS, ways, clear=True))
            for module in (conv_stack, encoder, resident, first_two_images, last_two_images):
                for name in {"down", "up"} & set(vars(module)):
                    stack.enter_context(patch.object(module, name, getattr(shared_columns, name)))
            if ("up", 32, 32) in ways:
                stack.enter_context(patch.dict(resident.TUNED, clear=True))
        tiles = TODAY | (_tiles(chosen) if "tiles" in parts else {})
        stack.enter_context(patch.dict(convolutions.TUNED, tiles, clear=True))
        yield


def _tiles(chosen: dict[str, Way]) -> dict[tuple[str, int, int], Way]:
    words = {name: name.split() for name in chosen if name.startswith("tiles ")}
    return {(what, int(n_big), int(n_small)): chosen[name] for name, (_, what, n_big, n_small) in words.items()}


def _name(key: tuple[str, int, int]) -> str:
    direction, n_big, n_small = key
    return f"{'up forward' if key == ('up', 32, 32) else direction} {n_big} {n_small}"


def try_out(jobs: list[tuple[int, Way] | str]) -> list[tuple[int, Way, str, dict[str, float]]]:
    """Compile and check candidates; a word is a whole step of today's."""
    asked, found = questions(), []
    for job in jobs:
        if isinstance(job, str):
            _quietly(lambda: stepper_of(8, graph=False)(0, record=True))
            continue
        number, way = job
        question = asked[number]
        question.choose(way)
        try:
            with torch.device(DEVICE):
                far = question.check()
            for call in (question.other,) if DRY else (question.other, question.today):
                call(MODELS if question.part == "last two" else min(MODELS, 16))()
            _wait()
            wrong = [f"{name} {e:.1e}" for name, e in far.items() if not e < FURTHEST]
            found.append((number, way, ", ".join(wrong), far))
        except Exception as error:
            said = str(error).strip().splitlines() or [repr(error)]
            found.append((number, way, said[-1][:100], {}))
            if "CUDA error" in str(error) or "illegal" in str(error):
                break  # nothing else will work in this process
    return found


def _short(question: Question) -> Way:
    """The first way, with one image a program."""
    way = question.ways[0]
    return replace(way, run=1) if question.part in ("first two", "last two") else way


def _quietly(call: Callable[[], object]) -> None:
    try:
        call()
    except Exception as error:
        print("a whole step:", repr(error)[:300], flush=True)


def side_by_side(jobs: list[Any]) -> list[Any]:
    """All jobs in many processes; what one leaves that is lost, or whose card has faulted, is tried once more."""
    if not PROCESSES:
        return try_out(jobs)
    found: list[Any] = []
    for seconds in (75, 20):
        pools = [ProcessPoolExecutor(1, mp_context=get_context("spawn")) for _ in range(min(PROCESSES, len(jobs) + 1))]
        portions = [jobs[i :: len(pools)] for i in range(len(pools))]
        portions[0] = ["step", *portions[0]]
        waiting, until = [pool.submit(try_out, one) for pool, one in zip(pools, portions)], time.monotonic() + seconds
        for portion, future in zip(portions, waiting):
            try:
                found += future.result(timeout=max(until - time.monotonic(), 1))
            except Exception as error:
                print("LOST", portion, repr(error)[:200], flush=True)
        for pool in pools:
            pool.shutdown(wait=False, cancel_futures=True)
        done = {(number, way) for number, way, *_ in found}
        if not (jobs := [job for job in jobs if job not in done]):
            break
    return found


def timed(question: Question, ways: list[Way]) -> dict[str, list[float]]:
    """µs a model of today's and every other way, in turns; the first turn warms up."""
    today, other = (lambda: None) if DRY else question.today(MODELS), question.other(MODELS)
    taken: dict[str, list[float]] = {"today": [], **{str(tuple(vars(way).values())): [] for way in ways}}
    for turn in range(1 if DRY else 6):
        for way in (None, *ways):
            if way is not None:
                question.choose(way)
            spent = _measure(today if way is None else other) / MODELS
            if turn or DRY:
                taken["today" if way is None else str(tuple(vars(way).values()))].append(spent)
    return taken


def _measure(call: Callable[[], object]) -> float:
    if DRY:
        begin = time.perf_counter()
        call()
        return (time.perf_counter() - begin) * 1e6
    begins, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begins.record()
    call()
    end.record()
    end.synchronize()
    return begins.elapsed_time(end) * 1000


def _wait() -> None:
    if not DRY:
        torch.cuda.synchronize()


def fleet_of(n: int, *, engine: str = "kernels") -> Any:
    """A fleet of standard models on random pictures, and where its batches come from."""
    given = [Experiment(Micro(), BetaVAE(), seed=seed, steps=1000, batch_size=BATCH, plan=Plan(DEVICE, 1))
             for seed in range(n)][::-1]  # fmt: skip
    store = torch.randint(0, 256, (2000, 512), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
    data = Data(store.to(DEVICE), (1, 64, 64), "bits")
    members = arrange(given) if DRY else arrange(given, least=LEAST_ON_GPU)
    template = template_of(members, data.shape)
    backend = conv_stack.conv_stack(template, "bf16") if engine == "kernels" else portable(template)
    return new_fleet(members, backend, len(data), data.shape), source_of(members.experiments, data)


def stepper_of(n: int, *, graph: bool = True) -> Stepper:
    return Stepper(*fleet_of(n), print, graph=graph and not DRY)


def gradients_of(engine: str) -> dict[str, torch.Tensor]:
    """Of every parameter, for a few models."""
    fleet, source = fleet_of(min(MODELS, 4), engine=engine)
    drawn = {key: one[0] for key, one in draw(source, torch.arange(1, device=DEVICE)).items()}
    seen = (stored if fleet.backend.reads_stored else images)(source, drawn, "images")
    with torch.device(DEVICE):
        found, _ = fleet.backend.gradients(
            fleet.parameters, fleet.weights, seen, drawn["noise"], total_loss_of(fleet, drawn)
        )
    return {name: one.clone() for name, one in fleet.backend.layout.views(found).items()}


def far_from_pytorch(exact: dict[str, torch.Tensor]) -> dict[str, float]:
    """‖g − g′‖ / ‖g′‖ of every parameter of a whole step, in bf16 and by PyTorch in fp32."""
    given = gradients_of("kernels")
    return {name: ((given[name] - one).norm() / one.norm()).item() for name, one in exact.items()}


def same_bits() -> bool:
    """Whether seed 0 comes out the same in fleets of several sizes after five steps."""
    rows = []
    for n in (1,) if DRY else (64, 7, 1):
        fleet, source = fleet_of(n)
        draws = draw(source, torch.arange(1 if DRY else 5, device=DEVICE))
        for place in range(1 if DRY else 5):
            with torch.device(DEVICE):
                advance(fleet, source, {name: one[place] for name, one in draws.items()}, record=True)
        rows.append(fleet.parameters[fleet.members.given.index(n - 1)].clone())
    return all(torch.equal(row, rows[0]) for row in rows)


def ready_stepper(fleet: Any, source: Any) -> Stepper:
    """With its graphs made, for steps that keep a row and for others."""
    stepper = Stepper(fleet, source, print, graph=not DRY)
    for record in (False,) if DRY else (False, True):
        stepper(0, record=record)
    return stepper


def time_steps(stepper: Stepper, turn: int, count: int) -> float:
    """µs a model-step over a block of steps, its draws and its row of history included."""
    begin = time.perf_counter()
    for step in range(turn * count, (turn + 1) * count):
        stepper(step, record=step % 50 == 0)
    _wait()
    return (time.perf_counter() - begin) / (count * MODELS) * 1e6


def in_steps(chosen: dict[str, Way], tell: Callable[..., None]) -> dict[str, Any]:
    """Whole steps with each part, then with all that won, each in turns with today's; bits of the last."""
    fleet, source = fleet_of(MODELS)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    exact, turns = gradients_of("portable"), dict[str, Any]()
    with step_of([], chosen):
        today = ready_stepper(fleet, source)
        tell(f"today: furthest from PyTorch {max(far_from_pytorch(exact).values()):.4f}")

    def beside_today(parts: Sequence[str]) -> float:
        with step_of(parts, chosen):
            far = far_from_pytorch(exact)
            stepper = ready_stepper(fleet, source)
        taken: dict[str, list[float]] = {"today": [], "other": []}
        for turn in range(1 if DRY else 3):
            for name, one, wanted in (("today", today, []), ("other", stepper, parts)):
                with step_of(wanted, chosen):
                    taken[name].append(time_steps(one, turn, 1 if DRY else 64))
        stepper.close()
        if not DRY:
            torch.cuda.empty_cache()
        before, after = (statistics.median(values) for values in taken.values())
        worst = max(far, key=far.__getitem__)
        shown = [[round(t, 2) for t in values] for values in taken.values()]
        tell(f"{' + '.join(parts):20s} {before:.2f} → {after:.2f}", *shown, f"| {far[worst]:.4f} in {worst}")
        turns[" + ".join(parts)] = {**taken, "far": far}
        return after - before

    made = {question.part for question in questions() if question.name in chosen}
    wanted = [part for part in PARTS if part.removesuffix(" back") in made]
    if DRY:
        beside_today(list(HALVES.values()))
    alone = dict.fromkeys(wanted, 0.0) if DRY else {part: beside_today([part]) for part in wanted}
    won = [part for part, change in alone.items() if DRY or change < -0.05]
    # of a part and its second half the better
    ahead = {part: (alone[part], part) for part in won}
    won = [part for part in won if ahead.get(PAIRS.get(part, ""), ahead[part]) >= ahead[part]]
    if not won:
        return {"steps": turns}
    beside_today(won)
    today.close()
    with step_of(won, chosen):
        bits = same_bits()
    tell("same bits in fleets of several sizes:", bits)
    return {"steps": turns, "won": won, "same bits": bits}


def profiled(parts: Sequence[str], chosen: dict[str, Way], tell: Callable[..., None]) -> dict[str, float]:
    """µs a model-step of every kernel, with these parts."""
    from torch.profiler import ProfilerActivity, profile

    with step_of(parts, chosen):
        stepper = stepper_of(MODELS, graph=False)
        for step in range(3):
            stepper(step, record=False)
        torch.cuda.synchronize()
        with profile(activities=[ProfilerActivity.CUDA]) as seen:
            for step in range(3, 6):
                stepper(step, record=False)
            torch.cuda.synchronize()
    spent = {event.key: event.device_time_total / (3 * MODELS) for event in seen.key_averages()}
    for name, each in sorted(spent.items(), key=lambda item: -item[1])[:18]:
        tell(f"{each:7.3f} {name[:70]}")
    return spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=[], help="questions whose names begin so")
    parser.add_argument("--dry", action="store_true", help="without a GPU: the first way of each, few images, no graph")
    parser.add_argument("--until", type=float, default=95, help="seconds after which nothing more is begun")
    given = parser.parse_args()
    if given.dry != DRY:
        raise SystemExit("--dry goes with TRITON_INTERPRET=1 in the environment, and only with it.")
    begin = time.monotonic()
    report: dict[str, Any] = {}

    def tell(*words: object) -> None:
        print(f"[{time.monotonic() - begin:4.0f} s]", *words, flush=True)

    def kept() -> None:
        if "OUT" in os.environ:
            Path(os.environ["OUT"], "next_card.json").write_text(json.dumps(report, indent=1))

    asked = questions()
    wanted = [(number, one) for number, one in enumerate(asked) if one.name.startswith(tuple(given.only) or "")]
    jobs = [(number, way) for number, question in wanted for way in question.ways]
    if DRY:
        jobs = [(number, _short(question)) for number, question in wanted]
    found = side_by_side(jobs)
    good = [(number, way) for number, way, wrong, _ in found if not wrong]
    tell(len(good), "of", len(jobs), "candidates are right; furthest",
         max((e for *_, wrong, far in found if not wrong for e in far.values()), default=0.0))  # fmt: skip
    for number, way, wrong, _ in found:
        if wrong:
            tell("LEFT OUT", asked[number].name, way, wrong)
    chosen: dict[str, Way] = {}
    for number, question in enumerate(asked):
        ways = [way for other, way in good if other == number]
        if not ways or time.monotonic() - begin > given.until:
            continue
        taken = timed(question, ways)
        middle = {name: statistics.median(values) for name, values in taken.items()}
        report[question.name] = taken
        best = min(ways, key=lambda way: middle[str(tuple(vars(way).values()))])
        shown = sorted(((t, name) for name, t in middle.items() if name != "today"), key=lambda pair: pair[0])
        tell(f"{question.name:24s} today {middle['today']:5.2f} |", " | ".join(f"{t:.2f} {name}" for t, name in shown))
        # a pair of forward and backward goes together; of the others only what is faster
        faster = DRY or question.part in ("first two", "last two") or shown[0][0] < middle["today"]
        if faster and question.part != "not in steps":
            chosen[question.name] = best
        if not DRY:
            torch.cuda.empty_cache()
        kept()
    report["chosen"] = {name: vars(way) for name, way in chosen.items()}
    if chosen and time.monotonic() - begin < given.until:
        report |= in_steps(chosen, tell)
        kept()
    if "won" in report and not DRY and time.monotonic() - begin < given.until + 15:
        report["profile"] = profiled(report["won"], chosen, tell)
        kept()
    tell("done")


if __name__ == "__main__":
    if DRY:
        import interpreted  # mends the interpreter

        assert interpreted.CASES
        for table in (first_two.TUNED, resident.TUNED):
            table |= {key: replace(tiles, run=1) for key, tiles in table.items()}
        last_two_images.IMAGES, last.IMAGES_AT_ONCE = 1, 1
    main()
