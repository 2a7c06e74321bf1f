"""What every data set is: a description that costs nothing (`World`) and, once loaded, plain tensors (`Data`)."""

import html
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

import torch

from unweave import rng
from unweave.data.columns import Columns, shortened
from unweave.data.factors import FactorSpace
from unweave.data.files import Progress, Published, absent, place_of
from unweave.data.notebook import chosen_rows, rows_of, strip_of
from unweave.shapes import Float, Int, Shaped, Tensor
from unweave.words import number_of


class Nuisance(ABC):
    """Something drawn afresh for every example that is not a factor: a tint, noise, a background."""

    n_draws: int
    """Uniform numbers that one example needs."""

    @abstractmethod
    def apply(
        self, images: Float[Tensor, "batch channel height width"], draws: Float[Tensor, "batch draw"]
    ) -> Float[Tensor, "batch colour height width"]:
        """The images with the nuisance that these draws stand for."""


class Composition(ABC):
    """Images put together from shared parts when they are asked for, where whole ones would fill the memory."""

    @abstractmethod
    def compose(self, parts: Int[Tensor, "batch part"]) -> Float[Tensor, "batch channel height width"]:
        """The images, float32 in [0, 1], that consist of these parts."""

    @abstractmethod
    def to(self, device: torch.device | str) -> "Composition":
        """The same parts, resident on a device."""


class Alteration(ABC):
    """A fixed change of every example of a data set: a function of the example and of its row."""

    @abstractmethod
    def apply(
        self, images: Float[Tensor, "batch channel height width"], rows: Int[Tensor, " batch"]
    ) -> Float[Tensor, "batch channel height width"]:
        """The altered images of these rows."""

    @abstractmethod
    def to(self, device: torch.device | str) -> "Alteration":
        """The same change, made on a device."""


Packing = Literal["bits", "bytes", "floats", "parts"]

AT_ONCE = 4096
"""Examples that are altered together."""

MOST_VALUES = 1000
"""A label of whole numbers up to this many has that many values; beyond, it is a continuous number."""


@dataclass(frozen=True)
class Data:
    """A loaded data set: one tensor of examples and what is known of them.

    ``store`` holds bits (uint8 [sample, byte], eight pixels a byte, first pixel in the highest bit), bytes
    (uint8 [sample, channel, height, width]), floats (float32 [sample, …]) or parts (integers [sample, part], from which
    ``composition`` makes the images); examples come out as float32 in [0, 1], or as they are for floats. ``pairs`` are
    the rows that belong together, where the data says so: first and second. ``weights`` say how often a row comes in
    training, where that is not uniform. An ``alteration`` comes last, after any nuisance. ``segments`` are what methods
    with labels are told of each row, where that is not the labels by which codes are scored.

    Where ``columns`` are known, an example is a row of a table. The model sees it standardised (:meth:`examples`); a
    person who looks at rows sees them in the units of the columns.
    """

    store: Shaped[Tensor, "sample ..."]
    shape: tuple[int, ...]
    packing: Packing = "bytes"
    space: FactorSpace | None = None
    labels: Shaped[Tensor, "sample label"] | None = None
    label_names: tuple[str, ...] = ()
    nuisance: Nuisance | None = None
    composition: Composition | None = None
    pairs: Int[Tensor, "pair 2"] | None = None
    weights: Float[Tensor, " sample"] | None = None
    segments: Int[Tensor, " sample"] | None = None
    alteration: Alteration | None = None
    worlds: "tuple[World, ...]" = ()
    """Where the store holds several worlds of one size, one after the other: which."""
    columns: Columns | None = None
    world: "World | None" = None
    """What they were loaded from, where they say so."""

    @property
    def n_of_each(self) -> int:
        """How many examples each of its worlds has."""
        return len(self) // max(1, len(self.worlds))

    def __len__(self) -> int:
        return len(self.store)

    def to(self, device: torch.device | str) -> "Data":
        """The same data, resident on a device."""
        names = ("labels", "composition", "pairs", "weights", "segments", "alteration")
        parts = {name: getattr(self, name) for name in names}
        moved: dict[str, Any] = {name: None if part is None else part.to(device) for name, part in parts.items()}
        return replace(self, store=self.store.to(device), **moved)

    @cached_property
    def label_sizes(self) -> tuple[int, ...]:
        """How many values each column of :meth:`given` has: whole numbers 0 … n − 1 have n, others count as 0."""
        if self.segments is not None:
            return (int(self.segments.max()) + 1,)
        if self.space is not None:
            return self.space.sizes
        return () if self.labels is None else tuple(_n_values(column) for column in self.labels.unbind(-1))

    def examples(
        self, rows: Int[Tensor, " batch"], *, seed: int = 0, step: int = 0, purpose: int = rng.Purpose.NUISANCE
    ) -> Float[Tensor, "batch ..."]:
        """Examples by row number. A nuisance is a function of (seed, step, place in the batch)."""
        images = self.unpacked(self.store[rows])
        if self.nuisance is not None:
            draws = rng.uniform(seed, purpose, step, len(rows), self.nuisance.n_draws)
            images = self.nuisance.apply(images, draws.to(images.device))
        return images if self.alteration is None else self.alteration.apply(images, rows)

    @property
    def comes_as_stored(self) -> bool:
        """Whether unpacking is all that happens to an example on its way to a model."""
        return self.nuisance is None and self.composition is None and self.alteration is None

    def altered_once(self, most: int) -> "Data":
        """The same examples, altered now and not whenever they are asked for, if all take no more bytes than that."""
        n_bytes = 4 * len(self) * math.prod(self.shape)
        if self.alteration is None or self.nuisance is not None or n_bytes > most:
            return self
        store = torch.empty(len(self), *self.shape, device=self.store.device)
        for rows in torch.arange(len(self), device=self.store.device).split(AT_ONCE):
            store[rows] = self.examples(rows)
        return replace(self, store=store, packing="floats", composition=None, alteration=None)

    def factors(self, rows: Any = None) -> Shaped[Tensor, "*any factor"]:
        """The factors of rows in a world, or the labels of labelled data; rows are chosen as in :meth:`images`."""
        if not isinstance(rows, Tensor):
            rows = chosen_rows(slice(None) if rows is None else rows, len(self))
        if self.space is not None:
            return self.space.values(rows)
        if self.labels is not None:
            return self.labels[rows]
        raise ValueError("this data set has neither factors nor labels")

    def given(self, rows: Int[Tensor, "*any"]) -> Shaped[Tensor, "*any label"]:
        """What methods with labels are told of rows: their segment where there are segments, else their factors."""
        return self.factors(rows) if self.segments is None else self.segments[rows][..., None]

    @property
    def given_names(self) -> tuple[str, ...]:
        """The names of the columns of :meth:`given`."""
        if self.segments is not None:
            return ("segment",)
        if self.space is not None:
            return self.space.names
        return self.label_names or tuple(str(place) for place in range(len(self.label_sizes)))

    def images(self, rows: Any = None) -> Float[Tensor, "batch ..."]:
        """Examples by row number: a number, a slice, a list, an array or a mask; all of them without one."""
        return self._in_units(torch.atleast_1d(chosen_rows(slice(None) if rows is None else rows, len(self))))

    def __getitem__(self, rows: Any) -> Float[Tensor, "..."]:
        """One example for a number, several for anything else that chooses rows."""
        chosen = chosen_rows(rows, len(self))
        return self._in_units(chosen) if chosen.dim() else self._in_units(chosen[None])[0]

    def __iter__(self) -> Iterator[Float[Tensor, "..."]]:
        for begin in range(0, len(self), 256):
            yield from self[begin : begin + 256]

    def __repr__(self) -> str:
        if self.space is not None:
            known = "; factors " + ", ".join(
                f"{name} ({size})" for name, size in zip(self.space.names, self.space.sizes)
            )
        else:
            known = f"; labels {', '.join(self.label_names)}" if self.label_names else ""
        if self.columns is not None:
            return f"Data: {number_of(len(self), 'row')} of {self.columns} ({shortened(self.columns.names)}){known}"
        return f"Data: {number_of(len(self), 'example')} of {' × '.join(map(str, self.shape))}{known}"

    def _repr_html_(self) -> str:
        """The same with a few pictures, or the first rows of a table, for notebooks."""
        if self.columns is not None:
            return f"<p>{html.escape(repr(self))}</p>{rows_of(self[:5].tolist(), self.columns.names)}"
        if len(self.shape) != 3 or not len(self):
            return f"<p>{html.escape(repr(self))}</p>"
        rows = torch.linspace(0, len(self) - 1, min(12, len(self))).long()
        return f"<p>{html.escape(repr(self))}</p>{strip_of(self.examples(rows))}"

    def _in_units(self, rows: Int[Tensor, " batch"]) -> Float[Tensor, "batch ..."]:
        examples = self.examples(rows)
        return examples if self.columns is None else self.columns.in_units(examples)

    def unpacked(self, stored: Shaped[Tensor, "batch ..."]) -> Float[Tensor, "batch ..."]:
        """Rows taken from the store as float32 images, before any nuisance."""
        if self.composition is not None:
            return self.composition.compose(stored)
        return unpack(stored, self.packing, self.shape if self.nuisance is None else (1, *self.shape[1:]))


def _n_values(column: Shaped[Tensor, " sample"]) -> int:
    values = column.double()
    whole = len(values) > 0 and bool(((values >= 0) & (values < MOST_VALUES) & (values == values.floor())).all())
    return int(values.max()) + 1 if whole else 0


def unpack(stored: Shaped[Tensor, "batch ..."], packing: Packing, shape: tuple[int, ...]) -> Float[Tensor, "batch ..."]:
    """Stored examples, other than parts, as float32 images."""
    if packing == "floats":
        return stored.to(torch.float32)
    if packing == "bytes":
        return stored.to(torch.float32) / 255.0
    if packing == "parts":
        raise ValueError("parts are put together by Data.unpacked")
    if stored.device.type == "cuda":
        masks = 1 << torch.arange(7, -1, -1, dtype=torch.uint8, device=stored.device)
        return (stored.reshape(-1, 1) & masks).ne(0).to(torch.float32).view(len(stored), *shape)
    # on a CPU four times as fast as advanced indexing by int64, twice as fast as shifting bits
    eights = _bits_table(stored.device).index_select(0, stored.reshape(-1).int())
    return eights.view(len(stored), *shape)


def _bits_table(device: torch.device) -> Float[Tensor, "byte bit"]:
    table = torch.arange(256, device=device)[:, None] >> torch.arange(7, -1, -1, device=device) & 1
    return table.to(torch.float32)


@dataclass(frozen=True)
class Card:
    """What `unweave worlds` shows: nothing here needs the data itself.

    ``labels`` are those of a world without factors; ``pairs`` and ``segments`` say in words what the data has of them.
    """

    title: str
    shape: tuple[int, ...]
    n_examples: int | None
    space: FactorSpace | None
    on_disk: bool
    how_to_get: str
    note: str = ""
    labels: tuple[str, ...] = ()
    pairs: str = ""
    segments: str = ""
    columns: tuple[str, ...] = ()
    """Of a table."""


class World(ABC):
    """A data set by description: a frozen dataclass whose fields are its options, and part of a run's identity."""

    name: ClassVar[str]

    mixes: ClassVar[bool] = False
    """Whether worlds of this class with as many examples differ in nothing but the numbers in their stores."""

    tabular: ClassVar[bool] = False
    """Whether examples are rows of a table, which have no pixels."""

    @abstractmethod
    def card(self) -> Card:
        """Title, factors, size, whether the data is on this machine, and how to get it."""

    @abstractmethod
    def load(self, progress: Progress | None = None) -> Data:
        """The data, rendered, converted or memory-mapped; errors say what is missing and where to put it."""

    def files(self) -> tuple[Published, ...]:
        """The published files that this world is read from; none where it is generated or the user's own."""
        return ()

    def absent(self) -> FileNotFoundError:
        """The sentence about a data set that is not on this machine."""
        if missing := [file for file in self.files() if not place_of(self.name, file).exists()]:
            return absent(self.name, missing)
        return FileNotFoundError(f"{self.name} is not on this machine: {self.card().how_to_get}")

    def resolve(self) -> "World":
        """This world with every automatic choice made, so that equal configs mean equal data."""
        return self

    def known_columns(self) -> Columns | None:
        """The columns of a table with their means and deviations; None for anything else."""
        return None

    def told(self, data: Data) -> str:
        """What was found in data of one's own, in a line."""
        return ""

    def near(self, folder: Path) -> "World":
        """This world as a run in a folder means it: what it is made with is looked for beside that run too."""
        return self


def called(world: World) -> str:
    """What titles call a world: one's own data by the name that they have."""
    own = getattr(world, "called", None)
    return world.name if own is None else own or Path(getattr(world, "path", "")).stem or world.name
