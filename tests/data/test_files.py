"""Files are written whole or not at all, damage is noticed, and errors name the file."""

import gzip
import hashlib
import json
import zipfile
from pathlib import Path
from urllib.request import urlopen

import numpy as np
import pytest

from unweave.data import files
from unweave.data.files import Published


def test_cached_array_is_built_once(tmp_path: Path) -> None:
    built = []

    def build() -> np.ndarray:
        built.append(1)
        return np.arange(12).reshape(3, 4)

    for _ in range(3):
        np.testing.assert_array_equal(files.cached_array(tmp_path / "a.npy", build), np.arange(12).reshape(3, 4))
    assert built == [1]


def test_writing_into_a_cached_array_does_not_touch_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    files.cached_array(path, lambda: np.zeros(5))[:] = 1.0
    assert files.cached_array(path, lambda: np.ones(5)).sum() == 0


@pytest.mark.parametrize("damage", ["flipped bit", "cut"])
def test_damaged_cache_is_refused_by_name(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "a.npy"
    files.cached_array(path, lambda: np.arange(1000))
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content if damage == "flipped bit" else content[:-100])
    with pytest.raises(ValueError, match=r"a\.npy is damaged"):
        files.open_cached(path)


@pytest.mark.parametrize("damage", ["flipped bit", "cut", "sidecar", "no sidecar", "sidecar of another kind"])
def test_a_damaged_cache_is_made_again(tmp_path: Path, damage: str, capsys: pytest.CaptureFixture[str]) -> None:
    path, beside, built = tmp_path / "a.npy", tmp_path / "a.npy.json", []

    def build() -> np.ndarray:
        built.append(1)
        return np.arange(1000)

    files.cached_array(path, build)
    content, noted = bytearray(path.read_bytes()), beside.read_text()
    assert json.loads(noted)["version"] == 1
    content[-1] ^= 1
    if "sidecar" not in damage:
        path.write_bytes(content if damage == "flipped bit" else content[:-100])
    elif damage == "no sidecar":
        beside.unlink()
    else:
        beside.write_text(noted.replace('"size": 8', '"size": 9') if damage == "sidecar" else '["size"]')
    np.testing.assert_array_equal(files.cached_array(path, build), np.arange(1000))
    again = damage != "no sidecar"
    assert len(built) == 1 + again
    assert ("It is made again." in capsys.readouterr().err) == again
    np.testing.assert_array_equal(files.cached_array(path, build), np.arange(1000))
    assert len(built) == 1 + again


def test_a_sidecar_of_version_0_1_0_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    files.cached_array(path, lambda: np.arange(10))
    noted = {"sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "size": 1, "modified": 1}
    (tmp_path / "a.npy.json").write_text(json.dumps(noted))
    assert files.open_cached(path).tolist() == list(range(10))
    assert json.loads((tmp_path / "a.npy.json").read_text())["version"] == 1
    (tmp_path / "a.npy.json").write_text(json.dumps(noted | {"sha256": "0"}))
    with pytest.raises(ValueError, match=r"a\.npy is damaged"):
        files.open_cached(path)


def test_foreign_file_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(b"not an array")
    with pytest.raises(ValueError, match=r"a\.npy is not a whole \.npy file"):
        files.open_array(tmp_path / "a.npy")


def test_converted_fills_in_place_once(tmp_path: Path) -> None:
    def fill(array: np.ndarray) -> None:
        array[:] = np.arange(24).reshape(2, 3, 4)

    path = tmp_path / "a.npy"
    np.testing.assert_array_equal(files.converted(path, (2, 3, 4), fill), np.arange(24).reshape(2, 3, 4))
    np.testing.assert_array_equal(files.converted(path, (2, 3, 4), _never), np.arange(24).reshape(2, 3, 4))
    with pytest.raises(ValueError, match=r"holds uint8 \(2, 3, 4\), expected uint8 \(5,\)"):
        files.converted(path, (5,), _never)


def test_converting_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def fill(array: np.ndarray) -> None:
        raise ValueError("broken source")

    with pytest.raises(ValueError, match="broken source"):
        files.converted(tmp_path / "a.npy", (2,), fill)
    assert list(tmp_path.iterdir()) == []


def _never(array: np.ndarray) -> None:
    raise AssertionError("converted twice")


def test_missing_file_says_what_to_fetch_and_where_to_put_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNWEAVE_DATA", str(tmp_path))
    published = Published("data.bin", "https://example.org/data.bin", "md5:abc")
    with pytest.raises(FileNotFoundError) as error:
        files.require("world", published)
    place = str(tmp_path / "world" / "data.bin")
    for part in ("data.bin", place, "`unweave worlds get world --unchecked`", "`unweave worlds world`"):
        assert part in str(error.value)
    for part in ("data.bin", "https://example.org/data.bin", place, "md5:abc"):
        assert part in files.how_to_get("world", (published,))


def test_several_missing_files_are_all_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNWEAVE_DATA", str(tmp_path))
    by_hand = [Published(name, "https://example.org", by_hand=True) for name in ("one.zip", "two.zip")]
    told = str(files.absent("world", by_hand))
    assert told == (
        f"world needs one.zip and two.zip, which are not in {tmp_path / 'world'}:"
        " `unweave worlds world` says where from"
    )


def test_fetch_checks_and_keeps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNWEAVE_DATA", str(tmp_path / "data"))
    source = tmp_path / "source.bin"
    source.write_bytes(b"content")
    checksum = "sha256:" + hashlib.sha256(b"content").hexdigest()
    good = Published("data.bin", source.as_uri(), checksum, 7)
    assert files.fetch("world", good, open_address=urlopen).read_bytes() == b"content"
    assert files.require("world", good).read_bytes() == b"content"
    for bad in (
        Published("other.bin", source.as_uri(), "sha256:" + "0" * 64),
        Published("other.bin", source.as_uri(), checksum, 8),
    ):
        with pytest.raises(ValueError, match=r"(f|F)etch it again|another file"):
            files.fetch("world", bad, open_address=urlopen)
    assert [path.name for path in (tmp_path / "data" / "world").iterdir()] == ["data.bin"]


def test_fetch_from_nowhere_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNWEAVE_DATA", str(tmp_path))
    with pytest.raises(OSError, match="could not fetch"):
        files.fetch("world", Published("x", (tmp_path / "absent").as_uri()), unchecked=True, open_address=urlopen)
    with pytest.raises(ValueError, match="by hand"):
        files.fetch("world", Published("x", "https://example.org", by_hand=True))


def test_reading_names_the_file_whatever_breaks(tmp_path: Path) -> None:
    path = tmp_path / "broken.gz"
    path.write_bytes(gzip.compress(b"x" * 1000)[:-20])
    with pytest.raises(ValueError, match=r"broken\.gz cannot be read as a thing"), files.reading(path, "a thing"):
        gzip.decompress(path.read_bytes())
    with pytest.raises(ValueError, match=r"broken\.gz cannot be read as a thing"), files.reading(path, "a thing"):
        zipfile.ZipFile(path)
    with pytest.raises(ValueError, match=r"^mine about .*broken\.gz$"), files.reading(path, "a thing"):
        raise ValueError(f"mine about {path}")
