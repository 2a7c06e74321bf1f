"""Checkpoints: everything a learner is, in one checked file, so that resuming is exact to the last bit."""

import json
from dataclasses import dataclass

import safetensors.torch
import torch

from unweave.models.optimisers import Tensors
from unweave.runs.folder import DamagedFile, RunFolder
from unweave.shapes import Tensor
from unweave.training.history import History, restored
from unweave.training.step import Learner

KEPT = 2
"""Checkpoints that stay on disk: the newest, and one to fall back on."""


@dataclass(frozen=True)
class Resumed:
    """Where a run goes on."""

    step: int
    history: History
    note: str = ""


def save_checkpoint(folder: RunFolder, learner: Learner, history: History, step: int) -> None:
    """Write the state before update ``step``; older checkpoints go once the new one is safe."""
    metadata = {"unweave": json.dumps({"step": step, "columns": history.columns})}
    content = to_bytes(learner_tensors(learner) | history.tensors(), metadata)
    folder.write(f"checkpoints/step-{step:09d}.safetensors", content)
    folder.remove(*folder.names("checkpoints/")[:-KEPT])


def load_checkpoint(folder: RunFolder, learner: Learner) -> Resumed | None:
    """Bring a learner to the newest whole checkpoint; a damaged one is passed over, and said so."""
    note = ""
    for name in reversed(folder.names("checkpoints/")):
        try:
            tensors, metadata = from_bytes(folder.read(name))
        except (DamagedFile, FileNotFoundError) as error:
            note = f"{error}; going on from the one before"
            continue
        _fill(learner_tensors(learner), tensors)
        kept = json.loads(metadata["unweave"])
        history = restored(kept["columns"], tensors["history.steps"], tensors["history.values"])
        return Resumed(kept["step"], history, note)
    return Resumed(0, History(), note) if note else None


def learner_tensors(learner: Learner) -> Tensors:
    """Every tensor of a learner by name; writing into them changes the learner."""
    parts = {
        "model": learner.model.state_dict(),
        "optimiser": learner.optimiser_state,
        "discriminator": learner.discriminator.state_dict() if learner.discriminator is not None else {},
        "discriminator_optimiser": learner.discriminator_state,
    }
    return {f"{part}/{name}": tensor for part, tensors in parts.items() for name, tensor in tensors.items()}


def to_bytes(tensors: Tensors, metadata: dict[str, str] | None = None) -> bytes:
    """Tensors in the safetensors format."""
    return safetensors.torch.save({n: t.detach().cpu().contiguous() for n, t in tensors.items()}, metadata)


def from_bytes(content: bytes) -> tuple[Tensors, dict[str, str]]:
    """Tensors and metadata from the safetensors format."""
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    return safetensors.torch.load(content), header.get("__metadata__", {})


@torch.no_grad()
def _fill(targets: dict[str, Tensor], sources: dict[str, Tensor]) -> None:
    for name, target in targets.items():
        target.copy_(sources[name])
