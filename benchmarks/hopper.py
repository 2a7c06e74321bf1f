"""Convolutions by a Hopper card's copy engine beside the present kernels: compile, check and time them in one call.

``PYTHONPATH=src python3 benchmarks/hopper.py`` takes about 80 s on a card. Every candidate is checked in a process of
its own, all side by side, so one that hangs or leaves its tensors ends alone; those that are right are then timed in
turns with the present kernel, at 256 models. ``ONLY=down,up`` in the environment keeps to names with one of these words
in them. Everything goes to ``$OUT`` where that is set; the last lines are a table.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from boxes import down_by_boxes  # beside this file
from copies import Shares, correlate_by_copies, down_by_copies, up_by_copies

from unweave.models.kernels.convolutions import Join, Tiles, correlate, down, up
from unweave.models.kernels.resident import up_forward

SIZES = (1, 7, 256)
BATCH = 64
HERE = Path(__file__)
CHECK_S, TIME_S = 40, 25
COPY_RATE = 4.3e12
"""Bytes a second, read and written, as measured on an H200."""
Run = Callable[[], torch.Tensor]


@dataclass(frozen=True)
class Case:
    """One layer in one direction; ``back``: as an input gradient, met with a rectifier and summed over pixels."""

    what: str
    height: int
    n_big: int
    n_small: int
    back: bool

    @property
    def name(self) -> str:
        direction = "" if self.what == "correlate" else " back" if self.back else " forward"
        return f"{self.what} {self.n_big}-{self.n_small} at {self.height}{direction}"

    @property
    def join(self) -> Join:
        return Join(self.height, self.height, self.n_big, self.n_small, 4, 64, 0)

    @property
    def n_bytes(self) -> int:
        """The least that must move for a model."""
        big = BATCH * 4 * self.height**2 * self.n_big * 2
        small = BATCH * self.height**2 * self.n_small * 2
        met = 0 if not self.back else small if self.what == "down" else big
        return big + small + met + 16 * self.n_big * self.n_small * (4 if self.what == "correlate" else 2)


Division = Shares | Tiles
LARGE_DOWN: tuple[Division, ...] = (
    Shares(16, 1, 3, 4), Shares(8, 1, 3, 4), Shares(16, 1, 8, 8), Shares(16, 2, 4, 8), Tiles(128, 0, 4, 4),
    Tiles(256, 0, 8, 3),
)  # fmt: skip
SMALL_DOWN: tuple[Division, ...] = (
    Shares(16, 2, 4, 4), Shares(32, 2, 4, 4), Shares(16, 1, 8, 4), Tiles(128, 0, 4, 4), Tiles(64, 0, 4, 4),
)  # fmt: skip
CANDIDATES: dict[Case, tuple[Division, ...]] = {
    Case("down", 16, 32, 32, False): LARGE_DOWN,
    Case("down", 16, 32, 32, True): LARGE_DOWN,
    Case("down", 8, 32, 64, False): SMALL_DOWN,
    Case("down", 8, 32, 64, True): SMALL_DOWN,
    Case("up", 16, 32, 32, False): (Shares(16, 3, 6, 8), Shares(8, 3, 6, 8), Shares(16, 3, 4, 8)),
    Case("up", 8, 32, 64, False): (Shares(16, 3, 3, 4), Shares(8, 3, 3, 4)),
    Case("up", 8, 32, 64, True): (Shares(16, 3, 3, 4), Shares(8, 3, 3, 4)),
    Case("up", 4, 64, 64, False): (Shares(32, 9, 7, 4), Shares(16, 9, 7, 4)),
    Case("up", 4, 64, 64, True): (Shares(32, 9, 7, 4), Shares(16, 9, 7, 4)),
    Case("down", 4, 64, 64, False): (Tiles(128, 0, 4, 3), Tiles(64, 0, 4, 4)),
    Case("down", 4, 64, 64, True): (Tiles(128, 0, 4, 3), Tiles(64, 0, 4, 4)),
    Case("correlate", 16, 32, 32, True): (Shares(64, 3, 4, 4), Shares(64, 3, 7, 4)),
    Case("correlate", 8, 32, 64, True): (Shares(64, 3, 4, 4), Shares(64, 3, 7, 4)),
}
Variant = tuple[Case, int]
"""A case and a number among its candidates; -1 is the present kernel."""


def variants() -> list[Variant]:
    only = [word for word in os.environ.get("ONLY", "").split(",") if word]
    kept = [case for case in CANDIDATES if not only or any(word in case.name for word in only)]
    return [(case, number) for case in kept for number in range(-1, len(CANDIDATES[case]))]


def chosen_by(variant: Variant) -> Division | None:
    return CANDIDATES[variant[0]][variant[1]] if variant[1] >= 0 else None


def title(variant: Variant) -> str:
    chosen = chosen_by(variant)
    if chosen is None:
        return f"{variant[0].name} present"
    kind = "boxes" if isinstance(chosen, Tiles) else "copies"
    return f"{variant[0].name} {kind} [{','.join(map(str, vars(chosen).values()))}]"


@dataclass(frozen=True)
class Inputs:
    """Random numbers for some models; the first models' are the same, however many follow."""

    big: torch.Tensor
    small: torch.Tensor
    weights: torch.Tensor
    sums: torch.Tensor
    gradients: torch.Tensor


def inputs(case: Case, n_models: int) -> Inputs:
    def drawn(*shape: int) -> torch.Tensor:
        numbers = torch.empty(n_models, *shape, device="cuda", dtype=torch.bfloat16)
        for model in range(n_models):
            numbers[model] = torch.randn(shape, device="cuda", generator=generators[model])
        return numbers

    generators = [torch.Generator("cuda").manual_seed(model) for model in range(n_models)]
    h, size = case.height, 128 + 16 * 64 * 64
    gradients = torch.full((n_models, size), float("nan"), device="cuda")
    sums = torch.full((n_models, 64), float("nan"), device="cuda")
    big, small = drawn(BATCH, 2 * h, 2 * h, case.n_big), drawn(BATCH, h, h, case.n_small)
    return Inputs(big, small, drawn(size), sums, gradients)


def call(case: Case, given: Inputs, chosen: Division | None) -> Run:
    """The candidate on these inputs, or the present kernel: its output."""
    join, big, small, weights, rows = case.join, given.big, given.small, given.weights, given.gradients
    if case.what == "correlate":
        if chosen is None:
            return lambda: _written(rows, lambda: correlate(join, big, small, rows, "ieee"))
        assert isinstance(chosen, Shares)
        return lambda: _written(rows, lambda: correlate_by_copies(join, big, small, rows, chosen))
    down_ward = case.what == "down"
    sums = given.sums[:, : case.n_small if down_ward else case.n_big]
    more: dict[str, Any] = {"activate": True}
    if case.back:
        more = {"like": small if down_ward else big, "bias_gradient": sums}
    if isinstance(chosen, Tiles):
        return lambda: down_by_boxes(join, big, weights, chosen, **more)
    if chosen is not None:
        copied, image = (down_by_copies, big) if down_ward else (up_by_copies, small)
        return lambda: copied(join, image, weights, chosen, **more)
    if down_ward:
        return lambda: down(join, big, weights, "ieee", **more)
    return lambda: up(join, small, weights, "ieee", **more) if case.back else up_forward(join, small, weights, "ieee")


def _written(gradients: torch.Tensor, write: Callable[[], None]) -> torch.Tensor:
    write()
    return gradients


def truth(case: Case, given: Inputs, model: int) -> dict[str, torch.Tensor]:
    """What a model's outputs are in float64."""
    functions, cb, cs = torch.nn.functional, case.n_big, case.n_small
    big, small = (t[model].double().movedim(-1, 1) for t in (given.big, given.small))
    rows = given.weights[model].double()
    weight = rows[64 : 64 + 16 * cb * cs].view(4, 4, cb, cs).permute(3, 2, 0, 1).contiguous()
    if case.what == "correlate":
        leaf = weight.requires_grad_()
        (by_weight,) = torch.autograd.grad(functions.conv2d(big, leaf, stride=2, padding=1), leaf, small)
        return {"out": by_weight.permute(2, 3, 1, 0).flatten()}
    bias = rows[: cs if case.what == "down" else cb]
    added = None if case.back else bias
    if case.what == "down":
        result, like = functions.conv2d(big, weight, added, stride=2, padding=1), small
    else:
        result, like = functions.conv_transpose2d(small, weight, added, stride=2, padding=1), big
    if not case.back:
        return {"out": result.relu().movedim(1, -1)}
    result = result * (like > 0)
    return {"out": result.movedim(1, -1), "sum": result.sum((0, 2, 3))}


def check(variant: Variant) -> None:
    """Compile, compare with float64, compare bits in fleets of several sizes; one line of JSON."""
    case, chosen = variant[0], chosen_by(variant)
    seen: dict[int, dict[str, torch.Tensor]] = {}
    far, same, begin = 0.0, True, time.monotonic()
    for n_models in SIZES:
        given = inputs(case, n_models)
        run = call(case, given, chosen)
        shape = given.small.shape if case.what == "down" else given.big.shape
        poison = None if case.what == "correlate" else torch.full(shape, float("nan"), device="cuda").bfloat16()
        del poison  # its memory is what the output gets next
        out = run()
        torch.cuda.synchronize()
        if n_models == 1:
            print(f"compiled and run after {time.monotonic() - begin:.1f} s", file=sys.stderr, flush=True)
        size = 16 * case.n_big * case.n_small
        found = {"out": out[:, 64 : 64 + size] if case.what == "correlate" else out}
        if case.back and case.what != "correlate":
            found["sum"] = given.sums[:, : case.n_small if case.what == "down" else case.n_big]
        for model in {0, n_models // 2, n_models - 1}:
            for name, exact in truth(case, given, model).items():
                error = ((found[name][model].double() - exact).norm() / exact.norm()).item()
                far = max(far, error) if error == error else float("inf")
        first = {name: value.clone() for name, value in found.items()}
        found["out"] = run()[:, 64 : 64 + size] if case.what == "correlate" else run()
        torch.cuda.synchronize()
        same = same and all(torch.equal(first[name], value) for name, value in found.items())
        seen[n_models] = {name: value[: SIZES[1]].clone() for name, value in found.items()}
        del given, out, found, first, run
        torch.cuda.empty_cache()
    for n_models in SIZES[:2]:
        for name, value in seen[n_models].items():
            same = same and torch.equal(value, seen[SIZES[-1]][name][:n_models])
    print(json.dumps({"far": far, "same": same}))


def times(chosen: list[Variant]) -> None:
    """Every candidate in turns with the present kernel: one line of JSON a case, µs a model."""
    for case in dict.fromkeys(case for case, _ in chosen):
        given = inputs(case, SIZES[-1])
        runs = {title(one): call(case, given, chosen_by(one)) for one in chosen if one[0] == case}
        print(json.dumps({"begin": case.name}), flush=True)
        found = in_turns(runs)
        print(json.dumps({"case": case.name, "times": found}), flush=True)
        del given, runs
        torch.cuda.empty_cache()


def in_turns(runs: dict[str, Run], repeats: int = 4, rounds: int = 9) -> dict[str, list[float]]:
    """µs a model of some calls in a CUDA graph each, sorted."""
    graphs: dict[str, torch.cuda.CUDAGraph] = {}
    for name, run in runs.items():
        run()
        torch.cuda.synchronize()
        graphs[name] = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graphs[name]):
            for _ in range(repeats):
                run()
    found: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(rounds + 1):
        for name, graph in graphs.items():
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            graph.replay()
            end.record()
            end.synchronize()
            if turn:
                found[name].append(begin.elapsed_time(end) * 1000 / (repeats * SIZES[-1]))
    return {name: sorted(values) for name, values in found.items()}


def main() -> None:
    report: dict[str, Any] = {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
    begin, chosen = time.monotonic(), variants()
    with ThreadPoolExecutor(len(chosen)) as pool:
        checks = dict(zip(chosen, pool.map(_checked, chosen)))
    right = []
    for variant, outcome in checks.items():
        good = outcome.get("far", 1.0) < 5e-3 and outcome.get("same", False)
        right += [variant] if good else []
        if not good:
            print(f"NOT RIGHT: {title(variant)}: {str(outcome)[:400]}", flush=True)
    print(f"[{len(right)} of {len(chosen)} right after {time.monotonic() - begin:.0f} s]", flush=True)
    report["checks"] = {title(variant): outcome for variant, outcome in checks.items()}
    report["times"] = timed = _timed(right)
    print(f"[timed after {time.monotonic() - begin:.0f} s]")
    if "OUT" in os.environ:
        Path(os.environ["OUT"], "hopper.json").write_text(json.dumps(report, indent=1))
    print("µs a model, alone, median (least): ")
    for case in dict.fromkeys(case for case, _ in chosen):
        print(f"{case.name}: bytes {case.n_bytes / COPY_RATE * 1e6:.2f}")
        for name, values in timed.get(case.name, {}).items():
            print(f"    {values[len(values) // 2]:.3f} ({values[0]:.3f})  {name.removeprefix(case.name)}")


def _checked(variant: Variant) -> dict[str, Any]:
    number = variants().index(variant)
    try:
        command = [sys.executable, str(HERE), "check", str(number)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=CHECK_S, check=False)
    except subprocess.TimeoutExpired as late:
        said = late.stderr or b""
        return {"error": "timeout", "said": (said.decode() if isinstance(said, bytes) else said)[-300:]}
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "rror" in line]
        return {"error": (lines or done.stderr.splitlines())[:4], "said": done.stderr[-800:]}
    outcome: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return outcome


def _timed(right: list[Variant]) -> dict[str, dict[str, list[float]]]:
    """All in one process; where that dies, the case that it died in is left out and another one goes on."""
    found: dict[str, dict[str, list[float]]] = {}
    left = right
    for _ in range(3):
        if not left:
            break
        numbers = [str(variants().index(variant)) for variant in left]
        command = [sys.executable, str(HERE), "times", *numbers]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=TIME_S, check=False)
            said, failed = done.stdout, done.returncode != 0
        except subprocess.TimeoutExpired as late:
            output = late.stdout or b""
            said, failed = output.decode() if isinstance(output, bytes) else output, True
        lines = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
        found |= {line["case"]: line["times"] for line in lines if "case" in line}
        if not failed:
            break
        begun = {line["begin"] for line in lines if "begin" in line}
        print(f"timing ended early in {begun - set(found)}", flush=True)
        left = [variant for variant in left if variant[0].name not in begun]
    return found


if __name__ == "__main__":
    if len(sys.argv) > 2:
        picked = [variants()[int(number)] for number in sys.argv[2:]]
        check(picked[0]) if sys.argv[1] == "check" else times(picked)
    else:
        main()
