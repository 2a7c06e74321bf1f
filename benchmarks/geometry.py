"""How fast geometry and intrinsic dimension are measured: ``PYTHONPATH=src python benchmarks/geometry.py``.

- ``dto``: DtO and IMA contrast of 1,000 examples × 10 latents of the conv decoder (bound: 3 s on two cores), beside
  one backward pass per output on a few examples, scaled up;
- ``dimension``: MLE and TwoNN of n × 4,096 points beside one brute-force neighbour search: scikit-learn's where it is
  installed, and one matrix product with a partial sort.

Wall time and processor time are both given: on a machine that others use only the second is telling.
Numbers go to ``$OUT/geometry.json`` where OUT is set.
"""

import argparse
import importlib.util
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from unweave import rng
from unweave.metrics.dimension.intrinsic import intrinsic
from unweave.metrics.geometry.ima import ima_contrast
from unweave.metrics.geometry.jacobian import CHUNK, decoder_gram
from unweave.metrics.geometry.orthogonality import dto
from unweave.models import Architecture, Autoencoder

TURNS = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", nargs="+", default=["dto", "dimension"])
    parser.add_argument("--examples", type=int, default=1000)
    parser.add_argument("--points", type=int, default=2000, help="10000 for the full comparison")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--chunks", type=int, nargs="+", default=[CHUNK])
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    report: dict[str, Any] = {"settings": vars(chosen), "torch": torch.__version__}
    parts: dict[str, Callable[[], Any]] = {
        "dto": lambda: time_dto(chosen.examples, chosen.chunks),
        "dimension": lambda: time_dimension(chosen.points),
    }
    for name in chosen.parts:
        report[name] = parts[name]()
        print(name, json.dumps(report[name], indent=1), flush=True)
    if "OUT" in os.environ:
        Path(os.environ["OUT"], "geometry.json").write_text(json.dumps(report, indent=1))


def time_dto(n: int, chunks: list[int]) -> dict[str, Any]:
    model = Autoencoder(Architecture((1, 64, 64)), "pytorch", 0).requires_grad_(False)
    codes = rng.normal(0, rng.Purpose.EVALUATE, 0, n, 10)
    few_grams = decoder_gram(model.decoder, codes[:64])
    found: dict[str, Any] = {"examples": n}
    # the first assignment of a process imports SciPy's
    found["the first DtO of a process, 64 examples"] = _spent(lambda: dto(few_grams))
    passes = [codes[:CHUNK].repeat(11, 1)] * -(-n // CHUNK)
    for turn in range(TURNS):
        for chunk in chunks:
            call = lambda chunk=chunk: _both(decoder_gram(model.decoder, codes, chunk=chunk))  # noqa: E731
            found[f"{turn}: Jacobians, {chunk} at a time, DtO and IMA contrast"] = _spent(call)
        with torch.no_grad():
            call = lambda: [model.decoder(part) for part in passes]  # noqa: E731
            found[f"{turn}: eleven decodings of as many codes"] = _spent(call)
    few = 1
    backwards = _spent(
        lambda: [
            torch.autograd.functional.jacobian(lambda code: model.decoder(code[None]).flatten(), code)
            for code in codes[:few]
        ]
    )
    found[f"one backward pass per pixel, scaled up from {few} examples"] = {
        name: value * n / few for name, value in backwards.items()
    }
    return found


def _both(grams: torch.Tensor) -> None:
    dto(grams)
    ima_contrast(grams)


def time_dimension(n: int) -> dict[str, Any]:
    hidden = rng.normal(0, rng.Purpose.EVALUATE, 0, n, 12)
    points = torch.tanh(hidden @ rng.normal(0, rng.Purpose.EVALUATE, 1, 12, 4096))
    dimension: list[Any] = []
    before = _reset_peak()
    ours = _spent(lambda: dimension.append(intrinsic(points)))
    grown = _memory("VmHWM") - before
    brute = {"one product and a partial sort": _spent(lambda: _brute(points))}
    if importlib.util.find_spec("sklearn"):
        from sklearn.neighbors import NearestNeighbors

        search = NearestNeighbors(n_neighbors=21, algorithm="brute").fit(points.numpy())
        brute["scikit-learn"] = _spent(lambda: search.kneighbors(points.numpy()))
    return {
        "points": n, "ours, MLE and TwoNN": ours, "neighbours only": brute,
        "ratio of processor time": {name: ours["cpu (s)"] / spent["cpu (s)"] for name, spent in brute.items()},
        "memory on top of the points (MiB)": grown, "the points themselves (MiB)": points.nbytes / 2**20,
        "dimension (MLE, TwoNN; true 12)": [dimension[0].score, dimension[0].two_nn],
    }  # fmt: skip


def _brute(points: torch.Tensor) -> list[torch.Tensor]:
    squares = points.square().sum(1)
    return [
        torch.addmm(squares, part, points.T, alpha=-2.0).topk(21, largest=False).values for part in points.split(800)
    ]


def _reset_peak() -> float:
    """Memory in use; Linux then counts its peak anew."""
    Path("/proc/self/clear_refs").write_text("5")
    return _memory("VmRSS")


def _memory(name: str) -> float:
    """VmRSS or VmHWM, its peak, in MiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024


def _spent(call: Callable[[], Any]) -> dict[str, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    return {"wall (s)": time.perf_counter() - wall, "cpu (s)": time.process_time() - cpu}


if __name__ == "__main__":
    main()
