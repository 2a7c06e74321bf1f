"""Draws a picture for every metric: what it gives to nine codes of one small world.

    python docs/make_metric_pictures.py            # all of them, a few minutes
    python docs/make_metric_pictures.py mig dci    # only these

The world has four factors of 3, 4, 6 and 8 values and 1,500 samples. The numbers go to ``images/scores.json`` too.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from unweave.evaluation.measure import measure
from unweave.evaluation.rows import find_rows
from unweave.metrics import METRICS
from unweave.plots.matrices import bars
from unweave.plots.save import to_png

SIZES = (3, 4, 6, 8)
N_SAMPLES = 1500
IMAGES = Path(__file__).parent / "metrics" / "images"


def world() -> tuple[np.ndarray, np.ndarray]:
    """Factors, and the same factors standardised."""
    rng = np.random.default_rng(0)
    factors = np.stack([rng.integers(0, size, N_SAMPLES) for size in SIZES], axis=-1)
    return factors, (factors - factors.mean(0)) / factors.std(0)


def codes() -> dict[str, np.ndarray]:
    """Nine codes, from ideal to empty; a little noise keeps ties away."""
    rng, ideal = np.random.default_rng(1), world()[1]
    ideal = ideal + 0.02 * rng.normal(size=ideal.shape)
    turn = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    pairwise = np.kron(np.eye(2), np.array([[1, -1], [1, 1]]) / np.sqrt(2))
    noise = rng.normal(size=(N_SAMPLES, 4))
    return {
        "ideal": ideal,
        "ideal + 4 of noise": np.c_[ideal, noise],
        "ideal + 1 dead": np.c_[ideal, np.zeros(N_SAMPLES)],
        "every latent twice": np.c_[ideal, ideal + 0.02 * rng.normal(size=ideal.shape)],
        "one factor missing": np.c_[ideal[:, :3], noise[:, 0]],
        "turned by 45° in pairs": ideal @ pairwise,
        "turned at random": ideal @ turn,
        "noise": noise,
        "constant": np.full((N_SAMPLES, 4), 0.3),
    }


def fleets() -> dict[str, np.ndarray]:
    """Five models each, for UDR: how much they agree."""
    rng, table = np.random.default_rng(2), codes()
    ideal, noise = table["ideal"], rng.normal(size=(5, N_SAMPLES, 4))

    def reordered() -> np.ndarray:
        return ideal[:, rng.permutation(4)] * rng.choice([-1, 1], 4)

    def turned() -> np.ndarray:
        return ideal @ np.linalg.qr(rng.normal(size=(4, 4)))[0]

    same_turn = table["turned at random"]
    return {
        "ideal, each in its own order": np.stack([reordered() for _ in range(5)]),
        "all turned in the same way": np.stack([same_turn] * 5),
        "each turned in its own way": np.stack([turned() for _ in range(5)]),
        "noise": noise,
    }


def posteriors() -> dict[str, np.ndarray]:
    """Mean codes with their variances beside them, for what asks about the noise of an encoder: four latents each."""
    ideal = codes()["ideal"]
    tables = {"4 active": 4, "3 active, 1 passive": 3, "2 active, 2 passive": 2, "collapsed": 0}
    found = {}
    for label, used in tables.items():
        passive = np.arange(4) >= used
        found[label] = np.stack(
            [np.where(passive, 0.02, 1.0) * ideal, np.broadcast_to(0.02 + 0.97 * passive, ideal.shape)]
        )
    now_and_then = np.broadcast_to(np.arange(N_SAMPLES)[:, None] % 2 * 0.9, ideal.shape) * (np.arange(4) == 3) + 0.02
    return found | {
        "3 active, 1 mixed": np.stack([ideal, now_and_then]),
        "no noise": np.stack([ideal, 0.0 * ideal]),
    }


def draw(name: str) -> dict[str, dict[str, float]]:
    """The picture of one metric; its numbers by code and part."""
    row = find_rows([name])[0]
    shown: dict[str, dict[str, float]] = {}
    noisy = "variance" in row.needs
    for label, table in (posteriors() if noisy else fleets() if "models" in row.needs else codes()).items():
        factors = world()[0] if "factors" in row.needs else None
        mean, variance = (table[0], table[1]) if noisy else (table, None)
        numbers = measure(mean, factors, variance=variance, metrics=[name], seeds=0).numbers
        shown[label] = {part: float(np.mean(number.value)) for part, number in numbers.items()}
    first = next(iter(next(iter(shown.values()))))
    values = [min(parts[first], 1e6) for parts in shown.values()]
    finite = [value if value < 1e6 else 0.0 for value in values]
    labels = [label if value < 1e6 else f"{label} (infinite)" for label, value in zip(shown, values)]
    to_png(bars(finite, labels, title=first.replace("_", " ")), IMAGES / f"{row.name}.png")
    return shown


def main(names: list[str]) -> None:
    file = IMAGES / "scores.json"
    IMAGES.mkdir(parents=True, exist_ok=True)
    known: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    for name in names or list(METRICS):
        known[name] = draw(name)
        print(name, flush=True)
        known = {name: known[name] for name in METRICS if name in known}
        text = json.dumps(known, indent=1, ensure_ascii=False).replace("Infinity", '"inf"')
        file.write_text(text + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
