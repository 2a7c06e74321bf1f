"""The same table through every kind of file."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from unweave.evaluation.tables import read_tables

CODES = np.arange(12.0).reshape(6, 2) / 7
FACTORS = np.array([[0, 1], [1, 0], [0, 2], [1, 1], [0, 0], [1, 2]])


def frame(**more: list) -> pl.DataFrame:
    columns = {"z0": CODES[:, 0], "z1": CODES[:, 1], "factor_shape": FACTORS[:, 0], "factor_x": FACTORS[:, 1]}
    return pl.DataFrame({**columns, "year": [2000] * 6, **more})


def write(path: Path) -> list[Path]:
    if path.suffix == ".npz":
        np.savez(path, codes=CODES, factors=FACTORS, factor_names=np.array(["shape", "x"]))
    elif path.suffix == ".csv":
        frame().write_csv(path)
    elif path.suffix == ".parquet":
        frame().write_parquet(path)
    else:
        np.save(path, CODES)
        np.save(path.with_name("factors.npy"), FACTORS)
        return [path, path.with_name("factors.npy")]
    return [path]


@pytest.mark.parametrize("kind", ["npz", "npy", "csv", "parquet"])
def test_every_kind_of_file_gives_the_same_table(kind: str, tmp_path: Path) -> None:
    table = read_tables(write(tmp_path / f"codes.{kind}"))[0]
    np.testing.assert_allclose(table.codes, CODES)
    assert table.factors is not None
    np.testing.assert_array_equal(table.factors, FACTORS)
    assert table.name == "codes"
    if kind != "npy":
        assert table.factor_names == ("shape", "x")
    assert table.latent_names == ("0", "1")


def test_words_variance_and_other_columns(tmp_path: Path) -> None:
    frame(factor_word=["b", "a", "b", "a", "b", "a"], variance_0=[0.5] * 6, variance_1=[0.1] * 6).write_csv(
        tmp_path / "t.csv"
    )
    table = read_tables([tmp_path / "t.csv"])[0]
    assert table.factor_names == ("shape", "x", "word")
    assert table.factors is not None
    assert table.factors[:, 2].tolist() == ["b", "a", "b", "a", "b", "a"]
    assert table.variance is not None
    assert table.variance.shape == (6, 2)


def test_tables_without_factors_and_several_tables(tmp_path: Path) -> None:
    np.savez(tmp_path / "alone.npz", codes=CODES)
    paths = write(tmp_path / "codes.npy")
    tables = read_tables([tmp_path / "alone.npz", *paths])
    assert [table.name for table in tables] == ["alone", "codes"]
    assert tables[0].factors is None
    assert tables[0].factor_names == ()


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("no.csv", None, "does not exist"),
        ("t.txt", b"1 2 3", "known kinds of file"),
        ("t.npz", b"", "is empty"),
        ("t.npz", b"not a zip", "cannot be read as npz"),
        ("t.csv", b"", "is empty"),
        ("t.csv", b"a,b\n1,2\n", "no column of codes"),
        ("t.csv", b"z0,y\n1,\n2,1\n", "column y of factors has 1 gaps"),
        ("t.csv", b"z0,y\nNaN,0\n2.0,1\n", "column z0 of codes holds NaN"),
        ("t.csv", b"z0,y\nfoo,0\nbar,1\n", "column z0 of codes must hold numbers"),
        ("t.parquet", b"PAR0", "cannot be read as parquet"),
        ("t.npy", b"", "stands alone"),
    ],
)
def test_bad_files_get_one_sentence(name: str, content: bytes | None, words: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises((ValueError, FileNotFoundError), match=words) as caught:
        read_tables([tmp_path / name])
    assert "\n" not in str(caught.value)


def test_objects_and_missing_arrays_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "o.npz", codes=CODES, factors=np.array([{"a": 1}] * 6, dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match=r"array factors of .* holds Python objects"):
        read_tables([tmp_path / "o.npz"])
    np.savez(tmp_path / "m.npz", means=CODES)
    with pytest.raises(ValueError, match=r"no array `codes`.* it holds means"):
        read_tables([tmp_path / "m.npz"])
    np.save(tmp_path / "e.npy", CODES)
    (tmp_path / "f.npy").write_bytes(b"")
    with pytest.raises(ValueError, match=r"f\.npy cannot be read as npy"):
        read_tables([tmp_path / "e.npy", tmp_path / "f.npy"])
