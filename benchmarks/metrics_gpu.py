"""Every metric with its arrays on a GPU, beside the same on the CPU: do they agree, and where do the parts live?

    python benchmarks/metrics_gpu.py                     # about half a minute; leaves with 1 if anything differs
    python benchmarks/metrics_gpu.py --samples 10000     # the protocol's size
    python benchmarks/metrics_gpu.py --device cpu        # a dry run without a GPU

Needs PyTorch, numpy, safetensors and jaxtyping only; a metric that needs more is named and skipped.
"""

import argparse
import sys
import time
from typing import Any

import numpy as np
import torch

from unweave.metrics import METRICS, Metric

SIZES = (3, 6, 8, 5)
QUICK: dict[str, dict[str, Any]] = {
    "dci": {"n_rounds": 10},
    "downstream_trees": {"sizes": [100]},
    "downstream_logistic": {"sizes": [100]},
}
TOLERANCE = 1e-7
"""Sums run in another order on another device; nothing else may differ."""


def arrays(n_samples: int) -> dict[str, torch.Tensor]:
    rng = np.random.default_rng(0)
    factors = np.stack([rng.integers(0, size, n_samples) for size in SIZES], axis=1)
    turn = np.eye(4, 6) + 0.25 * np.random.default_rng(1).normal(size=(4, 6))
    codes = (factors - factors.mean(0)) / factors.std(0) @ turn + 0.3 * rng.normal(size=(n_samples, 6))
    models = np.stack([codes, -codes[:, ::-1], codes + 0.1 * codes**2])
    tables = {"codes": codes, "factors": factors, "variance": 0.0 * codes + 0.3, "models": models}
    return {name: torch.from_numpy(np.ascontiguousarray(table)) for name, table in tables.items()}


def call(row: Metric, tables: dict[str, torch.Tensor], fleet: bool = False) -> Any:
    names = [word for word in row.needs.split() if word in tables]
    chosen = [tables["models"] if fleet and name == "codes" else tables[name] for name in names]
    seed = {"seed": 0} if "seed" in row.needs.split() or "split" in row.needs.split() else {}
    return row.function(*chosen, **seed, **QUICK.get(row.function.__name__, {}))


def numbers(row: Metric, found: Any) -> np.ndarray:
    values = [getattr(found, name) for name in row.scores]
    return np.concatenate([np.atleast_1d(torch.as_tensor(v).cpu().double().numpy()) for v in values if v is not None])


def clocked(row: Metric, tables: dict[str, torch.Tensor], fleet: bool, device: torch.device) -> tuple[Any, float]:
    begin = time.perf_counter()
    found = call(row, tables, fleet)
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return found, time.perf_counter() - begin


def compare(row: Metric, here: dict[str, torch.Tensor], there: dict[str, torch.Tensor], fleet: bool) -> bool:
    device = there["codes"].device
    name = row.name + (", fleet" if fleet else "")
    try:
        expected, slow = clocked(row, here, fleet, torch.device("cpu"))
        call(row, there, fleet)
        found, fast = clocked(row, there, fleet, device)
    except ModuleNotFoundError as error:
        print(f"{name:44} SKIPPED: needs {error.name}, which is not installed here")
        return True
    one, other = numbers(row, expected), numbers(row, found)
    apart = float(np.max(np.abs(one - other)[np.isfinite(one)], initial=0.0))
    parts = [part for part in vars(found).values() if isinstance(part, torch.Tensor) and part.ndim]
    strays = sum(part.device.type != device.type for part in parts)
    left = bool(strays and not row.on_cpu)
    right = apart <= TOLERANCE * max(1.0, float(np.max(np.abs(one[np.isfinite(one)]), initial=0.0))) and not left
    where = f"CPU for {row.on_cpu}" if row.on_cpu else "stays there" if not strays else f"{strays} parts on the CPU"
    print(f"{name:44}{one[0]:10.5f}{other[0]:10.5f}{apart:10.1e}{slow:8.3f}{fast:8.3f} s  "
          f"{'ok  ' if right else 'NOT '}{where}")  # fmt: skip
    return right


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--samples", type=int, default=3_000)
    given = parser.parse_args()
    if given.device.startswith("cuda") and not torch.cuda.is_available():
        print("no GPU is visible here; --device cpu runs the same comparison without one", file=sys.stderr)
        return 2
    here = arrays(given.samples)
    there = {name: table.to(given.device) for name, table in here.items()}
    print(f"{given.samples} samples, 6 latents, 4 factors on {given.device}, PyTorch {torch.__version__}")
    print(f"{'metric':44}{'CPU':>10}{given.device:>10}{'apart':>10}{'CPU':>8}{given.device:>8}")
    kept = [compare(row, here, there, fleet) for row in METRICS.values() for fleet in (False, True)
            if not fleet or row.batched]  # fmt: skip
    print(f"{sum(kept)} of {len(kept)} as they should be")
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
