"""Posteriors from anyone's file: mean, variance, and what else is known of every example."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from unweave.data.files import open_npz
from unweave.evaluation.tables import Roles, as_variance, read_tables
from unweave.files import require_file

NAMES = {
    "mean": ("mean", "means", "mu", "z_mean", "codes", "latents"),
    "variance": ("variance", "var"),
    "log_variance": ("log_variance", "logvar", "log_var", "z_log_var"),
    "deviation": ("std", "sigma", "deviation"),
    "sampled": ("sampled", "z", "samples"),
    "reconstruction": ("reconstruction", "reconstruction_loss", "distortion"),
    "prior_mean": ("prior_mean",),
    "prior_variance": ("prior_variance",),
}
"""What every array may be called."""


@dataclass(frozen=True)
class Posteriors:
    """Arrays sample × latent; ``reconstruction`` holds the loss of every example, priors may be one row for all."""

    name: str
    mean: np.ndarray
    variance: np.ndarray | None = None
    sampled: np.ndarray | None = None
    reconstruction: np.ndarray | None = None
    prior_mean: np.ndarray | None = None
    prior_variance: np.ndarray | None = None
    roles: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The columns or arrays that were taken for codes, and for factors where some are known."""


def read_posteriors(path: str | Path, roles: Roles = Roles()) -> Posteriors:
    """The posteriors of a file. Variances may be given as such, as their logarithms or as deviations.

    Any table that ``unweave measure`` reads is one: its codes are the means, unless it has both.
    """
    path = require_file(path, "a run's folder or an npz with mean and variance")
    if path.suffix not in (".npz", ".csv", ".parquet"):
        raise ValueError(f"{path} is neither a run's folder nor an npz with mean and variance, nor a csv or parquet")
    if path.suffix != ".npz" or roles.codes:
        (table,) = read_tables([path], replace(roles, means_first=True))
        return Posteriors(table.name, table.codes, table.variance, roles=table.roles)
    with open_npz(path, "an npz file with mean and variance") as file:
        names = list(file)
        found = {part: next((np.asarray(file[n]) for n in usual if n in names), None) for part, usual in NAMES.items()}
        for part, array in found.items():
            if array is not None:
                _check(part, array)
    if found["mean"] is None and found["sampled"] is not None:
        found["mean"], found["sampled"] = found["sampled"], None
    if found["mean"] is None:
        raise ValueError(f"{path} has no array `mean` (sample × latent); it holds {', '.join(names) or 'nothing'}")
    others = {name: found[name] for name in ("sampled", "reconstruction", "prior_mean", "prior_variance")}
    taken = next(name for name in (*NAMES["mean"], *NAMES["sampled"]) if name in names)
    return Posteriors(path.stem, found["mean"], as_variance(found, path), **others, roles={"codes": (taken,)})


def _check(part: str, array: np.ndarray) -> None:
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{part} holds {array.dtype}, not numbers")
    # the logarithm of a variance that is zero
    bad = ~np.isfinite(array) & ((part != "log_variance") | (array != -np.inf))
    if bad.any():
        at = np.argwhere(bad)[0].tolist()
        where = f"column {at[-1]} holds NaN or infinity, first in row {at[0] + 1}" if at[1:] else f"row {at[0] + 1}"
        raise ValueError(f"{part} must be finite: {where}{'' if at[1:] else ' is none'}; drop those rows")
