"""An altered world as files: images named by their rows, and the factors of each."""

import csv
import io
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch

from unweave.data.world import World
from unweave.evaluation.encode import factor_names
from unweave.files import write_atomically, write_text

BATCH = 256
OURS = re.compile(r"[0-9]{7,}\.png|\.[0-9]{7,}\.png\..+\.part")


def write_altered(
    world: World, folder: Path, n: int | None = None, watch: Callable[[int, int], None] = lambda done, total: None
) -> Path:
    """Write ``images/0000012.png`` for all rows or the first n, and ``factors.csv``; the folder is returned."""
    data = world.load()
    total = len(data) if n is None else min(n, len(data))
    if strange := _strange(folder / "images"):
        raise ValueError(f"{folder / 'images'} holds {strange[:80]!r}, which no export wrote; choose another folder")
    for first in range(0, total, BATCH):
        watch(first, total)
        rows = torch.arange(first, min(first + BATCH, total))
        for row, image in zip(rows.tolist(), data.examples(rows)):
            write_atomically(folder / "images" / f"{row:07d}.png", partial(_write_png, image.numpy()))
    watch(total, total)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["file", *factor_names(data)])
    for row, values in enumerate(data.factors(torch.arange(total)).tolist()):
        writer.writerow([f"images/{row:07d}.png", *values])
    write_text(folder / "factors.csv", text.getvalue())
    return folder


def _strange(images: Path) -> str:
    """A file that is none of ours; what a killed export has left is, and is written again."""
    names = sorted(path.name for path in images.iterdir()) if images.exists() else []
    return next((name for name in names if not OURS.fullmatch(name)), "")


def _write_png(image: np.ndarray, path: Path) -> None:
    from PIL import Image

    levels = (255.0 * image).round().astype(np.uint8)
    Image.fromarray(levels[0] if len(levels) == 1 else levels.transpose(1, 2, 0)).save(path, "png")
