"""Files are written whole or not at all."""

import hashlib
from pathlib import Path

import pytest

from unweave import files
from unweave.files import parse_json, read_json


def test_interrupted_writing_leaves_nothing_behind(tmp_path: Path) -> None:
    def write(aside: Path) -> None:
        aside.write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        files.write_atomically(tmp_path / "deep" / "file.txt", write)
    assert list((tmp_path / "deep").iterdir()) == []


def test_interrupted_writing_keeps_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    files.write_text(path, "old")
    with pytest.raises(ZeroDivisionError):
        files.write_atomically(path, lambda aside: 1 / 0)
    assert path.read_text() == "old"


def test_digest_is_the_checksum_of_the_bytes(tmp_path: Path) -> None:
    content = bytes(range(256)) * 20_000
    (tmp_path / "file").write_bytes(content)
    seen: list[tuple[str, int, int]] = []
    assert (
        files.digest(tmp_path / "file", "md5", lambda *at: seen.append(at))
        == hashlib.md5(content, usedforsecurity=False).hexdigest()
    )
    assert seen[-1] == ("checking file", len(content), len(content))


@pytest.mark.parametrize(
    ("content", "word"),
    [("null", "null"), ("[1]", "a list"), ('"x"', "a text"), ("true", "true or false"), ("1", "a number")],
)
def test_json_that_is_no_object_is_named_in_words(content: str, word: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(content)
    with pytest.raises(ValueError, match=f"holds {word}, not a JSON object; give a config"):
        read_json(tmp_path / "a.json", "a config")


@pytest.mark.parametrize("content", [b'{"a": "\\ud800"}', b'{"\\uDC80": 1}', b'["\xed\xa0\x80"]', '["\ud800"]'])
def test_half_a_character_is_refused_and_a_whole_one_is_not(content: bytes | str) -> None:
    with pytest.raises(ValueError, match=r"x\.json cannot be read: it holds half a character"):
        parse_json(content, Path("x.json"))
    assert parse_json(b'["\\ud83d\\ude00", "\xed\x95\x9c"]', Path("x.json")) == ["\U0001f600", "한"]
