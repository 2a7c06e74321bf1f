"""Freed memory stays with a process that trains: its steps cause few page faults."""

import subprocess
import sys

import pytest

PROBE = """
import resource, sys
import torch
from unweave.training.memory import keep_freed_memory
kept = keep_freed_memory() if sys.argv[1] == "keep" else False
def step():
    for size in (12, 20, 16):
        torch.ones(size << 20)
for _ in range(10):
    step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(6):
    step()
print(int(kept), resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def probe(way: str) -> tuple[int, int]:
    done = subprocess.run([sys.executable, "-c", PROBE, way], capture_output=True, text=True, check=True)
    kept, faults = map(int, done.stdout.split())
    return kept, faults


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's own setting")
def test_freed_memory_is_found_again() -> None:
    kept, faults = probe("keep")
    if not kept:
        pytest.skip("another C library")
    assert faults < probe("leave")[1] / 5  # once in a while the heap grows by one more piece
