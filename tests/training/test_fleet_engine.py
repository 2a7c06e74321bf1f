"""Which engine a fleet gets, what happens where memory or a compiler fails, and what the user is told."""

import contextlib
import io
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch

from unweave.data.micro import Micro
from unweave.data.synthetic import SynthNonLin
from unweave.models.layers import Moving
from unweave.models.likelihoods import Gaussian, LearnedGaussian
from unweave.models.networks import MLP, Conv, Linear
from unweave.models.objectives import OBJECTIVES, Context, Terms
from unweave.models.objectives.beta_vae import BetaVAE, BetaVAEFull
from unweave.models.objectives.factor_vae import FactorVAE
from unweave.models.objectives.objective import known_by_totals
from unweave.models.posteriors import Code
from unweave.recipes.pace import floor_of, pace
from unweave.runs.folder import RunFolder
from unweave.training.batches import draw, source_of
from unweave.training.experiment import Experiment, Form, Plan
from unweave.training.fleet import choice
from unweave.training.fleet.backend import Backend
from unweave.training.fleet.choice import choose_backend, models_that_fit
from unweave.training.fleet.dense import dense_stack
from unweave.training.fleet.engine import FleetEngine, _regrouped, recorded_together
from unweave.training.fleet.fleet import Fleet, advance, new_fleet, template_of
from unweave.training.fleet.mapped import MappedFleet, _stack, new_mapped_fleet
from unweave.training.fleet.members import arrange
from unweave.training.fleet.portable import portable
from unweave.training.fleet.stepper import Stepper
from unweave.training.loop import _train_as_fleet, train
from unweave.training.many import train_many
from unweave.training.progress import progress, words
from unweave.training.run import Run
from unweave.training.running import Interrupted, RunOptions, StepReport

BASE = Experiment(
    SynthNonLin(n_points=200),
    network=MLP((8,), (8,)),
    likelihood=Gaussian(),
    steps=6,
    batch_size=5,
    latents=3,
    history_every=2,
    plan=Plan("cpu", 1),
)


def test_losses_of_totals_are_one_group_whatever_the_latents() -> None:
    given = [replace(BASE, latents=n, seed=n) for n in (3, 5, 3)] + [
        replace(BASE, objective=OBJECTIVES["dip_vae_i"](), latents=2)
    ]
    apart, one = (arrange(given, least=1, totals=totals) for totals in (False, True))
    assert apart.given == one.given == (0, 2, 1, 3)
    assert [group.stop for group in apart.groups] == [2, 3, 4]
    assert [group.stop for group in one.groups] == [3, 4]  # DIP-VAE sees each latent
    assert recorded_together(one) == [(0, slice(0, 2), 3), (0, slice(2, 3), 5), (1, slice(0, 1), 2)]
    warm = arrange([BASE, replace(BASE, latents=5, warmup=2)], least=1, totals=True)
    assert len(warm.groups) == 2


def test_only_who_promises_is_known_by_totals() -> None:
    @dataclass(frozen=True)
    class Shrink(BetaVAE):
        def terms(self, code: Code, context: Context) -> Terms:
            return super().terms(code, context) | {"regulariser": code.mean.square().mean()}

    @dataclass(frozen=True)
    class Halved(BetaVAE):
        def totals(self, code: Code, reconstructions: torch.Tensor, context: Context) -> Terms:
            return {"loss": code.mean.mean()}

    kinds = {name: known_by_totals(OBJECTIVES[name]()) for name in OBJECTIVES if name != "perturbation"}
    assert {name for name, known in kinds.items() if known} == {"ae", "vae", "beta_vae", "annealed_vae"}
    assert not any(known_by_totals(one) for one in (Shrink(), Halved(), BetaVAEFull()))


@pytest.mark.parametrize("saved", [1, 3])
def test_terms_of_failed_models_find_their_groups(saved: int) -> None:
    rows = torch.arange(5.0)[:, None]
    tensors = {f"group{n}/failed_terms": part for n, part in enumerate(rows.tensor_split(saved))}
    found = _regrouped(tensors, [slice(0, 2), slice(2, 5)])
    assert found["group0/failed_terms"].equal(rows[:2])
    assert found["group1/failed_terms"].equal(rows[2:])
    assert _regrouped(tensors, [slice(0, 2), slice(2, 4)]) is tensors  # not this fleet's


def seeds(n: int, base: Experiment = BASE) -> list[Experiment]:
    return [replace(base, seed=seed) for seed in range(n)]


def trained(given: list[Experiment], engine: Backend, n_steps: int = 3) -> Fleet:
    data, members = given[0].world.load(), arrange(given)
    fleet, source = new_fleet(members, engine, len(data), data.shape), source_of(members.experiments, data)
    draws = draw(source, torch.arange(n_steps))
    for step in range(n_steps):
        advance(fleet, source, {name: drawn[step] for name, drawn in draws.items()}, record=True)
    return fleet


def test_a_fleet_that_is_done_waits_for_its_graphs_and_drops_them(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []

    class Graph:
        def reset(self) -> None:
            order.append("dropped")

    monkeypatch.setattr(torch.cuda, "synchronize", lambda _: order.append("waited"))
    engine = FleetEngine(seeds(2), BASE.world.load(), print)
    assert isinstance(engine.stepper, Stepper)
    engine.close()
    assert order == [], "there was nothing to wait for"
    engine.stepper.graphs = {(record,): (Graph(), []) for record in (False, True)}  # type: ignore[dict-item, misc]
    engine.close()
    assert order == ["waited", "dropped", "dropped"]
    assert not engine.stepper.graphs


@pytest.mark.parametrize("stops", [False, True])
def test_a_training_ends_its_fleet_whatever_happens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stops: bool
) -> None:
    ended: list[int] = []
    monkeypatch.setattr(FleetEngine, "close", lambda self: ended.append(len(self.experiments)))
    with pytest.raises(Interrupted) if stops else contextlib.nullcontext():
        train_many(seeds(3), tmp_path, how=RunOptions(stop=lambda: stops))
    assert ended == [3]


@pytest.mark.parametrize("objective", [BetaVAE(), FactorVAE(width=9, depth=2)])
def test_stacked_dense_layers_are_the_mapped_ones(objective: object) -> None:
    given = seeds(3, replace(BASE, objective=objective))
    template = template_of(arrange(given), (6,))
    stacked = dense_stack(template)
    assert stacked is not None
    own, mapped = trained(given, stacked), trained(given, portable(template))
    assert (own.parameters - mapped.parameters).abs().max() < 2e-6
    assert own.groups[0].row is not None
    assert torch.allclose(own.groups[0].row, mapped.groups[0].row, rtol=1e-4, atol=1e-6)


def test_bits_in_the_dense_stack_do_not_depend_on_its_size() -> None:
    template = template_of(arrange(seeds(2)), (6,))
    rows = [trained(seeds(n), dense_stack(template) or portable(template)).parameters[0] for n in (1, 2, 7, 64)]
    assert all(torch.equal(row, rows[0]) for row in rows)


@pytest.mark.parametrize(
    ("changes", "stacked"),
    [
        ({}, True),
        ({"network": Linear()}, True),
        ({"objective": BetaVAEFull()}, False),
        ({"likelihood": LearnedGaussian()}, False),
        ({"world": Micro(), "network": Conv((4, 4), (4, 4), 8)}, False),
    ],
)
def test_dense_networks_are_stacked_on_a_cpu(changes: dict[str, object], stacked: bool) -> None:
    given = replace(BASE, **changes)  # type: ignore[arg-type]
    engine = choose_backend(arrange([given]), given.world.load(), pytest.fail)
    assert engine.name == ("stacked" if stacked else "portable")


def _on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> Experiment:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    return replace(BASE, world=Micro(), network=Conv((16, 16), (4, 4), 8), plan=Plan("cuda", 1, "bf16"))


def test_without_triton_the_portable_engine_is_taken_and_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    given, said = _on_a_gpu(monkeypatch), []
    monkeypatch.setitem(sys.modules, "unweave.models.kernels.conv_stack", None)
    assert choose_backend(arrange([given]), Micro().load(), said.append).name == "portable"
    (line,) = said
    assert line.startswith("training without GPU kernels (ModuleNotFoundError")


def test_kernels_that_do_not_compile_are_left_and_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("triton")
    given, said = _on_a_gpu(monkeypatch), []

    def fail(*_: object) -> None:
        raise RuntimeError("PassManager::run failed\nwith a very long story")

    monkeypatch.setattr(choice, "_try", fail)
    assert choose_backend(arrange([given]), Micro().load(), said.append).name == "portable"
    assert said == ["training without GPU kernels (RuntimeError: PassManager::run failed)"]


def test_structures_without_kernels_are_said_too(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("triton")
    given, said = replace(_on_a_gpu(monkeypatch), network=Conv((8, 8), (4, 4), 8)), []
    assert choose_backend(arrange([given]), Micro().load(), said.append).name == "portable"
    assert "inner channels of 16, 32, 64 or 128" in said[0]


def test_a_fleet_without_memory_halves_itself_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = train_many(seeds(5), tmp_path / "whole")
    plain, sizes = Stepper.__call__, []

    def step(self: Stepper, number: int, *, record: bool) -> None:
        if number == 2:
            sizes.append(len(self.fleet.parameters))
            if len(self.fleet.parameters) > 3:
                raise torch.cuda.OutOfMemoryError("CUDA out of memory")
        plain(self, number, record=record)

    monkeypatch.setattr(Stepper, "__call__", step)
    parts = train_many(seeds(5), tmp_path / "parts")
    assert sizes == [5, 2, 3]
    assert "5 models do not fit in GPU memory; going on with 2 at a time" in capsys.readouterr().err
    for path, other in zip(whole, parts):
        assert Run(path).files.read("model.safetensors") == Run(other).files.read("model.safetensors")


def test_one_model_without_memory_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def step(self: Stepper, number: int, *, record: bool) -> None:
        raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(Stepper, "__call__", step)
    with pytest.raises(torch.cuda.OutOfMemoryError):
        train_many(seeds(1), tmp_path)


def test_fleets_are_cut_to_free_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("unweave.training.many.models_that_fit", lambda *_: 4)
    paths = train_many(seeds(6), tmp_path)
    assert "6 models in 2 fleets of up to 3: 4 fit" in capsys.readouterr().err
    assert all(Run(path).state == "done" for path in paths)


def test_larger_models_fit_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "_free_memory", lambda device: 10**9)
    small, large = (models_that_fit(replace(BASE, network=MLP((n,), (n,))), Form((6,))) for n in (8, 800))
    assert small > large > 1
    assert models_that_fit(replace(BASE, objective=FactorVAE()), Form((6,))) < small


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (Plan("cpu", 1, "fp16"), "plan.precision must be auto, bf16, tf32, fp32, not 'fp16'"),
        (Plan("cpu", 1, "bf16"), "needs a GPU"),
    ],
)
def test_precisions_are_checked(plan: Plan, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plan.resolve()


def test_precision_is_part_of_a_runs_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Plan("cpu", 1).resolve().precision == "fp32"
    assert replace(BASE, plan=Plan("cpu", 1)).resolve().id == replace(BASE, plan=Plan("cpu", 1, "fp32")).resolve().id
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert Plan("cuda", 1).resolve().precision in ("bf16", "tf32")
    ids = {replace(BASE, plan=Plan("cuda", 1, precision)).resolve().id for precision in ("bf16", "tf32", "fp32")}
    assert len(ids) == 3


def test_a_model_alone_may_be_a_fleet_of_one(tmp_path: Path) -> None:
    given = BASE.resolve()
    path = _train_as_fleet(RunFolder(tmp_path / "fleet"), given, None, RunOptions())
    assert path == tmp_path / "fleet"
    single = Run(train(given, tmp_path / "single"))
    for name, weight in single.model.state_dict().items():
        assert torch.allclose(Run(path).model.state_dict()[name], weight, atol=2e-6)


class Told:
    """Stands for models that train."""

    def __init__(self, *losses: float) -> None:
        self.losses = losses

    def terms(self) -> list[dict[str, float]]:
        return [{"loss": loss} for loss in self.losses]


def test_one_line_tells_models_a_day() -> None:
    # 50 models, 20 steps a second each: 50 · 20 · 86,400 / 3,000 models of 3,000 steps a day
    line = words(StepReport(600, 3000, True, Told(*[81.25] * 50)), 20.0)
    assert line == "50 models, 1,000 model-steps/s, 28,800.0 models a day, mean loss 81.25"
    assert words(StepReport(600, 3000, True, Told(81.25)), 20.0) == "20.0 steps/s, loss 81.25"


def test_progress_is_repeated_where_there_is_no_terminal() -> None:
    out = io.StringIO()
    with progress("seven models", out) as watch:
        for done in (1, 5, 10):
            watch(StepReport(done, 10, True, Told(*[2.0] * 7)))
    assert out.getvalue().count("\n") == 1
    assert "seven models: step 10 of 10, 7 models" in out.getvalue()


def test_the_pace_of_every_way_is_measured() -> None:
    base = replace(BASE, steps=1_000_000).resolve()
    found, floor = pace(base, base.world.load(), models=4, ways=("eager", "alone", "fleet"), rounds=1, seconds=0.01)
    assert [(one.way, one.models) for one in found] == [("eager", 1), ("alone", 1), ("fleet", 4)]
    for one in found:
        assert one.fastest <= one.microseconds <= one.slowest
        assert one.models_a_day == pytest.approx(86400e6 / 300_000 / one.microseconds)
        assert one.share_of_floor == pytest.approx(floor / one.microseconds)


def test_the_floor_counts_the_bytes_of_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unweave.recipes.pace.copy_rate", lambda device: 1.0)
    # layers of 8, 3, 3, 8 and 6 outputs for 5 examples, 7 passes of 4 bytes; weights and biases, 7 numbers of 4 bytes
    n_parameters = (6 * 8 + 8) + 2 * (8 * 3 + 3) + (3 * 8 + 8) + (8 * 6 + 6)
    assert floor_of(BASE.resolve(), BASE.world.load()) == 28 * 5 * (8 + 3 + 3 + 8 + 6) + 28 * n_parameters


def test_one_model_alone_can_be_a_fleet() -> None:
    (one,) = seeds(1)
    assert template_of(arrange([one]), (6,)).architecture.latents == one.latents
    fleet = new_mapped_fleet(arrange([one]), 8, Form((6,)))
    assert fleet._optimiser(fleet.groups[0].method.phases()[0]) == one.optimiser


class Counting(Moving):
    """A layer with a running mean, a count of its uses, and a table that never changes."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(2))
        self.register_buffer("mean", torch.zeros(3))
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))
        self.register_buffer("table", torch.tensor([2**40, 7]))


def test_buffers_move_by_name_and_keep_their_type_and_those_of_failed_models_stay() -> None:
    stack = _stack([Counting(), Counting(), Counting()], None)
    fleet = object.__new__(MappedFleet)
    fleet.stacks, fleet.failed_at = {"net": stack}, torch.tensor([-1, 4, -1])
    fleet._move({"net": {"mean": torch.arange(9.0).view(3, 3), "count": torch.tensor([5, 6, 7])}})
    assert stack.buffers["mean"].tolist() == [[0.0, 1.0, 2.0], [0.0, 0.0, 0.0], [6.0, 7.0, 8.0]]
    assert stack.buffers["count"].tolist() == [5, 0, 7]
    assert stack.buffers["count"].dtype == torch.int64
    assert stack.buffers["table"].tolist() == 3 * [[2**40, 7]]
