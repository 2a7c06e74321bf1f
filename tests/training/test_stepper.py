"""Steps by a CUDA graph that is not there: what was drawn is found by its place, and a failed capture goes on."""

import contextlib
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from unweave.data.synthetic import SynthLin
from unweave.models.likelihoods import Gaussian
from unweave.models.networks import Linear
from unweave.models.objectives import FactorVAE
from unweave.training.batches import source_of
from unweave.training.experiment import Experiment, Plan
from unweave.training.fleet.choice import choose_backend
from unweave.training.fleet.fleet import Fleet, new_fleet
from unweave.training.fleet.members import arrange
from unweave.training.fleet.stepper import Packed, Stepper

ONE = Experiment(
    SynthLin(n_points=40), FactorVAE(width=4, depth=1), Linear(), Gaussian(), latents=2, batch_size=3,
    plan=Plan("cpu", 1),
)  # fmt: skip


def stepper(graph: bool | None, said: list[str]) -> tuple[Stepper, Fleet]:
    data, members = ONE.world.load(), arrange([ONE, replace(ONE, seed=1)])
    fleet = new_fleet(members, choose_backend(members, data, pytest.fail), len(data), data.shape)
    return Stepper(fleet, source_of(members.experiments, data), said.append, graph=graph), fleet


def states(steps: Stepper, fleet: Fleet) -> list[torch.Tensor]:
    for step in (0, 1, 2, 63, 64, 65):
        steps(step, record=step % 2 == 0)
    return [tensor.clone() for tensor in fleet.state_tensors().values()]


def test_a_capture_that_fails_is_said_and_the_steps_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> None:
        raise RuntimeError("no stream\nlong story")

    monkeypatch.setattr(torch.cuda, "Stream", fails)
    said: list[str] = []
    plain = states(*stepper(False, said))
    assert said == []
    found = states(*stepper(True, said))
    assert said == ["stepping without a CUDA graph (no stream)"]
    assert all(torch.equal(one, other) for one, other in zip(plain, found))
    assert not stepper(None, said)[0].graphed


def test_draws_of_a_block_lie_side_by_side_and_those_of_a_step_are_picked_at_once() -> None:
    def drawn(begin: int) -> dict[str, torch.Tensor]:
        count = torch.arange(begin, begin + 3)
        noise = torch.randn(3, 2, 5, 7, generator=torch.Generator().manual_seed(begin))
        return {
            "steps": count,
            "noise": noise,
            "permutation": count[:, None, None].expand(3, 2, 5) % 2,
            "on": noise > 0,
        }

    packed = Packed(drawn(0))
    for begin in (0, 3):
        packed.fill(drawn(begin))
        for place in (0, 2, 1):
            found = packed.at(torch.tensor([place]))
            for name, part in drawn(begin).items():
                assert found[name].dtype == part.dtype
                assert torch.equal(found[name], part[place]), name
    begins = [found[name].data_ptr() for name in found]
    assert all((place - begins[0]) % 512 == 0 for place in begins)


def test_graphs_replay_what_was_captured_on_the_draws_of_their_step(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []

    class Graph:
        def __init__(self) -> None:
            made.append(self)

        def replay(self) -> None:
            self.work()

    stream = SimpleNamespace(wait_stream=lambda other: None)
    for name, stands in (("Stream", lambda: stream), ("current_stream", lambda: stream), ("CUDAGraph", Graph)):
        monkeypatch.setattr(torch.cuda, name, stands)
    monkeypatch.setattr(torch.cuda, "stream", lambda side: contextlib.nullcontext())
    monkeypatch.setattr(torch.cuda, "graph", lambda graph: contextlib.nullcontext())
    plain, placed = states(*stepper(False, [])), Stepper._advance_placed

    def remembered(self: Stepper, step: int, record: bool) -> None:
        placed(self, step, record)
        if made and not hasattr(made[-1], "work"):
            # what a graph holds: the draws by their place on the device, not the step that it was captured at
            made[-1].work = lambda: placed(self, step, record)

    monkeypatch.setattr(Stepper, "_advance_placed", remembered)
    steps, fleet = stepper(True, [])
    found = states(steps, fleet)
    assert len(steps.graphs) == len(made) == 2  # recorded steps, and others
    assert all(torch.allclose(one, other, atol=1e-6) for one, other in zip(plain, found))
