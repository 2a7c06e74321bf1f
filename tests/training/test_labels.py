"""Methods with labels in the engines: every regulariser in a fleet, resumed to the bit; and the control."""

from dataclasses import replace

import pytest
import torch

from unweave.data.micro import Micro
from unweave.data.world import Data
from unweave.models import Method
from unweave.models.networks import MLP, Conv, Linear
from unweave.models.objectives import IVAE, SemiVAE
from unweave.training.alone import Alone
from unweave.training.batches import batches
from unweave.training.experiment import Experiment, Plan
from unweave.training.fleet.engine import FleetEngine
from unweave.training.labels import checked_labels, with_chosen

BASE = Experiment(
    Micro(), network=MLP((10,), (10,)), steps=6, batch_size=6, latents=4, history_every=2, plan=Plan("cpu", 1)
)

METHODS: list[Method] = [
    *(SemiVAE(regulariser=one, labelled=20) for one in ("l2", "xent", "cov", "embed")),  # type: ignore[arg-type]
    SemiVAE(regulariser="embed", ordered=True, learned_sigma=True),
    SemiVAE(regulariser="l2", learned_scale=False, protocol="study", annealing="linear", threshold=4),
    SemiVAE(annealing="fine_tuning", threshold=2, labels="random"),
    IVAE(prior_mean="learned", encoding="values"),
    IVAE(elbo="monte_carlo", labels="random"),
]


@pytest.fixture(scope="module")
def data() -> Data:
    return Micro().load()


def advanced(engine: Alone | FleetEngine, first: int, last: int) -> Alone | FleetEngine:
    for step in range(first, last):
        engine.advance(step, record=True)
    return engine


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_a_fleet_is_its_members(method: Method, data: Data) -> None:
    asked = [replace(BASE, objective=method, seed=seed) for seed in (1, 2, 3)]
    fleet = advanced(FleetEngine(asked, data, print), 0, 5)
    for member, one in enumerate(asked):
        alone = advanced(Alone(one, data), 0, 5)
        for name, weight in alone.weights(0).items():
            torch.testing.assert_close(fleet.weights(member)[name], weight, atol=1e-5, rtol=1e-4)
        for name, value in alone.terms()[0].items():
            assert fleet.terms()[member][name] == pytest.approx(value, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("stacked", [False, True])
@pytest.mark.parametrize("method", METHODS, ids=str)
def test_a_state_goes_on_to_the_bit(method: Method, stacked: bool, data: Data) -> None:
    asked = [replace(BASE, objective=method, seed=seed) for seed in (1, 2)]

    def new() -> Alone | FleetEngine:
        return FleetEngine(asked, data, print) if stacked else Alone(asked[0], data)

    whole, first, second = advanced(new(), 0, 6), advanced(new(), 0, 3), new()
    second.restore({name: tensor.clone() for name, tensor in first.tensors().items()})
    advanced(second, 3, 6)
    for name, tensor in whole.tensors().items():
        assert torch.equal(tensor, second.tensors()[name]), name


@pytest.mark.parametrize("network", [Conv((4, 4), (4, 4), 8), Linear()])
def test_other_networks_in_a_fleet(network: Conv | Linear, data: Data) -> None:
    asked = [replace(BASE, objective=IVAE(encoding="values"), network=network, seed=seed) for seed in (1, 2)]
    fleet, alone = advanced(FleetEngine(asked, data, print), 0, 3), advanced(Alone(asked[1], data), 0, 3)
    for name, weight in alone.weights(0).items():
        torch.testing.assert_close(fleet.weights(1)[name], weight, atol=1e-5, rtol=1e-4)


def test_labels_are_those_of_the_images(data: Data) -> None:
    for batch in batches(replace(BASE, objective=IVAE()), data, 0, 3):
        rows = data.space.rows(batch["labels"].long())
        assert torch.equal(data.examples(rows), batch["images"])


def test_few_examples_are_labelled_and_each_with_its_own(data: Data) -> None:
    seen = set()
    for batch in batches(replace(BASE, objective=SemiVAE(labelled=5)), data, 0, 20):
        rows = data.space.rows(batch["labelled_labels"].long())
        assert torch.equal(data.examples(rows), batch["labelled_images"])
        seen |= set(rows.tolist())
    assert len(seen) == 5


def test_in_the_control_labels_are_those_of_others(data: Data) -> None:
    (batch,) = batches(replace(BASE, objective=IVAE(labels="random"), batch_size=64), data, 0, 1)
    order = batch["others"][:, 0]
    assert sorted(order.tolist()) == list(range(64))
    assert float((order == torch.arange(64)).float().mean()) < 0.2


def test_labels_that_a_model_does_not_know_are_refused() -> None:
    names, sizes = ("shape", "angle"), (3, 0)
    assert checked_labels([[2, -7.5], [0, 1e9]], 2, names, sizes).tolist() == [[2.0, -7.5], [0.0, 1e9]]
    for wrong, words in (
        (None, r"together with their labels \(shape, angle\), and got none"),
        (
            [[2, 1]],
            r"2 images need as many rows of labels with the columns shape, angle, not a table of shape \(1, 2\)",
        ),
        ([[2, 1, 1], [0, 0, 0]], r"not a table of shape \(2, 3\)"),
        ([[2, 1], [3, 1]], "the label shape must be a whole number in 0…2, not 3"),
        ([[1.5, 1], [0, 1]], "the label shape must be a whole number in 0…2, not 1.5"),
        ([[2, 1], [-1, 1]], "not -1"),
        ([[2, 1], [1, float("inf")]], "the label angle must be a finite number, not inf"),
    ):
        with pytest.raises(ValueError, match=words):
            checked_labels(wrong, 2, names, sizes)


def test_chosen_labels_are_set_in_every_row_of_a_copy() -> None:
    table = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert with_chosen(table, {"b": 9}, ("a", "b")).tolist() == [[1.0, 9.0], [3.0, 9.0]]
    assert table.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    with pytest.raises(ValueError, match="c"):
        with_chosen(table, {"c": 1}, ("a", "b"))
