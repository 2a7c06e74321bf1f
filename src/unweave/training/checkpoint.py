"""Checkpoints: everything that trains, in one checked file, so that resuming is exact to the last bit."""

import json
import math
import os
import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import nn

from unweave.files import digest
from unweave.models import Architecture, Method
from unweave.models.optimisers import Tensors
from unweave.runs.folder import DamagedFile, RunFolder
from unweave.runs.names import refuse_links
from unweave.shapes import Tensor
from unweave.training.engine import Engine
from unweave.training.history import History, Recording

KEPT = 2
"""Checkpoints that stay on disk: the newest, and one to fall back on."""

SAVING_SHARE = 0.05
"""Saving a large fleet takes seconds; it may take this share of the time, however often one asks for it."""


SHORTLY = 0.25
"""The share of the time between checkpoints that the last may be late, and left out where training ends meanwhile."""


class Checkpoints:
    """The checkpoints of one engine in its folder, and when the next one is due."""

    def __init__(self, folder: RunFolder, every: float) -> None:
        self.folder, self.every, self.saved = folder, every, time.monotonic()
        self.writer, self.writing = ThreadPoolExecutor(1), Future[None]()
        self.writing.set_result(None)

    def due(self, left: float = math.inf) -> bool:
        """Whether it is time to save again; an error of the last saving is raised here at the latest.

        Where the rest should take ``left`` seconds, and these are few, the end is waited for, but hardly longer.
        """
        if not self.writing.done():
            return False
        self.writing.result()
        patience = SHORTLY if left < SHORTLY * self.every else 0.0
        return time.monotonic() - self.saved >= (1 + patience) * self.every

    def save(self, engine: Engine, recording: Recording, step: int, *, beside: bool = False) -> None:
        """Write the state before update ``step``; older checkpoints go once the new one is safe.

        With ``beside`` a state that lies on a GPU is fetched now, and written while the training goes on.
        """
        self.writing.result()
        begin = time.monotonic()
        places = [engine.group_of(member) for member in range(len(engine.experiments))]
        metadata = {"unweave": json.dumps({"step": step, "columns": recording.columns, "places": places})}
        tensors = engine.tensors()
        beside = beside and all(tensor.is_cuda for tensor in tensors.values())
        held = {name: tensor.detach().cpu() for name, tensor in (tensors | recording.tensors()).items()}
        if beside:
            self.writing = self.writer.submit(self._write, held, metadata, step, begin)
        else:
            self._write(held, metadata, step, begin)

    def close(self) -> None:
        """Wait until everything is written."""
        self.writer.shutdown()
        self.writing.result()

    def _write(self, held: Tensors, metadata: dict[str, str], step: int, begin: float) -> None:
        self.folder.write(f"checkpoints/step-{step:09d}.safetensors", to_bytes(held, metadata))
        self.folder.remove(*self.folder.names("checkpoints/")[:-KEPT])
        self.saved = time.monotonic()
        self.every = max(self.every, (self.saved - begin) / SAVING_SHARE)

    def load(self, engine: Engine, recording: Recording) -> int:
        """Bring everything to the newest whole checkpoint and return the step to go on with.

        A damaged checkpoint is passed over, and said so.
        """
        for name in reversed(self.folder.names("checkpoints/")):
            try:
                content = self.folder.read(name)
            except (DamagedFile, FileNotFoundError) as error:
                print(f"{error}; going on from the one before", file=sys.stderr, flush=True)
                continue
            return _restore(engine, recording, content, self.folder.path / name)
        return 0


def history_so_far(folder: RunFolder, member: int = 0) -> tuple[int, History]:
    """The step of the newest whole checkpoint, and the history of a member up to there."""
    for name in reversed(folder.names("checkpoints/")):
        try:
            if not _is_whole(folder, name):
                continue
            with safetensors.safe_open(str(refuse_links(folder.path, name)), "pt") as file:
                tensors = {held: file.get_tensor(held) for held in file.keys() if "history" in held}  # noqa: SIM118
                kept = _translated(tensors, file.metadata())
        except (OSError, KeyError, ValueError, safetensors.SafetensorError):
            continue  # damaged, or just now replaced by a newer one
        recording = Recording()
        recording.restore(tensors, kept["columns"])
        return int(kept["step"]), recording.of(*kept["places"][member])
    return 0, History()


def _is_whole(folder: RunFolder, name: str) -> bool:
    """Whether a checkpoint has its checksum: asked again and again while a run trains, and read once."""
    found = os.stat(folder.path / name)
    return _digest(folder.path / name, found.st_mtime_ns, found.st_size, found.st_ino) == folder.sums().get(name)


@lru_cache(maxsize=256)
def _digest(path: Path, *_: int) -> str:
    return digest(path)


def to_bytes(tensors: Tensors, metadata: dict[str, str] | None = None) -> bytes:
    """Tensors in the safetensors format."""
    return safetensors.torch.save({n: t.detach().cpu().contiguous() for n, t in tensors.items()}, metadata)


def from_bytes(content: bytes) -> tuple[Tensors, dict[str, str]]:
    """Tensors and metadata from the safetensors format."""
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    return safetensors.torch.load(content), header.get("__metadata__", {})


def read_tensors(content: bytes, place: Path) -> tuple[Tensors, dict[str, str]]:
    """Tensors and metadata of a file that anyone may have written; weights of 8 bits come as 32."""
    try:
        tensors, metadata = from_bytes(content)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, safetensors.SafetensorError) as error:
        raise ValueError(f"{place} holds no weights that can be read") from error
    found = _from_8_bits(tensors, place) if BITS in tensors else tensors
    return found, metadata if isinstance(metadata, dict) else {}


BITS, SCALE, LARGEST, SMALL = ":bits", ":scale", 127, 4096
"""The mark of a file of 8-bit weights; how the names of scales end; the largest such weight; what keeps 16 bits."""


def in_bits(content: bytes, bits: int, place: Path) -> bytes:
    """The same weights with 8, 16 or 32 bits each; a number that they cannot hold is refused.

    With 8 bits every row of a matrix or kernel has its own scale, a number of 32 bits. Biases and small matrices, those
    that make the codes among them, have 16.
    """
    if bits_of(content, place) == {bits}:
        return content
    tensors, metadata = read_tensors(content, place)
    if bits == 8 and any(one.dtype == torch.int8 for one in tensors.values()):
        raise ValueError(f"{place} has whole numbers of 8 bits beside its weights; keep 16 bits or 32")
    kind = torch.float32 if bits == 32 else torch.float16
    changed: Tensors = {}
    for name, one in tensors.items():
        if bits == 8 and one.is_floating_point() and one.dim() > 1 and one.numel() > SMALL:
            changed[name], changed[name + SCALE] = _to_8_bits(one.float())
            changed[BITS] = torch.tensor(8)  # among the tensors: metadata have no order, and files should
        else:
            changed[name] = one.to(kind) if one.is_floating_point() else one
    if wrong := [name for name, one in changed.items() if not bool(one.isfinite().all())]:
        raise ValueError(f"{wrong[0].removesuffix(SCALE)} of {place} has weights too large for {bits} bits; keep 32")
    return to_bytes(changed, metadata)


def bits_of(content: bytes, place: Path) -> set[int]:
    """How many bits the weights of a file have: 8 where some do, else one number or several."""
    read_tensors(content, place)
    tensors, _ = from_bytes(content)
    if BITS in tensors:
        return {8}
    return {8 * one.element_size() for one in tensors.values() if one.is_floating_point()}


def _to_8_bits(weights: Tensor) -> tuple[Tensor, Tensor]:
    """Whole numbers from -127 to 127, and for each row what they are to be multiplied by."""
    # scale_i = max_j |w_ij| / 127,  q_ij = round(w_ij / scale_i); a row of zeros has the scale 1
    scale = weights.flatten(1).abs().amax(1) / LARGEST
    scale = torch.where(scale == 0, 1.0, scale)
    return (weights / _beside(scale, weights)).round().clamp(-LARGEST, LARGEST).to(torch.int8), scale


def _from_8_bits(tensors: Tensors, place: Path) -> Tensors:
    if tensors[BITS].tolist() != 8:
        raise ValueError(f"{place} holds weights of a kind that this version of unweave does not know")
    scales = {name.removesuffix(SCALE): one for name, one in tensors.items() if name.endswith(SCALE)}
    weights = {name: one for name, one in tensors.items() if name != BITS and not name.endswith(SCALE)}
    for name in sorted({*scales, *(name for name, one in weights.items() if one.dtype == torch.int8)}):
        whole, scale = weights.get(name), scales.get(name)
        if whole is None or scale is None or whole.dtype != torch.int8 or whole.dim() < 2 or not _fits(scale, whole):
            raise ValueError(
                f"{place} holds no weights that can be read: {name[:80]} needs 8-bit numbers and a scale a row"
            )
        weights[name] = whole.float() * _beside(scale, whole)
    return weights


def _fits(scale: Tensor, whole: Tensor) -> bool:
    right = scale.dtype == torch.float32 and scale.shape == whole.shape[:1]
    return right and bool((scale.isfinite() & (scale > 0)).all())


def _beside(scale: Tensor, weights: Tensor) -> Tensor:
    return scale.reshape(-1, *[1] * (weights.dim() - 1))


def model_with(method: Method, architecture: Architecture, tensors: Tensors, place: Path) -> nn.Module:
    """A model with the weights of a file; ValueError where they are not those of this architecture.

    Shapes are compared before the model is made, so that it is never larger than the file.
    """
    try:
        with torch.device("meta"):
            wanted = method.model(architecture).state_dict()
    except (ValueError, RuntimeError) as error:  # RuntimeError: a layer of more numbers than there can be
        reason = str(error) if isinstance(error, ValueError) else "no such layer can be made"
        raise ValueError(f"{place} does not fit the model's settings: {reason}") from error
    for name in sorted({*wanted, *tensors}):
        expected, given = (_size_of(held.get(name)) for held in (wanted, tensors))
        if expected != given:
            raise ValueError(f"{place} does not fit the run's settings: {name[:80]} is {given} there, not {expected}")
    model = method.model(architecture)
    model.load_state_dict(tensors)
    return model


def _restore(engine: Engine, recording: Recording, content: bytes, place: Path) -> int:
    tensors, metadata = read_tensors(content, place)
    try:
        kept = _translated(tensors, metadata)
        tensors = engine.fitted(without_doubles(tensors, engine.tensors()))
        for name, own in engine.tensors().items():
            if name in tensors and tensors[name].shape != own.shape:
                given, expected = _size_of(tensors[name]), _size_of(own)
                raise ValueError(f"{name[:80]} is {given} there, not {expected}")
        engine.restore(tensors)
        recording.restore(tensors, kept["columns"])
        return int(kept["step"])
    except (AttributeError, IndexError, KeyError, RuntimeError, TypeError, ValueError) as error:
        why = str(error) if type(error) is ValueError else "it is none of theirs"
        raise ValueError(f"{place} does not fit the run's settings: {why}") from error


def without_doubles(tensors: Tensors, own: Tensors) -> Tensors:
    """A checkpoint without what filled up its groups, where the fleet that goes on (``own``) fills them up less.

    Groups lie one after the other in the stack, doubles at the end of each.
    """
    groups = [f"group{place}/" for place in range(sum(name.endswith("/failed_terms") for name in own))]
    new = [len(own[f"{group}failed_terms"]) for group in groups]
    old = [tensors[f"{group}history"].shape[1] if f"{group}history" in tensors else n for group, n in zip(groups, new)]
    if old == new or any(before < after for before, after in zip(old, new)):
        return tensors
    begins = [sum(old[:place]) for place in range(len(old))]
    rows = torch.cat([torch.arange(begin, begin + n) for begin, n in zip(begins, new)])
    found = {}
    for name, tensor in tensors.items():
        place = next((place for place, group in enumerate(groups) if name.startswith(group)), None)
        if name.endswith("/history") and place is not None:
            found[name] = tensor[:, : new[place]]
        elif place is not None:
            found[name] = tensor[: new[place]]
        else:
            found[name] = tensor[rows] if tensor.dim() and len(tensor) == sum(old) and name in own else tensor
    return found


def _size_of(tensor: Tensor | None) -> str:
    return "missing" if tensor is None else "×".join(map(str, tensor.shape)) or "one number"


def _translated(tensors: Tensors, metadata: dict[str, str]) -> dict[str, Any]:
    """Step, columns and places of a checkpoint; what version 0.1.0 named otherwise gets its present name."""
    for name in [name for name in tensors if name.startswith("group") and "/optimiser/" in name]:
        tensors[name.replace("/optimiser/", "/discriminator_optimiser/")] = tensors.pop(name)
    if "history.values" in tensors:
        tensors["group0/history"] = tensors.pop("history.values")[:, None]
    kept = json.loads(metadata["unweave"]) if "unweave" in metadata else dict(metadata)
    columns = json.loads(kept["columns"]) if isinstance(kept["columns"], str) else kept["columns"]
    alone = not columns or isinstance(columns[0], str)
    places = [[0, 0]] if alone else [[g, p] for g in range(len(columns)) for p in range(_size(tensors, g))]
    return {"places": places} | kept | {"columns": [columns] if alone else columns}


def _size(tensors: Tensors, group: int) -> int:
    return tensors[f"group{group}/history"].shape[1] if f"group{group}/history" in tensors else 0
