"""LPC Sprites against Pillow's own alpha blending."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from unweave.data import lpc_sprites
from unweave.data.lpc_sprites import SPACE, LPCSprites

KINDS = ("body", "bottomwear", "topwear", "hair")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("UNWEAVE_DATA", str(tmp_path))
    (tmp_path / "lpc_sprites").mkdir()
    return tmp_path / "lpc_sprites" / "lpc_sprites_components.npz"


def sheets() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    made = {kind: rng.integers(0, 256, (6, 9, 64, 576, 4), dtype=np.uint8) for kind in KINDS}
    made["shoes"] = rng.integers(0, 256, (9, 64, 576, 4), dtype=np.uint8)
    for sheet in made.values():
        sheet[..., 3] = rng.choice(np.array([0, 230, 255], np.uint8), sheet.shape[:-1])
    return made | {"rows": np.array([1, 2, 3, 9, 10, 11, 13, 14, 15])}


def blended(made: dict[str, np.ndarray], cell: list[int]) -> np.ndarray:
    *choices, action, direction, frame = cell
    column = lpc_sprites.FRAMES[action][frame]
    cut = (3 * action + direction, slice(None), slice(64 * column, 64 * column + 64))
    layers = [made[kind][choice][cut] for kind, choice in zip(KINDS, choices)] + [made["shoes"][cut]]
    image = Image.new("RGBA", (64, 64), "black")
    for layer in layers:
        image = Image.alpha_composite(image, Image.fromarray(np.ascontiguousarray(layer)))
    return np.asarray(image.convert("RGB")).transpose(2, 0, 1)


def check(data: object, made: dict[str, np.ndarray], tolerance: float) -> None:
    cells = SPACE.sample(12, seed=3)
    images = data.examples(SPACE.find(cells, seed=0)).numpy() * 255  # type: ignore[attr-defined]
    for image, cell in zip(images, cells.tolist()):
        np.testing.assert_allclose(image, blended(made, cell), atol=tolerance)


def test_layers_are_blended_in_order(place: Path) -> None:
    made = sheets()
    np.savez(place, **made)
    data = LPCSprites().load()
    assert len(data) == 93_312
    # Pillow rounds after every layer, five times
    check(data.to("cpu"), made, tolerance=2.5)
    assert data.factors(torch.tensor([93_311])).tolist() == [[5, 5, 5, 5, 2, 2, 7]]


def test_real_sheets(shared: Path, place: Path) -> None:
    source = shared / "data" / "lpc_sprites_components.npz"
    if not source.exists():
        pytest.skip("lpc_sprites_components.npz is not here")
    place.symlink_to(source)
    with np.load(source) as file:
        made = {name: file[name] for name in file.files}
    data = LPCSprites().load()
    check(data, made, tolerance=2.5)
    # no chosen frame is an empty one
    everyone = data.examples(torch.arange(72))
    assert (everyone.flatten(1).max(dim=1).values > 0.5).all()


def test_damage_is_named(place: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"lpc_sprites_components\.npz"):
        LPCSprites().load()
    small = {kind: np.zeros((6, 9, 64, 64, 4), np.uint8) for kind in KINDS}
    np.savez(place, **small, shoes=np.zeros((9, 64, 64, 4), np.uint8), rows=np.arange(9))
    with pytest.raises(ValueError, match=r"components\.npz cannot be read .*holds rows \[0, 1"):
        LPCSprites().load()
    np.savez(place, **small, shoes=np.zeros((9, 64, 64, 4), np.uint8), rows=np.array(lpc_sprites.SHEET_ROWS))
    with pytest.raises(ValueError, match=r"body is uint8 \(6, 9, 64, 64, 4\)"):
        LPCSprites().load()
    place.write_bytes(place.read_bytes()[:-300])
    with pytest.raises(ValueError, match=r"components\.npz cannot be read"):
        LPCSprites().load()
