"""SIGKILL at random moments of every long command: nothing is lost, nothing doubled, every byte the same."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

COMMANDS = Path(__file__).with_name("kills.py")
STUDIES = Path(__file__).parents[2] / "benchmarks" / "study_kills.py"
HARM = ("lost", "doubled", "different", "failed", "damaged", "hung")


def assert_harmless(kills: int, script: Path, *options: str) -> None:
    # in a process of its own: it forks, and polars has threads, which a fork loses
    words = [sys.executable, str(script), *options, "--moments", str(kills)]
    given = subprocess.run(words, capture_output=True, text=True, check=False)
    assert given.stdout, given.stderr
    found: dict[str, Any] = json.loads(given.stdout)
    assert {name: count for name, count in found.items() if name in HARM and count} == {}
    assert found["kills"] == kills


@pytest.mark.parametrize("command", ["train", "fleet", "export"])
def test_a_command_killed_at_a_few_moments(command: str) -> None:
    assert_harmless(2, COMMANDS, command, "--seed", "5")


def test_a_study_killed_at_a_few_moments() -> None:
    assert_harmless(3, STUDIES, "--runs", "6", "--workers", "0", "--longest", "1.0", "--seed", "3")


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("command", "kills"), [("train", 50), ("fleet", 50), ("evaluate", 30), ("report", 25), ("export", 25)]
)
def test_a_command_killed_at_many_moments(command: str, kills: int) -> None:
    assert_harmless(kills, COMMANDS, command)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_study_with_workers_killed_at_many_moments() -> None:
    assert_harmless(24, STUDIES, "--runs", "20", "--workers", "2", "--longest", "10")


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_a_study_on_ray_killed_at_a_few_moments() -> None:
    pytest.importorskip("ray")
    assert_harmless(4, STUDIES, "--runs", "10", "--executor", "ray", "--longest", "20")
