"""Optimisers: against PyTorch's, against the originals' values, and a stack against its members."""

import numpy as np
import pytest
import torch

from unweave.models.kernels.layout import Layout
from unweave.models.optimisers import OPTIMISERS, SGD, AdamW, StackedUpdate

NAMES = {"encoder.weight": (3, 4), "encoder.bias": (3,), "quantiser.values": (2, 5)}


def drawn(seed, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    return {name: torch.randn(shape, generator=generator, dtype=dtype) for name, shape in NAMES.items()}


def test_adamw_agrees_with_the_reference(reference):
    stored = np.load(reference / "weak_qlae.npz")
    ours = {"We": "encoder.weight", "be": "encoder.bias", "Wd": "decoder.weight", "bd": "decoder.bias"}
    ours["values"] = "quantiser.values"
    parameters = {name: torch.from_numpy(stored[f"optimizer/step0/{theirs}"]).float() for theirs, name in ours.items()}
    optimiser = AdamW()
    state = optimiser.start(parameters)
    for step in (1, 2, 3):
        gradients = [torch.from_numpy(stored[f"optimizer/grad{step}/{theirs}"]) for theirs in ours]
        optimiser.update(parameters, gradients, state)
        for theirs, name in ours.items():
            expected = torch.from_numpy(stored[f"optimizer/step{step}/{theirs}"])
            assert (parameters[name] - expected).abs().max() <= 1e-5 * expected.abs().max(), (step, name)


def test_sgd_is_pytorchs_with_a_schedule_and_an_average():
    parameters = drawn(0)
    theirs = [value.clone().requires_grad_() for value in parameters.values()]
    optimiser = SGD(0.05, every=2)
    reference = torch.optim.SGD(theirs, lr=0.05, momentum=0.9, weight_decay=1e-5)
    falls = torch.optim.lr_scheduler.StepLR(reference, 2, 0.1)
    state, means = optimiser.start(parameters), [value.clone() for value in parameters.values()]
    for step in range(5):
        gradients = list(drawn(step + 1).values())
        optimiser.update(parameters, gradients, state)
        for value, gradient in zip(theirs, gradients):
            value.grad = gradient.clone()
        reference.step()
        falls.step()
        means = [0.999 * mean + 0.001 * value.detach() for mean, value in zip(means, theirs)]
    for value, found in zip(theirs, parameters.values()):
        torch.testing.assert_close(found, value.detach())
    for mean, found in zip(means, optimiser.kept(parameters, state).values()):
        torch.testing.assert_close(found, mean)


def test_without_an_average_the_weights_themselves_are_kept():
    parameters, optimiser = drawn(0), SGD(average=0.0)
    state = optimiser.start(parameters)
    assert not any(name.startswith("average") for name in state)
    assert optimiser.kept(parameters, state) is parameters


@pytest.mark.parametrize("name", OPTIMISERS)
@pytest.mark.parametrize("sick", [False, True])
def test_a_stack_is_its_members(name, sick):
    optimiser = OPTIMISERS[name](learning_rate=0.01)
    layout = Layout(tuple(NAMES), tuple(NAMES.values()), tuple(tuple(range(len(s))) for s in NAMES.values()))
    members = [drawn(seed) for seed in range(3)]
    states = [optimiser.start(member) for member in members]
    stack = torch.stack([layout.row(member) for member in members])
    state, good = optimiser.start_stack(stack, layout), torch.tensor([True, not sick, True])
    before = stack[1].clone()
    for step in range(4):
        slopes = [drawn(10 * step + seed) for seed in range(3)]
        rows = torch.stack([layout.row(slope) for slope in slopes])
        given = StackedUpdate(3.0 * rows, torch.full((3,), 0.01), torch.tensor(step + 1), good)
        optimiser.update_stack(stack, state, given)
        for member, own, slope in zip(members, states, slopes):
            optimiser.update(member, [3.0 * value for value in slope.values()], own)
    kept = optimiser.kept_stack(stack, state)
    for place, (member, own) in enumerate(zip(members, states)):
        if sick and place == 1:
            assert torch.equal(stack[1], before)
        else:
            torch.testing.assert_close(stack[place], layout.row(member))
            torch.testing.assert_close(kept[place], layout.row(optimiser.kept(member, own)))


def test_adamw_asks_where_the_weights_lie():
    with pytest.raises(ValueError, match="where each lies"):
        AdamW().start_stack(torch.zeros(2, 3))
