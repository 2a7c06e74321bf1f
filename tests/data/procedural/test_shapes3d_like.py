"""The imitated Shapes3D against closed forms and against fifty genuine images."""

from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.spatial import ConvexHull

from unweave.data.procedural import shapes3d
from unweave.data.procedural.shapes3d import N_PLANES, SKY, Recoloured, palette, render_view

FLOOR, WALL, OBJECT, SKY_PLANE = 5, 11, 17, 18
"""The planes of the materials at full level, and the sky's red."""


def camera(orientation: int) -> tuple[np.ndarray, np.ndarray]:
    """Position and rows (right, up, forward), written out from the fitted numbers."""
    angle = np.deg2rad(-30 + 60 * orientation / 14)
    eye = np.array([7.955 * np.sin(angle), 2.853, 7.955 * np.cos(angle)])
    forward = np.array([0, 2.653, 0]) - eye
    forward /= np.linalg.norm(forward)
    right = np.cross(forward, [0, 1, 0])
    right /= np.linalg.norm(right)
    return eye, np.stack([right, np.cross(right, forward), forward])


def project(points: np.ndarray, orientation: int) -> np.ndarray:
    eye, axes = camera(orientation)
    right, up, forward = ((points - eye) @ axes.T).T
    return np.stack([32 + 63.1 * right / forward, 32 - 63.1 * up / forward], axis=1)


@pytest.mark.parametrize(("scale", "orientation"), [(0, 0), (4, 7), (7, 14)])
def test_sphere_covers_the_cone_of_its_angle(scale: int, orientation: int) -> None:
    layers = render_view(scale, 2, orientation)
    radius = 1.747 * (0.324 + 0.676 * scale / 7)
    eye, axes = camera(orientation)
    to_centre = np.array([0, radius, 0]) - eye
    across = np.arange(64) + 0.5 - 32
    x, y = np.meshgrid(across, across)
    rays = np.stack([x, -y, np.full_like(x, 63.1)], axis=-1) @ axes
    cosine = rays @ to_centre / np.linalg.norm(rays, axis=-1) / np.linalg.norm(to_centre)
    inside = np.arccos(cosine) < np.arcsin(radius / np.linalg.norm(to_centre))
    assert (inside != (layers[OBJECT] > 0)).sum() <= 2


@pytest.mark.parametrize(("scale", "orientation"), [(4, 3), (7, 11)])
def test_cube_covers_the_hull_of_its_corners(scale: int, orientation: int) -> None:
    half = 1.584 * (0.324 + 0.676 * scale / 7)
    corners = np.array([(x, y, z) for x in (-half, half) for y in (0, 2 * half) for z in (-half, half)])
    area = ConvexHull(project(corners, orientation)).volume
    assert (render_view(scale, 0, orientation)[OBJECT] > 0).sum() == pytest.approx(area, rel=0.03)


@pytest.mark.parametrize("shape", [1, 3])
def test_upright_solids_stand_on_the_floor_and_reach_their_height(shape: int) -> None:
    radius, half = {1: (1.637, 1.854), 3: (1.503, 3.167)}[shape]
    rows = np.flatnonzero((render_view(7, shape, 7)[OBJECT] > 0).any(axis=1))
    top = project(np.array([[0, 2 * half, radius if shape == 1 else 0]]), 7)[0, 1]
    assert abs(rows[0] + 0.5 - top) < 2.5
    columns = np.flatnonzero((render_view(7, shape, 7)[OBJECT] > 0).any(axis=0))
    assert len(columns) == pytest.approx(2 * 63.1 * radius / np.sqrt(7.955**2 - radius**2), abs=2)


def test_every_pixel_shows_one_thing_and_shadow_is_hard() -> None:
    planes = render_view(5, 2, 6)
    assert planes.shape == (N_PLANES, 64, 64)
    np.testing.assert_array_equal((planes[[FLOOR, WALL, OBJECT, SKY_PLANE]] > 0).sum(axis=0), 1)
    np.testing.assert_array_equal(planes[18:, 0, 0], [153, 226, 249])
    floor = planes[FLOOR][planes[FLOOR] > 0]
    assert floor.min() < 0.6 * 255
    assert np.mean((floor > 0.6 * 255) & (floor < 0.7 * 255)) < 0.1


@pytest.mark.parametrize(("row", "column"), [(60, 5), (50, 3), (45, 60)])
def test_floor_is_lit_as_the_equations_say(row: int, column: int) -> None:
    eye, axes = camera(3)
    ray = np.array([column + 0.5 - 32, 32 - row - 0.5, 63.1]) @ axes
    ray /= np.linalg.norm(ray)
    point = eye - eye[1] / ray[1] * ray
    lamp, aim = np.array([-5.3, 20.32, 1.47]), np.array([-4.17, 0, -1.09])
    to_lamp, axis = lamp - point, lamp - aim
    to_lamp, axis = to_lamp / np.linalg.norm(to_lamp), axis / np.linalg.norm(axis)
    beam = (to_lamp @ axis) ** 11.1
    half = (to_lamp - ray) / np.linalg.norm(to_lamp - ray)
    shade = 0.472 + 0.454 * max(-axes[2][1], 0) + 0.842 * to_lamp[1] * beam
    highlight = 0.253 * beam * half[1] ** 20.3
    planes = render_view(0, 0, 3)
    for level in range(6):
        expected = 255 * np.clip(shade * level / 5 + highlight, 0, 1)
        assert planes[level, row, column] == pytest.approx(expected, abs=0.6)


@pytest.mark.parametrize("supersample", [1, 3])
def test_planes_add_up_to_a_byte(supersample: int) -> None:
    planes = render_view(7, 3, 11, supersample).astype(int)
    brightest = planes[[FLOOR, WALL, OBJECT]].sum(axis=0) + planes[18:].max(axis=0)
    assert brightest.max() <= 255
    for material in (planes[:6], planes[6:12], planes[12:18]):
        assert (np.diff(material, axis=0) >= 0).all()


def test_composed_image_is_the_slow_loop() -> None:
    views = np.stack([render_view(*cell, supersample=2) for cell in ((7, 2, 5), (1, 0, 14), (4, 3, 0))])
    parts = torch.tensor([(1, 2, 9, 4), (0, 0, 5, 5), (2, 7, 1, 3)], dtype=torch.int16)
    images = Recoloured.of(views).to("cpu").compose(parts)
    assert images.shape == (3, 3, 64, 64)
    assert images.dtype == torch.float32
    for image, (view, *hues) in zip(images.numpy(), parts.tolist()):
        for channel in range(3):
            expected = views[view, 18 + channel].astype(int)
            for material, hue in enumerate(hues):
                expected = expected + views[view, 6 * material + round(5 * float(palette()[hue, channel]))]
            np.testing.assert_allclose(image[channel] * 255, expected, atol=1e-4)


def test_hues_are_pure() -> None:
    np.testing.assert_allclose(palette()[[0, 5]], [(1, 0, 0), (0, 1, 1)], atol=1e-6)
    assert palette().shape == (10, 3)


def test_views_run_with_orientation_fastest(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(
        shapes3d, "render_view", lambda *cell: seen.append(cell[:3]) or np.zeros((N_PLANES, 64, 64), np.uint8)
    )
    assert shapes3d.render_views().shape == (480, N_PLANES, 64, 64)
    assert seen[:2] == [(0, 0, 0), (0, 0, 1)]
    assert seen[15] == (0, 1, 0)
    assert seen[-1] == (7, 3, 14)


@pytest.fixture(scope="module")
def genuine(shared: Path) -> tuple[np.ndarray, np.ndarray]:
    path = shared / "data" / "shapes3d_real50.npz"
    if not path.exists():
        pytest.skip("shapes3d_real50.npz with genuine Shapes3D images is not here")
    with np.load(path) as file:
        return file["images"], file["factors_inferred"]


def test_close_to_genuine_images(genuine: tuple[np.ndarray, np.ndarray]) -> None:
    images, factors = genuine
    views = np.stack([render_view(*cell, supersample=2) for cell in factors[:, 3:].tolist()])
    parts = torch.cat([torch.arange(len(images))[:, None], torch.from_numpy(factors[:, :3])], dim=1)
    ours = Recoloured.of(views).compose(parts).numpy() * 255
    error = ((ours - images.transpose(0, 3, 1, 2)) ** 2).mean(axis=(1, 2, 3))
    signal_to_noise = 10 * np.log10(255**2 / error)
    assert signal_to_noise.mean() >= 23.5
    assert signal_to_noise.min() >= 18.5


def test_materials_agree_with_genuine_images(genuine: tuple[np.ndarray, np.ndarray]) -> None:
    """A pixel's material is told by its direction in colour space, where the three hues and the sky differ clearly."""
    right = n = 0
    for image, (floor, wall, thing, *cell) in zip(genuine[0] / 255.0, genuine[1].tolist()):
        apart = [min((a - b) % 10, (b - a) % 10) for a, b in ((floor, wall), (floor, thing), (wall, thing))]
        if min(apart) < 1 or 5 in (floor, wall, thing):
            continue
        colours = np.vstack([palette()[[floor, wall, thing]], SKY])
        directions = colours / np.linalg.norm(colours, axis=1, keepdims=True)
        pixels = image / np.maximum(np.linalg.norm(image, axis=-1, keepdims=True), 1e-9)
        told = (pixels @ directions.T).argmax(axis=-1)
        ours = (render_view(*cell)[[FLOOR, WALL, OBJECT, SKY_PLANE]] > 0).argmax(axis=0)
        right += (told == ours).sum()
        n += told.size
    assert n >= 10 * 64 * 64
    assert right / n >= 0.97
