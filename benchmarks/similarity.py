"""How fast similarity is measured, beside the direct way, in one run: ``python benchmarks/similarity.py``.

- ``cka``: linear CKA of all 15 × 15 pairs of layers of two conv VAEs, against Gram matrices recomputed for each pair;
- ``procrustes``: the same pairs, against the nuclear norm of the full activations;
- ``scores``: many layer snapshots against each other as one blocked product, with the time for the 30,659 snapshots
  (470 million scores) of the Bonheme thesis extrapolated from it.

``--examples 5000`` is the thesis's number. The direct way is timed on the 15 diagonal pairs and scaled up, or on all.
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
from unweave.metrics.similarity.cka import cka_matrix, inner_products, normalised
from unweave.metrics.similarity.layers import centred
from unweave.metrics.similarity.minibatch import minibatch_cka
from unweave.metrics.similarity.procrustes import procrustes_matrix
from unweave.models import VAE, Architecture

THESIS = 30_659


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
    model = VAE(Architecture((1, 64, 64)), "pytorch", seed).to(device)
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
    scores = cka_matrix(left, right, estimator="biased").scores
    for turn in range(2):
        ours.append(_seconds(lambda: cka_matrix(left, right, estimator="biased"), device))
        for i, j in timed[turn::2]:
            found: list[float] = []
            direct += _seconds(lambda i=i, j=j, found=found: found.append(direct_cka(left[i], right[j])), device)
            worst = max(worst, abs(found[0] - float(scores[i, j])))
    whole = direct * len(pairs) / len(timed)
    mini = _seconds(lambda: minibatch_cka(left, right, batch_size=min(n, 250)), device)
    mine = sum(ours) / len(ours)
    return {
        "examples": n, "features": sum(table.shape[1] for table in left), "pairs timed directly": len(timed),
        "direct, all pairs (s)": whole, "ours (s)": mine, "ratio": whole / mine, "largest difference": worst,
        "minibatch (s)": mini,
    }  # fmt: skip


def time_procrustes(n: int, widest: int, device: str) -> dict[str, Any]:
    left, right = activations(0, n, device), activations(1, n, device)
    kept = [place for place, table in enumerate(left) if 8 < table.shape[1] <= widest]
    chosen = [left[place] for place in kept], [right[place] for place in kept]
    ours = _seconds(lambda: procrustes_matrix(*chosen), device)
    scores = procrustes_matrix(*chosen).scores
    spent, rows = 0.0, []
    # one direct pair for each width: the wide ones take minutes
    for width in sorted({left[place].shape[1] for place in kept}):
        place = next(at for at, table in enumerate(chosen[0]) if table.shape[1] == width)
        x, y = (centred(table.double()) for table in (chosen[0][place], chosen[1][place]))
        found: list[float] = []
        direct = _seconds(
            lambda x=x, y=y, found=found: found.append(float(torch.linalg.svdvals(y.T @ x).sum())), device
        )
        mine = _seconds(lambda x=x, y=y: procrustes_matrix([x], [y]), device)
        rows.append({"features": width, "direct (s)": direct, "ours (s)": mine, "ratio": direct / mine,
                     "difference": abs(found[0] - float(scores[place, place]))})  # fmt: skip
        spent += direct
    total = sum(row["direct (s)"] for row in rows) / sum(row["ours (s)"] for row in rows)
    return {"examples": n, "layers": len(kept), "all pairs, ours (s)": ours, "by width": rows, "ratio": total}


def time_scores(n_snapshots: int, n: int, device: str) -> dict[str, Any]:
    """S × S scores from S Gram matrices of n examples, streamed: the entries do not matter for time."""
    entries = n * (n + 1) // 2
    # a block is drawn once and used again: in practice each is made from activations, 1/S of the work
    block = torch.randn(n_snapshots, 2**15, device=device)
    n_blocks = -(-entries // block.shape[1])

    def blocks(count: int) -> Iterator[torch.Tensor]:
        for _ in range(count):
            yield block

    torch.backends.cuda.matmul.allow_tf32 = True
    inner_products(blocks(2))
    seconds = _seconds(lambda: normalised(inner_products(blocks(n_blocks))), device)
    flops = 2.0 * n_snapshots**2 * n_blocks * block.shape[1]
    exact = block[:64].double() @ block[:64].double().T
    rounded = inner_products(blocks(1))[:64, :64]
    error = float((rounded - exact).abs().max() / exact.diagonal().mean())
    return {
        "snapshots": n_snapshots, "examples": n, "scores": n_snapshots**2 // 2, "seconds": seconds,
        "TFLOP/s": flops / seconds / 1e12, "tf32 error in units of a norm": error,
        f"extrapolated to {THESIS} snapshots (s)": seconds * (THESIS / n_snapshots) ** 2,
    }  # fmt: skip


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
