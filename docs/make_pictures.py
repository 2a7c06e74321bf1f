"""Draws the pictures of the docs: python docs/make_pictures.py

Genuine frames come from a folder ``shared`` beside the checkout; pictures that need them are left out without it.
"""

import os
from pathlib import Path

import numpy as np
import torch

import unweave as uw
from unweave.data.procedural.dsprites import render
from unweave.plots.images import grid, reconstructions
from unweave.plots.save import to_png

HERE = Path(__file__).parent
SHARED = HERE.parents[1] / "shared" / "data"
IMAGES = HERE / "images"


def side_by_side() -> None:
    """Genuine dSprites above re-rendered ones, and genuine Shapes3D above the imitation."""
    real = np.load(SHARED / "dsprites_real_gif320.npz")
    chosen = np.linspace(0, 319, 12).astype(int)
    genuine = real["imgs"][chosen].astype(np.float32)[:, None]
    drawn = render(real["latents_classes"][chosen][:, 1:])
    ours = np.unpackbits(drawn, axis=1).reshape(-1, 1, 64, 64).astype(np.float32)
    to_png(reconstructions(genuine, ours, 12, ("genuine", "re-rendered")), IMAGES / "dsprites_side_by_side.png")

    real = np.load(SHARED / "shapes3d_real50.npz")
    chosen = np.linspace(0, 49, 10).astype(int)
    genuine = real["images"][chosen].transpose(0, 3, 1, 2) / 255.0
    data = uw.world("shapes3d_like")
    pictured = IMAGES / "shapes3d_side_by_side.png"
    rows = data.space.rows(torch.from_numpy(real["factors_inferred"][chosen]))
    to_png(reconstructions(genuine, data.examples(rows).numpy(), 10, ("genuine", "imitation")), pictured)


def gallery() -> None:
    """A few examples of every world that can be drawn here and may be shown."""
    for name in ("micro", "dsprites", "color_dsprites", "noisy_dsprites", "scream_dsprites", "shapes3d_like"):
        data = uw.world(name)
        rows = data.space.find(data.space.sample(8, seed=1), seed=1)
        to_png(grid(data.examples(rows, seed=1).numpy(), columns=8), IMAGES / f"{name}.png")


if __name__ == "__main__":
    IMAGES.mkdir(exist_ok=True)
    painting = Path(os.environ.get("UNWEAVE_DATA") or Path.home() / ".cache/unweave") / "scream_dsprites" / "scream.jpg"
    if SHARED.exists():
        painting.parent.mkdir(parents=True, exist_ok=True)
        painting.write_bytes((SHARED / "scream.jpg").read_bytes())
        side_by_side()
    gallery()
