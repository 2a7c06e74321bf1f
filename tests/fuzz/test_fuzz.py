"""A slice of the fuzzer; `make fuzz` tries ten thousand cases."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from unweave import cli

FUZZER = Path(__file__).parent / "fuzzer.py"
N_CASES, BEGIN = 20, 20_070


def test_no_case_of_a_slice_breaks_its_word(tmp_path: Path) -> None:
    # in a process of its own: it forks, and polars has threads, which a fork loses
    state = tmp_path / "fuzz.jsonl"
    words = ["--from", f"{BEGIN}", "--cases", f"{BEGIN + N_CASES}", "--seed", "0", "--state", str(state)]
    told = subprocess.run([sys.executable, str(FUZZER), *words], capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stdout + told.stderr[-3000:]
    assert json.loads(state.read_text().splitlines()[-1])["case"] >= BEGIN + N_CASES - 20


def test_every_command_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FUZZER.parent))
    cases = importlib.import_module("cases")
    assert {command.words.split()[0] for command in cases.COMMANDS} == set(cli.COMMANDS)
