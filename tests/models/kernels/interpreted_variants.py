"""Run in a process of its own with Triton's interpreter: kernels of benchmarks/variants beside float64."""

import json
import os
import sys
from pathlib import Path

os.environ["TRITON_INTERPRET"] = "1"
sys.path.append(str(Path(__file__).parents[3] / "benchmarks" / "variants"))

import checks
import first_two_images
import last_two_images
import shared_columns
import torch
from bounds import watched  # beside this file
from interpreted import CASES  # it mends the interpreter too
from way import Way

assert CASES
BATCH = 5
"""No program's share divides it."""


def main() -> None:
    torch.manual_seed(5)
    checks.STORED = torch.float32
    first_two_images.FORWARD, first_two_images.BACKWARD = Way(64, 2, 4, 1), Way(64, 4, 4, 1)
    last_two_images.FORWARD, last_two_images.BACKWARD = Way(64, 2, 4, 1), Way(64, 4, 4, 1)
    last_two_images.IMAGES, last_two_images.PROGRAMS, last_two_images.MEET = 4, 3, 64
    for direction in ("down", "up"):
        shared_columns.WAYS |= {(direction, 32, 32): Way(64, 0, 4, 1), (direction, 16, 64): Way(64, 0, 4, 1)}
    cases = {
        "first two": lambda: checks.first_two(BATCH, 8),
        "last two": lambda: checks.last_two(BATCH, 8),
        "down": lambda: checks.columns("down", BATCH, 8, 32, 32),
        "down, images in one tile": lambda: checks.columns("down", BATCH, 4, 16, 64),
        "up": lambda: checks.columns("up", BATCH, 8, 32, 32),
        "up, images in one tile": lambda: checks.columns("up", BATCH, 4, 16, 64),
    }
    with watched() as launches:
        found = cases[sys.argv[1]]()
    print(json.dumps({"launches": sorted(launches), "far": found}))


if __name__ == "__main__":
    main()
