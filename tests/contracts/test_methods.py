"""What every method in the table promises: it learns, alone and in a stack, resumes to the bit, and opens again."""

import importlib.util
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from unweave.data.micro import SPACE, Micro
from unweave.data.world import Data
from unweave.models import OBJECTIVES, Method
from unweave.models.networks import MLP, Conv, Maxout, Network
from unweave.models.objectives import PCL, WSGAN, FactorVAE, LabelGAN, Perturbation, kept_weights
from unweave.training.alone import Alone
from unweave.training.checkpoint import model_with
from unweave.training.experiment import Experiment, Plan
from unweave.training.fleet.engine import FleetEngine
from unweave.training.given import given_run
from unweave.training.loop import train

BASE = Experiment(
    Micro(), network=MLP((12,), (12,)), steps=6, batch_size=6, latents=3, history_every=4, plan=Plan("cpu", 1)
)

SMALL: dict[str, Method] = {
    "factor_vae": FactorVAE(width=9, depth=2),
    "ws_gan": WSGAN(hidden=5),
    "label_gan": LabelGAN(hidden=5),
    "pcl, original": PCL(protocol="original"),
    "ws_gan, change": WSGAN("change", 1, hidden=5),
    "ws_gan, rank": WSGAN("rank", 2, hidden=5),
    "label_gan, some of others": LabelGAN((2,), "random", 1, hidden=5),
}
"""Methods whose networks are large by default, in a size for tests; variants; and what begins with runs."""

METHODS = [*OBJECTIVES, *(name for name in SMALL if name not in OBJECTIVES)]

NETWORKS: dict[str, Network] = {name: Conv((3, 4, 4), (4, 4, 4), 6) for name in SMALL if "gan" in name}
NETWORKS["pcl, original"] = Maxout((7,))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Data:
    runs = [train(replace(BASE, seed=seed), tmp_path_factory.mktemp("run")) for seed in (0, 1)]
    SMALL["perturbation"] = Perturbation(*((given_run(str(run)),) for run in runs), samples=2)
    return Micro().load()


def experiment(name: str, seed: int = 4, **changes: object) -> Experiment:
    network = NETWORKS.get(name, BASE.network)
    return replace(BASE, objective=SMALL.get(name) or OBJECTIVES[name](), network=network, seed=seed, **changes)  # type: ignore[arg-type]


def advanced(engine: Alone | FleetEngine, first: int, last: int) -> Alone | FleetEngine:
    for step in range(first, last):
        engine.advance(step, record=True)
    return engine


def farthest(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> float:
    assert first.keys() == second.keys()
    return max((first[name].double() - second[name].double()).abs().max().item() for name in first)


@pytest.mark.parametrize("name", METHODS)
def test_every_term_is_finite_and_every_trained_weight_moves(name: str, data: Data) -> None:
    engine = Alone(experiment(name), data)
    before = {part: {n: p.clone() for n, p in held.items()} for part, held in engine.parameters.items()}
    advanced(engine, 0, 3)
    (terms,) = engine.terms()
    assert terms
    assert all(torch.isfinite(torch.tensor(value)) for value in terms.values())
    for phase in engine.phases:
        for part in phase.updates:
            still = [n for n, p in engine.parameters[part].items() if torch.equal(p, before[part][n])]
            assert not still, (part, still)


@pytest.mark.parametrize("name", METHODS)
def test_a_fleet_trains_its_members_as_alone(name: str, data: Data) -> None:
    given = [experiment(name, seed) for seed in (4, 9)]
    fleet = advanced(FleetEngine(given, data, print), 0, 3)
    for place, one in enumerate(given):
        single = advanced(Alone(one, data), 0, 3)
        assert farthest(fleet.weights(place), single.weights(0)) < 3e-5
        told, own = fleet.terms()[place], single.terms()[0]
        assert told == pytest.approx(own, rel=1e-3, abs=1e-4)
        assert fleet.rows()[0].columns == single.rows()[0].columns


@pytest.mark.parametrize("name", METHODS)
def test_bits_do_not_depend_on_the_company(name: str, data: Data) -> None:
    few, many = (
        advanced(FleetEngine([experiment(name, seed) for seed in range(n)], data, print), 0, 3) for n in (1, 5)
    )
    assert farthest(few.weights(0), many.weights(0)) == 0.0


@pytest.mark.parametrize("kind", ["alone", "fleet"])
@pytest.mark.parametrize("name", METHODS)
def test_a_state_goes_on_to_the_bit(name: str, kind: str, data: Data) -> None:
    def new() -> Alone | FleetEngine:
        one = experiment(name)
        return Alone(one, data) if kind == "alone" else FleetEngine([one, experiment(name, 5)], data, print)

    whole = advanced(new(), 0, 5)
    begun = advanced(new(), 0, 3)
    kept = {part: tensor.clone() for part, tensor in begun.tensors().items()}
    resumed = new()
    resumed.restore(kept)
    advanced(resumed, 3, 5)
    assert farthest(whole.tensors(), resumed.tensors()) == 0.0
    assert farthest(whole.weights(0), resumed.weights(0)) == 0.0


@pytest.mark.parametrize("name", METHODS)
def test_what_is_kept_opens_again(name: str, data: Data) -> None:
    one = experiment(name)
    engine = Alone(one, data)
    architecture = one.architecture(engine.form.shape, engine.form.labels)
    model = model_with(one.objective, architecture, engine.weights(0), Path("model"))
    assert farthest(dict(model.state_dict()), engine.weights(0)) == 0.0
    held = {part: network.state_dict() for part, network in engine.networks.items()}
    assert kept_weights(one.objective, held).keys() == model.state_dict().keys()


def test_every_method_can_be_timed() -> None:
    place = Path(__file__).parents[2] / "benchmarks" / "methods.py"
    found = importlib.util.spec_from_file_location("benchmark_of_methods", place)
    assert found is not None
    assert found.loader is not None
    script = importlib.util.module_from_spec(found)
    found.loader.exec_module(script)
    for name in set(OBJECTIVES) - {*script.LEFT_OUT}:
        script.experiment_of(name, "cpu").architecture((1, 32, 32), SPACE.sizes)  # it refuses latents that do not fit
