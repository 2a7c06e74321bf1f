"""The fleet's table: µs per model-step, 300,000-step models a day and share of the memory floor, case by case.

``PYTHONPATH=src python benchmarks/fleet.py`` runs every case on a GPU (on a CPU, ``unweave bench train`` is the thing);
``--cases colour factor`` keeps to some. ``$OUT/fleet.json`` gets all numbers.
"""

import argparse
import dataclasses
import json
import os
import time
from pathlib import Path
from typing import Any

import torch

from unweave.data.micro import Micro
from unweave.models import OBJECTIVES
from unweave.models.networks import NETWORKS
from unweave.recipes.pace import pace, pictures
from unweave.training.experiment import Experiment, Plan

CASES: dict[str, dict[str, Any]] = {
    "standard": {"ways": ("eager", "alone", "graph", "fleet")},
    "colour": {"channels": 3},
    "2×2 kernels": {"network": "conv_2x2"},
    "factor": {"objective": "factor_vae"},
    "factor as in the study": {"objective": "factor_vae", "options": {"protocol": "study"}},
    "128 models": {"models": 128},
    "tf32": {"precision": "tf32", "models": 128},
    "fp32": {"precision": "fp32", "models": 128},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", nargs="+", default=list(CASES))
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    report: dict[str, Any] = {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
    for name in chosen.cases:
        begin = time.monotonic()
        found, floor = measured(**CASES[name], rounds=chosen.rounds)
        report[name] = {"floor_us": floor, "ways": [dataclasses.asdict(one) for one in found]}
        for one in found:
            spread = f"{one.fastest:.1f}–{one.slowest:.1f}"
            print(f"{name:24s} {one.way:6s} {one.models:4d} models {one.microseconds:9.1f} µs ({spread})"
                  f" {one.models_a_day:8.0f} a day, {one.share_of_floor:.1%} of {floor:.1f} µs"
                  f" [{time.monotonic() - begin:.0f} s]", flush=True)  # fmt: skip
        torch.cuda.empty_cache()
    if "OUT" in os.environ:
        Path(os.environ["OUT"], "fleet.json").write_text(json.dumps(report, indent=1))


def measured(
    *, rounds: int, objective: str = "beta_vae", network: str = "conv", channels: int = 1, precision: str = "bf16",
    models: int = 256, ways: tuple[str, ...] = ("fleet",), options: dict[str, Any] | None = None,
) -> Any:  # fmt: skip
    """One case."""
    base = Experiment(
        Micro(), OBJECTIVES[objective](**(options or {})), NETWORKS[network](), steps=1_000_000,
        plan=Plan("cuda", 8, precision),
    )  # fmt: skip
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision != "fp32"
    return pace(base, pictures(channels).to("cuda"), models=models, ways=ways, rounds=rounds)


if __name__ == "__main__":
    main()
