"""Altered worlds: any world with uniform noise, or with the change that a manipulation run has learned.

Nothing is stored: an image is altered when it is asked for, the same way every time, on any device.
"""

import copy
import functools
import hashlib
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

import safetensors
import safetensors.torch
import torch
from torch import nn

from unweave import rng
from unweave.config import from_plain, number, shown, word
from unweave.data.factors import FactorSpace
from unweave.data.files import Progress, Published
from unweave.data.micro import Micro
from unweave.data.world import Alteration, Card, Data, World
from unweave.files import read_json
from unweave.shapes import Float, Int, Tensor


@dataclass(frozen=True)
class Noise(World):
    """Every pixel moved by up to ε, uniformly and for good: image 7 has the same noise each time it is seen."""

    name: ClassVar[str] = "noise"
    base: World = field(default=Micro(), metadata={"help": "the world whose images are altered"})
    epsilon: float = number(0.1, above=0, most=0.5, help="how much a pixel may change")
    seed: int = number(0, least=0, most=2**63 - 1, help="decides the noise")

    def card(self) -> Card:
        return altered_card(self.base, f"with uniform noise of ±{self.epsilon:g}")

    def load(self, progress: Progress | None = None) -> Data:
        self.card()
        data = self.base.load(progress)
        return replace(data, alteration=UniformNoise(self.epsilon, self.seed, data.alteration))

    def files(self) -> tuple[Published, ...]:
        return self.base.files()

    def resolve(self) -> World:
        return replace(self, base=self.base.resolve())

    def near(self, folder: Path) -> World:
        return replace(self, base=self.base.near(folder))


WEIGHTS, LEFT_WEIGHTS, SUMS = "model.safetensors", "weights.json", "SHA256SUMS"
GET = "give the folder of a finished manipulation as run; `unweave perturb` makes one"


@dataclass(frozen=True)
class Perturbed(World):
    """Images changed as a manipulation run has learned: ``unweave perturb`` makes one.

    The folder says where that run is; the SHA-256 of its weights says which one it is, and only that counts. World and
    strength are the run's own where they are not given.
    """

    name: ClassVar[str] = "perturbed"
    run: str = field(default="", metadata={"help": "folder of the manipulation", "identity": False})
    base: World | None = field(default=None, metadata={"help": "the world whose images are altered"})
    epsilon: float | None = number(None, above=0, most=0.5, help="how much a pixel may change")
    checksum: str = word("", "0123456789abcdef", help="SHA-256 of the weights; found by itself")

    def card(self) -> Card:
        if not self.run:
            theirs = "those of the world it alters"
            return Card("Perturbed", (0, 0, 0), None, None, False, GET, "", (theirs,), theirs)
        known = self.resolve() if self.base is None or self.epsilon is None else self
        assert known.base is not None
        card = altered_card(known.base, f"perturbed by up to {known.epsilon:g}")
        if (Path(self.run) / WEIGHTS).is_file():
            return card
        return replace(card, on_disk=False, how_to_get=f"Put the {WEIGHTS} of the manipulation into {self.run}.")

    def load(self, progress: Progress | None = None) -> Data:
        known = self.resolve()
        assert known.base is not None
        assert known.epsilon is not None
        data = known.base.load(progress)
        if data.space is None:
            raise ValueError(f"{known.base.name} has no factors, and a manipulation is a function of them")
        made = Manipulated(self._network(data), known.epsilon, data.space, data.alteration)
        return replace(data, alteration=made)

    def files(self) -> tuple[Published, ...]:
        return () if self.base is None else self.base.files()

    def resolve(self) -> "Perturbed":
        found = self._sum()
        if self.checksum not in ("", found):
            raise ValueError(f"{self.run} is not the manipulation that this world was made with: its weights differ")
        config = self._config()
        base = self.base or _world(config.get("world"))
        if isinstance(base, Perturbed) and base.base is None:  # a finished run names it; else one could name itself
            raise ValueError(f"{self.run} alters a perturbed world and does not say which; give its base")
        epsilon = self.epsilon or _epsilon(config["objective"], self.run)
        return replace(self, run=str(Path(self.run).resolve()), base=base.resolve(), epsilon=epsilon, checksum=found)

    def near(self, folder: Path) -> World:
        """The manipulation may have moved together with the runs that use it, and be called otherwise by now."""
        base = None if self.base is None else self.base.near(folder)
        if not (self.run and self.checksum) or _has(Path(self.run), self.checksum):
            return replace(self, base=base)
        stores = folder.absolute().parents[:2]
        named = (place / Path(self.run).name for place in stores)
        listed = (one for place in stores if place.is_dir() for one in _listing(place, _changed(place), self.checksum))
        found = next((str(one) for one in chain(named, listed) if _has(one, self.checksum)), self.run)
        return replace(self, run=found, base=base)

    def _sum(self) -> str:
        """SHA-256 of the weights; of those that were left behind, what their note says."""
        note = Path(self.run) / LEFT_WEIGHTS
        if not self.run or not note.is_file() or (Path(self.run) / WEIGHTS).is_file():
            return hashlib.sha256(self._content()).hexdigest()
        found = read_json(note, "the checksum of weights that were left behind").get("sha256")
        if not isinstance(found, str):
            raise ValueError(f"{note}: sha256 must be a checksum, not {shown(found)}")
        return found

    def _content(self) -> bytes:
        path = Path(self.run) / WEIGHTS
        if path.is_file() and self.run:
            return path.read_bytes()
        if self.run and self.checksum:
            raise FileNotFoundError(
                f"the manipulation that this world is made with (SHA-256 {self.checksum[:12]}…) is not in {self.run},"
                " nor in any folder beside the run or its store: put it there, or, to train, say where it is with"
                " --world.run FOLDER"
            )
        given = f"there is none in {self.run}" if self.run else "none is named"
        raise FileNotFoundError(
            f"perturbed needs the folder of a finished manipulation, and {given}; `unweave perturb` makes one"
        )

    def _config(self) -> dict[str, Any]:
        path = Path(self.run) / "config.json"
        config = read_json(path, "the config.json of a manipulation")
        objective = config.get("objective")
        if not isinstance(objective, dict) or objective.get("name") != "perturbation":
            raise ValueError(f"{self.run} is a run, but no manipulation; `unweave perturb` makes one")
        return config

    def _network(self, data: Data) -> nn.Module:
        from unweave.models.manipulation import manipulation_for

        place = Path(self.run) / WEIGHTS
        try:
            tensors = safetensors.torch.load(self._content())
        except (ValueError, safetensors.SafetensorError) as error:
            raise ValueError(f"{place} holds no weights that can be read") from error
        return manipulation_for(tensors, self._config().get("network"), data.shape, data.label_sizes, str(place))


def _has(folder: Path, checksum: str) -> bool:
    """Whether a folder holds the manipulation with this SHA-256."""
    path = folder / WEIGHTS
    return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == checksum


@functools.lru_cache(maxsize=64)
def _listing(store: Path, changed: int, checksum: str) -> tuple[Path, ...]:
    """Folders of a store whose list of files has weights with this SHA-256; read again when the store has changed."""
    line = f"{checksum}  {WEIGHTS}"
    return tuple(path.parent for path in sorted(store.glob(f"*/{SUMS}")) if line in _text(path))


def _text(path: Path) -> str:
    """What a file says; nothing where it is none, or not ours to read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    except OSError:
        return ""


def _changed(store: Path) -> int:
    return store.stat().st_mtime_ns


def altered_card(base: World, words: str) -> Card:
    """The card of a world whose images were altered."""
    card = base.card()
    if len(card.shape) != 3:
        raise ValueError(f"only images can be altered so, and {base.name} has none: its examples are {card.shape}")
    return replace(card, title=f"{card.title}, {words}", note=f"{base.name} {words}")


@dataclass(frozen=True)
class UniformNoise(Alteration):
    """fold(x + ε u), u uniform in [−1, 1) and a function of the row and of the pixel; what a base does comes first."""

    epsilon: float
    seed: int
    before: Alteration | None = None

    def apply(self, images: Float[Tensor, "batch ..."], rows: Int[Tensor, " batch"]) -> Tensor:
        images = images if self.before is None else self.before.apply(images, rows)
        drawn = rng.uniform(self.seed, rng.Purpose.ALTERATION, rows, 1, images[0].numel())
        return fold(images + self.epsilon * (2.0 * drawn.view(images.shape) - 1.0))

    def to(self, device: torch.device | str) -> "UniformNoise":
        return replace(self, before=self.before and self.before.to(device))


@dataclass(frozen=True)
class Manipulated(Alteration):
    """fold(x + ε m(w)), w the factors of the row; what a base does comes first."""

    network: nn.Module
    epsilon: float
    space: FactorSpace
    before: Alteration | None = None

    @torch.no_grad()
    def apply(self, images: Float[Tensor, "batch ..."], rows: Int[Tensor, " batch"]) -> Tensor:
        images = images if self.before is None else self.before.apply(images, rows)
        return fold(images + self.epsilon * self.change(rows))

    def change(self, rows: Int[Tensor, " batch"]) -> Float[Tensor, "batch ..."]:
        """m(w) of these rows, every pixel in [−1, 1]."""
        sizes = zip(self.space.strides, self.space.axes)
        values = [rows // stride % axis.size for stride, axis in sizes if not axis.hidden]
        changed: Tensor = self.network(torch.stack(values, dim=-1).to(torch.float32))
        return changed

    def to(self, device: torch.device | str) -> "Manipulated":
        before = self.before and self.before.to(device)
        return replace(self, network=copy.deepcopy(self.network).to(device), before=before)


def fold(moved: Float[Tensor, "batch ..."]) -> Float[Tensor, "batch ..."]:
    """What left [0, 1] reflected back into it: x′ − 2 relu(x′ − 1) + 2 relu(−x′)."""
    return moved - 2.0 * torch.relu(moved - 1.0) + 2.0 * torch.relu(-moved)


def _epsilon(objective: dict[str, Any], run: str) -> float:
    found = objective.get("epsilon")
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise ValueError(f"{run}/config.json: objective.epsilon must be a number, not {shown(found)}")
    return found


def _world(plain: Any) -> World:
    from unweave.data import WORLDS

    world: World = from_plain(World, plain, {World: WORLDS}, "world")
    return world
