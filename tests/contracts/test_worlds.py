"""What every world promises, over the whole table."""

import dataclasses
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
import torch

from unweave.config import fingerprint, from_plain, to_plain
from unweave.data import WORLDS, shapes3d
from unweave.data.procedural.shapes3d import render_view
from unweave.data.world import Data, World

TABLES = {World: WORLDS}
FILES = {
    "cars3d": "cars3d_64.npz",
    "mnist": "mnist.npz",
    "fashion_mnist": "fashion_mnist.npz",
    "lpc_sprites": "lpc_sprites_components.npz",
    "scream_dsprites": "scream.jpg",
}
"""Real files that make a world loadable here."""


def _generated() -> tuple[str, ...]:
    """Worlds that say they are here though nothing is on the disk."""
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as empty:
        patch.setenv("UNWEAVE_DATA", empty)
        return tuple(name for name, cls in WORLDS.items() if name != "images" and cls().card().on_disk)


GENERATED = _generated()
SMALL = {name: {"n_points": 100} for name in ("synth_lin", "synth_nonlin", "pcl_toy")}
SLOW = {"cars3d"}


@pytest.fixture(params=WORLDS)
def world(request: pytest.FixtureRequest) -> World:
    return WORLDS[request.param]()


def test_worlds_are_frozen_dataclasses(world: World) -> None:
    assert dataclasses.is_dataclass(world)
    field = (*dataclasses.fields(world), None)[0]
    if field is not None:
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(world, field.name, None)


def test_card_needs_no_data(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNWEAVE_DATA", str(tmp_path))
    card = world.card()
    assert card.title
    assert card.how_to_get
    for file in world.files():
        assert file.file in card.how_to_get or file.address in card.how_to_get
        assert str(tmp_path) in card.how_to_get
    if card.space is not None:
        assert card.n_examples == card.space.n_cells
    assert not any(tmp_path.rglob("*"))


def test_config_round_trip(world: World) -> None:
    plain = to_plain(world)
    again = from_plain(World, plain, TABLES)
    assert again == world
    assert fingerprint(again) == fingerprint(world)
    assert from_plain(World, type(world).name, TABLES) == world


def test_resolving_twice_changes_nothing(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNWEAVE_DATA", str(tmp_path / "data"))
    if type(world).name == "images":
        (tmp_path / "x.idx").write_bytes(bytes([0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1, 77, 78]))
        world = type(world)(path=str(tmp_path / "x.idx"))
    if type(world).name == "table":
        (tmp_path / "x.csv").write_text("a,b\n1,2\n3,5\n")
        world = type(world)(path=str(tmp_path / "x.csv"))
    if type(world).name == "perturbed":
        pytest.skip("needs a trained manipulation: tests/models/test_perturbation.py")
    resolved = world.resolve()
    assert resolved.resolve() == resolved
    assert from_plain(World, to_plain(resolved), TABLES) == resolved


def test_missing_data_is_a_plain_error(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if type(world).name in GENERATED:
        pytest.skip("generated here: nothing can be missing")
    monkeypatch.setenv("UNWEAVE_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"not on this machine|needs"):
        world.load()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One data folder for the module, so that what is rendered or converted is so once."""
    return tmp_path_factory.mktemp("worlds")


def loaded(name: str, folder: Path, shared: Path, monkeypatch: pytest.MonkeyPatch) -> Data:
    monkeypatch.setenv("UNWEAVE_DATA", str(folder))
    if name in FILES:
        source, place = shared / "data" / FILES[name], folder / name / FILES[name]
        if not source.exists():
            pytest.skip(f"{source.name} is not here")
        place.parent.mkdir(exist_ok=True)
        if not place.exists():
            place.symlink_to(source)
    if name == "shapes3d_like":
        few = {shape: render_view(5, shape, 4) for shape in range(4)}
        views = np.stack([few[view // 15 % 4] for view in range(480)])
        monkeypatch.setattr(shapes3d, "render_views", lambda: views)
    return WORLDS[name](**SMALL.get(name, {})).load()


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in (*GENERATED, *FILES)]
)
def test_examples(name: str, folder: Path, shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = loaded(name, folder, shared, monkeypatch)
    card = WORLDS[name](**SMALL.get(name, {})).card()
    assert data.shape == card.shape
    assert len(data) == card.n_examples
    rows = torch.tensor([0, 1, len(data) // 3, len(data) - 1])
    examples = data.examples(rows, seed=3, step=5)
    assert examples.shape == (4, *data.shape)
    assert examples.dtype == torch.float32
    assert torch.equal(examples, data.examples(rows, seed=3, step=5))
    again = loaded(name, folder, shared, monkeypatch)
    assert torch.equal(examples, again.examples(rows, seed=3, step=5))
    assert torch.equal(data.to("cpu").examples(rows[2:3]), data.examples(rows[2:3]))
    if len(data.shape) == 3:
        assert 0 <= float(examples.min()) < float(examples.max()) <= 1
    assert bool(torch.isfinite(examples).all())
    truth = data.factors(rows)
    if data.space is not None:
        assert torch.equal(data.factors(data.space.find(truth, seed=1)), truth)
        assert truth[0].tolist() == [0] * len(data.space.factors)
        assert truth[-1].tolist() == [factor.size - 1 for factor in data.space.factors]
    else:
        assert truth.shape == (4, len(data.label_names))


def test_importing_is_light() -> None:
    code = "import sys, unweave.data; print([m for m in sys.argv[1:] if m in sys.modules])"
    heavy = ("h5py", "PIL", "scipy", "sklearn", "polars", "matplotlib", "rich")
    ran = subprocess.run([sys.executable, "-c", code, *heavy], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
