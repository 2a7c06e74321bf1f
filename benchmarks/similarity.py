"""How fast similarity is measured, beside the direct way, in one run: ``python benchmarks/similarity.py``.

- ``cka``: linear CKA of all 15 × 15 pairs of layers of two conv VAEs, against Gram matrices recomputed for each pair;
- ``procrustes``: the same pairs, against the nuclear norm of the full activations;
- ``scores``: many layer snapshots against each other as one blocked product, with the time for the 30,659 snapshots
  (470 million scores) of the Bonheme thesis extrapolated from it.

``--examples 5000`` is the thesis's number. The direct CKA is timed on the 15 diagonal pairs and scaled up, or on all.
The direct Procrustes is timed once for each width up to ``--direct-features``. ``scores`` needs a GPU to be itself:

    PYTHONPATH=src python benchmarks/similarity.py --parts scores --device cuda --examples 5000 --snapshots 8192

Numbers go to ``$OUT/similarity.json`` where OUT is set.
"""

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from unweave import rng
from unweave.metrics.similarity.cka import PIECE, cka_matrix, inner_products, normalised
from unweave.metrics.similarity.layers import centred
from unweave.metrics.similarity.minibatch import minibatch_cka
from unweave.metrics.similarity.procrustes import nuclear, reduced
from unweave.models import Architecture, Autoencoder

THESIS = 30_659
WIDTHS = (4096, 32768, 8192, 4096, 1024, 256, 10, 10, 10, 256, 1024, 4096, 8192, 32768, 4096)
"""Features of the input and the 14 layers of a conv VAE on 64 × 64 pixels."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=1024)
    parser.add_argument("--every-pair", action="store_true", help="time all 225 direct pairs, not the diagonal ones")
    parser.add_argument("--parts", nargs="+", default=["cka", "procrustes"], help="cka, procrustes, scores")
    parser.add_argument("--direct-features", type=int, default=8192, help="widest layer in the direct Procrustes")
    parser.add_argument("--snapshots", type=int, default=2048)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=2)
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    report: dict[str, Any] = {"settings": vars(chosen), "torch": torch.__version__}
    parts: dict[str, Callable[[], Any]] = {
        "cka": lambda: time_cka(chosen.examples, chosen.every_pair, chosen.device),
        "procrustes": lambda: time_procrustes(chosen.examples, chosen.direct_features, chosen.device),
        "scores": lambda: time_scores(chosen.snapshots, chosen.examples, chosen.device),
    }
    for name in chosen.parts:
        report[name] = parts[name]()
        print(name, json.dumps(report[name], indent=1), flush=True)
    if "OUT" in os.environ:
        Path(os.environ["OUT"], "similarity.json").write_text(json.dumps(report, indent=1))


@torch.no_grad()
def activations(seed: int, n: int, device: str) -> list[torch.Tensor]:
    """Input and the 14 layers of a conv VAE, as flat tables."""
    model = Autoencoder(Architecture((1, 64, 64)), "pytorch", seed).to(device)
    images = rng.uniform(0, rng.Purpose.EVALUATE, 0, n, 4096).view(n, 1, 64, 64).to(device)
    kept: list[torch.Tensor] = [images]
    trunk, decoder = model.encoder.trunk, model.decoder
    below = [*trunk.convolutions, trunk.dense, *model.encoder.heads.values()]
    above = [decoder.dense, decoder.spread, *decoder.deconvolutions]
    for layer in (*below, *above):
        layer.register_forward_hook(lambda _module, _given, out: kept.append(out))
    noise = rng.normal(seed, rng.Purpose.NOISE, 0, n, 10).to(device)
    sampled = model.code(images, noise).sampled
    place = len(kept)
    model.decoder(sampled)
    kept.insert(place, sampled)
    # every layer but the heads and the output is followed by a ReLU
    linear = {place - 2, place - 1, place, len(kept) - 1, 0}
    return [(table if at in linear else table.relu()).flatten(1) for at, table in enumerate(kept)]


def direct_cka(x: torch.Tensor, y: torch.Tensor) -> float:
    """Both Gram matrices anew, as code that works on one pair at a time does."""
    first, second = (table - table.mean(0) for table in (x, y))
    k, m = first @ first.T, second @ second.T
    return float((k * m).sum() / ((k * k).sum().sqrt() * (m * m).sum().sqrt()))


def time_cka(n: int, every_pair: bool, device: str) -> dict[str, Any]:
    left, right = activations(0, n, device), activations(1, n, device)
    pairs = [(i, j) for i in range(15) for j in range(15)]
    # the diagonal has every layer once on either side, so fifteen times its cost is that of the matrix
    timed = pairs if every_pair else [(i, i) for i in range(15)]
    direct, worst = 0.0, 0.0
    ours: list[float] = []
    scores: list[torch.Tensor] = []
    for turn in range(2):
        ours.append(_seconds(lambda: scores.append(cka_matrix(left, right, estimator="biased").scores), device))
        for i, j in timed[turn::2]:
            found: list[float] = []
            direct += _seconds(lambda i=i, j=j, found=found: found.append(direct_cka(left[i], right[j])), device)
            worst = max(worst, abs(found[0] - float(scores[0][i, j])))
    whole = direct * len(pairs) / len(timed)
    mini = _seconds(lambda: minibatch_cka(left, right, batch_size=min(n, 250)), device)
    mine = sum(ours) / len(ours)
    return {
        "examples": n, "features": sum(table.shape[1] for table in left), "pairs timed directly": len(timed),
        "direct, all pairs (s)": whole, "ours (s)": mine, "ratio": whole / mine, "largest difference": worst,
        "minibatch (s)": mini,
    }  # fmt: skip


def time_procrustes(n: int, widest: int, device: str) -> dict[str, Any]:
    """Ours against the direct way, width by width, and both added up over the 15 × 15 pairs.

    The direct way is charged for a pair what its narrower layer costs with one of its own width, and for widths beyond
    ``widest`` the cube of the ratio more: a pair of layers of 32,768 features would take hours.
    """
    left, right = activations(0, n, device), activations(1, n, device)
    widths = [table.shape[1] for table in left]
    direct, reducing, rows, factors = {}, {}, [], {}
    for width in sorted(set(widths)):
        place = widths.index(width)
        x, y = (centred(tables[place].double()) for tables in (left, right))
        kept: list[Any] = []
        reducing[width] = _seconds(lambda x=x, kept=kept: kept.append(reduced(x)), device)
        factors[width] = kept[0], reduced(y)
        mine = _seconds(lambda width=width, kept=kept: kept.append(nuclear(*factors[width])), device)
        row = {"features": width, "reduce one layer (s)": reducing[width], "ours, a pair (s)": mine}
        if width <= widest:
            found: list[float] = []
            call = lambda x=x, y=y, found=found: found.append(float(torch.linalg.svdvals(y.T @ x).sum()))  # noqa: E731
            direct[width] = _seconds(call, device)
            row |= {"direct, a pair (s)": direct[width], "difference": abs(found[0] - kept[1])}
        rows.append(row)
        print(row, flush=True)
    for width in set(widths) - set(direct):
        direct[width] = direct[max(direct)] * (width / max(direct)) ** 3
    pair = _pair_times(factors, n, device)
    ours = 2 * sum(reducing[width] for width in widths) + sum(pair[_both(p, q, n)] for p in widths for q in widths)
    whole = sum(direct[min(p, q)] for p in widths for q in widths)
    beyond = sum(min(p, q) > widest for p in widths for q in widths)
    known = whole - sum(direct[min(p, q)] for p in widths for q in widths if min(p, q) > widest)
    return {
        "examples": n, "by width": rows, "ours, all pairs (s)": ours, "direct, all pairs, at least (s)": whole,
        "ratio": whole / ours, "pairs extrapolated": beyond, "ratio if these took nothing": known / ours,
    }  # fmt: skip


def _both(first: int, second: int, n: int) -> tuple[int, int]:
    """Widths of a pair after reduction, the narrower first."""
    narrow, wide = sorted((min(first, n), min(second, n)))
    return narrow, wide


def _pair_times(factors: dict[int, Any], n: int, device: str) -> dict[tuple[int, int], float]:
    times: dict[tuple[int, int], float] = {}
    for p in factors:
        for q in factors:
            if _both(p, q, n) not in times:
                times[_both(p, q, n)] = _seconds(lambda p=p, q=q: nuclear(factors[p][0], factors[q][1]), device)
    return times


def time_scores(n_snapshots: int, n: int, device: str) -> dict[str, Any]:
    """S × S scores from the Gram matrices of S layers over n examples, streamed in blocks.

    One block of random numbers stands for all: the entries do not matter for time. Making the Gram matrices from
    activations is timed apart, on the widths of a conv VAE; S layers take S/15 times that.
    """
    block = torch.randn(n_snapshots, min(PIECE, n * (n + 1) // 2), device=device)
    n_blocks = -(-(n * (n + 1) // 2) // block.shape[1])

    def blocks(count: int) -> Iterator[torch.Tensor]:
        for _ in range(count):
            yield block

    exact = block[:64].double() @ block[:64].double().T
    flops = 2.0 * n_snapshots**2 * n_blocks * block.shape[1]
    found: dict[str, Any] = {"snapshots": n_snapshots, "examples": n, "scores": n_snapshots * (n_snapshots + 1) // 2}
    for name, rounded in {"float32": False, "tf32": True}.items() if device != "cpu" else {"float32": False}.items():
        torch.backends.cuda.matmul.allow_tf32 = rounded
        error = (inner_products(blocks(1))[:64, :64] - exact).abs().max() / exact.diagonal().mean()
        seconds = _seconds(lambda: normalised(inner_products(blocks(n_blocks))), device)
        found[name] = {
            "seconds": seconds, "TFLOP/s": flops / seconds / 1e12, "error in units of a norm": float(error),
            f"extrapolated to {THESIS} snapshots (s)": seconds * (THESIS / n_snapshots) ** 2,
        }  # fmt: skip
    torch.backends.cuda.matmul.allow_tf32 = False
    grams = _seconds(lambda: _grams(n, device), device)
    return found | {"Gram matrices of 15 layers (s)": grams, f"of {THESIS} (s)": grams * THESIS / 15}


def _grams(n: int, device: str) -> None:
    for width in WIDTHS:
        layer = torch.rand(n, width, device=device)
        layer @ layer.T


def _seconds(call: Callable[[], Any], device: str) -> float:
    if device != "cpu":
        torch.cuda.synchronize()
    # on one thread the processor's time tells more than the clock where others use the machine too
    clock = time.process_time if device == "cpu" and torch.get_num_threads() == 1 else time.perf_counter
    begin = clock()
    call()
    if device != "cpu":
        torch.cuda.synchronize()
    return clock() - begin


if __name__ == "__main__":
    main()
