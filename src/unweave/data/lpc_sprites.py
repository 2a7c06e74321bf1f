"""LPC Sprites, the characters of Li and Mandt (2018), composed from the Liberated Pixel Cup's component sheets."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from unweave.data.correlated import FactorWorld
from unweave.data.factors import Factor, FactorSpace
from unweave.data.files import Progress, Published, how_to_get, open_npz, place_of, require, verify
from unweave.data.world import Card, Composition, Data
from unweave.shapes import Float, Int, Tensor, UInt8

PIXELS = 64
SPACE = FactorSpace(
    (
        Factor("body", 6, "categorical"),
        Factor("bottom", 6, "categorical"),
        Factor("top", 6, "categorical"),
        Factor("hair", 6, "categorical"),
        Factor("action", 3, "categorical"),
        Factor("direction", 3, "categorical"),
        Factor("frame", 8, "cyclic"),
    )
)
"""Actions: casting a spell, walking, slashing; directions: left, front, right."""

COMPONENTS = Published("lpc_sprites_components.npz", "https://github.com/YingzhenLi/Sprites", by_hand=True)

CHOSEN = ("body", "bottomwear", "topwear", "hair")
SHEET_ROWS = (1, 2, 3, 9, 10, 11, 13, 14, 15)
FRAMES = ((0, 1, 2, 3, 4, 5, 4, 6), (8, 1, 2, 3, 4, 5, 6, 7), (0, 1, 2, 3, 4, 5, 4, 0))
"""Which of the sheet's frames are the eight of each action: a spell has seven, a walk a rest and eight, a slash six."""


@dataclass(frozen=True)
class LPCSprites(FactorWorld):
    """Clothed figures on black, 93,312 images. Shoes are the same for all and are drawn last."""

    name: ClassVar[str] = "lpc_sprites"

    def files(self) -> tuple[Published, ...]:
        return (COMPONENTS,)

    def card(self) -> Card:
        on_disk = place_of(self.name, COMPONENTS).exists()
        get = how_to_get(self.name, self.files()) + (
            f"; it holds rows {SHEET_ROWS} of the RGBA sheets as uint8: body, bottomwear, topwear and hair"
            " [6, 9, 64, 576, 4], shoes [9, 64, 576, 4] and rows [9]"
        )
        note = "the drawings are CC-BY-SA 3.0 / GPL 3.0"
        return Card("LPC Sprites", (3, PIXELS, PIXELS), SPACE.n_cells, SPACE, on_disk, get, note)

    def load(self, progress: Progress | None = None) -> Data:
        path = require(self.name, COMPONENTS)
        verify(path, COMPONENTS, progress)
        with open_npz(path, "the component sheets of LPC Sprites (npz)") as sheets:
            layers = _layers({name: sheets[name] for name in (*CHOSEN, "shoes", "rows")})
        store = SPACE.coordinates(torch.arange(SPACE.n_cells))
        pose = (store[:, 4] * 3 + store[:, 5]) * 8 + store[:, 6]
        parts = torch.cat([store[:, :4], pose[:, None]], dim=1).to(torch.int16)
        return self.weighted(Data(parts, (3, PIXELS, PIXELS), "parts", SPACE, composition=Dressed(layers)))


@dataclass(frozen=True)
class Dressed(Composition):
    """Images from (body, bottom, top, hair, pose); the layers are RGBA, the last one the shoes."""

    layers: tuple[UInt8[Tensor, "_ pose channel height width"], ...]

    def compose(self, parts: Int[Tensor, "batch part"]) -> Float[Tensor, "batch channel height width"]:
        *choices, pose = parts.long().unbind(-1)
        image = torch.zeros(len(parts), 3, PIXELS, PIXELS, device=parts.device)
        for layer, choice in zip(self.layers, [*choices, torch.zeros_like(pose)]):
            drawn = layer[choice, pose].to(torch.float32)
            # c ← c + α (layer − c)
            image.lerp_(drawn[:, :3], drawn[:, 3:] / 255.0)
        return image.round_().div_(255.0)

    def to(self, device: torch.device | str) -> Composition:
        return type(self)(tuple(layer.to(device) for layer in self.layers))


def _layers(sheets: dict[str, np.ndarray]) -> tuple[Tensor, ...]:
    if tuple(sheets["rows"].tolist()) != SHEET_ROWS:
        raise ValueError(f"it holds rows {sheets['rows'].tolist()} of the sheets, expected {list(SHEET_ROWS)}")
    sheets["shoes"] = sheets["shoes"][None]
    for name in (*CHOSEN, "shoes"):
        expected = (1 if name == "shoes" else 6, 9, PIXELS, 9 * PIXELS, 4)
        if sheets[name].shape != expected or sheets[name].dtype != np.uint8:
            raise ValueError(f"{name} is {sheets[name].dtype} {sheets[name].shape}, expected uint8 {expected}")
    return tuple(torch.from_numpy(_poses(sheets[name])) for name in (*CHOSEN, "shoes"))


def _poses(sheet: np.ndarray) -> np.ndarray:
    """[choice, row, height, 9·width, channel] to [choice, action·direction·frame, channel, height, width]."""
    cells = sheet.reshape(len(sheet), 3, 3, PIXELS, 9, PIXELS, 4).transpose(0, 1, 2, 4, 6, 3, 5)
    chosen = np.stack([cells[:, action][:, :, list(frames)] for action, frames in enumerate(FRAMES)], axis=1)
    return np.ascontiguousarray(chosen.reshape(len(sheet), -1, 4, PIXELS, PIXELS))
