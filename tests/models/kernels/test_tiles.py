"""Kernels with the tiles that bf16 has on a card, under Triton's interpreter, beside float64."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed")

ROUNDED = 0.01
"""Distance of what is stored in bf16, or made of such values, where the interpreter rounds towards 0."""
SUMMED = 1e-6
"""Distance of sums in fp32 of products that are exact."""


@pytest.mark.parametrize(
    ("case", "kernel", "exact"),
    [
        ("first", "_first_two_backward", {"second weight", "first bias"}),
        pytest.param("first in colour", "_first_backward", {"second weight", "first bias"}, marks=pytest.mark.slow),
        pytest.param("up", "_up_resident", set(), marks=pytest.mark.slow),
        ("up, images in one tile", "_up_resident", set()),
        pytest.param("last", "_last_forward_one", {"loss"}, marks=pytest.mark.slow),
        pytest.param("last in colour", "_last_backward", set(), marks=pytest.mark.slow),
    ],
)
def test_kernels_with_tiles_of_a_card_are_right_to_the_rounding_of_bf16(
    case: str, kernel: str, exact: set[str]
) -> None:
    found = interpreted(case)
    assert kernel in found["launches"]
    far = found["far"]
    assert exact <= set(far)
    assert all(far[name] < (SUMMED if name in exact else ROUNDED) for name in far), far


def interpreted(case: str) -> dict[str, Any]:
    """A case in a process of its own: the interpreter is chosen when Triton is imported."""
    environment = os.environ | {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    script = Path(__file__).with_name("interpreted_tiles.py")
    command = [sys.executable, "-W", "ignore", str(script), case]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found
