"""The history: rows of groups, fetched now and then; columns by name; both formats of its file."""

import csv
import io
import math
import sys
from pathlib import Path

import pytest
import torch

from unweave.runs.folder import RunFolder
from unweave.training import history
from unweave.training.engine import Rows
from unweave.training.history import History, Recording, history_file, read_history, write_history

NAMES = ["loss", "kl", "kl_0", "kl_1", "mean_0", "mean_1"]
SMALL = History(NAMES, [0, 50], torch.arange(12.0).view(2, 6))


def test_columns_and_latents_by_name() -> None:
    assert len(SMALL) == 2
    assert SMALL.terms == ["loss", "kl"]
    assert SMALL.column("kl").tolist() == [1.0, 7.0]
    assert SMALL.latent("mean").tolist() == [[4.0, 5.0], [10.0, 11.0]]
    for asked in ("nothing", "loss", "variance_of_mean"):
        with pytest.raises(KeyError, match="no latent statistic"):
            SMALL.latent(asked)
    with pytest.raises(KeyError, match="no column 'beta'; it has loss, kl, kl_0"):
        SMALL.column("beta")
    assert SMALL.to_polars().columns == ["step", *NAMES]
    assert SMALL.to_polars()["mean_1"].to_list() == [5.0, 11.0]


def test_six_names_are_shown_and_more_are_hinted_at() -> None:
    assert repr(SMALL) == f"History: 2 rows of 6 columns ({', '.join(NAMES)})"
    more = History([*NAMES, "mean_2"], [0], torch.zeros(1, 7))
    assert repr(more) == f"History: 1 row of 7 columns ({', '.join(NAMES)}, …)"


def rows_of(step: int) -> list[Rows]:
    return [
        Rows(["loss"], torch.tensor([[step + 0.1], [step + 0.2]])),
        Rows(["loss", "kl"], torch.full((1, 2), float(step))),
    ]


def test_rows_are_fetched_when_there_are_many_and_nothing_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "PENDING", 3)
    recording, waiting = Recording(), []
    for step in range(0, 35, 5):
        recording.add(step, rows_of(step))
        waiting.append(len(recording.pending[0]))
    assert waiting == [1, 2, 0, 1, 2, 0, 1]
    found = recording.of(0, 1)
    assert (found.columns, found.steps) == (["loss"], [0, 5, 10, 15, 20, 25, 30])
    torch.testing.assert_close(found.values()[:, 0], torch.arange(0, 35, 5) + 0.2)
    assert recording.of(1, 0, before=10).values().tolist() == [[0.0, 0.0], [5.0, 5.0]]
    assert recording.of(1, 0, before=0).columns == ["loss", "kl"]
    assert len(recording.of(1, 0, before=0)) == 0
    other = Recording()
    other.restore(recording.tensors(), recording.columns)
    other.add(35, rows_of(35))
    assert other.of(1, 0).steps[-2:] == [30, 35]
    assert other.of(1, 0).values()[-2:].tolist() == [[30.0, 30.0], [35.0, 35.0]]


def test_nothing_recorded_is_an_empty_history() -> None:
    assert Recording().of(0, 0).columns == []
    again = Recording()
    again.restore(Recording().tensors(), [])
    assert len(again.of(0, 0)) == 0
    again.add(0, rows_of(0))
    assert again.of(0, 0).steps == [0]


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_both_formats_come_back(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = RunFolder(tmp_path)
    with monkeypatch.context() as without:
        if kind == "csv":
            without.setitem(sys.modules, "polars", None)
        write_history(folder, SMALL)
    assert folder.names("history.") == [f"history.{kind}"]
    found = read_history(folder)
    assert (found.columns, found.steps) == (NAMES, [0, 50])
    assert torch.equal(found.values(), SMALL.values())
    write_history(folder, History(["loss"]))
    assert len(read_history(folder)) == 0


def test_who_has_no_pandas_is_told_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ModuleNotFoundError, match=r"run: pip install pandas, or take to_polars\(\)"):
        SMALL.to_pandas()


ODD = torch.tensor([0.1, -1e-30, math.inf, -math.inf, math.nan, 0.0, -0.0, 3.0e20, 1 / 3, 16777217.0])


@pytest.mark.parametrize(
    "given",
    [
        History(["a, b", "c"], list(range(0, 500, 50)), torch.stack([ODD, ODD.flip(0)], 1)),
        History(["loss"], [0, 10**12], torch.zeros(2, 1)),
    ],
)
def test_without_polars_histories_are_what_the_csv_module_writes(
    given: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["step", *given.columns])
    writer.writerows([step, *row] for step, row in zip(given.steps, given.rows.tolist()))
    assert history_file(given) == ("history.csv", text.getvalue())
