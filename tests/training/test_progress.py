"""Progress is shown now and then and at the end, with the rate since it was first seen."""

from types import SimpleNamespace

import pytest

from unweave.training import progress
from unweave.training.progress import duration
from unweave.training.running import StepReport


class Quiet:
    def terms(self) -> list[dict[str, float]]:
        return []


def test_it_is_shown_now_and_then_and_begins_anew_with_another_fleet(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, seen = SimpleNamespace(now=100.0), list[tuple[int, float]]()
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock.now)
    shown = progress._Shown(10.0, lambda report, rate: seen.append((report.done, rate)))
    for done in range(5, 41, 5):
        shown.watch(StepReport(done, 40, False, Quiet()))
        clock.now += 4.0
    # first seen at step 5; five steps in four seconds
    assert [done for done, _ in seen] == [20, 35, 40]
    assert [rate for _, rate in seen] == pytest.approx([1.25] * 3)
    seen.clear()
    shown.watch(StepReport(1, 7, False, Quiet()))
    assert seen == []
    shown.watch(StepReport(7, 7, False, Quiet()))
    assert [done for done, _ in seen] == [7]


def test_who_stands_still_is_shown_too_and_who_goes_back_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, seen = SimpleNamespace(now=100.0), list[tuple[int, float]]()
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock.now)
    shown = progress._Shown(10.0, lambda report, rate: seen.append((report.done, rate)))
    for done in (3, 3, 3, 8, 2, 6):
        shown.watch(StepReport(done, 40, False, Quiet()))
        clock.now += 10.0
    assert seen == [(3, 0.0), (3, 0.0), (8, pytest.approx(5 / 30)), (6, pytest.approx(0.4))]


def test_times_for_people() -> None:
    words = [duration(seconds) for seconds in (0.4, 59.9, 60.0, 3599.0, 3600.0, 7384.0, float("inf"))]
    assert words == ["0 s", "59 s", "1 min", "59 min", "1 h 0 min", "2 h 3 min", "?"]
