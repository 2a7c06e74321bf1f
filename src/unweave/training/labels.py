"""Labels that someone gives to a trained model: do they fit it?"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from unweave.config import unknown
from unweave.shapes import Float, Tensor


def checked_labels(
    labels: Any, n_images: int, names: Sequence[str], sizes: Sequence[int]
) -> Float[Tensor, "sample label"]:
    """A row of labels for every image, each value one that the model knows; ValueError says what is wrong."""
    if labels is None:
        raise ValueError(
            f"this model encodes images together with their labels ({', '.join(names)}), and got none:"
            " give it a row of labels for every image"
        )
    table = torch.as_tensor(labels, dtype=torch.float32)
    if table.shape != (n_images, len(sizes)):
        raise ValueError(
            f"{n_images} images need as many rows of labels with the columns {', '.join(names)},"
            f" not a table of shape {tuple(table.shape)}"
        )
    for name, size, column in zip(names, sizes, table.unbind(1)):
        known = torch.isin(column, torch.arange(size)) if size else torch.isfinite(column)
        if not bool(known.all()):
            allowed = f"a whole number in 0…{size - 1}" if size else "a finite number"
            raise ValueError(f"the label {name} must be {allowed}, not {column[~known][0].item():g}")
    return table


def with_chosen(
    labels: Float[Tensor, "sample label"], chosen: Mapping[str, Any], names: Sequence[str]
) -> Float[Tensor, "sample label"]:
    """The labels with some of them set, by name, for all rows."""
    table = labels.clone()
    for name, value in chosen.items():
        if name not in names:
            raise unknown("label", name, names)
        table[:, list(names).index(name)] = value
    return table
