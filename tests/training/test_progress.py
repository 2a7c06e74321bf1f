"""Progress is shown now and then and at the end, with the rate since it was first seen."""

import io
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


class Two:
    def terms(self) -> list[dict[str, float]]:
        return [{"loss": 1.5}, {"loss": 2.5}, {"other": 9.0}]


@pytest.mark.parametrize(
    ("done", "rate", "left"),
    [(40, 2.0, "30 s"), (40, 0.0, "?"), (100, 0.0, "0 s"), (100, 2.0, "0 s"), (40, 0.5, "2 min")],
)
def test_a_line_tells_how_far_and_how_long(done: int, rate: float, left: str) -> None:
    out = io.StringIO()
    progress._say(out, "two", StepReport(done, 100, True, Two()), rate)
    a_day = 2 * rate * 86400 / 100
    assert out.getvalue() == (
        f"two: step {done} of 100, 2 models, {2 * rate:,.0f} model-steps/s, {a_day:,.1f} models a day, mean loss 2.00,"
        f" {left} left\n"
    )


def test_a_run_that_is_done_when_first_seen_is_shown_with_a_rate_of_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, seen = SimpleNamespace(now=0.0), list[tuple[int, float]]()
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock.now)
    shown = progress._Shown(10.0, lambda report, rate: seen.append((report.done, rate)))
    shown.watch(StepReport(0, 9, False, Quiet()))
    shown.watch(StepReport(9, 9, False, Quiet()))  # in no time at all
    assert seen == [(9, pytest.approx(9 / 1e-9))]
    seen.clear()
    progress._Shown(10.0, lambda report, rate: seen.append((report.done, rate))).watch(StepReport(9, 9, False, Quiet()))
    assert seen == [(9, 0.0)]


def test_a_bar_moves_where_there_is_a_terminal() -> None:
    moved: list[dict[str, object]] = []
    bar = SimpleNamespace(update=lambda task, **given: moved.append(given))
    progress._move(bar, 0, StepReport(3, 9, False, Two()), 1.0)
    assert (moved[0]["completed"], moved[0]["total"]) == (3, 9)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_has_a_bar_and_a_file_has_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    texts = []
    for out in (Terminal(), io.StringIO()):
        with progress.progress("two", out) as watch:
            for done in (0, 9):
                watch(StepReport(done, 9, False, Two()))
        texts.append(out.getvalue())
    assert "step 9 of 9" not in texts[0]
    assert "\x1b[" in texts[0]
    assert texts[1].startswith("two: step 9 of 9, 2 models")
