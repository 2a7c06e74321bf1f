"""KITTI Masks (Klindt et al., 2021): silhouettes of pedestrians in street scenes, as they follow each other in time."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch

from unweave.config import check_fields, number
from unweave.data.files import (
    Progress,
    Published,
    cached_array,
    data_folder,
    how_to_get,
    place_of,
    reading,
    require,
    verify,
)
from unweave.data.pickled import read_pickled
from unweave.data.sequences import sequence_pairs
from unweave.data.world import Card, Data, World
from unweave.files import digest

PIXELS = 64
LABELS = ("y", "x", "area")
PUBLISHED = Published("kitti_peds_v2.pickle", "https://zenodo.org/record/3931823/files/kitti_peds_v2.pickle?download=1")
"""Read, never run (see :mod:`unweave.data.pickled`). The record's checksum was not at hand when this was written."""


@dataclass(frozen=True)
class KittiMasks(World):
    """White silhouettes on black. The partner of a frame is 1 to ``furthest`` frames later, or the last one.

    Labels are the centre of mass, from the top and from the left, and the area, in pixels.
    """

    name: ClassVar[str] = "kitti_masks"
    furthest: int = number(5, least=1, most=1000, help="frames between the two of a pair, at most")

    def files(self) -> tuple[Published, ...]:
        return (PUBLISHED,)

    def card(self) -> Card:
        here = place_of(self.name, PUBLISHED).exists()
        note, get = "frames of films; no full grid of factors", how_to_get(self.name, self.files())
        pairs = f"frames 1 to {self.furthest} apart"
        return Card("KITTI Masks", (1, PIXELS, PIXELS), None, None, here, get, note, LABELS, pairs)

    def load(self, progress: Progress | None = None) -> Data:
        check_fields(self)
        path = require(self.name, PUBLISHED)
        verify(path, PUBLISHED, progress)
        kept = data_folder() / self.name / f"frames-{digest(path, progress=progress)[:16]}.npy"
        frames = cached_array(kept, lambda: _read(path), progress)
        sequence, labels = frames["sequence"], np.stack([frames[name] for name in LABELS], axis=1)
        ends = np.flatnonzero(np.diff(sequence, append=-1)) + 1
        films = {f"sequence {n}": range(start, end) for n, (start, end) in enumerate(zip([0, *ends[:-1]], ends))}
        return Data(
            torch.from_numpy(np.ascontiguousarray(frames["mask"])),
            (1, PIXELS, PIXELS),
            "bits",
            labels=torch.from_numpy(labels),
            label_names=LABELS,
            pairs=torch.from_numpy(sequence_pairs(films, self.furthest)),
        )


FRAME = np.dtype(
    [("mask", np.uint8, (PIXELS * PIXELS // 8,)), ("sequence", np.int64), *((name, np.float32) for name in LABELS)]
)


def _read(path: Path) -> np.ndarray:
    """All frames in a row, packed."""
    with reading(path, "the published KITTI Masks (pickle of sequences of masks)"):
        held = read_pickled(path)
        masks, truth = (_sequences(held, name) for name in ("pedestrians", "pedestrians_latents"))
        if len(masks) != len(truth) or not masks:
            raise ValueError(f"it holds {len(masks)} sequences and labels of {len(truth)}")
        return np.concatenate([_frames(n, *both) for n, both in enumerate(zip(masks, truth))])


def _sequences(held: Any, name: str) -> Sequence[np.ndarray]:
    found = held.get(name) if isinstance(held, dict) else None
    if not isinstance(found, list) or not all(isinstance(one, np.ndarray) for one in found):
        raise ValueError(f"it has no list of arrays {name!r}")
    return found


def _frames(number_: int, masks: np.ndarray, truth: np.ndarray) -> np.ndarray:
    if masks.shape != (len(masks), PIXELS, PIXELS) or masks.dtype != np.bool_:
        raise ValueError(f"sequence {number_} is {masks.dtype} {masks.shape}, expected bool (time, {PIXELS}, {PIXELS})")
    if truth.shape != (len(masks), len(LABELS)) or len(masks) < 2:
        raise ValueError(f"sequence {number_} has {len(masks)} masks and labels {truth.shape}, expected two or more")
    frames = np.empty(len(masks), FRAME)
    frames["mask"], frames["sequence"] = np.packbits(masks.reshape(len(masks), -1), axis=1), number_
    for place, name in enumerate(LABELS):
        frames[name] = truth[:, place]
    return frames
