"""Points whose dimension can be asked for: the examples of a world, the arrays of a file, the codes of a run."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from unweave import rng
from unweave.data.files import open_npz, reading
from unweave.data.frames import as_frame, numbers_of
from unweave.data.world import Data, World, called
from unweave.shapes import Float, Tensor
from unweave.training.run import Run

MOST_NUMBERS = 2**28
"""Numbers kept in memory at most, 1 GiB: a larger world is drawn from once, at random."""
USUAL = ("points", "codes", "mean", "images", "imgs", "x", "x_train", "data", "latents", "z")


@dataclass(frozen=True)
class Points:
    """A table sample × feature and what it is."""

    name: str
    table: Float[Tensor, "sample feature"]


def points_of_world(world: World) -> Points:
    """The examples of a world, flattened."""
    return Points(called(world), _examples(world.load()))


def points_of_data(data: Data) -> Points:
    """Examples that are loaded already, flattened."""
    return Points("data", _examples(data))


def points_of_frame(frame: Any) -> Points:
    """The rows of a data frame, each column with mean 0 and deviation 1, as a table is learned from."""
    polars = as_frame(frame)
    found = {name: numbers_of(polars[name]) for name in polars.columns}
    if words := [name for name, column in found.items() if column is None]:
        raise ValueError(f"the column {words[0]!r} of the frame holds words: leave it out")
    table = np.stack([column for column in found.values() if column is not None], axis=1)
    if not np.isfinite(table).all():
        row, column = np.argwhere(~np.isfinite(table))[0].tolist()
        raise ValueError(
            f"row {row + 1} of the column {polars.columns[column]!r} is {table[row, column]}; drop such rows"
        )
    deviations = table.std(axis=0)
    return Points("rows", torch.from_numpy((table - table.mean(axis=0)) / np.where(deviations > 0, deviations, 1.0)))


def points_of_run(run: Run, n: int = 10_000) -> list[Points]:
    """The data of a run, its mean codes and, where it draws any, its sampled codes."""
    run = run.bare
    images = run.images(n)
    code = run.encode(images, run.labels(n))
    tables = [Points("data", _flat(images)), Points("mean codes", code.mean)]
    return [*tables, Points("sampled codes", code.sampled)] if bool((code.variance > 0).any()) else tables


def points_of_file(path: str | Path) -> Points:
    """The only array of an npy or npz file, or the one with a usual name; images are flattened."""
    path = Path(path)
    if path.suffix == ".npy":
        with reading(path, "an array (npy)"):
            return Points(path.stem, _numbers(np.load(path, allow_pickle=False), path))
    with open_npz(path, "an npz file of arrays") as file:
        names = list(file)
        name = next((usual for usual in USUAL if usual in names), names[0] if len(names) == 1 else None)
        if name is None:
            raise ValueError(f"{path} has no array named like points ({', '.join(USUAL)}); it has {', '.join(names)}")
        return Points(path.stem, _numbers(np.asarray(file[name]), path))


def _examples(data: Data) -> Tensor:
    size = int(np.prod(data.shape))
    n = min(len(data), max(1, MOST_NUMBERS // size))
    order = torch.arange(n)
    if n < len(data):
        order = rng.words(0, rng.Purpose.EVALUATE, 1, len(data), 1)[:, 0].argsort(stable=True)[:n]
    return torch.cat([_flat(data.examples(rows)) for rows in order.split(4096)])


def _numbers(array: np.ndarray, path: Path) -> Tensor:
    if array.ndim == 0 or array.dtype.kind not in "biuf":
        raise ValueError(f"{path} must hold numbers, sample × feature, not {array.dtype} of shape {array.shape}")
    table = array[:, None] if array.ndim == 1 else array.reshape(len(array), -1)
    if table.dtype.kind == "f" and not np.isfinite(table).all():
        row, column = np.argwhere(~np.isfinite(table))[0].tolist()
        raise ValueError(f"{path}: row {row + 1}, column {column} is {table[row, column]}; drop those rows")
    return torch.from_numpy(np.ascontiguousarray(table, dtype=np.float64 if table.dtype == np.float64 else np.float32))


def _flat(images: Tensor) -> Tensor:
    return images.flatten(1)
