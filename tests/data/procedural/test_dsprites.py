"""The dSprites renderer against genuine frames and against a slow point-in-polygon loop."""

from pathlib import Path

import numpy as np
import pytest

from unweave.data.procedural import dsprites


def images_of(packed: np.ndarray) -> np.ndarray:
    return np.unpackbits(packed, axis=1).reshape(-1, 64, 64)


def random_factors(n: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, dsprites.SIZES, size=(n, 5))


def test_genuine_frames_come_out_identical(shared: Path) -> None:
    genuine = np.load(shared / "data" / "dsprites_real_gif320.npz")
    ours = images_of(dsprites.render(genuine["latents_classes"][:, 1:]))
    wrong = (ours != genuine["imgs"]).sum(axis=(1, 2))
    assert (wrong == 0).sum() >= 316
    assert wrong.sum() <= 8


def test_scan_lines_agree_with_a_point_in_polygon_loop() -> None:
    factors = random_factors(12, seed=1)
    for row, image in zip(factors.tolist(), images_of(dsprites.render(factors))):
        assert (image == slow_image(*row)).all(), row


def slow_image(shape: int, scale: int, orientation: int, x: int, y: int) -> np.ndarray:
    """Every pixel centre is taken back to the unturned sprite and looked for inside its outline."""
    angle = np.linspace(0, 2 * np.pi, 40)[orientation]
    image = np.zeros((64, 64), dtype=np.uint8)
    corners = dsprites.outline(shape) * np.linspace(0.5, 1, 6)[scale]
    for row in range(64):
        for column in range(64):
            right, down = column + 0.5 - (16 + 32 * x / 31), row + 0.5 - (16 + 32 * y / 31)
            if np.hypot(right, down) < 16:
                # anticlockwise on a screen whose y points down
                point = (
                    np.cos(angle) * right - np.sin(angle) * down,
                    np.sin(angle) * right + np.cos(angle) * down,
                )
                image[row, column] = winding(corners, point)
    return image


def winding(corners: np.ndarray, point: tuple[float, float]) -> bool:
    """Whether the outline turns round the point: the sum of the angles under which its edges are seen."""
    seen = np.arctan2(corners[:, 1] - point[1], corners[:, 0] - point[0])
    turns = np.diff(np.append(seen, seen[0]))
    return bool(abs(((turns + np.pi) % (2 * np.pi) - np.pi).sum()) > np.pi)


def test_areas_are_those_of_the_shapes() -> None:
    # over all positions the rounding to pixels averages out
    areas = [
        [np.unpackbits(dsprites.all_positions(shape, scale, 7)).sum() / 1024 for scale in (0, 5)] for shape in range(3)
    ]
    t = np.linspace(0, 2 * np.pi, 100_001)
    heart_x = 0.5997 * 16 * np.sin(t) ** 3
    heart_y = 0.6622 * (13 * np.cos(t) - 5 * np.cos(2 * t) - 2 * np.cos(3 * t) - np.cos(4 * t))
    heart = abs(((heart_y[1:] + heart_y[:-1]) / 2 * np.diff(heart_x)).sum())
    exact = np.array([(2 * 9.598) ** 2, np.pi * 12.77 * 7.23, heart])
    np.testing.assert_allclose(areas, exact[:, None] * np.array([0.25, 1.0]), rtol=0.004)


def test_the_last_orientation_repeats_the_first() -> None:
    factors = random_factors(30, seed=2)
    factors[:, 2] = 0
    again = factors.copy()
    again[:, 2] = 39
    assert (dsprites.render(factors) == dsprites.render(again)).all()


def test_a_row_does_not_depend_on_its_neighbours() -> None:
    factors = random_factors(20, seed=3)
    together = dsprites.render(factors)
    assert (together[[7]] == dsprites.render(factors[[7]])).all()
    assert (dsprites.render(factors[::-1]) == together[::-1]).all()


def test_sprites_never_touch_the_border() -> None:
    edges = np.array([(s, 5, o, x, y) for s in range(3) for o in range(0, 40, 3) for x in (0, 31) for y in (0, 31)])
    images = images_of(dsprites.render(edges))
    assert not images[:, [0, -1]].any()
    assert not images[:, :, [0, -1]].any()


def test_x_moves_right_and_y_moves_down() -> None:
    images = images_of(dsprites.render(np.array([(0, 0, 0, 0, 0), (0, 0, 0, 31, 0), (0, 0, 0, 0, 31)])))
    rows, columns = [image.any(axis=1).argmax() for image in images], [image.any(axis=0).argmax() for image in images]
    assert columns[1] == columns[0] + 32
    assert rows[2] == rows[0] + 32
    assert rows[1] == rows[0]
    assert columns[2] == columns[0]


@pytest.mark.parametrize("bad", [[0, 0, 0, 0, 32], [3, 0, 0, 0, 0], [0, -1, 0, 0, 0]])
def test_factors_outside_the_grid_are_refused(bad: list[int]) -> None:
    with pytest.raises(ValueError, match="shape, scale, orientation, x, y"):
        dsprites.render(np.array([bad]))


def test_four_factors_are_refused() -> None:
    with pytest.raises(ValueError, match=r"\[sample, 5\]"):
        dsprites.render(np.zeros((2, 4), dtype=np.int64))


def test_no_rows_give_no_images() -> None:
    assert dsprites.render(np.zeros((0, 5), dtype=np.int64)).shape == (0, 512)


@pytest.mark.slow
def test_the_whole_grid_is_in_order_and_mostly_distinct() -> None:
    seen: list[tuple[str, int, int]] = []
    grid = dsprites.render_grid(lambda *state: seen.append(state))
    assert grid.shape == (737_280, 512)
    assert grid.nbytes < 400e6
    assert seen[-1][1:] == (720, 720)
    rows = np.random.default_rng(4).integers(0, len(grid), 300)
    factors = np.stack(np.unravel_index(rows, dsprites.SIZES), axis=-1)
    assert (grid[rows] == dsprites.render(factors)).all()
    n_distinct = len({hash(image.tobytes()) for image in grid})
    assert 715_000 < n_distinct < 717_000
