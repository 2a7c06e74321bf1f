"""SIGKILL at random moments: after resuming nothing is lost, nothing doubled, every byte the same."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "study_kills.py"


HARM = ("lost", "doubled", "different", "failed", "hung")


def killed(*options: str) -> dict[str, Any]:
    # in a process of its own: it forks, and polars has threads, which a fork loses
    given = subprocess.run([sys.executable, str(SCRIPT), *options], capture_output=True, text=True, check=False)
    assert given.stdout, given.stderr
    found: dict[str, Any] = json.loads(given.stdout)
    return found


def test_killed_at_a_few_random_moments() -> None:
    found = killed("--moments", "4", "--runs", "10", "--workers", "0", "--longest", "1.5", "--seed", "3")
    assert found["kills"] == 4
    assert {harm: found[harm] for harm in HARM} == dict.fromkeys(HARM, 0)


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_killed_at_many_random_moments_with_workers() -> None:
    found = killed("--moments", "12", "--runs", "20", "--workers", "2", "--longest", "15")
    assert found["kills"] == 12
    assert {harm: found[harm] for harm in HARM} == dict.fromkeys(HARM, 0)


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_killed_at_a_few_random_moments_on_ray() -> None:
    pytest.importorskip("ray")
    found = killed("--moments", "4", "--runs", "10", "--executor", "ray", "--longest", "20")
    assert found["kills"] == 4
    assert {harm: found[harm] for harm in HARM} == dict.fromkeys(HARM, 0)
