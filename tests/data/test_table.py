"""Tables of one's own: what is read, what is refused by its place, and what is remembered."""

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

from unweave.config import fingerprint
from unweave.data import WORLDS
from unweave.data.own import as_world
from unweave.data.table import Table
from unweave.data.world import Data

VALUES = np.random.default_rng(0).normal(size=(40, 3)) * [1.0, 50.0, 1e-3] + [0.0, 1e6, 5.0]


def frame() -> pl.DataFrame:
    kinds = [("plum", "fig", "apple")[row % 3] for row in range(40)]
    return pl.DataFrame(dict(zip(("a", "b", "z one"), VALUES.T))).with_columns(
        kind=pl.Series(kinds), age=pl.Series(range(40))
    )


def table(path: Path, **options: object) -> Table:
    return Table(str(path), **options)  # type: ignore[arg-type]


def in_units(data: Data) -> np.ndarray:
    return data[:].numpy()


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet"])
def test_every_file_of_columns_gives_the_same(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"people.{kind}"
    write = {"csv": frame().write_csv, "tsv": lambda p: frame().write_csv(p, separator="\t"), "parquet": None}[kind]
    (write or frame().write_parquet)(path)
    data = table(path, labels=("kind", "age")).load()
    assert data.shape == (3,)
    assert data.columns is not None
    assert data.columns.names == ("a", "b", "z one")
    assert np.allclose(in_units(data), VALUES, rtol=1e-6)
    seen = data.examples(torch.arange(40))
    assert torch.allclose(seen.mean(0), torch.zeros(3), atol=1e-5)
    assert torch.allclose(seen.std(0, correction=0), torch.ones(3), atol=1e-5)
    assert data.label_names == ("kind", "age")
    assert data.labels is not None
    assert data.labels[:4].tolist() == [[2, 0], [1, 1], [0, 2], [2, 3]]


def test_arrays(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", VALUES)
    assert np.allclose(in_units(table(tmp_path / "x.npy").load()), VALUES, rtol=1e-6)
    np.savez(tmp_path / "x.npz", x=VALUES, y=np.arange(40) % 4, columns=np.array(["a", "b", "c"]))
    data = table(tmp_path / "x.npz").load()
    assert data.columns is not None
    assert (data.columns.names, data.label_names) == (("a", "b", "c"), ("y",))
    assert table(tmp_path / "x.npz", labels=("none",)).load().labels is None
    np.savez(tmp_path / "two.npz", first=VALUES, second=VALUES)
    with pytest.raises(
        ValueError, match=r'say which of first, second it is, --world.key first \(in Python key="first"\)'
    ):
        table(tmp_path / "two.npz").resolve()
    assert len(table(tmp_path / "two.npz", key="second").load()) == 40
    with pytest.raises(ValueError, match="has no array 'third'; it has first, second"):
        table(tmp_path / "two.npz", key="third").resolve()


def test_columns_and_labels_are_chosen_by_name_and_pattern(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    frame().write_csv(path)
    chosen = table(path, columns=("z*", "a")).resolve()
    assert chosen.card().columns == ("z one", "a")
    assert table(path, columns=("*",), labels=("k*", "age")).resolve().card().columns == ("a", "b", "z one")
    with pytest.raises(ValueError, match=r"columns: .* has no column 'y.'; it has a, b, z one, kind, age"):
        table(path, columns=("y*",)).resolve()
    with pytest.raises(ValueError, match=r"labels: .* has no column 'height'"):
        table(path, labels=("height",)).resolve()
    with pytest.raises(ValueError, match="no column to learn from"):
        table(path, labels=("*",)).resolve()


def test_words_are_refused_by_name_with_what_to_do(tmp_path: Path) -> None:
    frame().write_csv(tmp_path / "people.csv")
    with pytest.raises(
        ValueError,
        match=r"column 'kind' holds words \('plum'\).* --world.labels age,kind .*--world.columns .a,b,z one.",
    ):
        table(tmp_path / "people.csv", labels=("age",)).resolve()
    (tmp_path / "one.csv").write_text("a,b\n1,2\n3,many\n5,6\n")
    with pytest.raises(ValueError, match="column 'b' holds words"):
        table(tmp_path / "one.csv").resolve()
    (tmp_path / "spaces.csv").write_text("a, b\n1, 2\n3, 4\n")
    assert in_units(table(tmp_path / "spaces.csv").load()).round(3).tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize("gap", ["", "NA", "NaN"])
def test_gaps_are_refused_by_place_unless_told(tmp_path: Path, gap: str) -> None:
    path = tmp_path / "gaps.csv"
    path.write_text(f"a,b,kind\n1,10,x\n2,{gap},y\n3,30,x\n{gap},50,y\n")
    with pytest.raises(
        ValueError,
        match=r"row 2 of column 'b' is empty, and one more cell is: .*--world.missing drop .*--world.missing mean",
    ):
        table(path, labels=("kind",)).resolve()
    dropped = table(path, labels=("kind",), missing="drop").load()
    assert in_units(dropped).round(4).tolist() == [[1, 10], [3, 30]]
    filled = table(path, labels=("kind",), missing="mean")
    assert in_units(filled.load()).round(4).tolist() == [[1, 10], [2, 30], [3, 30], [2, 50]]
    assert "gaps become their column's mean" in filled.told(filled.load())
    columns = filled.resolve().known_columns()
    assert columns is not None
    assert columns.standardised([[2.0, float("nan")]]).tolist() == [[0.0, 0.0]]
    path.write_text("a,b,kind\n1,10,x\n2,20,\n3,30,x\n")
    with pytest.raises(
        ValueError, match=r"row 2 of the label 'kind' is empty: fill it in, or drop such rows, --world.missing drop"
    ):
        table(path, labels=("kind",), missing="mean").resolve()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no bytes"),
        ("a,b\n1,2\n", "has one row to learn from"),
        ("a;b\n1;2\n3;4\n", "divided by semicolons: save it with commas"),
        ("a,a\n1,2\n3,4\n", "several columns named 'a'"),
        ("a,b\n1,inf\n3,4\n", "row 1 of column 'b' is inf: no number"),
        ("a,b\n1,\n3,\n", "column 'b' is empty throughout"),
    ],
)
def test_faults_are_named(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "bad.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        table(tmp_path / "bad.csv").resolve()


def test_other_faults_are_named(tmp_path: Path) -> None:
    np.save(tmp_path / "cube.npy", np.zeros((3, 4, 5)))
    with pytest.raises(ValueError, match="a table is numbers, row × column"):
        table(tmp_path / "cube.npy").resolve()
    for name in ("a.txt", "a.csv"):
        (tmp_path / name).write_text("a")
    with pytest.raises(ValueError, match=r"none of a \.csv"):
        table(tmp_path / "a.txt").resolve()
    with pytest.raises(FileNotFoundError, match=r"'gone.csv' is not there"):
        table(Path("gone.csv")).resolve()
    (tmp_path / "damaged.parquet").write_bytes(b"PAR1 and nothing else")
    with pytest.raises(ValueError, match="cannot be read as parquet"):
        table(tmp_path / "damaged.parquet").resolve()
    with pytest.raises(ValueError, match="missing must be one of refuse, mean, drop, not 'zero'"):
        as_world(tmp_path / "a.csv", {"missing": "zero"})
    with pytest.raises(ValueError, match="filled in by themselves"):
        Table(names=("a",), means=(0.0,)).known_columns()


def test_a_column_that_never_changes_stays_and_is_said(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a,b\n1,0.1\n2,0.1\n3,0.1\n")
    world = table(tmp_path / "x.csv")
    assert "the same in every row: b" in world.told(world.load())
    assert in_units(world.load()).round(4).tolist() == [[1, 0.1], [2, 0.1], [3, 0.1]]


@pytest.mark.parametrize("kind", ["csv", "tsv", "parquet"])
def test_names_of_rows_are_not_learned_from(tmp_path: Path, kind: str) -> None:
    """What pandas and R write into a first column without a name."""
    path, given = tmp_path / f"x.{kind}", frame().select(pl.int_range(40).alias(""), "a", "b")
    if kind == "parquet":
        given.rename({"": "__index_level_0__"}).write_parquet(path)
    else:
        given.write_csv(path, separator="\t" if kind == "tsv" else ",")
    world = table(path).resolve()
    assert world.told(world.load()) == "x: 40 rows of 2 columns; no labels; not read: the column without a name"
    assert world.card().columns == ("a", "b")


@pytest.mark.parametrize(("scale", "offset"), [(1e299, 0.0), (1e-300, 0.0), (1e160, 1e160), (1e-170, 1e-165)])
def test_any_size_of_number_comes_to_one_scale(tmp_path: Path, scale: float, offset: float) -> None:
    """Squares of them are no numbers any more."""
    values = np.array([[3.0, 1.0], [-1.0, 2.0], [1.0, 4.0]])
    np.save(tmp_path / "x.npy", values * [scale, 1.0] + [offset, 0.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        data = table(tmp_path / "x.npy").load()
    assert np.allclose(data.store[:, 0], np.array([2.0, -2.0, 0.0]) / np.sqrt(8 / 3), atol=1e-6)
    assert np.allclose(in_units(data)[:, 0] / scale, values[:, 0] + offset / scale, rtol=1e-6, atol=1e-6)


def test_numbers_that_have_no_mean_are_refused_by_their_place(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a,b\n1,2\n3,1e305\n5,6\n")
    with pytest.raises(ValueError, match=r"row 2 of column 'b' is 1e\+305: beyond 1e\+300 .* divide the column"):
        table(tmp_path / "x.csv").resolve()


def test_a_word_among_numbers_is_named_with_its_row(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a,b\n1,2\n3,-\n5,6\n7,8\n")
    with pytest.raises(ValueError, match=r"column 'b' holds words \('-' in row 2; cells that stand for no value are"):
        table(tmp_path / "x.csv").resolve()


@pytest.mark.parametrize("head", ["a,,b", "a,b,"])
def test_a_column_without_a_name_is_refused_by_its_place(tmp_path: Path, head: str) -> None:
    (tmp_path / "x.csv").write_text(f"{head}\n1,2,3\n4,5,6\n")
    with pytest.raises(ValueError, match=f"column {head.split(',').index('') + 1} has no name: give it one"):
        table(tmp_path / "x.csv").resolve()


def test_a_packed_file_is_to_be_unpacked(tmp_path: Path) -> None:
    (tmp_path / "x.csv.gz").write_bytes(b"\x1f\x8b")
    with pytest.raises(ValueError, match=r"x.csv.gz is packed: unpack it first, gunzip --keep .*x.csv.gz"):
        as_world(tmp_path / "x.csv.gz")


def test_what_was_found_is_said(tmp_path: Path) -> None:
    frame().write_csv(tmp_path / "people.csv")
    world = table(tmp_path / "people.csv", labels=("kind", "age"))
    assert world.told(world.load()) == "people: 40 rows of 3 columns; labels: kind, age"
    card = world.card()
    assert (card.title, card.shape, card.n_examples) == ("people", (3,), 40)
    assert repr(world.load()) == "Data: 40 rows of 3 columns (a, b, z one); labels kind, age"
    assert "<th>z one</th>" in world.load()._repr_html_()


def test_identity_is_the_content(tmp_path: Path) -> None:
    for name in ("one.csv", "two.csv"):
        frame().write_csv(tmp_path / name)
    first, second = (table(tmp_path / name, labels=("kind",)).resolve() for name in ("one.csv", "two.csv"))
    assert fingerprint(first) == fingerprint(second)
    assert fingerprint(table(tmp_path / "one.csv", columns=("a",)).resolve()) != fingerprint(first)
    frame()[:-1].write_csv(tmp_path / "two.csv")
    assert fingerprint(table(tmp_path / "two.csv", labels=("kind",)).resolve()) != fingerprint(first)


def test_a_table_that_grows_moves_or_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "people.csv"
    frame().write_csv(path)
    monkeypatch.chdir(tmp_path)
    world = Table("people.csv", labels=("kind",)).resolve()
    before = world.load()
    pl.concat([frame(), frame()]).write_csv(path)
    with pytest.warns(UserWarning, match=r"people.csv has changed; going on with the 40 rows that were kept in"):
        assert torch.equal(world.load().store, before.store)
    path.unlink()
    with pytest.warns(UserWarning, match="not there any more; going on with the 40 rows"):
        kept = world.load()
    assert kept.label_names == ("kind",)
    assert torch.equal(kept.labels, before.labels)  # type: ignore[arg-type]
    monkeypatch.setenv("UNWEAVE_DATA", str(tmp_path / "empty"))
    with pytest.raises(ValueError, match=r"no copy of the 40 rows .* Its model can still be used on any rows"):
        world.load()
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    frame().write_csv(moved / "people.csv")
    monkeypatch.chdir(moved)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = world.near(moved / "runs" / "a").load()
    assert torch.equal(found.store, before.store)


def test_a_kept_table_is_read_instead_and_written_again_where_it_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    frame().write_csv(path)
    world = table(path, labels=("age", "kind")).resolve()
    assert isinstance(world, Table)
    first, copy = world.load(), world._copy()
    again = world.load()
    assert torch.equal(again.store, first.store)
    assert torch.equal(again.labels, first.labels)  # type: ignore[arg-type]
    whole = copy.read_bytes()
    copy.write_bytes(whole[:-100])
    assert torch.equal(world.load().store, first.store)
    assert np.load(copy)["values"].shape == (40, 3)


def test_standardising_is_undone_for_numbers_of_any_size(tmp_path: Path) -> None:
    values = np.array([[1e9 + 1, 1e-9], [1e9 + 2, 3e-9], [1e9 + 4, 4e-9]])
    np.save(tmp_path / "x.npy", values)
    data = table(tmp_path / "x.npy").load()
    assert data.columns is not None
    assert (np.abs(in_units(data) - values) / values.std(axis=0)).max() < 1e-6
    assert torch.equal(data.columns.standardised(values), data.store)
    assert torch.allclose(data.columns.standardised(data[:]), data.store, atol=1e-6)
    errors = data.columns.errors_in_units(data.store[:1] - data.store[1:2])
    assert np.allclose(errors.numpy(), values[:1] - values[1:2])


def test_it_stands_in_the_table_of_worlds() -> None:
    assert WORLDS["table"] is Table
    assert replace(Table(), path="x.csv").card().title == "x"


@pytest.mark.parametrize(("n", "words"), [(1, "is empty: fill"), (2, "one more cell is"), (3, "and 2 more cells are")])
def test_gaps_are_counted(tmp_path: Path, n: int, words: str) -> None:
    rows = ["1,2"] * 4 + [",2"] * n
    (tmp_path / "t.csv").write_text("a,b\n" + "\n".join(rows) + "\n")
    with pytest.raises(ValueError, match=f"row 5 of column 'a' is empty.*{words}|row 5 of column 'a' {words}"):
        Table(str(tmp_path / "t.csv")).load()


@pytest.mark.parametrize("length", [120, 121])
def test_advice_stays_short(tmp_path: Path, length: int) -> None:
    name = "n" * length
    (tmp_path / "t.csv").write_text(f"{name},b\n1,x\n2,y\n")
    with pytest.raises(ValueError, match="and a model learns from numbers") as caught:
        Table(str(tmp_path / "t.csv"), columns=(name, "b")).load()
    assert (f"--world.columns {name} " in str(caught.value)) == (length == 120)


def test_two_rows_are_enough(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1,5\n3,5\n")
    data = Table(str(tmp_path / "t.csv")).load()
    assert data.store.tolist() == [[-1.0, 0.0], [1.0, 0.0]]
    (tmp_path / "t.csv").write_text("a,b\n1,5\n")
    with pytest.raises(ValueError, match="has one row to learn from"):
        Table(str(tmp_path / "t.csv")).load()
