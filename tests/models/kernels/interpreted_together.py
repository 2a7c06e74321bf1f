"""Run in a process of its own with Triton's interpreter: kernels with a card's tiles, their distance from float64."""

import json
import os
import sys

os.environ["TRITON_INTERPRET"] = "1"

from dataclasses import replace

import torch
from against_float64 import first, forward, inner, last  # beside this file
from bounds import watched
from interpreted import CASES  # it mends the interpreter too

from unweave.models.kernels import resident, together

assert CASES


def main() -> None:
    torch.manual_seed(5)
    for table in (together.TUNED, resident.TUNED):
        for key, tiles in table.items():
            table[key] = replace(tiles, run=4)
    cases = {
        "down 16": lambda: inner("down", 16, 32, 32), "up 8": lambda: inner("up", 8, 32, 64),
        "up 4": lambda: inner("up", 4, 64, 64), "down 16 forward": lambda: forward("down", 16, 32, 32),
        "up 16 forward": lambda: forward("up", 16, 32, 32), "up 8 forward": lambda: forward("up", 8, 32, 64),
        "first": lambda: first(1), "first in colour": lambda: first(3),
        "last": lambda: last(1), "last in colour": lambda: last(3),
    }  # fmt: skip
    with watched() as launches:
        found = {name: cases[name]() for name in sys.argv[1].split(",")}
    print(json.dumps({"launches": sorted(launches), "far": found}))


if __name__ == "__main__":
    main()
