"""Data of one's own as a world: a path, an array, a tensor, a data frame, or what :func:`unweave.world` gave.

Arrays and frames are written into the data folder under the hash of what they hold, so that a run finds them again.
"""

import hashlib
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from unweave.config import from_plain, shown
from unweave.data import WORLDS, World
from unweave.data.files import data_folder, reading
from unweave.data.frames import SUFFIXES, as_frame, is_frame
from unweave.data.image_sources import ARRAYS, IMAGE_KEYS
from unweave.data.table import FILES
from unweave.data.world import Data
from unweave.files import as_typed, write_atomically
from unweave.shapes import Tensor

FORMS = (
    "the name of a world (`unweave worlds` lists them), a world, its data, a folder of images, a csv, parquet, npz or"
    " npy file, an array or tensor (row × column, or image × height × width with or without channels), or a data frame"
)

PACKED = tuple(f"{suffix}.gz" for suffix in FILES)

READ = "a folder of images, or a csv, tsv, parquet, npz, npy, HDF5 or idx file"


def as_world(given: Any, options: Mapping[str, Any] | None = None) -> World:
    """The world that a person means by what they give; ``options`` are its fields."""
    told = dict(options or {})
    if isinstance(given, Data):
        given = _world_of(given)
    if isinstance(given, World):
        return _with_options(given, told)
    if isinstance(given, Mapping) and isinstance(given.get("name"), str):
        return _made({**given, **told})
    if isinstance(given, str | Path):
        return _made(named_world(given) | told)
    if is_frame(given):
        return _of_frame(given, told)
    if isinstance(given, Tensor | np.ndarray | list | tuple):
        return _of_array(given, told)
    raise ValueError(f"to learn from, give {FORMS}; not {type(given).__name__} ({shown(given)})")


def is_own_path(given: str | Path) -> bool:
    """Whether a word on a command line is a file or folder of one's own rather than a world's name."""
    word = str(given)
    if isinstance(given, Path):
        return True
    if word in WORLDS or (":" in word and not Path(word).exists()):
        return False
    # no world's name has a dot
    return "." in word or "/" in word or word.endswith(ARRAYS) or Path(word).exists()


def named_world(given: str | Path) -> dict[str, Any]:
    """The plain form of a world by its name, or by the path of one's own data."""
    if not is_own_path(given):
        return {"name": str(given)}
    path = Path(given).expanduser()
    if not path.exists():
        raise FileNotFoundError(f"{given} is not there: give {READ}")
    if path.is_file() and path.name.lower().endswith(PACKED):
        raise ValueError(f"{given} is packed: unpack it first, gunzip --keep {as_typed(given)}")
    if path.is_file() and not path.name.lower().endswith((*FILES, *ARRAYS)):
        raise ValueError(f"{given} cannot be read: give {READ}; a spreadsheet can be saved as csv")
    return {"name": "table" if _is_table(path) else "images", "path": str(given)}


def _is_table(path: Path) -> bool:
    if path.is_dir() or path.suffix.lower() in SUFFIXES:
        return not path.is_dir()
    if path.suffix not in (".npz", ".npy"):
        return False
    found = _shapes(path)
    pictures = [shape for name, shape in found.items() if len(shape) > 2 and (len(found) == 1 or name in IMAGE_KEYS)]
    return not pictures and any(len(shape) == 2 for shape in found.values())


def _shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """The shapes of the arrays in a file, from their headers alone."""
    with reading(path, "an array, or an npz file of arrays"):
        if path.suffix == ".npy":
            return {"": np.load(path, mmap_mode="r", allow_pickle=False).shape}
        with zipfile.ZipFile(path) as archive:
            return {name.removesuffix(".npy"): _shape(archive, name) for name in archive.namelist()}


def _shape(archive: zipfile.ZipFile, name: str) -> tuple[int, ...]:
    with archive.open(name) as file:
        read = np.lib.format.read_array_header_1_0
        if np.lib.format.read_magic(file) > (1, 0):
            read = np.lib.format.read_array_header_2_0
        return read(file)[0]


def _made(plain: Mapping[str, Any]) -> World:
    options = dict(plain)
    if options["name"] == "table":  # a name, or several with commas, as on the command line
        for name in ("columns", "labels"):
            if isinstance(options.get(name), str):
                options[name] = [part.strip() for part in options[name].split(",") if part.strip()]
            elif isinstance(options.get(name), np.ndarray):
                options[name] = options[name].tolist()
    options = {name: str(value) if isinstance(value, Path) else value for name, value in options.items()}
    world: World = from_plain(World, options, {World: WORLDS}, "world")
    return world


def _with_options(world: World, options: Mapping[str, Any]) -> World:
    if options:
        raise ValueError(f"{world.name} is given as it is: set {', '.join(options)} where it is made")
    return world


def _world_of(data: Data) -> World:
    if data.world is None:
        raise ValueError("these data do not say where they come from: give what uw.world returns, or an array")
    return data.world


def _of_frame(given: Any, options: Mapping[str, Any]) -> World:
    frame = as_frame(given)
    if not frame.height or not frame.width:
        raise ValueError(f"the data frame is empty: it has {frame.height} rows and {frame.width} columns")
    summed = hashlib.sha256(repr([(name, str(frame[name].dtype)) for name in frame.columns]).encode())
    summed.update(frame.hash_rows(seed=0).to_numpy().tobytes())
    path = _place(summed.hexdigest(), ".parquet")
    if not path.exists():
        write_atomically(path, frame.write_parquet)
    return _kept({"name": "table", "called": "frame", **options}, path)


def _of_array(given: Any, options: dict[str, Any]) -> World:
    """An array with its labels, and the names of its columns, as an npz file."""
    array = _array(given, "data")
    if array.ndim not in (2, 3, 4) or array.dtype.kind not in "biuf":
        raise ValueError(f"to learn from, give {FORMS}; not {array.dtype} of the shape {array.shape}")
    parts = {"x" if array.ndim == 2 else "images": array}
    if not isinstance(options.get("labels"), str | None):
        parts["labels"] = _array(options.pop("labels"), "labels")
        if len(parts["labels"]) != len(array):
            raise ValueError(f"there are {len(parts['labels']):,} labels for {len(array):,} examples")
    if array.ndim == 2 and options.get("columns") is not None and len(options["columns"]) == array.shape[1]:
        parts["columns"] = _array(list(options.pop("columns")), "columns")
    summed = hashlib.sha256()
    for name, part in parts.items():
        summed.update(f"{name} {part.dtype.str} {part.shape}\n".encode())
        summed.update(np.ascontiguousarray(part).data)
    path = _place(summed.hexdigest(), ".npz")
    if not path.exists():
        write_atomically(path, lambda aside: _save(aside, parts))
    return _kept({"name": "table" if array.ndim == 2 else "images", "called": "array", **options}, path)


def _kept(plain: Mapping[str, Any], path: Path) -> World:
    """The world of what was written, looked at once: what is amiss is said of what was given, not of the file."""
    try:
        world = _made({**plain, "path": path.name, "where": str(path)}).resolve()
        if plain["name"] == "images":
            world.load()
        return world
    except ValueError as error:
        told = f"the {plain['called']}"
        raise ValueError(str(error).replace(str(path), told).replace(path.name, told)) from error


def _array(given: Any, what: str) -> np.ndarray:
    if isinstance(given, Tensor):
        return given.detach().cpu().numpy()
    if is_frame(given):
        frame = as_frame(given)
        return np.stack([np.array(column.to_list()) for column in frame], axis=1).squeeze()
    try:
        found = np.asarray(given)
    except ValueError as error:
        raise ValueError(f"{what} must be an array of one size throughout, not a list of uneven parts") from error
    return found.astype(str) if found.dtype == object and all(isinstance(one, str) for one in found.flat) else found


def _place(digest: str, suffix: str) -> Path:
    return data_folder() / "given" / f"{digest[:32]}{suffix}"


def _save(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """An npz file whose bytes depend on its arrays alone; numpy's has the time in it."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.asanyarray(array), allow_pickle=False)
