"""Whether a study is at work, and what it has cost, in words."""

import os
import socket
from pathlib import Path

import polars as pl
import pytest

from unweave.sealed import sealed
from unweave.studies.cost import cost_of, words_of
from unweave.studies.leases import born
from unweave.studies.record import read_progress


@pytest.mark.parametrize(
    ("changes", "alive"),
    [({}, True), ({"born": "1"}, False), ({"pid": 2**22 - 1}, False), ({"host": "elsewhere"}, True)],
)
def test_a_study_is_alive_while_its_process_is(changes: dict[str, object], alive: bool, tmp_path: Path) -> None:
    noted = {"ended": 3, "seconds": 1.5, "host": socket.gethostname(), "pid": os.getpid(), "born": born(os.getpid())}
    (tmp_path / "studies").mkdir()
    (tmp_path / "studies" / "one.progress.json").write_text(sealed(noted | changes))
    assert read_progress(tmp_path, "one")["alive"] is alive


def test_costs_are_said_for_each_kind_of_device() -> None:
    assert words_of(()) == "no time was noted with these runs"
    assert cost_of(pl.DataFrame({"id": ["a"]})) == ()
    table = pl.DataFrame({"cost.device": ["cpu", "cuda", "cpu"], "cost.seconds": [1800.0, 3600.0, None]})
    on_cpu = "0.50 core-hours on cpu for 1 model, 48 such models a day"
    on_gpu = "1.00 GPU-hours on cuda for 1 model, 24 such models a day"
    assert words_of(cost_of(table)) == f"{on_cpu}; {on_gpu}"
    shared = table.with_columns(pl.Series("cost.share", [None, 0.57, None]))
    assert words_of(cost_of(shared)) == f"{on_cpu}; {on_gpu}, 57% of the card in use"
