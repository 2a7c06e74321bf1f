"""Claims: one holder at a time, through kills, other machines and clocks that jump."""

import json
import multiprocessing
import os
import threading
import time
from pathlib import Path

import pytest

from unweave.studies import leases
from unweave.studies.leases import Holder, Holders


def test_a_run_has_one_holder_at_a_time(tmp_path: Path) -> None:
    with Holder(tmp_path) as one, Holder(tmp_path) as other:
        assert one.take("a")
        assert one.take("a")
        assert not other.take("a")
        assert other.take("b")
        assert set(Holders(tmp_path).running()) == {"a", "b"}
        one.release("a")
        assert other.take("a")
    assert Holders(tmp_path).running() == {}
    assert not list((tmp_path / "claims").iterdir())
    assert not list((tmp_path / "holders").iterdir())


def test_a_lease_that_another_removed_in_between_is_not_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = leases._leases

    def removed(folder: Path, run_id: str) -> list[tuple[int, str]]:
        for path in folder.iterdir():
            path.unlink()
        return there(folder, run_id)

    with Holder(tmp_path) as holder:
        monkeypatch.setattr(leases, "_leases", removed)
        assert not holder.take("a")
        monkeypatch.undo()
        assert not holder.held
        assert holder.take("a")


def die_holding(home: Path) -> None:
    holder = Holder(home).__enter__()
    holder.take("a")
    os._exit(9)


def test_a_killed_holder_is_succeeded_at_once(tmp_path: Path) -> None:
    process = multiprocessing.get_context("fork").Process(target=die_holding, args=(tmp_path,))
    process.start()
    process.join()
    assert list((tmp_path / "claims").iterdir())
    assert Holders(tmp_path).running() == {}
    with Holder(tmp_path) as holder:
        assert holder.take("a")
        assert [path.name for path in (tmp_path / "claims").iterdir()] == ["a~1"]


def elsewhere(home: Path, beat: int) -> None:
    """A holder on another machine, as its file looks from here."""
    (home / "holders").mkdir(exist_ok=True)
    said = {"host": "far", "place": "far/1", "pid": 7, "born": "1", "beat": beat}
    (home / "holders" / "token").write_text(json.dumps(said))


def test_a_holder_elsewhere_is_dead_when_its_file_stops_beating(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [100.0]
    monkeypatch.setattr(leases.time, "monotonic", lambda: clock[0])
    (tmp_path / "claims").mkdir()
    (tmp_path / "claims" / "a~0").symlink_to("token")
    elsewhere(tmp_path, 0)
    with Holder(tmp_path, patience=60.0) as holder:
        for beat in range(1, 4):
            assert not holder.take("a")
            clock[0] += 59
            elsewhere(tmp_path, beat)  # it lives
        assert not holder.take("a")
        clock[0] += 59
        assert not holder.take("a")
        # a wall clock that jumps by a year changes the time of the file, and nothing else
        os.utime(tmp_path / "holders" / "token", (1, 1))
        assert not holder.take("a")
        clock[0] += 2
        assert holder.take("a")


def test_a_holder_that_was_taken_for_dead_notices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "BEAT", 0.02)
    with Holder(tmp_path) as holder:
        assert not holder.lost
        holder.file.unlink()
        until = time.monotonic() + 10
        while not holder.lost and time.monotonic() < until:
            time.sleep(0.01)
        assert holder.lost


def test_of_many_who_succeed_a_dead_holder_one_wins(tmp_path: Path) -> None:
    (tmp_path / "claims").mkdir()
    for round_number in range(20):
        (tmp_path / "claims" / f"r{round_number}~3").symlink_to("gone")
    winners: list[list[str]] = [[] for _ in range(6)]
    barrier = threading.Barrier(6)

    def race(place: int) -> None:
        with Holder(tmp_path) as holder:
            barrier.wait()
            winners[place] = [f"r{n}" for n in range(20) if holder.take(f"r{n}")]
            barrier.wait()

    threads = [threading.Thread(target=race, args=(place,)) for place in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    won = [name for own in winners for name in own]
    assert len(won) == len(set(won))
    # a draw is possible, and asked for again by whoever waits
    assert len(won) >= 10


def test_sweeping_removes_the_dead_only(tmp_path: Path) -> None:
    with Holder(tmp_path) as holder:
        holder.take("a")
        (tmp_path / "claims" / "b~0").symlink_to("gone")
        assert [path.name for path in Holders(tmp_path).sweep(dry_run=True)] == ["b~0"]
        assert (tmp_path / "claims" / "b~0").is_symlink()
        Holders(tmp_path).sweep()
        assert [path.name for path in (tmp_path / "claims").iterdir()] == ["a~0"]
