"""Optimisers: against PyTorch's, against the originals' values, and a stack against its members."""

import numpy as np
import pytest
import torch

from unweave.models import optimisers
from unweave.models.kernels.layout import Layout
from unweave.models.optimisers import OPTIMISERS, SGD, AdaGrad, Adam, AdamW, StackedUpdate

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


def test_kernels_make_an_update_only_where_they_are_asked_for(monkeypatch):
    called = []
    monkeypatch.setattr(optimisers, "_fused", lambda name: lambda *given: called.append((name, given)))
    stack, slopes, rates = torch.ones(2, 3), torch.full((2, 3), 2.0), torch.tensor([0.1, 0.2])
    good = torch.tensor([True, True])
    for optimiser in (Adam(0.1), AdaGrad(0.1), SGD(0.1)):
        for fused in (False, True):
            state, held = optimiser.start_stack(stack), stack.clone()
            before = len(called)
            optimiser.update_stack(held, state, StackedUpdate(slopes, rates, torch.tensor(1), good, fused=fused))
            if isinstance(optimiser, AdaGrad) and fused:
                assert torch.equal(held, stack)
                assert called[before][0] == "adagrad_stack"
                assert called[before][1][-1] == optimiser.epsilon
            else:
                assert len(called) == before
                assert (held < stack).all()


def test_a_rounded_copy_is_renewed_whoever_is_well():
    for good in ([True, True], [True, False]):
        held, rounded = torch.ones(2, 3), torch.zeros(2, 3, dtype=torch.bfloat16)
        given = StackedUpdate(torch.ones(2, 3), torch.tensor([0.5, 0.5]), torch.tensor(1), torch.tensor(good), rounded)
        optimiser = AdaGrad(0.5)
        optimiser.update_stack(held, optimiser.start_stack(held), given)
        assert torch.equal(rounded, held.to(torch.bfloat16))
        assert held[:, 0].tolist() == [0.5, 0.5 if good[1] else 1.0]


def test_what_was_prepared_is_used_and_is_what_adam_needs():
    count, optimiser = torch.tensor(7), Adam(0.1)
    one, two = optimiser.prepared(count)
    assert float(one) == pytest.approx(1 - 0.9**7)
    assert float(two) == pytest.approx((1 - 0.999**7) ** 0.5)
    held = []
    for prepared in ((), (one, two), (one * 2, two)):
        stack = torch.ones(1, 2)
        given = StackedUpdate(torch.ones(1, 2), torch.tensor([0.1]), count, torch.tensor([True]), prepared=prepared)
        optimiser.update_stack(stack, optimiser.start_stack(stack), given)
        held.append(1.0 - float(stack[0, 0]))
    assert held[1] == held[0]
    assert held[2] == pytest.approx(held[0] / 2, rel=1e-5)


def test_steps_fall_after_so_many_updates_alone_and_in_a_stack():
    optimiser = SGD(1.0, momentum=0.0, weight_decay=0.0, factor=0.5, every=3, average=0.0)
    parameters, stack = {"w": torch.zeros(1)}, torch.zeros(1, 1)
    state, stacked, moved = optimiser.start(parameters), optimiser.start_stack(stack), []
    for step in range(8):
        before = float(parameters["w"])
        optimiser.update(parameters, [torch.ones(1)], state)
        moved.append(before - float(parameters["w"]))
        given = StackedUpdate(torch.ones(1, 1), torch.tensor([1.0]), torch.tensor(step + 1), torch.tensor([True]))
        optimiser.update_stack(stack, stacked, given)
        assert float(stack) == float(parameters["w"])
    assert moved == [1.0] * 3 + [0.5] * 3 + [0.25] * 2
    assert optimiser.kept_stack(stack, stacked) is stack


def test_a_gradient_is_clipped_at_its_bound_and_only_that_of_weights():
    optimiser = AdamW(0.1, weight_decay=0.0, clip=2.0, beta1=0.0, beta2=0.0)
    parameters = {"a.weight": torch.zeros(2), "a.bias": torch.zeros(1)}
    state = optimiser.start(parameters)
    optimiser.update(parameters, [torch.tensor([3.0, -1.5]), torch.tensor([5.0])], state)
    assert state["first.a.weight"].tolist() == [2.0, -1.5]
    assert state["first.a.bias"].tolist() == [5.0]
