"""Tables of codes and factors from anyone's files: npz, a pair of npy, csv or parquet.

- ``.npz``: arrays ``codes`` (or ``latents``, ``z``, ``mean``, ``mu``), ``factors`` (``labels``, ``y``) and, if known,
  ``variance`` (or ``log_variance``, ``std``);
- ``.npy`` ``.npy``: the first file holds the codes, the second the factors;
- ``.csv``, ``.parquet``: columns ``code_*``, ``latent_*``, ``mu*``, ``mean_*`` or ``z*``; ``factor_*``, ``label_*`` or
  ``y*``; ``variance_*``, ``logvar*`` or ``std*``.

What follows the prefix is the column's name. ``z*`` and ``y*`` stand for a letter alone or followed by a number or an
underscore, so that a column ``year`` is not taken for a factor. Files without factors are measured without labels.
:class:`Roles` says it in other words where the names are others.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from unweave.data.cells import as_column
from unweave.data.columns import matching
from unweave.data.frames import read_frame
from unweave.files import require_file

ARRAYS = {
    "codes": ("codes", "latents", "z", "mean", "means", "mu", "z_mean"),
    "factors": ("factors", "labels", "y"),
    "variance": ("variance", "variances", "var"),
    "log_variance": ("log_variance", "logvar", "log_var", "z_log_var"),
    "deviation": ("std", "sigma", "deviation"),
}
"""What every array may be called, and every column, followed by its own name or number."""

MEANS = ("mean", "mu", "z_mean")


def _pattern(names: Sequence[str]) -> re.Pattern[str]:
    """``z_size``, ``z3`` and ``z``, but not ``zebra``; singular and plural."""
    words = "|".join(sorted({word for name in names for word in (name, name.removesuffix("s"))}, key=len, reverse=True))
    return re.compile(rf"({words})(?:_(.+)|(\d*))$", re.IGNORECASE)


COLUMNS = {part: _pattern(ARRAYS[part]) for part in ("log_variance", "deviation", "variance", "codes", "factors")}
"""Which columns are what; a name that fits several is the first."""
KINDS = (".npz", ".npy", ".csv", ".parquet")


@dataclass(frozen=True)
class CodeTable:
    """Codes (sample × latent, or model × sample × latent), the factors of the same samples, and the columns' names."""

    name: str
    codes: np.ndarray
    factors: np.ndarray | None = None
    variance: np.ndarray | None = None
    latent_names: tuple[str, ...] = ()
    factor_names: tuple[str, ...] = ()
    roles: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The columns or arrays that were taken for codes and for factors."""
    unused: tuple[str, ...] = ()
    """Columns that nothing was made of."""


@dataclass(frozen=True)
class Roles:
    """Which columns, or arrays of an npz, are codes and which are factors; ``z*`` stands for all that begin so."""

    codes: tuple[str, ...] = ()
    factors: tuple[str, ...] = ()
    means_first: bool = False
    """Whether ``mu*`` is meant rather than ``z*`` where a table has both."""

    def chosen(self, part: str, names: Sequence[str], path: Path) -> list[str]:
        """The columns of one part, in the order asked for; every pattern must be found."""
        held = ", ".join(names[:12]) + (", …" if len(names) > 12 else "") or "nothing"
        missed = f"for its {part}; it has {held}"
        return matching(getattr(self, part), names, lambda pattern: f"{path} has no {pattern!r} {missed}")


def read_tables(paths: Sequence[str | Path], roles: Roles = Roles()) -> list[CodeTable]:
    """One table from every npz, csv or parquet file, and from every two npy files: codes first, then factors."""
    tables: list[CodeTable] = []
    waiting: Path | None = None
    for path in map(Path, paths):
        if path.suffix.lower() != ".npy":
            tables.append(_checked(_read_one(path, roles)))
        elif waiting is None:
            waiting = path
        else:
            tables.append(_checked(_read_pair(waiting, path)))
            waiting = None
    if waiting is not None:
        raise ValueError(f"{waiting} stands alone: give npy files in pairs, codes first and then factors")
    return tables


def _read_one(path: Path, roles: Roles) -> CodeTable:
    kind = path.suffix.lower()
    if (path / "config.json").exists():
        raise ValueError(f"{path} is a run, and here files of codes are read; score it with: unweave evaluate {path}")
    if kind not in KINDS:
        raise ValueError(f"{path} ends in {kind or 'nothing'}; known kinds of file are {', '.join(KINDS)}")
    if require_file(path, "a table of codes").stat().st_size == 0:
        raise ValueError(f"{path} is empty: it holds no bytes at all")
    return _read_npz(path, roles) if kind == ".npz" else _read_columns(path, roles)


def _read_pair(codes: Path, factors: Path) -> CodeTable:
    table = CodeTable(codes.stem, _load(codes), _load(factors))
    for array in (table.codes, table.factors):
        if isinstance(array, np.lib.npyio.NpzFile):
            raise ValueError(f"{table.name} is an npz archive under another name; call it .npz")
    read = _check_array(table.codes, "codes", codes)
    assert read is not None
    return replace(table, codes=read, factors=_check_array(table.factors, "factors", factors))


def _load(path: Path) -> Any:
    """The arrays of an npz or npy file; anything but plain numbers and text is refused, for loading could run code."""
    require_file(path, "a table of codes")
    try:
        return np.load(path, allow_pickle=False)
    except Exception as error:
        if str(error).startswith("Object arrays"):
            raise ValueError(f"{path} holds Python objects; save plain numbers or text instead") from error
        raise ValueError(
            f"{path} cannot be read as {path.suffix[1:]}: it is empty, damaged or of another kind"
        ) from error


def _read_npz(path: Path, roles: Roles) -> CodeTable:
    with _load(path) as arrays:
        wanted = {part: roles.chosen(part, arrays.files, path) for part in ("codes", "factors")}
        used = {
            part: wanted.get(part) or [name for name in names if name in arrays.files][:1]
            for part, names in ARRAYS.items()
        }
        found = {part: _arrays(arrays, names, part, path) for part, names in used.items()}
        names = {part: _names(arrays, part) for part in ("latent_names", "factor_names")}
        if found["codes"] is None:
            held = ", ".join(arrays.files) or "nothing"
            raise ValueError(f"{path} has no array `codes` (sample × latent); it holds {held}")
    chosen = {part: tuple(used[part]) for part in ("codes", "factors")}
    return CodeTable(path.stem, found["codes"], found["factors"], as_variance(found, path), **names, roles=chosen)


def _arrays(arrays: Any, names: Sequence[str], part: str, path: Path) -> Any:
    """One array, or several side by side."""
    found: list[Any] = [_check_array(_array(arrays, (name,), path), part, path) for name in names]
    if len(found) < 2:
        return found[0] if found else None
    columns = [one[:, None] if one.ndim == 1 else one for one in found]
    if len({len(one) for one in columns}) > 1:
        raise ValueError(f"{path}: {' and '.join(names)} differ in their number of rows")
    return np.concatenate(columns, axis=-1)


def as_variance(found: Mapping[str, Any], path: Path) -> np.ndarray | None:
    """Variances that are given as such, as their logarithms or as deviations."""
    given = [name for name in ("variance", "log_variance", "deviation") if found[name] is not None]
    if len(given) > 1:
        raise ValueError(f"{path} holds {' and '.join(given)}; one of them says it all")
    if found["log_variance"] is not None:
        # exp(300) is beyond any posterior; the guard keeps a nonsense file from overflowing with a warning
        return np.exp(np.minimum(np.asarray(found["log_variance"], dtype=np.float64), 300.0))
    if found["deviation"] is not None:
        return np.square(np.asarray(found["deviation"], dtype=np.float64))
    variance: np.ndarray | None = found["variance"]
    return variance


def _array(arrays: Any, names: tuple[str, ...], path: Path) -> Any:
    name = next((name for name in names if name in arrays.files), None)
    if name is None:
        return None
    try:
        return arrays[name]
    except ValueError as error:
        raise ValueError(f"array {name} of {path} holds Python objects; save plain numbers or text instead") from error


def _names(arrays: Any, part: str) -> tuple[str, ...]:
    return tuple(map(str, arrays[part])) if part in arrays.files else ()


def _read_columns(path: Path, roles: Roles) -> CodeTable:
    frame = read_frame(path)
    chosen = _chosen_columns(frame.columns, path, roles)
    if not chosen["codes"]:
        held = ", ".join(frame.columns[:8]) + (", …" if len(frame.columns) > 8 else "")
        raise ValueError(
            f"{path} has no column of codes: name them code_*, latent_* or z*, or say which with --codes; it has"
            f" {held or 'none'}"
        )
    parts = {part: _stack(frame, names, part, path) if names else None for part, names in chosen.items()}
    shown = {part: tuple(_suffix(COLUMNS[part], name) for name in chosen[part]) for part in ("codes", "factors")}
    codes, taken = parts["codes"], {name for names in chosen.values() for name in names}
    assert codes is not None
    return CodeTable(
        path.stem,
        codes,
        parts["factors"],
        as_variance(parts, path),
        shown["codes"],
        shown["factors"],
        {part: tuple(chosen[part]) for part in ("codes", "factors")},
        tuple(name for name in frame.columns if name not in taken),
    )


def _chosen_columns(names: Sequence[str], path: Path, roles: Roles) -> dict[str, list[str]]:
    """The columns of every part: those that were asked for, else those whose names say it, each for one part alone."""
    asked = {part: roles.chosen(part, names, path) for part in ("codes", "factors")}
    if both := set(asked["codes"]) & set(asked["factors"]):
        raise ValueError(f"{path}: {min(both)} cannot be code and factor at once")
    free = [name for name in names if name not in {*asked["codes"], *asked["factors"]}]
    told: dict[str, list[str]] = {part: [] for part in COLUMNS}
    for name in free:
        if part := next((part for part, pattern in COLUMNS.items() if pattern.match(name)), None):
            told[part].append(name)
    means = [name for name in told["codes"] if _word(name).removesuffix("s") in MEANS]
    others = [name for name in told["codes"] if name not in means]
    told["codes"] = (means or others) if roles.means_first else (others or means)
    return {part: asked.get(part) or found for part, found in told.items()}


def _word(name: str) -> str:
    found = COLUMNS["codes"].match(name)
    assert found is not None
    return found[1].lower()


def _suffix(pattern: re.Pattern[str], name: str) -> str:
    found = pattern.match(name)
    return name if found is None else next((group for group in found.groups()[1:] if group), name)


def _stack(frame: Any, names: list[str], part: str, path: Path) -> np.ndarray:
    columns = [_column(frame[name], part, path) for name in names]
    if any(column.dtype.kind == "O" for column in columns):
        columns = [column.astype(object) for column in columns]
    return np.stack(columns, axis=-1)


def _column(series: Any, part: str, path: Path) -> np.ndarray:
    """Words become objects; a gap, a NaN, or words among numbers are refused by the column's own name and the row."""
    column = f"{path}: column {series.name} of {part}"
    words = series.dtype.is_numeric() is False and str(series.dtype) != "Boolean"
    if series.null_count():
        first = int(series.is_null().arg_max()) + 1
        raise ValueError(f"{column} has {series.null_count()} gaps, the first in row {first}; drop those rows")
    if (words and part != "factors") or series.dtype.is_nested():
        raise ValueError(f"{column} must hold numbers, not {series.dtype}")
    values = np.array(series.to_list(), dtype=object) if words else series.to_numpy()
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        first = int(np.argmin(np.isfinite(values))) + 1
        raise ValueError(f"{column} holds NaN or infinity, first in row {first}; drop those rows")
    if part != "factors":
        return values
    read = as_column(values, lambda row: f"{column}, row {row + 1},")
    return read.astype(object) if read.dtype.kind == "U" else read if words else values


def _check_array(array: np.ndarray | None, part: str, path: Path) -> np.ndarray | None:
    """The same for an array: sample × column, or the samples of several models."""
    if array is None or array.ndim == 0:
        return array
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        at = np.argwhere(~np.isfinite(array))[0].tolist()
        column, row = (at[-1], at[-2]) if len(at) > 1 else (0, at[0])
        of_model = f" of model {at[0]}" if len(at) > 2 else ""
        where = f"column {column} holds NaN or infinity, first in row {row + 1}{of_model}"
        raise ValueError(f"{path}: {part} must be finite: {where}; drop those rows")
    if part != "factors" or array.dtype.kind not in "US" or array.ndim > 2:
        return array
    table = array[:, None] if array.ndim == 1 else array
    read = [
        as_column(column, lambda row, place=place: f"{path}: factors, row {row + 1}, column {place},")  # type: ignore[misc]
        for place, column in enumerate(table.T)
    ]
    words = any(column.dtype.kind == "U" for column in read)
    stacked = np.stack([column.astype(object) if words else column for column in read], axis=-1)
    return stacked[:, 0] if array.ndim == 1 else stacked


def _checked(table: CodeTable) -> CodeTable:
    n_latents = table.codes.shape[-1] if table.codes.ndim > 1 else 1
    n_factors = 0 if table.factors is None else table.factors.shape[-1] if table.factors.ndim > 1 else 1
    latents = table.latent_names if len(table.latent_names) == n_latents else tuple(map(str, range(n_latents)))
    factors = table.factor_names if len(table.factor_names) == n_factors else tuple(map(str, range(n_factors)))
    return replace(table, latent_names=latents, factor_names=factors)
