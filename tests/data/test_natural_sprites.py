"""Natural Sprites from a small file of the published layout."""

import csv
from pathlib import Path

import numpy as np
import pytest
import torch

from unweave import rng
from unweave.data.files import data_folder
from unweave.data.natural_sprites import NaturalSprites, read_transitions, usual
from unweave.data.procedural.sprites import SHAPES, render_sprite

ROWS = [
    [7, 1, [(30.5, 20.25, 400), None, (31.0, 9.0, 90)], [(31.5, 21.25, 410), (3.0, 4.0, 50), (32.0, 8.0, 95)], None],
    [8, 2, None, [(10.0, 50.0, 300), None, None], [(12.0, 52.0, 310), None, None], [(14.0, 54.0, 330), None, None]],
    [9, 2, [(10.0, 50.0, 300), None, None]],
]


def published(rows: list, header: str = "id,cat_id,t_0,t_1,t_2,t_3") -> Path:
    path = data_folder() / "natural_sprites" / "downscale_keepaspect.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        file.write(header + "\r\n")
        csv.writer(file).writerows(rows)
    return path


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNWEAVE_DATA", str(tmp_path))


def many(n: int) -> list:
    generator = np.random.default_rng(2)
    starts = np.column_stack([generator.uniform(15, 49, (n, 2)), generator.integers(100, 900, n)])
    steps = np.column_stack([generator.laplace(0, 1, (n, 2)), generator.integers(-20, 20, n)])
    return [[k, 1, [tuple(a.tolist())], [tuple((a + s).tolist())]] for k, (a, s) in enumerate(zip(starts, steps))]


def test_pairs_are_objects_in_two_frames_of_one_window() -> None:
    smallest = [[1, 1, [(0.0, 0.0, 0.5)], [(0.0, 1.0, 1)]]]
    assert read_transitions(published(smallest)).tolist() == [[[0.0, 0.0, 0.5], [0.0, 1.0, 1.0]]]
    found = read_transitions(published(ROWS))
    assert found.tolist() == [
        [[30.5, 20.25, 400], [31.5, 21.25, 410]],
        [[31.0, 9.0, 90], [32.0, 8.0, 95]],
        [[10.0, 50.0, 300], [12.0, 52.0, 310]],
        [[12.0, 52.0, 310], [14.0, 54.0, 330]],
    ]


def test_outliers_are_left_out_as_in_the_original() -> None:
    pairs = read_transitions(published(many(200)))
    kept = []
    for pair in pairs:
        inside = []
        for place in (0, 1):
            ordered = sorted(pairs[:, place, 2])
            # pandas' quantile: between the values whose places are next to 199 q
            low, high = (np.interp(199 * share, range(200), ordered) for share in (0.05, 0.95))
            inside.append(low <= pair[place, 2] <= high)
        kept.append(all(inside))
    assert np.array_equal(usual(pairs), pairs[kept])
    assert 0.75 < len(usual(pairs)) / 200 < 0.95


def test_areas_exactly_at_a_quantile_are_kept() -> None:
    areas = np.arange(1.0, 22.0)  # twenty steps: the quantiles 0.05 and 0.95 are the second and the last but one
    pairs = np.stack([np.c_[areas, areas, areas]] * 2, axis=1)
    assert usual(pairs)[:, 0, 2].tolist() == areas[1:-1].tolist()


def test_shapes_and_angles_are_equal_parts_of_the_draws() -> None:
    published(many(40))
    labels = NaturalSprites(seed=3).load().labels[::2, 3:]
    for row, drawn in enumerate(rng.words(3, rng.Purpose.WORLD, 0, len(labels), 2).tolist()):
        assert labels[row].tolist() == [int(word / 2**32 * n) for word, n in zip(drawn, (40, 4))]


def test_images_are_sprites_at_their_places() -> None:
    published(many(40))
    data = NaturalSprites().load()
    truth = usual(read_transitions(data_folder() / "natural_sprites" / "downscale_keepaspect.csv"))
    assert len(data) == 2 * len(truth)
    assert data.pairs.tolist() == [[row, row + 1] for row in range(0, len(data), 2)]
    assert data.label_names == ("x", "y", "scale", "angle", "shape")
    assert data.label_sizes[:3] == (0, 0, 0)
    first, second = (data.labels[rows] for rows in data.pairs.unbind(-1))
    assert torch.equal(first[:, 3:], second[:, 3:])
    assert np.allclose(
        first[:, :3], np.column_stack([truth[:, 0, 1] / 64, truth[:, 0, 0] / 64, truth[:, 0, 2] ** 0.5 / 64])
    )
    for row in (0, 7, len(data) - 1):
        x, y, scale, angle, shape = data.labels[row].tolist()
        expected = render_sprite(list(SHAPES)[int(shape)], x, y, scale, angle * 9, 64)
        assert np.abs(data.store[row, 0].numpy().astype(int) - expected).mean() < 0.5
    again = NaturalSprites(seed=1).load()
    assert torch.equal(again.labels[:, :3], data.labels[:, :3])
    assert (again.labels[:, 3:] != data.labels[:, 3:]).any()
    assert torch.equal(NaturalSprites().load().store, data.store)


def test_discrete_values_are_the_nearest_centres() -> None:
    published(many(300))
    data = NaturalSprites(discrete=True).load()
    truth = usual(read_transitions(data_folder() / "natural_sprites" / "downscale_keepaspect.csv"))
    assert data.labels.dtype == torch.int64
    assert data.label_sizes == (32, 32, 6, 40, 4)
    for column, (place, n) in enumerate(((1, 32), (0, 32), (2, 6))):
        values = truth[..., place].reshape(-1)
        edges = np.histogram(values, bins=n)[1]
        centres = edges[:-1] + (edges[1:] - edges[:-1]) / 2
        nearest = np.abs(values[None] - centres[:, None]).argmin(axis=0)
        assert np.array_equal(data.labels[:, column].numpy(), nearest)
    assert (NaturalSprites().load().store != data.store).any()


@pytest.mark.parametrize(
    ("rows", "header", "complaint"),
    [
        (ROWS, "a,b,c", "its header does not begin with id, cat_id"),
        ([], "id,cat_id,t_0", "it has no object in two consecutive frames"),
        ([[1, 1, "hello"]], "id,cat_id,t_0", "line 2, t_0: 'hello' is no list"),
        ([[1, 1, [(1.0, 2.0)]]], "id,cat_id,t_0", "line 2, t_0"),
        ([[1, 1, [(1.0, 2.0, 0)]]], "id,cat_id,t_0", "line 2, t_0"),
        ([[1, 1, [(1.0, 2.0, 1e999)]]], "id,cat_id,t_0", "line 2, t_0"),
        ([[1, 1, [[1.0, 2.0, 3.0]]]], "id,cat_id,t_0", "line 2, t_0"),
        ([[1, 1, [(1.0, 2.0, "3")]]], "id,cat_id,t_0", "line 2, t_0"),
        ([[1, 1, None, "[__import__('os')]"]], "id,cat_id,t_0", "line 2, t_1"),
        ([[1, 1, "[" * 5000]], "id,cat_id,t_0", "line 2, t_0"),
    ],
)
def test_other_files_are_refused_by_place(rows: list, header: str, complaint: str) -> None:
    path = published(rows, header)
    with pytest.raises(ValueError, match=complaint) as caught:
        NaturalSprites().load()
    assert str(path) in str(caught.value)
    assert len(str(caught.value)) < 600
