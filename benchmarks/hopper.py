"""Convolutions by a Hopper card's copy engine beside the present kernels: compile, check and time them in one call.

``PYTHONPATH=src python3 benchmarks/hopper.py`` takes about 90 s on a card. Every candidate is checked in a process of
its own, all side by side, so one that hangs or leaves its tensors ends alone; those that are right are then timed in
turns with the present kernel, at 256 models. ``ONLY=down,up`` in the environment keeps to names with one of these words
in them. Last, whole steps of 256 standard models before and after, the quickest candidates taken. Everything goes to
``$OUT`` where that is set; the last lines are a table.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any
from unittest.mock import patch

import torch
from boxes import down_by_boxes  # beside this file
from copies import Shares, correlate_by_copies, down_by_copies, down_by_pairs, up_by_copies

from unweave.models.kernels import decoder, encoder
from unweave.models.kernels.convolutions import Join, Tiles, correlate, down, up
from unweave.models.kernels.resident import up_forward

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SIZES = (1, 7, 256)
BATCH = 64
HERE = Path(__file__)
CHECK_S, SILENT_S, TIME_S, LAST_S = 44, 18, 30, 84
"""Seconds: for all checks, for one of them, for one process of timings, for everything."""
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
    Shares(16, 1, 3, 4), Shares(8, 1, 3, 4), Shares(16, 1, 8, 8), Shares(16, 2, 0, 8), Tiles(128, 0, 4, 4),
)  # fmt: skip
SMALL_DOWN: tuple[Division, ...] = (
    Shares(16, 2, 4, 4), Shares(8, 2, 4, 4), Shares(16, 1, 8, 4), Tiles(128, 0, 4, 4),
)  # fmt: skip
CANDIDATES: dict[Case, tuple[Division, ...]] = {
    Case("down", 16, 32, 32, False): LARGE_DOWN,
    Case("down", 16, 32, 32, True): LARGE_DOWN,
    Case("down", 8, 32, 64, False): SMALL_DOWN,
    Case("down", 8, 32, 64, True): SMALL_DOWN,
    Case("up", 16, 32, 32, False): (Shares(16, 3, 6, 8), Shares(8, 3, 6, 8)),
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
        numbers = torch.empty(n_models, *shape, device=DEVICE, dtype=torch.bfloat16)
        for model in range(n_models):
            numbers[model] = torch.randn(shape, device=DEVICE, generator=generators[model])
        return numbers

    generators = [torch.Generator(DEVICE).manual_seed(model) for model in range(n_models)]
    h, size = case.height, 128 + 16 * 64 * 64
    gradients = torch.full((n_models, size), float("nan"), device=DEVICE)
    sums = torch.full((n_models, 64), float("nan"), device=DEVICE)
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
    if chosen is not None:
        copied: Callable[..., torch.Tensor] = _copied(chosen) if down_ward else up_by_copies
        image = big if down_ward else small
        return lambda: copied(join, image, weights, chosen, **more)
    if down_ward:
        return lambda: down(join, big, weights, "ieee", **more)
    return lambda: up(join, small, weights, "ieee", **more) if case.back else up_forward(join, small, weights, "ieee")


def _copied(chosen: Division) -> Callable[..., torch.Tensor]:
    """Shares of no portions mean pairs of columns."""
    if isinstance(chosen, Tiles):
        return down_by_boxes
    return down_by_copies if chosen.slots else down_by_pairs


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


def check(chosen: list[Variant]) -> None:
    """Compile, compare with float64, compare bits in fleets of several sizes; lines of JSON, two a candidate."""
    given: dict[tuple[Case, int], Inputs] = {}
    for one in chosen:
        print(json.dumps({"begin": title(one)}), flush=True)
        outcome: dict[str, Any] = {"title": title(one)}
        try:
            for n_models in SIZES:
                key = one[0], n_models
                given[key] = given[key] if key in given else inputs(*key)
            outcome |= _compared(one, given)
        except Exception as error:  # a compiler's complaint; what the card does not forgive ends the process below
            outcome["error"] = str(error).splitlines()[:4]
        if DEVICE == "cuda":
            torch.cuda.synchronize()
        print(json.dumps(outcome), flush=True)


def _compared(one: Variant, inputs_of: dict[tuple[Case, int], Inputs]) -> dict[str, Any]:
    case, size = one[0], 16 * one[0].n_big * one[0].n_small
    far, same, begin, kept = 0.0, True, time.monotonic(), {}
    for n_models in SIZES:
        given = inputs_of[case, n_models]
        run, summed = call(case, given, chosen_by(one)), case.back and case.what != "correlate"

        def outputs(run: Run = run, given: Inputs = given, summed: bool = summed) -> dict[str, torch.Tensor]:
            given.sums.fill_(float("nan"))
            given.gradients.fill_(float("nan"))
            shape = given.small.shape if case.what == "down" else given.big.shape
            poison = torch.full(shape, float("nan"), device=DEVICE, dtype=torch.bfloat16)
            del poison  # its memory is what the output gets next
            out = run()
            found = {"out": out[:, 64 : 64 + size] if case.what == "correlate" else out}
            return found | (
                {"sum": given.sums[:, : case.n_small if case.what == "down" else case.n_big]} if summed else {}
            )

        found = {name: value.clone() for name, value in outputs().items()}
        for model in {0, n_models // 2, n_models - 1}:
            for name, exact in truth(case, given, model).items():
                error = ((found[name][model].double() - exact).norm() / exact.norm()).item()
                far = max(far, error) if error == error else float("inf")
        same = same and all(torch.equal(found[name], value) for name, value in outputs().items())
        kept[n_models] = {name: value[: SIZES[1]].clone() for name, value in found.items()}
    for n_models in SIZES[:2]:
        for name, value in kept[n_models].items():
            same = same and torch.equal(value, kept[SIZES[-1]][name][:n_models])
    return {"far": far, "same": same, "seconds": time.monotonic() - begin}


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


def steps(best: dict[str, str]) -> None:
    """Whole steps without and with the best candidates, by case, in turns; one line of JSON, µs a model-step.

    ``apart`` is the distance between both after three steps, over the way that they went. Without candidates, nothing
    is timed: it only compiles what a step needs.
    """
    from kernels import examples, experiments, fleet_of  # beside this file

    from unweave.training.fleet.stepper import Stepper

    n, data = SIZES[-1], examples()
    taken = {title(one): one for one in variants()}
    made: dict[str, Any] = {}
    rounds: dict[str, list[float]] = {}
    for name, used in {"present": {}, "copies": best}.items():
        if name == "copies" and not best:
            break
        fleet, source = fleet_of(experiments(n), data, "bf16")
        begun = fleet.parameters.clone()
        stepper = Stepper(fleet, source, lambda text: print(text, file=sys.stderr))
        with replaced({taken[one][0]: chosen_by(taken[one]) for one in used.values()}):
            for step in range(3):
                stepper(step, record=step == 0)
        torch.cuda.synchronize()
        made[name], rounds[name] = (stepper, begun, fleet.parameters.clone()), []
    for turn in range(5 if best else 0):
        for name, (stepper, _, _) in made.items():
            begin = time.perf_counter()
            for step in range(3 + 40 * turn, 3 + 40 * (turn + 1)):
                stepper(step, record=step % 50 == 0)
            torch.cuda.synchronize()
            rounds[name].append((time.perf_counter() - begin) / (40 * n) * 1e6)
    report: dict[str, Any] = {"steps": {name: sorted(values) for name, values in rounds.items()}}
    if best:
        (_, begun, one), (_, _, other) = made.values()
        report["apart"] = ((one - other).norm() / (one - begun).norm()).item()
    print(json.dumps(report))


@contextmanager
def replaced(best: dict[Case, Division | None]) -> Iterator[None]:
    """Inside, layers that have a candidate use it."""

    def at(what: str, join: Join, back: bool) -> Division | None:
        return best.get(Case(what, join.height, join.n_big, join.n_small, back))

    def downward(join: Join, big: torch.Tensor, weights: torch.Tensor, product: str, **named: Any) -> torch.Tensor:
        chosen = at("down", join, named.get("like") is not None)
        if chosen is None:
            return down(join, big, weights, product, **named)
        named.pop("later", None)
        return _copied(chosen)(join, big, weights, chosen, **named)

    def upward(join: Join, small: torch.Tensor, weights: torch.Tensor, product: str, **named: Any) -> torch.Tensor:
        chosen = at("up", join, named.get("like") is not None)
        if not isinstance(chosen, Shares):
            return up(join, small, weights, product, **named)
        named.pop("later", None)
        return up_by_copies(join, small, weights, chosen, **named)

    def forward(join: Join, small: torch.Tensor, weights: torch.Tensor, product: str) -> torch.Tensor:
        chosen = at("up", join, False)
        if not isinstance(chosen, Shares):
            return up_forward(join, small, weights, product)
        return up_by_copies(join, small, weights, chosen, activate=True)

    def correlated(join: Join, big: torch.Tensor, small: torch.Tensor, rows: torch.Tensor, product: str) -> None:
        chosen = at("correlate", join, True)
        if not isinstance(chosen, Shares):
            return correlate(join, big, small, rows, product)
        return correlate_by_copies(join, big, small, rows, chosen)

    with (
        patch.object(encoder, "down", downward), patch.object(encoder, "up", upward),
        patch.object(encoder, "correlate", correlated), patch.object(decoder, "down", downward),
        patch.object(decoder, "up_forward", forward), patch.object(decoder, "correlate", correlated),
    ):  # fmt: skip
        yield


def paper() -> None:
    """Every candidate in Gluon worked out on a CPU, for a few images: ``hopper.py paper``."""
    global SIZES, BATCH
    sys.path.append(str(HERE.parent.parent / "tests" / "models" / "kernels"))
    import copies
    from on_paper import worked_out

    SIZES, BATCH = (1, 2, 3), 12
    worked_out(copies)
    check([one for one in variants() if isinstance(chosen_by(one), Shares)])


def main() -> None:
    report: dict[str, Any] = {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
    begin, chosen = time.monotonic(), variants()
    warm = _own("steps", "{}")
    parts = [chosen[i : i + 4] for i in range(0, len(chosen), 4)]
    with ThreadPoolExecutor(len(parts)) as pool:
        checks = {name: outcome for part in pool.map(_checked, parts) for name, outcome in part.items()}
    right = []
    for variant in chosen:
        outcome = checks[title(variant)]
        good = outcome.get("far", 1.0) < 5e-3 and outcome.get("same", False)
        right += [variant] if good else []
        if not good:
            print(f"NOT RIGHT: {title(variant)}: {str(outcome)[:400]}", flush=True)
    print(f"[{len(right)} of {len(chosen)} right after {time.monotonic() - begin:.0f} s]", flush=True)
    report["checks"] = checks
    report["times"] = timed = _timed(right)
    print(f"[timed after {time.monotonic() - begin:.0f} s]", flush=True)
    quickest = {case: min(found, key=lambda name: found[name][len(found[name]) // 2]) for case, found in timed.items()}
    report["quickest"] = {case: name for case, name in quickest.items() if not name.endswith("present")}
    report["whole"] = _ended(warm, max(1.0, LAST_S - (time.monotonic() - begin)))
    if not report["whole"].get("error"):
        whole = _own("steps", json.dumps(report["quickest"]))
        report["whole"] = _ended(whole, max(1.0, LAST_S - (time.monotonic() - begin)))
    print(f"[steps after {time.monotonic() - begin:.0f} s]")
    if "OUT" in os.environ:
        Path(os.environ["OUT"], "hopper.json").write_text(json.dumps(report, indent=1))
    print("µs a model, alone, median (least): ")
    for case in dict.fromkeys(case for case, _ in chosen):
        print(f"{case.name}: bytes {case.n_bytes / COPY_RATE * 1e6:.2f}")
        for name, values in timed.get(case.name, {}).items():
            print(f"    {values[len(values) // 2]:.3f} ({values[0]:.3f})  {name.removeprefix(case.name)}")
    print("whole steps:", str(report["whole"])[:600])


def _own(what: str, *given: str) -> subprocess.Popen[str]:
    """This script in a process of its own, its output in a pipe."""
    command = [sys.executable, str(HERE), what, *given]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _ended(process: subprocess.Popen[str], seconds: float) -> dict[str, Any]:
    """The last line that a process said, or how it failed."""
    try:
        said, complaint = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        return {"error": "timeout"}
    if process.returncode:
        return {"error": [line for line in complaint.splitlines() if "rror" in line][:4], "said": complaint[-800:]}
    outcome: dict[str, Any] = json.loads(said.splitlines()[-1])
    return outcome


def _checked(chosen: list[Variant]) -> dict[str, dict[str, Any]]:
    """What came of some candidates; where one ends their process, another one goes on behind it."""
    found: dict[str, dict[str, Any]] = {}
    end, left = time.monotonic() + CHECK_S, chosen
    while left:
        said, complaint = _until_silent(end, "check", *(str(variants().index(one)) for one in left))
        lines = [json.loads(line) for line in said.splitlines() if line.startswith("{") and line.endswith("}")]
        found |= {line["title"]: line for line in lines if "title" in line}
        begun = [line["begin"] for line in lines if "begin" in line] or [title(left[0])]
        if begun[-1] not in found:
            words = [line for line in complaint.splitlines() if "rror" in line]
            found[begun[-1]] = {"error": words[-3:], "said": complaint[-500:]}
        left = [one for one in left if title(one) not in found]
        if time.monotonic() > end - 8:
            found |= {title(one): {"error": "no time was left"} for one in left}
            break
    return found


def _until_silent(end: float, *given: str) -> tuple[str, str]:
    """What this script says in a process of its own, which is ended when it has said nothing for long: it hangs."""
    with NamedTemporaryFile("w+") as said, NamedTemporaryFile("w+") as complaint:
        command = [sys.executable, str(HERE), *given]
        process = subprocess.Popen(command, stdout=said, stderr=complaint, text=True)
        text, heard = "", time.monotonic()
        while process.poll() is None and time.monotonic() < min(end, heard + (SILENT_S if text else 2 * SILENT_S)):
            time.sleep(0.2)
            before, text = text, Path(said.name).read_text()
            heard = heard if text == before else time.monotonic()
        ended = process.poll()
        process.kill()
        how = "error: silent for too long" if ended is None else f"error: ended with {ended}"
        return Path(said.name).read_text(), f"{Path(complaint.name).read_text()}\n{how}"


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
        lines = [json.loads(line) for line in said.splitlines() if line.startswith("{") and line.endswith("}")]
        found |= {line["case"]: line["times"] for line in lines if "case" in line}
        if not failed:
            break
        begun = {line["begin"] for line in lines if "begin" in line}
        print(f"timing ended early in {begun - set(found)}", flush=True)
        left = [variant for variant in left if variant[0].name not in begun]
    return found


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["check", *numbers]:
            check([variants()[int(number)] for number in numbers])
        case ["times", *numbers]:
            times([variants()[int(number)] for number in numbers])
        case ["paper"]:
            paper()
        case ["steps", best]:
            steps(json.loads(best))
        case _:
            main()
