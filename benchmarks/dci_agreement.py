"""Does the fast DCI rank representations as scikit-learn's trees do, and how much faster is it?

    python benchmarks/dci_agreement.py --representations 50 --samples 1000 --out agreement.json

Every representation is a linear or bent mixture of random factors with noise, from nearly ideal to hopeless.
"""

import argparse
import json
import time

import numpy as np
from scipy.stats import spearmanr

from unweave.metrics.supervised.dci import Dci, dci


def main() -> None:
    arguments = _arguments()
    rows = []
    for seed in range(arguments.representations):
        codes, factors = representation(seed, arguments.samples, tuple(arguments.sizes), arguments.latents)
        row: dict[str, float] = {"seed": seed}
        for backend in ("fast", "sklearn"):
            start = time.perf_counter()
            row |= _scores(backend, dci(codes, factors, backend=backend), time.perf_counter() - start)
        rows.append(row)
        print(json.dumps({key: round(value, 4) for key, value in row.items()}), flush=True)
    report = summary(rows)
    print(json.dumps(report, indent=1))
    if arguments.out:
        with open(arguments.out, "w") as file:
            json.dump({"settings": vars(arguments), "rows": rows, "summary": report}, file, indent=1)


def representation(seed: int, n_samples: int, sizes: tuple[int, ...], n_latents: int) -> tuple[np.ndarray, np.ndarray]:
    """Codes and factors: how much is mixed, bent and noisy depends on the seed."""
    rng = np.random.default_rng(seed)
    factors = np.stack([rng.integers(size, size=n_samples) for size in sizes], axis=1)
    truth = (factors / (np.array(sizes) - 1) - 0.5) * 3.4
    mixing = np.eye(len(sizes), n_latents) + rng.normal(size=(len(sizes), n_latents)) * rng.choice([0, 0.1, 0.3, 1.0])
    codes = truth @ mixing
    codes = codes + rng.choice([0, 0.5]) * np.sin(2 * codes[:, rng.permutation(n_latents)])
    return codes + rng.normal(size=codes.shape) * rng.uniform(0.02, 0.8) * rng.random(n_latents), factors


def summary(rows: list[dict[str, float]]) -> dict[str, float]:
    """Rank correlation and differences of D, C and I; the ratio of times."""
    found: dict[str, float] = {"representations": len(rows)}
    for score in ("disentanglement", "completeness", "informativeness"):
        fast, slow = (np.array([row[f"{backend}_{score}"] for row in rows]) for backend in ("fast", "sklearn"))
        found[f"{score}_spearman"] = float(spearmanr(fast, slow).statistic)
        found[f"{score}_mean_difference"] = float(np.abs(fast - slow).mean())
        found[f"{score}_largest_difference"] = float(np.abs(fast - slow).max())
    found["speedup"] = float(sum(row["sklearn_seconds"] for row in rows) / sum(row["fast_seconds"] for row in rows))
    return found


def _scores(backend: str, found: Dci, seconds: float) -> dict[str, float]:
    return {
        f"{backend}_disentanglement": found.disentanglement,
        f"{backend}_completeness": found.completeness,
        f"{backend}_informativeness": found.informativeness,
        f"{backend}_seconds": seconds,
    }


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--representations", type=int, default=50)
    parser.add_argument("--samples", type=int, default=1000, help="two thirds are fitted, one third is tested")
    parser.add_argument("--sizes", type=int, nargs="+", default=[3, 4, 6, 5], help="values of each factor")
    parser.add_argument("--latents", type=int, default=6)
    parser.add_argument("--out", default="")
    return parser.parse_args()


if __name__ == "__main__":
    main()
