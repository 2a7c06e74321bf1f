"""What a new user typed with data of their own after the findings were mended, and what it is to be answered with."""

import shlex
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import unweave as uw
from unweave.cli import main

TINY = "--network mlp --network.encoder-widths 4 --network.decoder-widths 4 --latents 2 --steps 3 --plan.threads 1"
Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("UNWEAVE_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def pictures(folder: str) -> Path:
    place = Path(folder)
    place.mkdir()
    for number in range(4):
        pixels = np.random.default_rng(number).integers(0, 256, (8, 12, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(place / f"{number}.png")
    return place


def said(capsys: Capture, words: str, code: int = 0) -> str:
    capsys.readouterr()
    found = main(shlex.split(words))
    told = capsys.readouterr()
    assert found == code, told.err
    return told.out + told.err


def test_files_that_are_not_read_are_counted(capsys: Capture) -> None:
    folder = pictures("photos")
    for name in ("a.heic", "b.HEIC", "c.txt", ".hidden"):
        (folder / name).write_bytes(b"x")
    told = "photos: 4 images of 12 × 8 pixels, colour; no labels; not read: 1 .HEIC, 1 .heic, 1 .txt\n"
    assert told in said(capsys, f"train photos {TINY}")
    rows = "".join(f"{number}.png,{number}\n" for number in range(4))
    (folder / "labels.csv").write_text(f"file,age\n{rows}")
    assert "labels: age; not read: 1 .HEIC, 1 .heic, 1 .txt\n" in said(capsys, f"train photos {TINY}")


def test_every_array_of_a_second_file_is_a_label() -> None:
    np.savez("pictures.npz", images=np.zeros((3, 4, 4), dtype=np.uint8))
    np.savez("more.npz", age=np.array([3, 1, 2]), kind=np.array(["b", "a", "b"]))
    data = uw.world("pictures.npz", labels="more.npz")
    assert data.label_names == ("age", "kind")
    assert data.factors().tolist() == [[3, 1], [1, 0], [2, 1]]


@pytest.mark.filterwarnings("default")
def test_a_run_may_be_called_after_its_images(capsys: Capture) -> None:
    pictures("photos")
    said(capsys, f"train photos {TINY} --quiet --folder runs/photos")
    Path("photos").rename("elsewhere")
    assert "is not there any more; going on with the 4 images" in said(capsys, "show runs/photos")


def test_copies_of_one_data_set_are_compared(capsys: Capture) -> None:
    frame = pd.DataFrame({"a": np.arange(20.0), "b": np.arange(20.0) ** 2})
    for number, folder in enumerate(("one", "two")):
        Path(folder).mkdir()
        frame.to_csv(f"{folder}/rows.csv", index=False)
        Path(f"{folder}/images").symlink_to(Path("photos").absolute())
        said(capsys, f"train {folder}/rows.csv {TINY} --seed {number} --quiet --folder runs/{folder}")
    assert "They " in said(capsys, "compare runs/one runs/two --quiet").splitlines()[0]
    pictures("photos")
    for folder in ("one", "two"):
        said(capsys, f"train {folder}/images {TINY} --quiet --folder runs/{folder}-images")
    assert "equal to the last bit" in said(capsys, "compare runs/one-images runs/two-images --quiet")
    assert "learned rows and images: models are" in said(capsys, "compare runs/one runs/one-images", 2)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a;b\n1,5;2\n", "the names of its columns are divided by semicolons: save it with commas"),
        ("a\tb\n1\t2\n", "the names of its columns are divided by tabs"),
        ("1.5,2\n3,4\n", "begins with numbers (1.5,2): its first line must name the columns"),
        ("a,b\n1,2\n3,4,5\n", "line 3 has 3 cells, and the header 2"),
        ("a,b\n", "has no row to learn from"),
    ],
)
def test_tables_that_cannot_be_read(text: str, words: str, capsys: Capture) -> None:
    Path("rows.csv").write_text(text)
    assert words in said(capsys, "train rows.csv --steps 3", 2)


def test_names_of_columns_may_be_numbers_in_turn() -> None:
    Path("rows.csv").write_text("2019,2020\n1,2\n3,5\n")
    assert len(uw.world("rows.csv")) == 2


def test_a_spreadsheet_is_no_table(capsys: Capture) -> None:
    Path("people.xlsx").write_bytes(b"PK")
    assert "a spreadsheet can be saved as csv" in said(capsys, "train people.xlsx", 2)
    assert "gone.xlsx is not there" in said(capsys, "train gone.xlsx", 2)


@pytest.fixture(scope="module")
def run() -> uw.Run:
    return uw.load("zoo:demo-0")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda run: run.encode(2 * run.images(1) - 1), "these go down to -1"),
        (lambda run: run.decode(run.encode(run.images(1))), "take .mean or .sampled"),
        (lambda run: run.sample(-1), "a whole number from 0 on, not -1"),
        (lambda run: run.traverse(run.images(3)), "starts from one example, and 3 were given"),
        (lambda run: run.traverse(latents=[9]), "this model has the latents 0 to 5, and not 9"),
        (lambda run: run.to("tpu"), "must be auto, cpu, cuda"),
        (lambda run: uw.train("micro", objektive="vae"), "Did you mean objective"),
    ],
)
def test_a_run_answers_in_one_sentence(run: uw.Run, call: Callable[[uw.Run], object], words: str) -> None:
    with pytest.raises(ValueError, match=words) as refused:
        call(run)
    assert "\n" not in str(refused.value)


def test_a_model_of_the_zoo_has_its_report_and_scores(capsys: Capture) -> None:
    said(capsys, "zoo pull demo-0 runs/demo")
    pulled = uw.load("runs/demo")
    assert pulled.report().exists()
    kept = pulled.scores["mean"]
    assert float(kept["mig"]) == pytest.approx(uw.zoo()["demo-0"].scores["mig"], abs=1e-4)
    # an interval is that of the draws that were kept
    plain = pulled.files.read_json("scores.json")["mean"]["scores"]["mig"]
    assert kept["mig"].interval == (None if plain["low"] is None else pytest.approx((plain["low"], plain["high"])))
    assert "mig" in kept.to_pandas().index


def test_a_row_of_a_frame_is_encoded() -> None:
    frame = pd.DataFrame({"a": np.arange(20.0), "b": np.arange(20.0) ** 2, "kind": ["x", "y"] * 10})
    run = uw.train(frame, labels="kind", network=uw.MLP((4,), (4,)), latents=2, steps=3, quiet=True)
    assert run.encode(frame.iloc[3]).mean.tolist() == run.encode(frame.iloc[3:4]).mean.tolist()


def test_help_of_a_command(capsys: Capture) -> None:
    with pytest.raises(SystemExit):
        main(["help", "zoo"])
    assert "usage: unweave zoo" in capsys.readouterr().out


def test_a_run_is_no_file_of_codes(capsys: Capture) -> None:
    said(capsys, "zoo pull demo-0 runs/demo")
    told = said(capsys, "measure runs/demo", 2)
    assert told == (
        "unweave: runs/demo is a run, and here files of codes are read; score it with: unweave evaluate runs/demo\n"
    )


def test_rows_of_a_model_are_real_numbers_with_or_without_names() -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0, 4.0], "b": [3.0, 1.0, 2.0]})
    run = uw.train(frame, network=uw.MLP((4,), (4,)), latents=2, steps=3, quiet=True)
    wanted = run.encode([2.0, 1.0]).mean
    assert run.encode(frame.iloc[1]).mean.equal(wanted)
    assert run.encode(pd.Series([2.0, 1.0])).mean.equal(wanted)
    assert run.encode(pd.Series({"b": 1.0, "a": 2.0})).mean.equal(wanted)
    for wrong in (None, np.ones((2, 2)) * 1j, [[[1j, 2]]]):
        with pytest.raises(ValueError, match=r"^rows are arrays, tensors, lists or data frames of numbers, not "):
            run.encode(wrong)
    with pytest.raises(ValueError, match="n is how many examples to draw, a whole number from 0 on, not -1"):
        run.images(-1)
    assert run.images(0).shape == (0, 2)


def test_a_table_that_teaches_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="all rows are the same, and a model learns how rows differ"):
        uw.train(pd.DataFrame({"a": [1.0] * 9, "b": [2.0] * 9}))
    with pytest.raises(ValueError, match=r"it has no column of numbers among a, b$"):
        uw.train(pd.DataFrame({"a": ["x", "y"], "b": ["u", "v"]}))


def test_a_single_latent_is_no_plural(capsys: Capture) -> None:
    pd.DataFrame({"a": np.arange(20.0), "b": np.arange(20.0) ** 2}).to_csv("rows.csv", index=False)
    one = TINY.replace("--latents 2", "--latents 1").replace("--steps 3", "--steps 1")
    said(capsys, f"train rows.csv {one} --objective.beta 1000 --quiet --folder run")
    told = said(capsys, "show run")
    assert ", 1 step\n" in told
    assert "of 1 latent are active" in told
    assert "1 latents" not in told
    assert "1 steps" not in told


def test_scores_of_few_rows_are_no_certain_zero(capsys: Capture) -> None:
    codes = np.random.default_rng(0).normal(size=(60, 2))
    with pytest.raises(ValueError, match="codes has a single row, and scores compare rows: give several"):
        uw.measure(codes[:1], codes[:1] > 0)
    np.savez("codes.npz", codes=codes, factors=(codes > 0).astype(int))
    sentence = "Only 60 rows were measured, and chance alone raises several scores: give 1,000 or more"
    assert sentence in said(capsys, "measure codes.npz --metrics mig --seeds 0")
    assert sentence not in said(capsys, "measure codes.npz --metrics mig --seeds 0 --adjust chance")
