"""The dSprites worlds: sources, caching, the published file and files that only look like it."""

import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from unweave import config
from unweave.data import dsprites
from unweave.data.dsprites import ColorDSprites, DSprites, NoisyDSprites, ScreamDSprites, read_published
from unweave.data.factors import Factor, FactorSpace
from unweave.data.files import Published
from unweave.data.procedural.dsprites import render
from unweave.data.world import World, unpack
from unweave.files import digest

SMALL = FactorSpace(
    (Factor("shape", 3, "categorical"), Factor("scale", 2), Factor("orientation", 2), Factor("x", 3), Factor("y", 4))
)
FOLDER = "dsprites"
FILE = dsprites.PUBLISHED.file


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder of its own and a grid of 144 images; returns the folder of dsprites."""
    monkeypatch.setenv("UNWEAVE_DATA", str(tmp_path))
    monkeypatch.setattr(dsprites, "SPACE", SMALL)
    monkeypatch.setattr(dsprites, "render_grid", lambda progress=None: render(small_factors()))
    (tmp_path / FOLDER).mkdir()
    return tmp_path / FOLDER


def small_factors() -> np.ndarray:
    return SMALL.coordinates(torch.arange(SMALL.n_cells)).numpy()


def published_arrays() -> dict[str, np.ndarray]:
    """The layout of the published file; images that the renderer would not give."""
    images = np.random.default_rng(0).integers(0, 2, size=(SMALL.n_cells, 64, 64), dtype=np.uint8)
    classes = np.concatenate([np.zeros((SMALL.n_cells, 1), dtype=np.int64), small_factors()], axis=1)
    return {"imgs": images, "latents_classes": classes, "latents_values": classes.astype(float)}


@pytest.fixture
def publish(small: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    def write(**changes: np.ndarray) -> Path:
        path = small / FILE
        # the object array stands for the pickled metadata that the reader must leave alone
        np.savez_compressed(path, metadata=np.array({"title": "x"}, dtype=object), **(published_arrays() | changes))
        checked = Published(FILE, "https://example.org/" + FILE, f"md5:{digest(path, 'md5')}")
        monkeypatch.setattr(dsprites, "PUBLISHED", checked)
        return path

    return write


def test_space_and_name() -> None:
    assert dsprites.SPACE.sizes == (3, 6, 40, 32, 32)
    assert dsprites.SPACE.names == ("shape", "scale", "orientation", "x", "y")
    assert [factor.kind for factor in dsprites.SPACE.factors] == [
        "categorical",
        "ordinal",
        "cyclic",
        "ordinal",
        "ordinal",
    ]
    assert config.to_plain(DSprites("rendered")) == {"name": "dsprites", "source": "rendered"}


def test_rendered_images_are_cached_and_come_out_as_rendered(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = DSprites().load()
    assert (small / "rendered-v1.npy").exists()
    rows = torch.tensor([100, 3, 3, 143])
    images = data.examples(rows)
    assert images.shape == (4, 1, 64, 64)
    assert images.dtype == torch.float32
    expected = np.unpackbits(render(small_factors()[rows.numpy()]), axis=1).reshape(4, 1, 64, 64)
    assert (images.numpy() == expected).all()
    assert (data.factors(rows).numpy() == small_factors()[rows.numpy()]).all()
    monkeypatch.delattr(dsprites, "render_grid")  # a second load must not render again
    assert (DSprites("rendered").load().store == data.store).all()


def test_bits_survive_packing() -> None:
    images = np.random.default_rng(1).integers(0, 2, size=(9, 1, 64, 64), dtype=np.uint8)
    packed = torch.from_numpy(np.packbits(images.reshape(9, -1), axis=1))
    assert (unpack(packed, "bits", (1, 64, 64)).numpy() == images).all()


def test_auto_takes_the_published_file_when_it_is_there(small: Path, publish: Callable[..., Path]) -> None:
    assert DSprites().resolve() == DSprites("rendered")
    assert "re-rendered" in DSprites().card().note
    assert "seconds" in DSprites().card().how_to_get
    publish()
    for world in (DSprites, ColorDSprites, NoisyDSprites):
        assert world().resolve() == world("published")
        assert world("rendered").resolve() == world("rendered")
    assert DSprites().card().note == "the published images"
    assert DSprites().card().on_disk


def test_published_and_rendered_are_kept_apart(small: Path, publish: Callable[..., Path]) -> None:
    rendered = DSprites().load()
    publish()
    published = DSprites().load()
    rows = torch.arange(SMALL.n_cells)
    assert (published.examples(rows)[:, 0].numpy() == published_arrays()["imgs"]).all()
    assert (DSprites("rendered").load().store == rendered.store).all()
    assert (published.store != rendered.store).any()
    assert {path.name for path in small.glob("*.npy")} == {"rendered-v1.npy", "published-v1.npy"}


def test_a_conversion_stands_in_for_its_file(small: Path, publish: Callable[..., Path]) -> None:
    path = publish()
    first = DSprites("published").load()
    path.unlink()
    assert DSprites().resolve() == DSprites("published")
    assert (DSprites().load().store == first.store).all()


def test_progress_is_told(small: Path, publish: Callable[..., Path]) -> None:
    publish()
    seen: list[tuple[str, int, int]] = []
    DSprites("published").load(lambda *state: seen.append(state))
    assert ("converting dsprites", 144, 144) in seen


def test_a_missing_file_is_named_with_its_place_and_checksum(small: Path) -> None:
    with pytest.raises(FileNotFoundError) as error:
        DSprites("published").load()
    for part in (FILE, str(small / FILE), "unweave worlds get dsprites --unchecked", "unweave worlds dsprites"):
        assert part in str(error.value)
    how = DSprites("published").card().how_to_get
    for part in (FILE, str(small / FILE), "md5:7da33b31b13a06f4b04a70402ce90c2e", "github.com/deepmind"):
        assert part in how
    assert not list(small.glob("*.npy"))


def test_a_file_with_another_checksum_is_refused(small: Path, publish: Callable[..., Path]) -> None:
    path = publish()
    path.write_bytes(path.read_bytes()[:-1000])
    with pytest.raises(ValueError, match="not the published file"):
        DSprites("published").load()
    assert not list(small.glob("*.npy"))


@pytest.mark.parametrize("keep", [0.0, 0.3, 0.99])
def test_a_truncated_file_is_refused_even_without_a_checksum(
    publish: Callable[..., Path], small: Path, keep: float
) -> None:
    path = publish()
    whole = path.read_bytes()
    path.write_bytes(whole[: int(keep * len(whole))])
    with pytest.raises(ValueError, match="cannot be read as the published dSprites npz") as error:
        read_published(path)
    assert str(path) in str(error.value)


def test_a_short_member_is_refused(publish: Callable[..., Path], small: Path) -> None:
    path = publish()
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members["imgs.npy"] = members["imgs.npy"][:-5000]
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    with pytest.raises(ValueError, match="5000 bytes are missing"):
        read_published(path)


def test_headers_of_python_2_are_read_quietly(publish: Callable[..., Path], small: Path) -> None:
    """The published file was written by Python 2, whose long integers end in L."""
    path = publish()
    images = published_arrays()["imgs"]
    text = b"{'descr': '|u1', 'fortran_order': False, 'shape': (144L, 64L, 64L), }"
    text += b" " * (-(len(text) + 11) % 16) + b"\n"
    with zipfile.ZipFile(path) as archive:
        classes = archive.read("latents_classes.npy")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("latents_classes.npy", classes)
        archive.writestr("imgs.npy", b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + images.tobytes())
    assert (np.unpackbits(read_published(path)).reshape(images.shape) == images).all()


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"imgs": np.zeros((144, 32, 32), dtype=np.uint8)}, r"imgs is uint8 \(144, 32, 32\), expected uint8"),
        ({"imgs": np.zeros((143, 64, 64), dtype=np.uint8)}, r"imgs is uint8 \(143, 64, 64\)"),
        ({"imgs": np.zeros((144, 64, 64), dtype=np.float32)}, "imgs is float32"),
        ({"imgs": np.full((144, 64, 64), 255, dtype=np.uint8)}, "goes up to 255, expected 0 and 1"),
        ({"latents_classes": np.zeros((144, 5), dtype=np.int64)}, r"latents_classes is int64 \(144, 5\)"),
        ({"latents_classes": np.zeros((144, 6), dtype=np.int64)}, "not in the published order"),
        ({"latents_classes": np.empty((144, 6), dtype=object)}, "plain numbers"),
    ],
)
def test_wrong_contents_are_refused(
    publish: Callable[..., Path], small: Path, changes: dict[str, np.ndarray], complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint) as error:
        read_published(publish(**changes))
    assert FILE in str(error.value)


def test_a_file_without_images_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "other.npz", something=np.zeros(3))
    with pytest.raises(ValueError, match=r"other.npz cannot be read as the published dSprites npz"):
        read_published(tmp_path / "other.npz")


def test_a_cache_of_another_shape_is_refused(small: Path) -> None:
    np.save(small / "rendered-v1.npy", np.zeros((3, 512), dtype=np.uint8))
    with pytest.raises(ValueError, match=r"rendered-v1.npy holds uint8 \(3, 512\), not dSprites"):
        DSprites("rendered").load()


def test_an_unknown_source_is_refused() -> None:
    with pytest.raises(ValueError, match="source must be one of auto, published, rendered, not 'other'"):
        config.from_plain(World, {"name": "dsprites", "source": "other"}, {World: {"dsprites": DSprites}})


@pytest.mark.parametrize("world", [ColorDSprites("rendered"), NoisyDSprites("rendered")])
def test_variants_draw_afresh_by_seed_step_and_place(small: Path, world: World) -> None:
    data = world.load()
    assert data.shape == (3, 64, 64) == world.card().shape
    rows = torch.tensor([5, 5, 77])
    images = data.examples(rows, seed=1, step=2)
    assert images.shape == (3, 3, 64, 64)
    assert (images == data.examples(rows, seed=1, step=2)).all()
    assert (images[0] != images[1]).any()
    assert (images != data.examples(rows, seed=1, step=3)).any()
    assert (images != data.examples(rows, seed=2, step=2)).any()
    sprite = DSprites("rendered").load().examples(rows) == 1
    inside = images[sprite.expand_as(images)]
    assert inside.min() >= 0.5 if isinstance(world, ColorDSprites) else (inside == 1).all()


def test_scream_uses_the_painting(small: Path, shared: Path) -> None:
    folder = small.parent / "scream_dsprites"
    world = ScreamDSprites("rendered")
    with pytest.raises(FileNotFoundError) as error:
        world.load()
    for part in ("scream.jpg", str(folder / "scream.jpg"), "unweave worlds scream_dsprites"):
        assert part in str(error.value)
    assert "no checksum" in world.card().how_to_get
    assert not world.card().on_disk
    folder.mkdir()
    (folder / "scream.jpg").write_bytes((shared / "data" / "scream.jpg").read_bytes())
    assert world.card().on_disk
    data = world.load()
    # 352 × 448 shrunk into 350 × 274
    assert data.nuisance.picture.shape == (3, 274, 215)
    images = data.examples(torch.zeros(300, dtype=torch.long), seed=3)
    sprite = (DSprites("rendered").load().examples(torch.tensor([0])) == 1)[0, 0]
    # E[(patch + U)/2]: between 1/4 and 3/4 outside; inside its negative, so the two means add up to about one
    outside = images[:, :, ~sprite].mean()
    assert 0.25 < outside < 0.75
    assert images.min() >= 0
    assert images.max() <= 1
    assert (images[:, :, ~sprite].mean((1, 2)).std() > 0.05).item()


def test_a_broken_or_small_painting_is_refused(tmp_path: Path) -> None:
    from PIL import Image

    (tmp_path / "scream.jpg").write_bytes(b"no picture")
    with pytest.raises(ValueError, match=r"scream.jpg cannot be read as a picture"):
        dsprites.read_painting(tmp_path / "scream.jpg")
    Image.new("RGB", (64, 64)).save(tmp_path / "small.png")
    with pytest.raises(ValueError, match=r"has only \(64, 64\) pixels"):
        dsprites.read_painting(tmp_path / "small.png")
    Image.new("RGB", (65, 65)).save(tmp_path / "enough.png")
    assert dsprites.read_painting(tmp_path / "enough.png").shape == (3, 65, 65)


@pytest.mark.slow
def test_the_whole_world_from_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNWEAVE_DATA", str(tmp_path))
    data = DSprites("rendered").load()
    cache = tmp_path / "dsprites" / "rendered-v1.npy"
    assert cache.stat().st_size < 400e6
    rows = torch.randint(0, len(data), (200,), generator=torch.Generator().manual_seed(0))
    expected = np.unpackbits(render(data.factors(rows).numpy()), axis=1).reshape(200, 1, 64, 64)
    assert (data.examples(rows).numpy() == expected).all()
    cache.unlink()


def test_files_are_needed_where_images_are_not_rendered() -> None:
    assert DSprites(source="rendered").files() == ()
    assert DSprites(source="published").files() == (dsprites.PUBLISHED,)
