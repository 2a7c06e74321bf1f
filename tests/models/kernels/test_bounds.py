"""No kernel leaves its tensors: the cases of the other files are watched too (``bounds.py``); here, what they miss."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

pytestmark = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed")

CONV = {"_first_forward", "_down", "_up", "_matmul", "_last_forward_one", "_last_backward", "_correlate", "_add_up"}
CODE = {"_code", "_code_backward", "_totals", "_weigh", "_statistics"}
MAPPED = {"_down", "_up", "_taps", "_pad", "_first_forward", "_first_backward", "_correlate", "_add_up"}


def watched(*cases: str) -> dict[str, Any]:
    """What cases say, in a process of its own: the interpreter is chosen when Triton is imported."""
    script = Path(__file__).with_name("interpreted_bounds.py")
    command = [sys.executable, "-W", "ignore", str(script), ",".join(cases)]
    environment = os.environ | {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_a_kernel_that_leaves_its_tensors_is_caught_and_the_rehearsal_of_a_fleet_does_not() -> None:
    found = watched("planted", "altered")
    said = found["planted"]
    assert "_copy reads 4 bytes outside of given, which has 124" in said["reads"]
    assert "_copy writes 4 bytes outside of out, which has 124" in said["writes"]
    assert "_copy reads 252 bytes outside of given, which has 4" in said["expanded"]
    assert "_hinted tells the compiler an untrue tt.divisibility of 4" in said["untrue hint"]
    assert said["inside"] == said["true hint"] == ""
    assert set(found["altered"]) == CONV | CODE | {"_first_backward"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "kernels"),
    [
        ("stored", CONV | CODE | {"_first_backward", "_masks"}),
        ("dense", {"_matmul", "_loss", "_update", "_update_bias"} | CODE),
        ("mapped", MAPPED),
        ("draws", {"_words", "_shuffled"}),
    ],
)
def test_other_kernels_stay_inside(case: str, kernels: set[str]) -> None:
    assert set(watched(case)[case]) == kernels


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_one_number_at_the_end_of_mapped_memory_is_enough() -> None:
    script = Path(__file__).with_name("on_the_edge.py")
    command = [sys.executable, "-W", "ignore", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["slope"]
    assert found["places"]
    assert "illegal memory access" in found["planted"], "the edge is none"
