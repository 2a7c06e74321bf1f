"""Networks that begin with the weights of finished runs."""

from collections.abc import Mapping

import torch
from torch import nn

from unweave.files import require_folder
from unweave.models.method import Given, Method
from unweave.models.optimisers import Tensors
from unweave.runs.folder import WEIGHTS, RunFolder
from unweave.training.checkpoint import read_tensors


def given_run(folder: str) -> Given:
    """A finished run by its folder, as a method names it; its weights may have been left behind."""
    run = RunFolder(require_folder(folder, "the folder of a finished run"))
    if not run.trained:
        _with_weights(run)
    return Given(str(run.path.resolve()), run.weights_checksum)


def check_given(method: Method) -> None:
    """Refuse a method that begins with weights that are not on this machine."""
    for given, _ in method.given.values():
        _with_weights(RunFolder(require_folder(given.run, "the folder of a finished run")))


@torch.no_grad()
def fill_given(method: Method, networks: Mapping[str, nn.Module]) -> None:
    """Give networks the weights of the runs that a method names; refuse runs that are not those, or do not fit."""
    for name, (given, part) in method.given.items():
        tensors = _part(given, part)
        wanted = networks[name].state_dict()
        if {key: held.shape for key, held in wanted.items()} != {key: held.shape for key, held in tensors.items()}:
            raise ValueError(
                f"the {part} of {given.run} has other layers than this experiment's network; all runs must have one"
                " network, one number of latents and one shape of images, and the experiment the same"
            )
        networks[name].load_state_dict(tensors)


def _part(given: Given, part: str) -> Tensors:
    run = _with_weights(RunFolder(require_folder(given.run, "the folder of a finished run")))
    if given.checksum not in ("", run.sums()[WEIGHTS]):
        raise ValueError(f"{run.path} is not the run that was named: its weights differ from those of then")
    tensors, _ = read_tensors(run.read(WEIGHTS), run.path / WEIGHTS)
    return {name.partition(".")[2]: held for name, held in tensors.items() if name.startswith(f"{part}.")}


def _with_weights(run: RunFolder) -> RunFolder:
    if not run.has(WEIGHTS):
        raise FileNotFoundError(f"{run.path} has no trained model: it is not finished, or its weights are elsewhere")
    return run
