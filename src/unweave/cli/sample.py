"""unweave sample: new examples from a model's prior, with chosen labels where it knows some."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from unweave.cli.console import patiently, print_json, say
from unweave.cli.options import add_quiet, command, parse, read, whole
from unweave.data.columns import Columns
from unweave.files import write_atomically, write_text
from unweave.training.run import Run

EXAMPLES = """examples:
  unweave sample runs/demo                              16 new pictures, written into the run's folder
  unweave sample runs/ivae --label shape=2 --label scale=5
  unweave sample runs/ivae --label class=7 -n 1000 --out sevens.npz
  unweave sample runs/people -n 1000 --out more.csv     rows of a table, in the units of its columns"""


def run(argv: Sequence[str]) -> None:
    """Draw codes from the prior, decode them, and write the examples as a picture or as arrays."""
    parser = command(
        "unweave sample",
        "New examples: codes drawn from the model's prior, decoded; without a prior (ae, qlae) every latent is that of"
        " some example. A model that was trained with labels (ivae) draws"
        " from the prior of those that are chosen; labels that are not chosen are those of examples of the data.",
        examples=EXAMPLES,
    )
    parser.add_argument("run", metavar="RUN", help="the run's folder")
    parser.add_argument("-n", "--n", type=whole(1, 10**6), default=16, metavar="N", help="how many (16)")
    parser.add_argument(
        "--label", action="append", default=[], metavar="NAME=VALUE", help="a label that all of them have; repeatable"
    )
    parser.add_argument("--seed", type=whole(0), default=0, metavar="N", help="which ones (0)")
    parser.add_argument("--out", metavar="FILE", help=".png, .npz or, for a table, .csv (default: in the run's folder)")
    parser.add_argument("--json", action="store_true", help="print the file as JSON")
    add_quiet(parser)
    given = parse(parser, argv)
    opened = Run(given.run)
    with patiently("drawing", given.json or given.quiet):
        drawn = opened.sample(given.n, labels=dict(map(_label, given.label)), seed=given.seed)
    columns = opened.experiment.world.known_columns()
    images = drawn.numpy() if columns is None else columns.in_units(drawn).numpy()
    path = _written(opened, images, given.out) if columns is None else _rows(opened, images, columns, given.out)
    if given.json:
        print_json({"file": str(path), "n": len(images)})
    else:
        say(f"written: {path}")


def _label(text: str) -> tuple[str, float]:
    name, equals, value = text.rpartition("=")
    if not equals or not name:
        raise ValueError(f"--label must be NAME=VALUE as in shape=2, not {text[:80]!r}")
    return name, float(read(float, value, "label"))


def _written(opened: Run, images: np.ndarray, out: str | None) -> Path:
    path = None if out is None else Path(out)
    if path is not None and path.suffix == ".npz":
        write_atomically(path, lambda part: _save_arrays(part, images=images))
        return path
    if path is not None and path.suffix != ".png":
        raise ValueError(f"--out must end in .png or .npz, not {path.name!r}")
    if images.ndim != 4:
        raise ValueError(f"{opened.path} learned from points, not images: write them with --out FILE.npz")
    from unweave.plots.images import grid
    from unweave.plots.save import to_png

    if path is None:
        return opened.files.write("figures/samples.png", to_png(grid(images)))
    write_atomically(path, lambda part: part.write_bytes(to_png(grid(images))))
    return path


def _rows(opened: Run, rows: np.ndarray, columns: Columns, out: str | None) -> Path:
    """Rows of a table with the names of its columns."""
    if out is not None and Path(out).suffix == ".npz":
        write_atomically(Path(out), lambda part: _save_arrays(part, x=rows, columns=np.array(columns.names)))
        return Path(out)
    if out is not None and Path(out).suffix != ".csv":
        raise ValueError(f"{opened.path} learned from a table: --out must end in .csv or .npz, not {Path(out).name!r}")
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([columns.names, *([f"{x:.9g}" for x in row] for row in rows)])
    if out is None:
        return opened.files.write("samples.csv", text.getvalue())
    write_text(Path(out), text.getvalue())
    return Path(out)


def _save_arrays(path: Path, **arrays: np.ndarray) -> None:
    with path.open("wb") as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
