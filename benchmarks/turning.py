"""What turns a linear β-VAE to its axes: the setting of z-table-3.4 with what its source leaves open set otherwise.

An exploration, and no verdict. A linear β-VAE on Synth. Lin. in NumPy alone, many restarts at once, with the printed
optimiser (Adam, 0.001), number of epochs (600) and β (0.0001): an independent form of what unweave trains.

python benchmarks/turning.py --ratios 1.5 --restarts 16                    # batches of 64, as unweave has them
python benchmarks/turning.py --ratios 1.5 --restarts 16 --batch 16         # smaller ones: more steps of as many epochs
python benchmarks/turning.py --ratios 1.5 --restarts 16 --weight 0.333     # a mean over the three columns
python benchmarks/turning.py --ratios 2 --restarts 4 --latents 10      # z-table-3.2: when the regime begins
"""

import argparse
import json
import math
import time
from dataclasses import dataclass

import numpy as np

from unweave.data.synthetic import SynthLin
from unweave.metrics.geometry.orthogonality import dto
from unweave.metrics.supervised.ds import ds

N_TRAINED, N_TESTED, EPOCHS, BETA, RATE = 40_000, 10_000, 600, 1e-4, 1e-3
MEMORY, SQUARES, SMALL = 0.9, 0.999, 1e-8
LOOK_EVERY, N_LOOKED, POLARISED = 500, 1_000, 0.03
"""Steps between looks at the regime, points that are looked at, and the largest Δ_KL of it."""


@dataclass(frozen=True)
class Setting:
    """What the source leaves open: the batch, the weight of the squared error's sum, and the initial weights."""

    batch: int
    weight: float
    init: str
    latents: int = 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ratios", type=float, nargs="+", default=[1.0, 1.2, 1.5, 2.0])
    parser.add_argument("--restarts", type=int, default=16)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--weight", type=float, default=1.0)
    parser.add_argument("--init", choices=("glorot", "pytorch"), default="glorot")
    parser.add_argument("--latents", type=int, default=2)
    parser.add_argument("--epochs", type=float, default=EPOCHS)
    given = parser.parse_args()
    setting = Setting(given.batch, given.weight, given.init, given.latents)
    for ratio in given.ratios:
        begin = time.process_time()
        tell(ratio, setting, *trained(ratio, setting, given.restarts, given.epochs), time.process_time() - begin)


def trained(ratio: float, setting: Setting, n: int, epochs: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean encoders (restart × 4 × latent, the last row a bias) and decoders (restart × latent × 3) after training, and
    the share of the training, in per cent, from which Δ_KL stays below 3 %."""
    points = SynthLin(ratio).load().examples(slice(0, N_TRAINED + N_LOOKED)).numpy().astype(np.float32)
    looked = np.concatenate([points[N_TRAINED:], np.ones((N_LOOKED, 1), np.float32)], axis=1)
    generator = np.random.default_rng(0)
    sizes = {"encoder": (3, 2 * setting.latents), "decoder": (setting.latents, 3)}
    weights = {name: _drawn(generator, setting.init, n, *size) for name, size in sizes.items()}
    steps = round(epochs * (N_TRAINED // setting.batch))
    first = {name: np.zeros_like(value) for name, value in weights.items()}
    second = {name: np.zeros_like(value) for name, value in weights.items()}
    ones, since = np.ones((n, setting.batch, 1), np.float32), np.zeros(n)
    for step in range(1, steps + 1):
        x = points[generator.integers(0, N_TRAINED, (n, setting.batch))]
        noise = generator.standard_normal((n, setting.batch, setting.latents), dtype=np.float32)
        slopes = _slopes(weights, x, noise, ones, setting)
        # θ ← θ − rate · m̂ / (√v̂ + ε)
        size = RATE * math.sqrt(1 - SQUARES**step) / (1 - MEMORY**step)
        for name, slope in slopes.items():
            first[name] += (1 - MEMORY) * (slope - first[name])
            second[name] += (1 - SQUARES) * (slope * slope - second[name])
            weights[name] -= size * first[name] / (np.sqrt(second[name]) + SMALL * math.sqrt(1 - SQUARES**step))
        if step % LOOK_EVERY == 0:
            since[_apart(looked @ weights["encoder"], setting.latents) >= POLARISED] = step + LOOK_EVERY
    means, maps = weights["encoder"][:, :, : setting.latents], weights["decoder"][:, : setting.latents]
    return means, maps, 100 * (1 - np.minimum(since, steps) / steps)


def _apart(heads: np.ndarray, latents: int) -> np.ndarray:
    """Δ_KL of every restart: how far ½ Σ (μ² − log σ² − 1) over latents in use is from the KL (Z, equation 3.38)."""
    mean, log_variance = heads[..., :latents], heads[..., latents:]
    variance = np.exp(log_variance)
    kl = (mean * mean + variance - log_variance - 1).mean(1) / 2
    used = mean.std(1) > 0.5
    return np.abs(kl.sum(1) - ((kl - variance.mean(1) / 2) * used).sum(1)) / kl.sum(1)


def _drawn(generator: np.random.Generator, init: str, n: int, rows: int, columns: int) -> np.ndarray:
    """Weights with their biases as a last row: Glorot's have none, PyTorch's are as large as the weights."""
    # an encoder's two heads are layers of their own
    fan_out = columns // 2 if rows == 3 else columns
    limit = math.sqrt(6 / (rows + fan_out)) if init == "glorot" else 1 / math.sqrt(rows)
    drawn = generator.uniform(-limit, limit, (n, rows + 1, columns)).astype(np.float32)
    if init == "glorot":
        drawn[:, rows] = 0
    return drawn


def _slopes(
    weights: dict[str, np.ndarray], x: np.ndarray, noise: np.ndarray, ones: np.ndarray, setting: Setting
) -> dict[str, np.ndarray]:
    """The gradient of the mean over a batch of weight · ‖x − x̂‖² + β KL."""
    seen = np.concatenate([x, ones], axis=2)
    heads = seen @ weights["encoder"]
    mean, log_variance = heads[..., : setting.latents], heads[..., setting.latents :]
    deviation = np.exp(log_variance / 2)
    code = np.concatenate([mean + deviation * noise, ones], axis=2)
    missed = (code @ weights["decoder"] - x) * (2 * setting.weight / setting.batch)
    back = missed @ weights["decoder"][:, : setting.latents].swapaxes(1, 2)
    scale = BETA / setting.batch
    # KL = ½ Σ (μ² + σ² − log σ² − 1)
    by_mean = back + scale * mean
    by_variance = back * noise * deviation / 2 + scale / 2 * (deviation * deviation - 1)
    by_heads = np.concatenate([by_mean, by_variance], axis=2)
    return {"encoder": seen.swapaxes(1, 2) @ by_heads, "decoder": code.swapaxes(1, 2) @ missed}


def tell(
    ratio: float, setting: Setting, encoders: np.ndarray, decoders: np.ndarray, share: np.ndarray, seconds: float
) -> None:
    """Print DtO, DS and the share of the training over restarts, on points that none was trained on."""
    import torch

    data = SynthLin(ratio).load()
    tested = data.examples(slice(N_TRAINED, N_TRAINED + N_TESTED)).numpy()
    factors = data.labels[N_TRAINED : N_TRAINED + N_TESTED]
    seen = np.concatenate([tested, np.ones((N_TESTED, 1))], axis=1)
    turned = [dto(torch.from_numpy(one @ one.T)[None].double()).score for one in decoders]
    scores = [ds(torch.from_numpy(seen @ one).float(), factors, seed=0).score for one in encoders]
    told = {"ratio": ratio, "batch": setting.batch, "weight": setting.weight, "init": setting.init, "n": len(decoders)}
    told |= {"latents": setting.latents}
    for name, values in (("DtO", turned), ("DS", scores), ("per cent polarised", share)):
        told |= {name: round(float(np.mean(values)), 3), f"{name} sd": round(float(np.std(values, ddof=1)), 3)}
    print(json.dumps(told | {"seconds": round(seconds)}), flush=True)


if __name__ == "__main__":
    main()
