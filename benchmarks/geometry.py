"""How fast geometry and intrinsic dimension are measured: ``PYTHONPATH=src python benchmarks/geometry.py``.

- ``dto``: DtO and IMA contrast of 1,000 examples × 10 latents of the conv decoder (bound: 3 s on two cores), beside
  one backward pass per output on a few examples, scaled up;
- ``dimension``: MLE and TwoNN of n × 4,096 points beside one brute-force neighbour search by scikit-learn.

Wall time and processor time are both given: on a machine that others use only the second is telling.
Numbers go to ``$OUT/geometry.json`` where OUT is set.
"""

import argparse
import json
import os
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from unweave import rng
from unweave.metrics.dimension.intrinsic import intrinsic
from unweave.metrics.geometry.ima import ima_contrast
from unweave.metrics.geometry.jacobian import decoder_gram
from unweave.metrics.geometry.orthogonality import dto
from unweave.models import VAE, Architecture


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", nargs="+", default=["dto", "dimension"])
    parser.add_argument("--examples", type=int, default=1000)
    parser.add_argument("--points", type=int, default=2000, help="10000 for the full comparison")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--chunks", type=int, nargs="+", default=[32])
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
    model = VAE(Architecture((1, 64, 64)), "pytorch", 0).requires_grad_(False)
    codes = rng.normal(0, rng.Purpose.EVALUATE, 0, n, 10)
    decoder_gram(model.decoder, codes[:64])
    found: dict[str, Any] = {"examples": n}
    for chunk in chunks:
        grams: list[torch.Tensor] = []
        found[f"Jacobians, {chunk} at a time"] = _spent(
            lambda chunk=chunk, grams=grams: grams.append(decoder_gram(model.decoder, codes, chunk=chunk))
        )
    found["DtO and IMA contrast"] = _spent(lambda: (dto(grams[0]), ima_contrast(grams[0])))
    few = 2
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


def time_dimension(n: int) -> dict[str, Any]:
    from sklearn.neighbors import NearestNeighbors

    hidden = rng.normal(0, rng.Purpose.EVALUATE, 0, n, 12)
    points = torch.tanh(hidden @ rng.normal(0, rng.Purpose.EVALUATE, 1, 12, 4096))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    dimension: list[Any] = []
    ours = _spent(lambda: dimension.append(intrinsic(points)))
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    search = NearestNeighbors(n_neighbors=21, algorithm="brute").fit(points.numpy())
    brute = _spent(lambda: search.kneighbors(points.numpy()))
    return {
        "points": n, "ours, MLE and TwoNN": ours, "scikit-learn, neighbours only": brute,
        "ratio of processor time": ours["cpu (s)"] / brute["cpu (s)"], "memory grown by (MiB)": grown / 1024,
        "dimension (MLE, TwoNN; true 12)": [dimension[0].score, dimension[0].two_nn],
    }  # fmt: skip


def _spent(call: Callable[[], Any]) -> dict[str, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    return {"wall (s)": time.perf_counter() - wall, "cpu (s)": time.process_time() - cpu}


if __name__ == "__main__":
    main()
