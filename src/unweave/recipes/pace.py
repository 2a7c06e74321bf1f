"""How fast models train here: a plain loop, a CUDA graph and a fleet, in turn, on whatever device there is.

Rounds are interleaved, so that a busy machine is busy for all of them. The memory floor is the time to move a step's
bytes at the copy rate that this device shows.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from multiprocessing import get_context
from typing import Any

import torch
from torch import nn

from unweave.data.world import Data
from unweave.models import Autoencoder
from unweave.models.layers import Deconvolution
from unweave.models.objectives import MODEL, Context
from unweave.training.alone import Alone
from unweave.training.engine import Engine
from unweave.training.experiment import Experiment, form_of, usable_cores
from unweave.training.fleet import share
from unweave.training.fleet.choice import side_by_side
from unweave.training.fleet.engine import FleetEngine
from unweave.training.loop import say
from unweave.training.memory import keep_freed_memory

DAY, STEPS = 86400e6, 300_000
RECORDED_EVERY = 50

Advance = Callable[[int], int]
"""Does so many steps and returns how many model-steps those were."""


@dataclass(frozen=True)
class Pace:
    """One way of training: µs per model-step (median and range), 300,000-step models a day, share of the floor."""

    way: str
    models: int
    microseconds: float
    fastest: float
    slowest: float
    models_a_day: float
    share_of_floor: float


def pace(
    base: Experiment, data: Data, *, models: int, ways: Sequence[str], rounds: int = 3, seconds: float = 1.0
) -> tuple[list[Pace], float]:
    """Every way in turn, several times, and the memory floor in µs. ``seconds`` is how long a round of one way takes.

    Ways: ``eager`` is a plain loop as one writes it by hand, ``alone`` our loop over one model, ``graph`` that loop as
    a CUDA graph, ``fleet`` many models at once: stacked, or in processes side by side where that is faster.
    """
    torch.set_num_threads(base.plan.threads)
    floor = floor_of(base, data)
    begun = {way: WAYS[way](base, data, models) for way in ways}
    try:
        counts = {way: _enough(way_.advance, seconds) for way, way_ in begun.items()}
        spent: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(rounds):
            for way, begun_way in begun.items():
                spent[way].append(_timed(begun_way.advance, counts[way]))
    finally:
        for begun_way in begun.values():
            begun_way.end()
    return [_pace(way, begun[way].models, times, floor) for way, times in spent.items()], floor


def floor_of(base: Experiment, data: Data) -> float:
    """µs to move the bytes of a layer-fused step at this device's copy rate."""
    return share.least_bytes(base, form_of(base.objective, data)) / copy_rate(base.plan.device)


def copy_rate(device: str) -> float:
    """Bytes that a large copy reads and writes in a µs."""
    return share.copy_rate(device, 1 << (31 if device.startswith("cuda") else 27)) / 1e6


def pictures(channels: int, n: int = 4096) -> Data:
    """Random pictures of 64×64, as bits or bytes: their content does not matter for time."""
    generator = torch.Generator().manual_seed(0)
    shape = (n, 512) if channels == 1 else (n, channels, 64, 64)
    store = torch.randint(0, 256, shape, generator=generator, dtype=torch.uint8)
    return Data(store, (channels, 64, 64), "bits" if channels == 1 else "bytes")


@dataclass(frozen=True)
class _Begun:
    advance: Advance
    models: int = 1
    end: Callable[[], None] = lambda: None


def _eager(base: Experiment, data: Data, models: int) -> _Begun:
    """Plain PyTorch: contiguous images, its own layers, its own optimiser, draws of every step by themselves."""
    model = Autoencoder(base.architecture(data.shape), base.init, base.seed).to(base.plan.device)
    for module in list(model.modules()):
        for name, layer in module.named_children():
            if isinstance(layer, Deconvolution):
                setattr(module, name, _transposed(layer))
    phases = base.objective.phases()
    if len(phases) > 1:
        raise ValueError("the plain loop has one network; leave out eager, or choose another objective")
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-4)
    device, size = base.plan.device, base.batch_size

    def advance(count: int) -> int:
        for step in range(count):
            images = data.examples(torch.randint(len(data), (size,), device=device))
            batch = {"images": images, "noise": torch.randn(size, base.latents, device=device)}
            terms, _ = phases[0].loss(batch, Context(step, len(data), base.warmup, {MODEL: model}))
            optimiser.zero_grad()
            terms["loss"].backward()
            optimiser.step()
        return count

    return _Begun(advance)


def _alone(base: Experiment, data: Data, models: int) -> _Begun:
    return _stepped(Alone(base, data), 1)


def _graph(base: Experiment, data: Data, models: int) -> _Begun:
    engine = Alone(base, data)
    fresh = engine.drawing
    held = fresh(0)
    engine.drawing = lambda step: held  # type: ignore[assignment]
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            engine.advance(0, record=False)
    torch.cuda.current_stream().wait_stream(side)
    graph, done = torch.cuda.CUDAGraph(), [0]
    with torch.cuda.graph(graph):
        engine.advance(0, record=False)

    def advance(count: int) -> int:
        for _ in range(count):
            for name, drawn in fresh(done[0]).items():
                held[name].copy_(drawn)
            graph.replay()
            done[0] += 1
        return count * len(engine.experiments)  # the engine stays: the graph writes into its tensors

    return _Begun(advance)


def _fleet(base: Experiment, data: Data, models: int) -> _Begun:
    if side_by_side(base):
        return _processes(base, data, min(models, usable_cores()))
    return _stepped(FleetEngine([replace(base, seed=seed) for seed in range(models)], data, say), models)


def _stepped(engine: Engine, models: int) -> _Begun:
    done = [0]

    def advance(count: int) -> int:
        for _ in range(count):
            engine.advance(done[0], record=done[0] % RECORDED_EVERY == 0)
            done[0] += 1
        return count * models

    return _Begun(advance, models)


def _processes(base: Experiment, data: Data, n: int) -> _Begun:
    context, pairs = get_context("spawn"), []
    for seed in range(n):
        here, there = context.Pipe()
        single = replace(base, seed=seed, plan=replace(base.plan, threads=1))
        process = context.Process(target=_work, args=(there, single, data), daemon=True)
        process.start()
        pairs.append((here, process))

    def advance(count: int) -> int:
        for here, _ in pairs:
            here.send(count)
        return sum(here.recv() for here, _ in pairs)

    def end() -> None:
        for here, process in pairs:
            here.send(0)
            process.join()

    return _Begun(advance, n, end)


def _work(there: Any, base: Experiment, data: Data) -> None:
    keep_freed_memory()
    torch.set_num_threads(1)
    advance = _alone(base, data, 1).advance
    while count := there.recv():
        there.send(advance(count))


WAYS: dict[str, Callable[[Experiment, Data, int], _Begun]] = {
    "eager": _eager,
    "alone": _alone,
    "graph": _graph,
    "fleet": _fleet,
}


def _transposed(layer: Deconvolution) -> nn.Module:
    n_inputs, n_outputs = layer.weight.shape[:2]
    plain = nn.ConvTranspose2d(n_inputs, n_outputs, 4, stride=2, padding=1)
    plain.load_state_dict(layer.state_dict())
    return plain.to(layer.weight.device)


def _pace(way: str, models: int, times: list[float], floor: float) -> Pace:
    middle = statistics.median(times)
    return Pace(way, models, middle, min(times), max(times), DAY / STEPS / middle, floor / middle)


def _enough(advance: Advance, seconds: float) -> int:
    """Steps for about so long, after a warm-up."""
    _timed(advance, 3)
    begin = time.perf_counter()
    _timed(advance, 2)
    return max(2, int(2 * seconds / max(time.perf_counter() - begin, 1e-4)))


def _timed(advance: Advance, count: int) -> float:
    """µs per model-step."""
    cuda = torch.cuda.is_available()
    if cuda:
        torch.cuda.synchronize()
    begin = time.perf_counter()
    done = advance(count)
    if cuda:
        torch.cuda.synchronize()
    return (time.perf_counter() - begin) * 1e6 / done
