"""Several ways to train one manipulation, side by side: which of them makes a function of the factors, and not a veil?

A plain loop, apart from the package's own: encoders run once over a part of the world, and every variant has a stream
and two CUDA graphs (without a GPU: a plain loop). Beside every variant stand its controls, and before them what samples
of each side's codes tell of the factors: what the fostered side does not know better, no manipulation can gain by.

    python benchmarks/manipulations.py prepare --out runs/carried           # images and factors in a small file
    unweave zoo pull dsprites-beta_vae-4 runs/carried/dsprites-beta_vae-4           # and 7, 6, 3
    python benchmarks/manipulations.py                                      # all of it: a minute on a card
    python benchmarks/manipulations.py between --variants plain,hidden --controls ,same,reversed
"""

import argparse
import copy
import json
import os
import shutil
import struct
import subprocess
import sys
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from unweave.data.altered import fold
from unweave.metrics.supervised.mig import mig
from unweave.models.autoencoder import Architecture, Autoencoder
from unweave.models.initialise import initialise
from unweave.models.layers import Dense
from unweave.models.manipulation import ManipulationNetwork
from unweave.models.networks.conv import ConvStudy

N_ROWS, N_JUDGED, N_SHOWN = 32_768, 3_000, 8
ARCHITECTURES = {
    "dsprites": ((1, 64, 64), 5, (3, 6, 40, 32, 32)),
    "shapes3d_like": ((3, 64, 64), 6, (10, 10, 10, 8, 4, 15)),
}
EPSILON = {"dsprites": 0.1, "shapes3d_like": 0.175}


@dataclass(frozen=True)
class Variant:
    """What is done otherwise. ``wait``: updates of the decoders before m first moves."""

    wait: int = 0
    every: int = 3
    inputs: str = "centred"
    """``centred`` on [-1, 1]; ``indices``: 0 to n - 1; ``spread``: indices less their mean."""
    ends: str = "tanh"
    """How m keeps to [-1, 1]: ``tanh``, ``clip``, or ``fold``, which reflects."""
    less_mean: bool = False
    """The mean over the batch is taken out of m before its ends."""
    squared: bool = False
    """Squared errors in the place of the Bernoulli likelihood."""
    begin: float = 0.0
    """Deviation of m over the data, before its ends, that its last layer is scaled to at the beginning; 0: as drawn."""
    hidden: int = 0
    """Width of two layers between the factors and the one number; 0: none, a linear combination."""
    rate: float = 1e-4
    samples: int = 5


HIDDEN = Variant(hidden=256)
STARTED = replace(HIDDEN, begin=0.5, wait=300)
VARIANTS = {
    "plain": Variant(),
    "squared": Variant(squared=True),
    "spread": Variant(inputs="spread"),
    "begun": Variant(begin=0.5, wait=300),
    "begun squared": Variant(begin=0.5, wait=300, squared=True),
    "hidden": HIDDEN,
    "hidden squared": replace(HIDDEN, squared=True),
    "hidden begun": STARTED,
    "hidden begun squared": replace(STARTED, squared=True),
    "hidden begun every 10": replace(STARTED, every=10),
    "hidden begun less mean": replace(STARTED, less_mean=True),
    "hidden begun fold": replace(STARTED, ends="fold"),
    "less mean": Variant(less_mean=True),
    "fold": Variant(ends="fold"),
}


class Change(nn.Module):
    """The package's manipulation network, with a variant's inputs and ends."""

    def __init__(self, architecture: Architecture, variant: Variant, seed: int) -> None:
        super().__init__()
        self.net, self.variant = ManipulationNetwork(architecture), variant
        if variant.hidden:
            wide, narrow = Dense(len(architecture.labels), variant.hidden), Dense(variant.hidden, 1)
            self.net.squeeze = nn.Sequential(wide, nn.ReLU(), Dense(variant.hidden, variant.hidden), nn.ReLU(), narrow)
        initialise(self.net, "glorot", seed)
        self.register_buffer("sizes", torch.tensor(architecture.labels, dtype=torch.float32))

    @torch.no_grad()
    def begin(self, factors: torch.Tensor) -> None:
        """Scale the last layer so that m deviates as the variant says."""
        if self.variant.begin:
            raw = torch.cat([self.raw(some) for some in factors[:2048].split(256)])
            [*self.net.parameters()][-2].mul_(self.variant.begin / raw.std(0).mean())

    def inputs(self, factors: torch.Tensor) -> torch.Tensor:
        kind = self.variant.inputs
        if kind == "indices":
            return factors
        spread = factors - (self.sizes - 1) / 2
        return spread if kind == "spread" else spread * 2 / (self.sizes - 1)

    def raw(self, factors: torch.Tensor) -> torch.Tensor:
        return self.net.draw(self.net.squeeze(self.inputs(factors)))

    def ends(self, raw: torch.Tensor) -> torch.Tensor:
        if self.variant.ends == "tanh":
            return torch.tanh(raw)
        return raw.clamp(-1, 1) if self.variant.ends == "clip" else 2 * reflected((raw + 1) / 2) - 1

    def forward(self, factors: torch.Tensor) -> torch.Tensor:
        raw = self.raw(factors)
        return self.ends(raw - raw.mean(0) if self.variant.less_mean else raw)


def reflected(x: torch.Tensor) -> torch.Tensor:
    """Any number into [0, 1], a mirror at each end."""
    return 1 - (x.remainder(2) - 1).abs()


class Adam:
    """Adam over some tensors, its step counted on the device."""

    def __init__(self, weights: list[torch.Tensor], rate: float) -> None:
        self.weights, self.rate = weights, rate
        self.first, self.second = ([torch.zeros_like(one) for one in weights] for _ in range(2))
        self.count = torch.zeros((), device=weights[0].device)

    @torch.no_grad()
    def step(self, loss: torch.Tensor) -> None:
        slopes = torch.autograd.grad(loss, self.weights)
        self.count += 1
        torch._foreach_lerp_(self.first, slopes, 0.1)
        torch._foreach_mul_(self.second, 0.999)
        torch._foreach_addcmul_(self.second, slopes, slopes, 0.001)
        root = torch._foreach_sqrt(self.second)
        torch._foreach_div_(root, (1 - 0.999**self.count).sqrt())
        torch._foreach_add_(root, 1e-7)
        moved = torch._foreach_div(self.first, root)
        torch._foreach_mul_(moved, -self.rate / (1 - 0.9**self.count))
        torch._foreach_add_(self.weights, moved)


@dataclass
class Part:
    """A part of a world on a device: bytes of images, and factors."""

    name: str
    images: torch.Tensor
    factors: torch.Tensor

    @property
    def architecture(self) -> Architecture:
        shape, latents, labels = ARCHITECTURES[self.name]
        return Architecture(shape, latents, ConvStudy(), labels=labels)

    def batch(self, rows: torch.Tensor) -> torch.Tensor:
        return self.images[rows].float() / 255


class Training:
    """One variant between two sides, each a list of models; a side has heads over the whole part, and decoders."""

    def __init__(
        self,
        part: Part,
        sides: list[list[Autoencoder]],
        heads: list[list[dict[str, torch.Tensor]]],
        variant: Variant,
        batch: int,
        seed: int = 0,
    ) -> None:
        device = part.images.device
        self.part, self.variant, self.batch, self.heads = part, variant, batch, heads
        self.change = Change(part.architecture, variant, seed).to(device)
        self.change.begin(part.factors)
        self.decoders = nn.ModuleList(nn.ModuleList(copy.deepcopy(one.decoder) for one in side) for side in sides)
        self.decoders.to(device).requires_grad_(True)
        self.moves_m = Adam([*self.change.parameters()], variant.rate)
        self.moves_decoders = Adam([*self.decoders.parameters()], variant.rate)
        self.late = torch.zeros(3, device=device)
        self.graphs: dict[bool, torch.cuda.CUDAGraph] = {}
        self.stream = torch.cuda.Stream() if device.type == "cuda" else None
        self.done = 0

    def losses(self, rows: torch.Tensor, seen: torch.Tensor) -> list[torch.Tensor]:
        n = self.variant.samples
        target = seen.repeat_interleave(n, 0)
        found = []
        for heads, decoders in zip(self.heads, self.decoders):
            of_side = []
            for head, decoder in zip(heads, decoders):
                mean, deviation = (head[name][rows].repeat_interleave(n, 0) for name in ("mean", "deviation"))
                outputs = decoder(mean + deviation * torch.randn_like(mean))
                if self.variant.squared:
                    of_side.append((outputs.sigmoid() - target).square().sum() / len(target))
                else:
                    of_side.append(
                        functional.binary_cross_entropy_with_logits(outputs, target, reduction="sum") / len(target)
                    )
            found.append(torch.stack(of_side).mean())
        return found

    def seen(self, rows: torch.Tensor) -> torch.Tensor:
        return fold(self.part.batch(rows) + EPSILON[self.part.name] * self.change(self.part.factors[rows]))

    def step(self, moves: bool) -> None:
        """As the package steps: the decoders on one batch, and, where m moves, m on the same."""
        rows = torch.randint(len(self.part.images), (self.batch,), device=self.part.images.device)
        with torch.no_grad():
            seen = self.seen(rows)
        foster, diminish = self.losses(rows, seen)
        self.moves_decoders.step(foster + diminish)
        now = torch.stack([foster.detach(), diminish.detach(), (foster - diminish).detach()])
        self.late.lerp_(now, 1 / 200)
        if moves:
            foster, diminish = self.losses(rows, self.seen(rows))
            self.moves_m.step(foster - diminish)

    def advance(self) -> None:
        moves = self.done >= self.variant.wait and (self.done + 1) % self.variant.every == 0
        if self.stream is None:
            self.step(moves)
        else:
            with torch.cuda.stream(self.stream):
                self.graphs[moves].replay() if self.graphs else self.step(moves)
        self.done += 1

    def capture(self) -> None:
        assert self.stream is not None
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            for moves in (False, True, False):
                self.step(moves)
        torch.cuda.synchronize()
        self.graphs = {moves: captured(self.stream, partial(self.step, moves)) for moves in (False, True)}


def captured(stream: torch.cuda.Stream, step: Callable[[], None]) -> torch.cuda.CUDAGraph:
    """A step as a graph; `torch.cuda.graph` would collect garbage and empty the cache each time."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.stream(stream):
        graph.capture_begin()
        try:
            step()
        finally:
            graph.capture_end()
    torch.cuda.synchronize()
    return graph


@torch.no_grad()
def heads_of(model: Autoencoder, part: Part) -> dict[str, torch.Tensor]:
    found = [
        model.encoder(part.batch(rows)) for rows in torch.arange(len(part.images), device=part.images.device).split(512)
    ]
    mean = torch.cat([one["mean"] for one in found])
    return {"mean": mean, "deviation": torch.cat([one["log_variance"] for one in found]).mul(0.5).exp()}


def pca_mig(images: torch.Tensor, factors: torch.Tensor) -> float:
    """MIG of the first principal components, as many as there are factors."""
    flat = images.flatten(1)
    flat = flat - flat.mean(0)
    torch.manual_seed(0)
    _, _, axes = torch.svd_lowrank(flat, 40, 6)
    codes = flat @ axes[:, : factors.shape[1]]
    return float(mig(codes.cpu(), factors.cpu()).score)


@torch.no_grad()
def changes(training: Training, rows: torch.Tensor) -> torch.Tensor:
    return torch.cat([training.change(training.part.factors[some]) for some in rows.split(500)])


def glance(training: Training) -> dict[str, float]:
    """How the change deviates from image to image, how much of it stands at an end, and the gap of the last steps."""
    rows = torch.arange(256, device=training.part.images.device)
    change = changes(training, rows)
    return {
        "step": training.done,
        "deviation": round(float(change.std(0).mean()), 4),
        "saturated": round(float((change.abs() > 0.95).float().mean()), 4),
        "gap": round(float(training.late[2]), 3),
    }


def judged_rows(part: Part) -> torch.Tensor:
    return (torch.arange(N_JUDGED, device=part.images.device) * 7919 + 101) % len(part.images)


@torch.no_grad()
def judged(training: Training) -> tuple[dict[str, float], torch.Tensor]:
    part = training.part
    rows = judged_rows(part)
    change, images, factors = changes(training, rows), part.batch(rows), part.factors[rows]
    altered = fold(images + EPSILON[part.name] * change)
    foster, diminish, gap = training.late.tolist()
    found = {
        "steps": training.done,
        "deviation": float(change.std(0).mean()),
        "added": float((altered - images).std(0).mean()) / EPSILON[part.name],
        "saturated": float((change.abs() > 0.95).float().mean()),
        "mean": float(change.mean()),
        "mig_pca": pca_mig(altered, factors),
        "foster": foster,
        "diminish": diminish,
        "gap": gap,
    }
    shown = torch.stack([images[:N_SHOWN], (change[:N_SHOWN] + 1) / 2, altered[:N_SHOWN]])
    return found, shown.cpu()


def grid(pictures: torch.Tensor) -> np.ndarray:
    """Originals, changes and altered images as three rows of one picture."""
    rows = [torch.cat([*row], -1) for row in pictures]
    shown = torch.cat(rows, -2).mul(255).round().to(torch.uint8)
    return shown.expand(3, -1, -1).permute(1, 2, 0).numpy()


def train_all(trainings: dict[str, Training], steps: int, seconds: float, glances: dict[str, list[Any]]) -> None:
    """All of them side by side until all have so many steps, or the time is over."""
    begin = time.monotonic()
    if torch.cuda.is_available():
        for name, one in trainings.items():
            try:
                one.capture()
            except RuntimeError as error:
                print("no graph:", name, error, flush=True)
                torch.cuda.synchronize()
        print(f"captured after {time.monotonic() - begin:.1f} s", flush=True)
    number = 0
    while number < steps and time.monotonic() - begin < seconds:
        for one in trainings.values():
            one.advance()
        number += 1
        if number % 50 == 0 and torch.cuda.is_available():
            torch.cuda.synchronize()
        if number % 500 == 0:
            for name, one in trainings.items():
                glances.setdefault(name, []).append(glance(one))
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    print(f"{number} steps of {len(trainings)} in {time.monotonic() - begin:.1f} s", flush=True)


CONTROLS = {"": (0, 1), "same": (0, 0), "reversed": (1, 0)}


def compare(part: Part, sides: list[list[Autoencoder]], args: argparse.Namespace) -> None:
    """Train variants, each with the controls asked for, between the two sides, and write what became of them."""
    for model in sides[0] + sides[1]:
        model.to(part.images.device).eval().requires_grad_(False)
    heads = [[heads_of(model, part) for model in side] for side in sides]
    if args.known:
        for one in known(part, [side[0] for side in heads], args.known):
            print("known", {key: np.round(value, 4).tolist() for key, value in one.items()}, flush=True)
    trainings = {}
    for name in args.variants.split(","):
        for control in args.controls.split(","):
            first, second = CONTROLS[control]
            variant = VARIANTS[name]
            variant = replace(variant, samples=args.samples or variant.samples, rate=args.rate or variant.rate)
            kind = f"{name}, {control}" if control else name
            both = [heads[first], heads[second]]
            trainings[kind] = Training(part, [sides[first], sides[second]], both, variant, args.batch)
    groups = [trainings] if torch.cuda.is_available() else [{name: one} for name, one in trainings.items()]
    out = Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    rows = judged_rows(part)
    print("MIG of principal components of originals:", pca_mig(part.batch(rows), part.factors[rows]), flush=True)
    pictures = []
    for group in groups:
        glances: dict[str, list[Any]] = {}
        train_all(group, args.steps, args.seconds, glances)
        for name, one in group.items():
            found, shown = judged(one)
            with (out / f"{args.title or part.name}.jsonl").open("a") as file:
                told = {"world": part.name, "variant": name, **found, "glances": glances.get(name)}
                file.write(json.dumps(told) + "\n")
            print(f"{name:32}", {key: round(value, 3) for key, value in found.items()}, flush=True)
            pictures.append(grid(shown))
        write_picture(out / f"{args.title or part.name}.png", np.concatenate(pictures))


def write_picture(path: Path, picture: np.ndarray) -> None:
    """A PNG, without anything that must be installed."""
    height, width, _ = picture.shape

    def chunk(kind: bytes, content: bytes) -> bytes:
        told = kind + content
        return struct.pack(">I", len(content)) + told + struct.pack(">I", zlib.crc32(told))

    lines = b"".join(b"\0" + line.tobytes() for line in np.ascontiguousarray(picture))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = chunk(b"IHDR", head), chunk(b"IDAT", zlib.compress(lines)), chunk(b"IEND", b"")
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(parts))


def known(part: Part, heads: list[dict[str, torch.Tensor]], steps: int) -> list[dict[str, Any]]:
    """What samples of each model's codes leave unsaid of the factors and of both models' codes, as shares of variance.

    ``least`` is the least that the first model leaves of any linear combination of the factors, in shares of what the
    second leaves of it: where it is above 1 there is no combination that the first knows better.
    """
    sizes = torch.tensor(part.architecture.labels, device=part.images.device)
    scaled = (part.factors - (sizes - 1) / 2) / ((sizes.square() - 1) / 12).sqrt()
    codes = [(one["mean"] - one["mean"].mean(0)) / one["mean"].std(0).clamp_min(1e-6) for one in heads]
    targets = torch.cat([scaled, *codes], 1)
    left = [_left(head, targets, steps).double() for head in heads]
    n = len(sizes)
    inner = [torch.linalg.inv(torch.linalg.cholesky(one[:n, :n])) for one in left]
    found = []
    for first, second in ((0, 1), (1, 0)):
        ratios = torch.linalg.eigvalsh(inner[second] @ left[first][:n, :n] @ inner[second].T)
        own = slice(n + first * codes[0].shape[1], n + (first + 1) * codes[0].shape[1])
        found.append(
            {
                "model": first,
                "left of factors": left[first].diag()[:n].tolist(),
                "least": float(ratios[0]),
                "most": float(ratios[-1]),
                "own codes, in shares of the other's": (left[first].diag()[own] / left[second].diag()[own]).tolist(),
            }
        )
    return found


def _left(head: dict[str, torch.Tensor], targets: torch.Tensor, steps: int, width: int = 256) -> torch.Tensor:
    """Covariance of the errors of a network that reads sampled codes, on rows that it has not seen."""
    torch.manual_seed(0)
    device, n = targets.device, len(targets) * 3 // 4
    layers = [nn.Linear(head["mean"].shape[1], width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()]
    net = nn.Sequential(*layers, nn.Linear(width, targets.shape[1])).to(device)
    adam = torch.optim.Adam(net.parameters(), 3e-3)
    cool = torch.optim.lr_scheduler.LambdaLR(adam, lambda step: 1 - step / steps)

    def sampled(rows: torch.Tensor) -> torch.Tensor:
        return head["mean"][rows] + head["deviation"][rows] * torch.randn_like(head["mean"][rows])

    for _ in range(steps):
        rows = torch.randint(n, (512,), device=device)
        adam.zero_grad()
        (net(sampled(rows)) - targets[rows]).square().mean().backward()
        adam.step()
        cool.step()
    with torch.no_grad():
        rows = torch.arange(n, len(targets), device=device)
        wrong = torch.cat([net(sampled(rows)) - targets[rows] for _ in range(3)])
    return wrong.T @ wrong / len(wrong)


def part_of(world: str, device: str, folder: str) -> Part:
    path = Path(folder) / f"{world}.npz"
    if path.exists():
        held = np.load(path)
        factors = torch.from_numpy(held["factors"])
        images = torch.from_numpy(np.unpackbits(held["images"], axis=1)).view(-1, 1, 64, 64) * 255
    else:
        images, factors = drawn(world)
    return Part(world, images.to(device), factors.float().to(device))


def drawn(world: str) -> tuple[torch.Tensor, torch.Tensor]:
    from unweave.data.dsprites import DSprites
    from unweave.data.shapes3d import Shapes3DLike

    data = (DSprites() if world == "dsprites" else Shapes3DLike()).load()
    rows = torch.randperm(len(data), generator=torch.Generator().manual_seed(0))[:N_ROWS]
    images = torch.cat([data.examples(some).mul(255).round().to(torch.uint8) for some in rows.split(1024)])
    return images, data.factors(rows)


def prepare(args: argparse.Namespace) -> None:
    images, factors = drawn("dsprites")
    bits = np.packbits((images.flatten(1) > 127).numpy(), axis=1)
    Path(args.out).mkdir(parents=True, exist_ok=True)
    np.savez_compressed(Path(args.out) / "dsprites.npz", images=bits, factors=factors.to(torch.uint8).numpy())


def between(args: argparse.Namespace) -> None:
    from unweave.training.run import Run

    device = "cuda" if torch.cuda.is_available() else "cpu"
    part = part_of("dsprites", device, args.data)
    sides = [[Run(one).model for one in side.split(",")] for side in (args.foster, args.diminish)]
    compare(part, sides, args)


class VAE:
    """A β-VAE that is trained on a part of a world."""

    def __init__(self, part: Part, seed: int, beta: float, rate: float = 5e-4, batch: int = 64) -> None:
        self.part, self.beta, self.batch = part, beta, batch
        self.model = Autoencoder(part.architecture, None)
        initialise(self.model, "glorot", seed)
        self.model.to(part.images.device)
        self.adam = Adam([*self.model.parameters()], rate)
        self.stream = torch.cuda.Stream() if torch.cuda.is_available() else None
        self.graph: torch.cuda.CUDAGraph | None = None

    def step(self) -> None:
        rows = torch.randint(len(self.part.images), (self.batch,), device=self.part.images.device)
        images = self.part.batch(rows)
        heads = self.model.encoder(images)
        mean, log_variance = heads["mean"], heads["log_variance"]
        sampled = mean + (0.5 * log_variance).exp() * torch.randn_like(mean)
        outputs = self.model.decoder(sampled)
        error = functional.binary_cross_entropy_with_logits(outputs, images, reduction="sum")
        kl = 0.5 * (mean.square() + log_variance.exp() - log_variance - 1).sum()
        self.adam.step((error + self.beta * kl) / self.batch)

    def capture(self) -> None:
        assert self.stream is not None
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            for _ in range(3):
                self.step()
        torch.cuda.synchronize()
        self.graph = captured(self.stream, self.step)

    def advance(self) -> None:
        if self.stream is None:
            return self.step()
        with torch.cuda.stream(self.stream):
            self.graph.replay() if self.graph is not None else self.step()

    @torch.no_grad()
    def score(self) -> tuple[float, int]:
        """MIG, and how many latents are in use."""
        rows = torch.arange(10_000 if len(self.part.images) > 10_000 else len(self.part.images))
        small = replace(self.part, images=self.part.images[rows], factors=self.part.factors[rows])
        heads = heads_of(self.model, small)
        active = int((heads["deviation"].square().mean(0) < 0.8).sum())
        return float(mig(heads["mean"].cpu(), small.factors.cpu()).score), active


def shapes(args: argparse.Namespace) -> None:
    """Models of the Shapes3D imitation are trained, and manipulations between the least and the most disentangled."""
    part = part_of("shapes3d_like", "cuda" if torch.cuda.is_available() else "cpu", args.data)
    print("images are there", flush=True)
    models = [VAE(part, seed, 32.0) for seed in range(args.models)]
    if torch.cuda.is_available():
        for one in models:
            one.capture()
    begin, done = time.monotonic(), 0
    while time.monotonic() - begin < args.model_seconds:
        for _ in range(20):
            for one in models:
                one.advance()
        done += 20
        if torch.cuda.is_available():
            torch.cuda.synchronize()
    scores = [one.score() for one in models]
    print(f"{done} steps of {len(models)} models; MIG and latents in use: {scores}", flush=True)
    most = max(active for _, active in scores)
    usable = sorted((score, place) for place, (score, active) in enumerate(scores) if active >= most - 1)
    sides = [[models[usable[0][1]].model], [models[usable[-1][1]].model]]
    compare(part, sides, args)


COMMON = ["--controls", ",same,reversed", "--rate", "5e-4", "--batch", "32", "--samples", "2", "--known", "1000"]
CALLS = {
    "shapes": ["shapes", "--variants", "plain,hidden,hidden begun", "--model-seconds", "18", "--seconds", "20"],
    "4-7": ["between", "--variants", "plain,squared,hidden,hidden begun,hidden begun squared", "--seconds", "42"],
    "6-3": ["between", "--variants", "plain,hidden begun", "--seconds", "42"],
}


def everything(args: argparse.Namespace) -> None:
    """The calls of one minute on a card, each a process; under NVIDIA's MPS where that can be had.

    Under MPS all processes share one pool of connections, and what one reserves the others lack. With 32 each the third
    failed in its first call of CUDA ("out of memory", where there was plenty): probably for want of connections.
    """
    if shutil.which("nvidia-cuda-mps-control"):
        subprocess.run(["nvidia-cuda-mps-control", "-d"], check=False)
        time.sleep(1)
    running = []
    environment = {**os.environ, "CUDA_DEVICE_MAX_CONNECTIONS": str(32 // len(CALLS))}
    for title, call in CALLS.items():
        sides = [] if title == "shapes" else [f"{args.data}/dsprites-beta_vae-{seed}" for seed in title.split("-")]
        told = [*call, *COMMON, "--title", title, "--out", args.out, "--data", args.data, "--steps", str(args.steps)]
        told += [word for side, run in zip(("--foster", "--diminish"), sides) for word in (side, run)]
        if args.seconds < 1e9:
            told += ["--seconds", str(args.seconds), "--model-seconds", str(args.seconds)]
        running.append(subprocess.Popen([sys.executable, "-u", __file__, *told], env=environment))
    for one in running:
        one.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", default="everything", choices=("everything", "prepare", "between", "shapes"))
    parser.add_argument("--foster", default="runs/carried/dsprites-beta_vae-4")
    parser.add_argument("--diminish", default="runs/carried/dsprites-beta_vae-7")
    parser.add_argument("--data", default="runs/carried", help="where `prepare` has written")
    parser.add_argument("--variants", default="plain")
    parser.add_argument("--controls", default="", help="of each variant: nothing, same, reversed")
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--samples", type=int, default=0)
    parser.add_argument("--rate", type=float, default=0.0)
    parser.add_argument("--known", type=int, default=0, help="steps of the networks that ask what the sides know")
    parser.add_argument("--models", type=int, default=6)
    parser.add_argument("--model-seconds", type=float, default=20.0)
    parser.add_argument("--out", default=os.environ.get("OUT", "runs/manipulations"))
    parser.add_argument("--title", default="", help="name of the files that are written")
    args = parser.parse_args()
    os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "32")
    torch.manual_seed(0)
    torch.set_num_threads(1)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    {"everything": everything, "prepare": prepare, "between": between, "shapes": shapes}[args.what](args)


if __name__ == "__main__":
    main()
