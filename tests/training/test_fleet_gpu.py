"""The fleet on a GPU: kernels are taken, agree with the portable path, and give every model its own bits."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from unweave.data.altered import Noise, Perturbed
from unweave.data.micro import Micro
from unweave.data.synthetic import SynthLin, SynthNonLin
from unweave.data.world import Data, World
from unweave.models import OBJECTIVES, Objective
from unweave.models.kernels.copies import SWITCH, failure, is_hopper
from unweave.models.likelihoods import SquaredError
from unweave.models.networks import MLP, Conv, Linear
from unweave.models.objectives.beta_vae import BetaVAE, BetaVAEFull
from unweave.models.objectives.factor_vae import FactorVAE
from unweave.models.objectives.perturbation import Perturbation
from unweave.models.optimisers import Adam
from unweave.recipes.pace import pictures
from unweave.training.alone import Alone
from unweave.training.batches import source_of
from unweave.training.experiment import Experiment, Form, Plan
from unweave.training.fleet.choice import arranged, choose_backend, least_group, models_that_fit
from unweave.training.fleet.engine import FleetEngine
from unweave.training.fleet.fleet import Fleet, new_fleet, template_of
from unweave.training.fleet.members import arrange
from unweave.training.fleet.portable import portable
from unweave.training.fleet.stepper import Stepper
from unweave.training.fleet.whole_steps import WholeSteps
from unweave.training.given import given_run
from unweave.training.loop import train
from unweave.training.many import train_many
from unweave.training.run import Run
from unweave.training.running import Interrupted, RunOptions

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]

OBJECTIVE = FactorVAE(width=32, depth=2)


def experiment(seed: int = 0, objective: Objective = BetaVAE(), precision: str = "bf16") -> Experiment:
    return Experiment(
        Micro(),
        objective,
        Conv((16, 16, 32), (4, 4, 2), 32),
        steps=6,
        batch_size=8,
        latents=3,
        seed=seed,
        history_every=2,
        plan=Plan("cuda", 1, precision),
    )


def trained(given: list[Experiment], data: Data, *, graph: bool = True, kernels: bool = True) -> Fleet:
    """A fleet after five steps."""
    members, engine = arranged(given, data, print)
    if not kernels:
        members = arrange(given, least=least_group(given[0]))
        engine = portable(template_of(members, data.shape))
    assert engine.name == ("kernels" if kernels else "portable")
    fleet = new_fleet(members, engine, len(data), data.shape)
    stepper = Stepper(fleet, source_of(members.experiments, data), print, graph=graph)
    for step in range(5):
        stepper(step, record=True)
    return fleet


@pytest.mark.parametrize("objective", [BetaVAE(), OBJECTIVES["dip_vae_i"](), OBJECTIVE])
def test_bits_do_not_depend_on_partners_slot_or_size(objective: Objective) -> None:
    data, rows = Micro().load().to("cuda"), []
    for n in (1, 2, 7, 64):
        fleet = trained(
            [experiment(100 * n + seed, objective) for seed in range(n - 1)] + [experiment(3, objective)], data
        )
        stacked = fleet.members.given.index(n - 1)
        assert fleet.groups[0].row is not None
        rows.append((fleet.parameters[stacked], fleet.groups[0].row[stacked]))
    for weights, history in rows[1:]:
        assert torch.equal(weights, rows[0][0])
        assert torch.equal(history, rows[0][1])


def standard(seed: int) -> Experiment:
    """A model whose layers have the sizes that a copy engine serves."""
    return replace(experiment(seed), network=Conv())


@pytest.mark.skipif(
    not (torch.cuda.is_available() and is_hopper(torch.device("cuda"))), reason="needs a card with a copy engine"
)
def test_standard_models_are_the_same_with_a_copy_engine_and_without(monkeypatch: pytest.MonkeyPatch) -> None:
    data, given = pictures(1).to("cuda"), [standard(seed) for seed in range(3)]
    one = trained(given, data)
    monkeypatch.setenv(SWITCH, "0")
    other = trained(given, data)
    begun = new_fleet(one.members, one.backend, len(data), data.shape).parameters
    apart = (one.parameters - other.parameters).norm() / (one.parameters - begun).norm()
    assert failure() is None
    assert 0 < apart < 0.2  # Adam turns the rounding of tiny slopes into whole steps


@pytest.mark.parametrize("name", ["ws_gan", "ivae", "qlae", "semi_vae", "pcl"])
def test_bits_of_mapped_methods_do_not_depend_on_partners_slot_or_size(name: str) -> None:
    # as many channels as the kernels' norms divide evenly
    network, data, found = Conv((32, 32, 64), (4, 4, 4), 32), Micro().load().to("cuda"), []
    for n in (1, 2, 19):
        given = [replace(experiment(seed, OBJECTIVES[name]()), network=network) for seed in (*range(4, n + 3), 3)]
        said = list[str]()
        engine = FleetEngine(given, data, said.append)
        assert engine.name == "mapped"
        for step in range(5):
            engine.advance(step, record=True)
        number, row = engine.group_of(n - 1)
        found.append((engine.weights(n - 1), engine.rows()[number].values[row]))
        assert not [line for line in said if "without" in line]
    for weights, history in found[1:]:
        assert all(torch.equal(own, found[0][0][part]) for part, own in weights.items())
        assert torch.equal(history, found[0][1])


@pytest.mark.parametrize("name", ["ws_gan", "ivae", "qlae", "semi_vae"])
def test_mapped_methods_train_the_model_that_pytorchs_layers_train(name: str) -> None:
    network, data = Conv((32, 32, 64), (4, 4, 4), 32), Micro().load().to("cuda")
    given = [replace(experiment(seed, OBJECTIVES[name](), "fp32"), network=network) for seed in (0, 1)]
    engine, alone = FleetEngine(given, data, print), Alone(given[1], data)
    start = alone.weights(0)
    start = {part: tensor.clone() for part, tensor in start.items()}
    for step in range(3):
        engine.advance(step, record=True)
        alone.advance(step, record=True)
    for part, exact in alone.weights(0).items():
        # a step of Adam moves every weight about as far, so a slope of nearly 0 may go either way
        moved = (exact - start[part]).abs().mean()
        assert (engine.weights(1)[part] - exact).abs().mean() <= 0.02 * moved + 1e-7, part


def test_bits_of_the_standard_model_do_not_depend_on_partners_slot_or_size() -> None:
    """Its kernels divide their work otherwise where there are few models, and make the same sums."""
    data, rows = pictures(1).to("cuda"), []
    usual = Experiment(Micro(), BetaVAE(), steps=100, plan=Plan("cuda", 1, "bf16"))
    for n in (1, 2, 7, 64):
        engine = FleetEngine([replace(usual, seed=seed) for seed in (*range(100, 99 + n), 3)], data, print)
        for step in range(5):
            engine.advance(step, record=step == 4)
        group, place = engine.group_of(n - 1)
        rows.append((engine.weights(n - 1), engine.rows()[group].values[place]))
        engine.close()
    for weights, history in rows[1:]:
        assert all(torch.equal(weights[name], rows[0][0][name]) for name in weights)
        assert torch.equal(history, rows[0][1])


def test_bits_do_not_depend_on_whether_losses_are_weighed() -> None:
    """In company of a method whose slopes follow from its losses, those of β-VAEs are differentiated too."""
    data, one = Micro().load().to("cuda"), replace(experiment(1, BetaVAE(3.0)), warmup=3)
    given = [one, experiment(2, OBJECTIVES["annealed_vae"]()), replace(one, seed=4)]
    found = []
    for members in ([one], [one, replace(one, seed=4)], given):
        engine = FleetEngine(members, data, print)
        assert all(group.weights is not None for group in engine.fleet.groups) == (members is not given)  # type: ignore[union-attr]
        for step in range(6):
            engine.advance(step, record=step % 2 == 1)
        group, place = engine.group_of(0)
        found.append((engine.weights(0), engine.rows()[group].values[place]))
        engine.close()
    for weights, row in found[1:]:
        assert all(torch.equal(weights[name], found[0][0][name]) for name in weights)
        assert torch.equal(row, found[0][1])


def test_a_model_that_is_not_finite_freezes_and_says_which_term_was_to_blame() -> None:
    data = Micro().load().to("cuda")
    engine = FleetEngine(
        [replace(experiment(seed), optimiser=Adam(1e-4 if seed else 1e30)) for seed in (1, 0, 2)], data, print
    )
    for step in range(6):
        engine.advance(step, record=step % 2 == 1)
    told = engine.failure(1)
    assert told is not None
    assert told.step > 0
    assert engine.failure(0) is None
    assert engine.failure(2) is None
    assert all(weight.isfinite().all() for member in (0, 2) for weight in engine.weights(member).values())


def test_bits_do_not_depend_on_the_latents_of_partners() -> None:
    data, given = Micro().load().to("cuda"), [replace(experiment(n), latents=n) for n in (3, 20, 5)]
    engines = [FleetEngine(members, data, print) for members in (given, *([one] for one in given))]
    for engine in engines:
        for step in range(5):
            engine.advance(step, record=True)
    assert len(engines[0].fleet.groups) == 1
    for place, alone in enumerate(engines[1:]):
        own, other = engines[0].weights(place), alone.weights(0)
        assert all(torch.equal(own[name], other[name]) for name in own)
        number, row = engines[0].group_of(place)
        recorded, single = engines[0].rows()[number], alone.rows()[0]
        assert recorded.columns == single.columns
        assert torch.equal(recorded.values[row], single.values[0])


@pytest.mark.parametrize("objective", [BetaVAE(), OBJECTIVE])
def test_kernels_and_the_portable_path_agree(objective: Objective) -> None:
    data = Micro().load().to("cuda")
    given = [experiment(seed, objective, "fp32") for seed in range(3)]
    fast, slow = (trained(given, data, kernels=kernels) for kernels in (True, False))
    for name, view in slow.backend.layout.views(slow.parameters).items():
        own, view = fast.backend.layout.views(fast.parameters)[name][:3], view[:3]  # then come doubles
        # five steps of Adam move a weight by up to 5·10⁻⁴; a tiny gradient's rounding may turn a part of a step
        assert (own - view).abs().mean() < 5e-6, name


def test_a_graph_replays_what_plain_steps_do() -> None:
    data, given = Micro().load().to("cuda"), [experiment(seed, OBJECTIVE) for seed in range(3)]
    graphed, plain = (trained(given, data, graph=graph) for graph in (True, False))
    assert torch.equal(graphed.parameters, plain.parameters)


def test_dense_models_of_every_posterior_step_in_a_graph() -> None:
    data, said = SynthLin().load().to("cuda"), list[str]()
    for objective in (BetaVAE(), BetaVAEFull(0.1), OBJECTIVES["ae"]()):
        one = replace(experiment(0, objective, "fp32"), world=SynthLin(), network=MLP((16,), (16,)), latents=2)
        members = arrange([one], least=least_group(one))
        fleet = new_fleet(members, choose_backend(members, data, said.append), len(data), data.shape)
        stepper = Stepper(fleet, source_of(members.experiments, data), said.append)
        for step in range(5):
            stepper(step, record=step % 2 == 0)
    assert not [line for line in said if "without a CUDA graph" in line]


def dense(seed: int, kind: str) -> Experiment:
    """A model of a kind that has kernels of its own: whole steps, or layer by layer."""
    plan = Plan("cuda", 1, "fp32", "kernels")
    if kind == "wide":
        return replace(experiment(seed), network=MLP((150, 40), (40, 150)), batch_size=64, plan=plan)
    network = {"linear": Linear(), "tanh": MLP((60, 40), (40, 20), "tanh", "tanh"), "128": MLP((128,), (128,))}[kind]
    return replace(
        experiment(seed, BetaVAE(0.01)),
        plan=plan,
        world=SynthNonLin(),
        network=network,
        likelihood=SquaredError("identity"),
        optimiser=Adam(1e-3),
        batch_size=64,
        latents=2,
    )


def dense_engine(given: list[Experiment]) -> FleetEngine:
    """A fleet of dense models after 70 steps, the last nine of them not recorded."""
    engine = FleetEngine(given, given[0].world.load().to("cuda"), print)
    for step in range(70):
        engine.advance(step, record=step % 30 == 0)
    return engine


@pytest.mark.parametrize("kind", ["linear", "tanh", "128", "wide"])
def test_bits_of_dense_models_do_not_depend_on_partners_slot_or_size(kind: str) -> None:
    found = []
    for n in (1, 2, 7, 64, 150):
        engine = dense_engine([dense(100 * n + seed, kind) for seed in range(n - 1)] + [dense(3, kind)])
        assert isinstance(engine.stepper, Stepper if kind == "wide" else WholeSteps)
        assert engine.fleet.name == ("kernels" if kind == "wide" else "portable")
        group, place = engine.group_of(n - 1)
        found.append((engine.weights(n - 1), engine.rows()[group].values[place]))
    for weights, row in found[1:]:
        assert all(torch.equal(weights[name], found[0][0][name]) for name in weights)
        assert torch.equal(row, found[0][1])


@pytest.mark.parametrize("kind", ["linear", "tanh", "128", "wide"])
def test_dense_kernels_train_the_models_of_the_portable_fleet(kind: str) -> None:
    given = [dense(seed, kind) for seed in range(16)]
    fast, data = dense_engine(given), given[0].world.load().to("cuda")
    members = arrange([one.resolve() for one in given], least=least_group(given[0]))
    slow = new_fleet(members, portable(template_of(members, data.shape)), len(data), data.shape)
    stepper = Stepper(slow, source_of(members.experiments, data), print)
    start = slow.backend.layout.views(slow.parameters.clone())
    torch.backends.cuda.matmul.allow_tf32 = False
    for step in range(70):
        stepper(step, record=step % 30 == 0)
    fleet = fast.fleet
    for name, view in slow.backend.layout.views(slow.parameters).items():
        own = fleet.backend.layout.views(fleet.parameters)[name]  # type: ignore[union-attr]
        assert (own - view).norm() < 2e-2 * (view - start[name]).norm(), name
    assert torch.allclose(fast.rows()[0].values, slow.groups[0].row, rtol=1e-2, atol=1e-3)  # type: ignore[arg-type]


@pytest.mark.parametrize("altered", ["noise", "perturbed"])
def test_altered_worlds_step_in_a_graph(altered: str, tmp_path: Path) -> None:
    world: World = Noise(Micro(), 0.1)
    if altered == "perturbed":
        world = Perturbed(str(manipulations(tmp_path)[0]))
    data, said = world.load().to("cuda"), list[str]()
    members, backend = arranged([replace(experiment(), world=world)], data, said.append)
    fleet = new_fleet(members, backend, len(data), data.shape)
    stepper = Stepper(fleet, source_of(members.experiments, data), said.append)
    for step in range(3):
        stepper(step, record=True)
    assert not said


def test_manipulations_step_one_after_the_other_in_a_graph(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    both = manipulations(tmp_path / "both")
    assert "without a CUDA graph" not in capsys.readouterr().err
    for kept, number in zip(both, (0, 1)):
        (alone,) = manipulations(tmp_path / f"alone-{number}", only=number)
        assert Run(alone).files.read("model.safetensors") == Run(kept).files.read("model.safetensors")


def manipulations(folder: Path, only: int | None = None) -> list[Path]:
    """Two manipulations with the same two runs on their sides, in one fleet; or one of the two alone."""
    runs = [train(experiment(seed), folder / f"run-{seed}") for seed in (0, 1)]
    sides = [tuple(given_run(str(run)) for run in order) for order in (runs, runs[::-1])]
    given = [experiment(0, Perturbation((one,), (other,), samples=2)) for one, other in sides]
    chosen = given if only is None else [given[only]]
    return train_many(chosen, folder / "manipulations")


def test_a_bf16_run_alone_has_the_bits_of_a_run_in_company(tmp_path: Path) -> None:
    train(experiment(1), tmp_path / "alone")
    company = train_many([experiment(seed) for seed in range(3)], tmp_path / "company")
    assert Run(tmp_path / "alone").files.read("model.safetensors") == Run(company[1]).files.read("model.safetensors")


def test_a_fleet_resumes_exactly(tmp_path: Path) -> None:
    given = [experiment(seed, OBJECTIVE) for seed in range(3)]
    whole, asked = train_many(given, tmp_path / "whole"), [0]

    def stop() -> bool:
        asked[0] += 1
        return asked[0] > 3

    with pytest.raises(Interrupted):
        train_many(given, tmp_path / "parts", how=RunOptions(stop=stop))
    for path, other in zip(whole, train_many(given, tmp_path / "parts")):
        assert Run(path).files.read("model.safetensors") == Run(other).files.read("model.safetensors")


def test_free_memory_bounds_the_fleet() -> None:
    small, large = experiment(), replace(experiment(), batch_size=64)
    assert models_that_fit(small, Form((1, 32, 32))) > models_that_fit(large, Form((1, 32, 32))) > 100
