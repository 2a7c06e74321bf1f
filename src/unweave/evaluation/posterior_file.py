"""Posteriors from anyone's npz file: mean, variance, and what else is known of every example."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from unweave.data.files import open_npz
from unweave.files import require_file

NAMES = {
    "mean": ("mean", "means", "mu", "z_mean"),
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


def read_posteriors(path: str | Path) -> Posteriors:
    """The posteriors of an npz file. Variances may be given as such, as their logarithms or as deviations."""
    path = require_file(path, "a run's folder or an npz with mean and variance")
    if path.suffix != ".npz":
        raise ValueError(f"{path} is neither a run's folder nor an npz with mean and variance")
    with open_npz(path, "an npz file with mean and variance") as file:
        names = list(file)
        found = {part: next((np.asarray(file[n]) for n in usual if n in names), None) for part, usual in NAMES.items()}
        for part, array in found.items():
            if array is not None:
                _check(part, array)
    if found["mean"] is None:
        raise ValueError(f"{path} has no array `mean` (sample × latent); it holds {', '.join(names) or 'nothing'}")
    others = {name: found[name] for name in ("sampled", "reconstruction", "prior_mean", "prior_variance")}
    return Posteriors(path.stem, found["mean"], _variance(found, path), **others)


def _check(part: str, array: np.ndarray) -> None:
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{part} holds {array.dtype}, not numbers")
    # the logarithm of a variance that is zero
    bad = ~np.isfinite(array) & ((part != "log_variance") | (array != -np.inf))
    if bad.any():
        at = np.argwhere(bad)[0].tolist()
        where = f"column {at[-1]} holds NaN or infinity, first in row {at[0] + 1}" if at[1:] else f"row {at[0] + 1}"
        raise ValueError(f"{part} must be finite: {where}{'' if at[1:] else ' is none'}; drop those rows")


def _variance(found: dict[str, np.ndarray | None], path: Path) -> np.ndarray | None:
    given = [name for name in ("variance", "log_variance", "deviation") if found[name] is not None]
    if len(given) > 1:
        raise ValueError(f"{path} holds {' and '.join(given)}; one of them says it all")
    if found["log_variance"] is not None:
        # exp(300) is beyond any posterior; the guard keeps a nonsense file from overflowing with a warning
        return np.exp(np.minimum(np.asarray(found["log_variance"], dtype=np.float64), 300.0))
    if found["deviation"] is not None:
        return np.square(np.asarray(found["deviation"], dtype=np.float64))
    return found["variance"]
