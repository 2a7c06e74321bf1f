"""What data show of themselves where one looks at them: rows as people choose them, and pictures in a page."""

import base64
import html
import io
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from unweave.shapes import Float, Int, Tensor


def chosen_rows(given: Any, n: int) -> Int[Tensor, "*batch"]:
    """Row numbers from a number, a slice, a list, an array or a mask; negative ones count from the end."""
    if isinstance(given, slice):
        return torch.arange(n)[given] if (given.step or 1) > 0 else torch.from_numpy(np.arange(n)[given].copy())
    try:
        rows = given if isinstance(given, Tensor) else torch.from_numpy(np.asarray(given))
    except (TypeError, ValueError) as error:
        raise TypeError(f"rows are numbers, slices, lists or arrays of numbers, not {type(given).__name__}") from error
    if rows.dtype == torch.bool and rows.shape == (n,):
        return rows.nonzero()[:, 0]
    if rows.dim() > 1 or rows.is_floating_point() or rows.dtype == torch.bool:
        raise TypeError(f"rows are whole numbers, or one True or False for each of the {n:,} examples")
    rows = rows.to(torch.int64)
    if rows.numel() and (int(rows.min()) < -n or int(rows.max()) >= n):
        raise IndexError(f"row {int(rows.max() if int(rows.max()) >= n else rows.min())} of {n:,} examples")
    return torch.where(rows < 0, rows + n, rows)


def strip_of(images: Float[Tensor, "sample channel height width"]) -> str:
    """Images side by side in one element of HTML."""
    from PIL import Image

    shown = images[:, : 3 if images.shape[1] >= 3 else 1].clamp(0, 1)
    row = torch.nn.functional.pad(shown, (1, 1, 1, 1), value=0.5).permute(2, 0, 3, 1).flatten(1, 2)
    pixels = (255 * row).round().to(torch.uint8).cpu().numpy()
    file = io.BytesIO()
    Image.fromarray(pixels[..., 0] if pixels.shape[-1] == 1 else pixels).save(file, "PNG")
    data = base64.b64encode(file.getvalue()).decode()
    # where a page is narrower, the strip shrinks and keeps its proportions
    width = round(pixels.shape[1] * max(64, images.shape[2]) / pixels.shape[0])
    style = f"width:{width}px;max-width:100%;height:auto;image-rendering:pixelated"
    return f'<img alt="{len(images)} examples" style="{style}" src="data:image/png;base64,{data}">'


def rows_of(rows: Sequence[Sequence[float]], names: Sequence[str], most: int = 12) -> str:
    """Rows of a table in one element of HTML; of many columns the first."""
    more = len(names) > most
    head = "".join(f"<th>{html.escape(name)}</th>" for name in names[:most]) + "<th>…</th>" * more
    body = "".join(
        "<tr>" + "".join(f"<td>{value:.5g}</td>" for value in row[:most]) + "<td>…</td>" * more + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
