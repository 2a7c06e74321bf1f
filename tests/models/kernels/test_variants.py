"""Kernels of benchmarks/variants, which wait for a card, under Triton's interpreter, beside float64."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "kernels"),
    [
        ("first two", {"_two_forward", "_two_backward"}),
        ("last two", {"_two_forward", "_two_backward"}),
        ("down", {"_down_shared"}),
        ("down, images in one tile", {"_down_shared"}),
        ("up", {"_up_shared"}),
        ("up, images in one tile", {"_up_shared"}),
    ],
)
def test_variants_are_right_to_the_rounding_of_fp32(case: str, kernels: set[str]) -> None:
    environment = os.environ | {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    script = Path(__file__).with_name("interpreted_variants.py")
    command = [sys.executable, "-W", "ignore", str(script), case]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert kernels <= set(found["launches"])
    assert all(far < 2e-6 for far in found["far"].values()), found["far"]
