"""Whole steps of small models: which wait, when they are made, and what the groups hold, with a kernel of our own."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from unweave.data.micro import Micro
from unweave.data.synthetic import SynthLin
from unweave.models.likelihoods import Gaussian
from unweave.models.networks import Linear
from unweave.models.objectives import AE, VAE, BetaVAE, FactorVAE
from unweave.models.optimisers import AdaGrad, Adam
from unweave.training.batches import draw, source_of
from unweave.training.experiment import Experiment, Plan
from unweave.training.fleet import whole_steps
from unweave.training.fleet.choice import choose_backend
from unweave.training.fleet.fleet import new_fleet
from unweave.training.fleet.members import arrange
from unweave.training.fleet.whole_steps import WholeSteps

pytest.importorskip("triton")

ONE = Experiment(
    SynthLin(n_points=40), network=Linear(), likelihood=Gaussian(), latents=2, batch_size=3, plan=Plan("cpu", 1)
)


class Steps:
    """Stands for the kernel: adds the number of every step to the weights, and notes what it was asked for."""

    def __init__(self, noisy: bool = True) -> None:
        self.noisy, self.optimiser, self.asked = noisy, Adam(), list[tuple[int, int, int]]()
        self.drawn: list[Any] = []

    def advance(self, state: Any, drawn: Any, first: int, place: int, count: int) -> None:
        self.asked.append((first, place, count))
        self.drawn.append(drawn)
        for step in range(first, first + count):
            state.parameters.add_(float(step))
            state.terms.copy_(torch.arange(4.0) + step)
            state.mean.fill_(float(step))
            state.kl.fill_(2.0 * step)


def made(experiments: list[Experiment], noisy: bool = True) -> tuple[WholeSteps, Steps]:
    data, members = experiments[0].world.load(), arrange(experiments)
    fleet = new_fleet(members, choose_backend(members, data, pytest.fail), len(data), data.shape)
    stack = Steps(noisy)
    return WholeSteps(fleet, source_of(members.experiments, data), stack), stack  # type: ignore[arg-type]


def test_steps_wait_until_one_is_recorded_or_a_block_ends() -> None:
    steps, stack = made([ONE, replace(ONE, seed=1)])
    assert steps.drawing.block == 512
    for step in range(10):
        steps(step, record=step in (0, 4))
    assert stack.asked == [(0, 0, 1), (1, 1, 3), (4, 4, 1)]
    steps.catch_up()
    steps.catch_up()
    assert stack.asked[3:] == [(5, 5, 5)]
    for step in range(510, 514):
        steps(step, record=False)
    assert stack.asked[4:] == [(510, 510, 2)]
    steps(600, record=False)  # not the next one: what waited is made first
    assert stack.asked[5:] == [(512, 0, 2)]
    steps(601, record=True)
    assert stack.asked[6:] == [(600, 88, 1), (601, 89, 1)]
    assert float(steps.fleet.parameters[0, 0] - made([ONE])[0].fleet.parameters[0, 0]) == pytest.approx(
        sum((*range(10), 510, 511, 512, 513, 600, 601)), abs=1e-2
    )


def test_a_block_is_drawn_once_and_is_the_usual_draw() -> None:
    steps, stack = made([ONE, replace(ONE, seed=1)])
    for step in (0, 1, 600, 601):
        steps(step, record=True)
    assert stack.drawn[0] is stack.drawn[1]
    assert stack.drawn[2] is stack.drawn[3]
    assert stack.drawn[0] is not stack.drawn[2]
    wanted = draw(steps.source, torch.tensor([600, 601]))
    assert torch.equal(stack.drawn[2].rows[88:90], wanted["rows of images"])
    assert torch.equal(stack.drawn[2].noise[88:90], wanted["noise"])


def test_a_recorded_step_leaves_a_row_and_the_weights_from_before() -> None:
    steps, _ = made([ONE, replace(ONE, seed=1)])
    before = steps.fleet.parameters.clone()
    steps.fleet.failed_at[1] = 2
    steps(3, record=True)
    fleet = steps.fleet
    assert torch.equal(fleet.good[0], before[0])
    assert fleet.good_at.tolist() == [3, -1]
    (group,) = fleet.groups
    assert {name: term.tolist() for name, term in group.terms.items()} == {
        "loss": [3.0, 3.0], "reconstruction": [4.0, 4.0], "regulariser": [5.0, 5.0], "kl": [6.0, 6.0]
    }  # fmt: skip
    assert group.row is not None
    row = dict(zip(group.columns, group.row[0].tolist()))
    assert (row["loss"], row["kl_0"], row["mean_1"], row["mean_variance_0"]) == (3.0, 6.0, 3.0, 1.0)


def test_every_group_has_its_weight_its_warmup_and_its_terms() -> None:
    given = [ONE, replace(ONE, objective=BetaVAE(2.0)), replace(ONE, objective=VAE(), warmup=7)]
    steps, _ = made(given)
    members = [place for place in steps.fleet.members.given if place >= 0]
    assert members == [0, 1, 2]
    real = [place for place, given_at in enumerate(steps.fleet.members.given) if given_at >= 0]
    assert steps.state.weight[real].tolist() == [4.0, 2.0, 1.0]
    assert steps.state.warmup[real].tolist() == [0, 0, 7]
    assert steps.state.log_variance.abs().sum() == 0.0
    steps.state.failed_terms[real[2], 1] = 9.0
    assert float(steps.fleet.groups[1].failed_terms[0, 1]) == 9.0
    certain, _ = made([replace(ONE, objective=AE())], noisy=False)
    assert torch.isneginf(certain.state.log_variance).all()
    assert certain.state.mean.abs().sum() == 0.0
    certain(0, record=True)
    assert [*certain.fleet.groups[0].terms] == ["loss", "reconstruction", "regulariser"]


def test_who_is_suited(monkeypatch: pytest.MonkeyPatch) -> None:
    def suits(one: Experiment, **changed: Any) -> bool:
        data, members = one.world.load(), arrange([one])
        fleet = new_fleet(members, choose_backend(members, data, pytest.fail), len(data), data.shape)
        return whole_steps._suits(fleet, replace(source_of(members.experiments, data), **changed))

    assert suits(ONE)
    assert suits(replace(ONE, objective=AE()))
    assert not suits(replace(ONE, objective=FactorVAE(width=4, depth=1)))
    assert not suits(replace(ONE, optimiser=AdaGrad()))
    assert not suits(replace(ONE, world=Micro()))  # bits or bytes, not numbers
    assert not suits(ONE, latents=3)
    assert not suits(ONE, parts=frozenset({"images"}))


def test_the_quick_way_is_only_tried_where_it_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    steps, stack = made([ONE])
    said: list[str] = []
    asked = whole_steps.whole_steps
    assert asked(steps.fleet, steps.source, said.append) is None  # a CPU
    monkeypatch.setattr(Experiment, "whole_steps", property(lambda self: True))
    small: Any = __import__("unweave.models.kernels.small", fromlist=["small_stack"])
    for found in (None, stack):
        monkeypatch.setattr(small, "small_stack", lambda *given, found=found: found)
        assert (asked(steps.fleet, steps.source, said.append) is None) is (found is None)
    assert stack.asked == [(0, 0, 0)]  # compiled, and nothing done

    def fails(*given: Any) -> None:
        raise RuntimeError("PassManager\nlong story")

    monkeypatch.setattr(small, "small_stack", fails)
    assert asked(steps.fleet, steps.source, said.append) is None
    assert said == ["small models step by step (RuntimeError: PassManager)"]
