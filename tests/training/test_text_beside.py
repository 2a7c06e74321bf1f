"""Histories as text, here and in processes of their own: always what the csv module writes."""

import csv
import io
import math
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from unweave.runs.folder import RunFolder
from unweave.training import history, text_beside
from unweave.training.history import History, history_file
from unweave.training.rows_as_text import as_text
from unweave.training.text_beside import AsText, beside

ODD = torch.tensor([0.1, -1e-30, math.inf, -math.inf, math.nan, 0.0, -0.0, 3.0e20, 1 / 3, 16777217.0])
HISTORIES = [
    History(["a, b", "c"], list(range(0, 500, 50)), torch.stack([ODD, ODD.flip(0)], 1)),
    History(["loss"], [0, 10**12], torch.zeros(2, 1)),
    History(["loss"]),
    *[History(["loss", "kl", "kl_0"], list(range(n)), torch.randn(n, 3)) for n in (1, 7, 5_000)],
]


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without polars, where any number of numbers is worth processes, of which it has two."""
    monkeypatch.setitem(sys.modules, "polars", None)
    monkeypatch.setattr(text_beside, "WORTH_IT", 1)
    monkeypatch.setattr(text_beside, "usable_cores", lambda: 2)


def by_csv(given: History) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["step", *given.columns])
    writer.writerows([step, *row] for step, row in zip(given.steps, given.rows.tolist()))
    return text.getvalue().encode()


def written(as_text: AsText) -> list[bytes]:
    with ThreadPoolExecutor(6) as pool:
        files = list(pool.map(lambda one: history_file(one, as_text), HISTORIES * 3))
    assert {name for name, _ in files} == {"history.csv"}
    return [content if isinstance(content, bytes) else content.encode() for _, content in files]


def test_histories_are_what_csv_writes() -> None:
    assert written(as_text) == [by_csv(one) for one in HISTORIES] * 3


def test_they_are_in_processes_too() -> None:
    with beside(10**6) as elsewhere:
        assert elsewhere is not as_text
        assert written(elsewhere) == [by_csv(one) for one in HISTORIES] * 3


@pytest.mark.parametrize("victims", [1, 2])
def test_and_where_somebody_ends_these(victims: int, monkeypatch: pytest.MonkeyPatch) -> None:
    started, plain = [], text_beside._started

    def start() -> object:
        process = plain()
        started.append(process)
        if len(started) <= victims:
            process.kill()
            process.wait()
        return process

    monkeypatch.setattr(text_beside, "_started", start)
    with beside(10**6) as elsewhere:
        assert written(elsewhere) == [by_csv(one) for one in HISTORIES] * 3
    assert len(started) == 2
    assert all(process.returncode is not None for process in started)


def test_no_process_is_started_for_little(monkeypatch: pytest.MonkeyPatch) -> None:
    with beside(0) as here:
        assert here is as_text
    monkeypatch.setattr(text_beside, "usable_cores", lambda: 1)
    with beside(10**6) as here:
        assert here is as_text


def test_nor_where_none_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def full() -> object:
        asked.append(1)
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(text_beside, "_started", full)
    with beside(10**6) as elsewhere:
        assert written(elsewhere) == [by_csv(one) for one in HISTORIES] * 3
    assert asked


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    history.write_history(RunFolder(tmp_path), HISTORIES[-1])
    found = history.read_history(RunFolder(tmp_path))
    assert found.steps == HISTORIES[-1].steps
    assert torch.equal(found.values(), HISTORIES[-1].values())
