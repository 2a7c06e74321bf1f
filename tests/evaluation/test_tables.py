"""The same table through every kind of file."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from unweave.evaluation.tables import _check_array, read_tables

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


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_panic_of_polars_is_one_sentence(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import polars as pl

    def panic(*_: object, **__: object) -> None:
        raise pl.exceptions.PanicException("range end index 12 out of range for slice of length 4")

    (tmp_path / f"t.{kind}").write_bytes(b"z0,y\n1,2\n")
    monkeypatch.setattr(pl, f"read_{kind}", panic)
    with pytest.raises(ValueError, match=rf"t\.{kind} cannot be read as {kind}: it is damaged$"):
        read_tables([tmp_path / f"t.{kind}"])
    monkeypatch.setattr(pl, f"read_{kind}", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        read_tables([tmp_path / f"t.{kind}"])


@pytest.mark.parametrize(("column", "kind"), [(["a", "b", "c"], "O"), (["1", "2", "4"], "i"), (["1.5", "2", "4"], "f")])
def test_texts_of_arrays_become_numbers_or_words(column: list[str], kind: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "t.npz", codes=np.eye(3), factors=np.array([column, ["1", "2", "3"]]).T)
    (table,) = read_tables([tmp_path / "t.npz"])
    assert table.factors is not None
    assert table.factors.dtype.kind == kind
    assert table.factors[2].tolist() == [{"O": "c", "i": 4, "f": 4.0}[kind], 3]


def test_objects_and_missing_arrays_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "o.npz", codes=CODES, factors=np.array([{"a": 1}] * 6, dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match=r"array factors of .* holds Python objects"):
        read_tables([tmp_path / "o.npz"])
    np.savez(tmp_path / "m.npz", weights=CODES)
    with pytest.raises(ValueError, match=r"no array `codes`.* it holds weights"):
        read_tables([tmp_path / "m.npz"])
    np.save(tmp_path / "e.npy", CODES)
    (tmp_path / "f.npy").write_bytes(b"")
    with pytest.raises(ValueError, match=r"f\.npy cannot be read as npy"):
        read_tables([tmp_path / "e.npy", tmp_path / "f.npy"])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"z0,y\n1,5\n2,\n3,\n", "column y of factors has 2 gaps, the first in row 2"),
        (b"z0,y\n1,5\n2,nan\n", "column y of factors.* row 2"),
        (b"z0,y\n1,5\n2,inf\n", "column y of factors.* row 2"),
        (b"z0,y\n1,5\ninf,3\n", "column z0 of codes holds NaN or infinity, first in row 2"),
        (b"z0,y\n1,9\n2,10\n3,many\n", "row 3, is the word 'many', but .* row 1, is the number 9"),
        (b'z0,y\n1,"1,5"\n2,"10,5"\n', "write numbers as 1234.5"),
        (b"z0,y\n1,9007199254740993\n2,1\n", r"beyond 2\*\*53"),
        (b"z0,z0,y\n1,2,3\n4,5,6\n", "several columns named 'z0'"),
        ("z0,y\n1,2\n3,4\n".encode("utf-16"), "no UTF-8 text"),
    ],
)
def test_cells_that_are_neither_numbers_nor_words_are_refused_by_place(
    content: bytes, words: str, tmp_path: Path
) -> None:
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(ValueError, match=words) as caught:
        read_tables([tmp_path / "t.csv"])
    assert "t.csv" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_numbers_keep_their_order_however_the_table_was_saved(ends: str, mark: str, tmp_path: Path) -> None:
    text = ends.join([mark + '"z0",y_n,y_word', "1, 9,b", '2," 10",a', "3,11 ,b", ""])
    (tmp_path / "t.csv").write_bytes(text.encode())
    table = read_tables([tmp_path / "t.csv"])[0]
    assert table.factors is not None
    assert table.factors.tolist() == [[9, "b"], [10, "a"], [11, "b"]]
    np.testing.assert_array_equal(table.codes[:, 0], [1, 2, 3])


def test_arrays_are_held_to_the_same(tmp_path: Path) -> None:
    np.savez(tmp_path / "t.npz", codes=CODES, factors=np.array(["9", "10", "11", "9", "10", "11"]))
    found = read_tables([tmp_path / "t.npz"])[0].factors
    assert found is not None
    assert found.tolist() == [9, 10, 11, 9, 10, 11]
    for factors, words in (
        (np.array([1.0, 2, np.nan, 4, 5, 6]), "column 0 holds NaN or infinity, first in row 3"),
        (np.array(["9", "10", "", "9", "10", "11"]), "row 3, column 0, is empty"),
        (np.array(["9", "10", "x", "9", "10", "11"]), "row 3, column 0, is the word 'x'"),
    ):
        np.savez(tmp_path / "t.npz", codes=CODES, factors=factors)
        np.save(tmp_path / "codes.npy", CODES)
        np.save(tmp_path / "factors.npy", factors)
        for paths in ([tmp_path / "t.npz"], [tmp_path / "codes.npy", tmp_path / "factors.npy"]):
            with pytest.raises(ValueError, match=words):
                read_tables(paths)


def test_a_number_that_is_none_is_named_by_column_row_and_model(tmp_path: Path) -> None:
    codes = np.zeros((2, 3, 4))
    codes[1, 2, 3] = np.nan
    for given, where in ((codes, "column 3 .* row 3 of model 1;"), (codes[1], "column 3 .* row 3;")):
        np.savez(tmp_path / "t.npz", codes=given)
        with pytest.raises(ValueError, match=where):
            read_tables([tmp_path / "t.npz"])


def test_parts_that_are_missing_or_one_number_have_no_rows_to_check() -> None:
    assert _check_array(None, "variance", Path("codes.npz")) is None
    number = np.array(np.nan)
    assert _check_array(number, "noise", Path("codes.npz")) is number
