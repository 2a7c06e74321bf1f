"""A run folder opens as before or as after, whatever fails in between; its list notices what happens to itself."""

import hashlib
import json
import multiprocessing
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO

import pytest
from faults import Faults, Killed, failing, no_space
from writers import write_many

from unweave import files
from unweave.runs import lock
from unweave.runs.folder import WEIGHTS, DamagedFile, RunFolder
from unweave.runs.sums import SUMS, read_sums, write_sums

ACTIONS: dict[str, tuple[Callable[[RunFolder], object], dict[str, bytes | None]]] = {
    "replace": (lambda folder: folder.write("a.json", b"new"), {"a.json": b"new", "b/c.json": b"other"}),
    "add": (lambda folder: folder.write("d/e.json", b"new"), {"d/e.json": b"new"}),
    "remove": (lambda folder: folder.remove("a.json", "b/c.json"), {"a.json": None, "b/c.json": None}),
}


@pytest.mark.parametrize("error", [no_space, Killed], ids=["full", "killed"])
@pytest.mark.parametrize("action", ACTIONS)
def test_every_single_fault_leaves_the_folder_as_before_or_as_after(tmp_path: Path, action: str, error) -> None:
    act, changes = ACTIONS[action]
    place = 0
    while True:
        place += 1
        folder = RunFolder(tmp_path / f"{place}")
        folder.write("a.json", b"old")
        folder.write("b/c.json", b"other")
        before = _opened(folder)
        wanted = {name: found for name, found in (before | changes).items() if found is not None}
        with failing(place, error) as faults, suppress(OSError, Killed):
            act(folder)
        found = _opened(folder)
        assert found in (before, wanted), place
        act(folder)  # and it can be done again, and is then done
        assert _opened(folder) == wanted
        with folder.locked():
            assert not list(folder.path.rglob(".*.part"))
        subprocess.run(["sha256sum", "--quiet", "-c", SUMS], cwd=folder.path, check=bool(wanted))
        if faults.count < place:
            break
    assert place > 15


def _opened(folder: RunFolder) -> dict[str, bytes]:
    return {name: RunFolder(folder.path).read(name) for name in RunFolder(folder.path).names()}


def test_a_reader_sees_the_old_content_or_the_new_one_at_every_instant(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.write("a.json", b"old")
    seen = set()

    def look(faults: Faults) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(faults, "hit", lambda name: None)
            seen.add(RunFolder(tmp_path).read("a.json"))

    with failing(0, Killed) as faults:
        faults.hit = lambda name: look(faults)  # type: ignore[method-assign]
        folder.write("a.json", b"new")
    assert seen == {b"old", b"new"}


def test_a_list_of_version_0_1_0_is_read_and_goes_on(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.write("a.json", b"1")
    content = (tmp_path / SUMS).read_text()
    (tmp_path / SUMS).write_text(content.partition("\n")[2])
    assert folder.read("a.json") == b"1"
    folder.write("b.json", b"2")
    assert (tmp_path / SUMS).read_text().startswith("#list ")
    assert folder.names() == ["a.json", "b.json"]
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / SUMS).touch()
    assert RunFolder(tmp_path / "empty").sums() == {}


def test_every_flipped_bit_of_the_list_and_every_cut_is_noticed(tmp_path: Path) -> None:
    whole = write_sums({"config.json": "0" * 64, "measures/mig-01.json": "a" * 64}, {"config.json": "b" * 64}).encode()
    read_sums(whole)
    for place in range(8 * len(whole)):
        content = bytearray(whole)
        content[place // 8] ^= 1 << place % 8
        with pytest.raises(ValueError, match=r"."):
            read_sums(bytes(content))
    for length in range(1, len(whole)):
        with pytest.raises(ValueError, match=r"."):
            read_sums(whole[:length])
    (tmp_path / SUMS).write_bytes(whole[:-1])
    with pytest.raises(DamagedFile, match="SHA256SUMS is damaged: its last line is cut short"):
        RunFolder(tmp_path).sums()


NAMES = [
    "../x",
    "a/../../x",
    "/etc/passwd",
    "",
    "a//b",
    "a/",
    ".",
    "./a",
    "a\\b",
    "a\0b",
    "checkpoints/../../x",
    "a\nb",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_leads_out_is_refused_before_anything_is_touched(tmp_path: Path, name: str) -> None:
    folder, victim = RunFolder(tmp_path / "run"), tmp_path / "x"
    victim.write_text("mine")
    folder.write("config.json", "{}")
    content = (folder.path / SUMS).read_bytes()
    for act in (lambda: folder.write(name, b""), lambda: folder.remove("config.json", name)):
        with pytest.raises(ValueError, match="is no plain name"):
            act()
    assert (folder.path / SUMS).read_bytes() == content
    if name and "\n" not in name:
        (folder.path / SUMS).write_text(write_sums({"config.json": "0" * 64, name: "1" * 64}))
        with pytest.raises(DamagedFile, match=r"SHA256SUMS is damaged: .* is no plain name"):
            folder.names("checkpoints/")
    assert victim.read_text() == "mine"


def test_links_are_not_followed(tmp_path: Path) -> None:
    folder, outside = RunFolder(tmp_path / "run"), tmp_path / "outside"
    folder.write("measures/a.json", b"{}")
    folder.write("b.json", b"{}")
    (folder.path / "measures").rename(outside)
    (folder.path / "measures").symlink_to(outside)
    for act in (
        lambda: folder.read("measures/a.json"),
        lambda: folder.write("measures/a.json", b"new"),
        lambda: folder.remove("measures/a.json"),
        lambda: folder.list_file("measures/a.json"),
    ):
        with pytest.raises(ValueError, match="is a link"):
            act()
    assert (outside / "a.json").read_bytes() == b"{}"
    (folder.path / "b.json").rename(tmp_path / "b")
    (folder.path / "b.json").symlink_to(tmp_path / "b")
    with pytest.raises(ValueError, match="is a link"):
        folder.read("b.json")
    assert RunFolder(folder.path, follow_links=True).read("b.json") == b"{}"


def test_new_files_begin_to_count_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, replaced = RunFolder(tmp_path), os.replace

    def replace(one: Path, other: Path) -> None:
        if other.name == "b":
            raise OSError("no space left")
        replaced(one, other)

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", replace)
        with pytest.raises(OSError, match="no space left"):
            folder.write_new({"a": "1", "b": b"2"})
    assert folder.names() == []
    folder.write_new({"a": "1", "b": b"2"})
    assert [folder.read(name) for name in folder.names()] == [b"1", b"2"]
    folder.write_new({"a": "3", "c": "4"})
    folder.write_new({})
    assert [folder.read(name) for name in folder.names()] == [b"3", b"2", b"4"]


def test_a_linked_lock_costs_its_target_nothing(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "run").mkdir()
    for name in (".lock", ".writing"):
        (tmp_path / "run" / name).symlink_to(tmp_path / "mine")
    folder = RunFolder(tmp_path / "run")
    with pytest.raises(OSError, match="symbolic links"):
        folder.write("a.json", b"")
    with pytest.raises(OSError, match="symbolic links"), folder.locked():
        pytest.fail("a link was locked")
    assert (tmp_path / "mine").read_text() == "mine"


def test_a_pipe_is_no_file(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.write("a.json", b"")
    (tmp_path / "a.json").unlink()
    os.mkfifo(tmp_path / "a.json")
    with pytest.raises(ValueError, match="no regular file"):
        folder.read("a.json")
    (tmp_path / "a.json").unlink()
    (tmp_path / "a.json").mkdir()
    with pytest.raises(ValueError, match="no regular file"):
        folder.read("a.json")


def test_writers_side_by_side_lose_nothing(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    crew = [context.Process(target=write_many, args=(str(tmp_path), writer)) for writer in range(4)]
    for process in crew:
        process.start()
    for process in crew:
        process.join()
    folder = RunFolder(tmp_path)
    assert len(folder.names("measures/")) == 120
    for writer in range(4):
        for number in range(30):
            assert folder.read_json(f"measures/{writer}-{number}.json") == [writer, number]
    assert folder.read_json("shared.json")[1] == 29
    assert sorted(path.name for path in tmp_path.iterdir()) == [SUMS, "measures", "shared.json"]


def test_a_lock_that_went_with_its_folder_is_none_any_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    others, ask = [], lock._or_refused

    def ask_late(file: IO[bytes], path: Path) -> None:
        if not others:
            path.unlink()
            others.append(path.open("wb"))
            ask(others[0], path)
        ask(file, path)

    monkeypatch.setattr(lock, "_or_refused", ask_late)
    with pytest.raises(BlockingIOError, match="another process"), RunFolder(tmp_path / "run").locked():
        pytest.fail("two hold one folder")
    others[0].close()


def test_writing_does_not_wait_for_the_long_lock_and_may_be_nested(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    with folder.locked():
        folder.write("a.json", b"1")
        with pytest.raises(BlockingIOError, match=rf"another process \({os.getpid()}\)"), RunFolder(tmp_path).locked():
            pytest.fail("held twice")
        command = "import sys; from unweave.runs.folder import RunFolder; RunFolder(sys.argv[1]).write('b.json', b'2')"
        subprocess.run([sys.executable, "-c", command, str(tmp_path)], check=True)
    assert folder.names() == ["a.json", "b.json"]


def test_torn_files_go_when_a_folder_is_taken(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.write("checkpoints/a", b"1")
    for torn in (tmp_path / ".a.12.part", tmp_path / "checkpoints" / ".b.13.part"):
        torn.write_bytes(b"half")
    with folder.locked():
        assert not list(tmp_path.rglob("*.part"))


def test_files_of_other_tools_can_be_listed(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    (tmp_path / "table.csv").write_text("a,b\n")
    folder.list_file("table.csv")
    assert folder.read("table.csv") == b"a,b\n"


def test_weights_may_be_left_behind(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.write("model.safetensors", b"weights")
    folder.leave_weights()
    assert folder.trained
    assert json.loads(folder.read("weights.json"))["bytes"] == 7
    assert not (tmp_path / "model.safetensors").exists()


def test_a_neighbour_that_is_a_link_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    (tmp_path / f".a.{os.getpid()}-{threading.get_ident()}.part").symlink_to(tmp_path / "mine")
    files.write_text(tmp_path / "a", "new")
    assert (tmp_path / "mine").read_text() == "mine"


def test_weights_that_a_kill_left_beside_their_note_go_the_next_time(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.write(WEIGHTS, b"w")
    folder.leave_weights()
    (folder.path / WEIGHTS).write_bytes(b"w")  # taken off the list, not deleted yet
    folder.leave_weights()
    assert not (folder.path / WEIGHTS).exists()
    assert folder.weights_checksum == hashlib.sha256(b"w").hexdigest()
