"""A fleet is its members: same numbers as alone, same bits with any partners, exact to resume."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from unweave.data.micro import Micro
from unweave.data.world import Data
from unweave.models import OBJECTIVES, Objective
from unweave.models.networks import MLP, Conv, Network
from unweave.models.objectives.beta_vae import VAE, BetaVAE, BetaVAEFull
from unweave.models.objectives.factor_vae import FactorVAE
from unweave.models.optimisers import AdaGrad, Adam
from unweave.runs.folder import RunFolder
from unweave.runs.state import State, state_of
from unweave.training.alone import Alone
from unweave.training.batches import draw, source_of
from unweave.training.checkpoint import history_so_far
from unweave.training.experiment import Experiment, Plan
from unweave.training.fleet.fleet import Fleet, advance, keep_failed, new_fleet, template_of
from unweave.training.fleet.members import arrange
from unweave.training.fleet.portable import portable
from unweave.training.loop import resume, train
from unweave.training.many import home_and_place, train_many
from unweave.training.run import Run
from unweave.training.running import Interrupted, RunOptions, StepReport

DENSE = MLP((12,), (12,))
CONV = Conv((4, 4), (4, 2), 8)


def experiment(seed: int = 0, network: Network = DENSE, **changes: object) -> Experiment:
    base = Experiment(
        Micro(), network=network, steps=6, batch_size=5, latents=3, seed=seed, history_every=4, plan=Plan("cpu", 1)
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def objective_of(name: str) -> Objective:
    return FactorVAE(width=9, depth=2) if name == "factor_vae" else OBJECTIVES[name]()


def micro() -> Data:
    return Micro().load()


def trained(experiments: Sequence[Experiment], n_steps: int, data: Data) -> Fleet:
    """A fleet after some steps, with the last one's row of history."""
    members = arrange(experiments)
    fleet = new_fleet(members, portable(template_of(members, data.shape)), len(data), data.shape)
    source = source_of(members.experiments, data)
    draws = draw(source, torch.arange(n_steps))
    for step in range(n_steps):
        advance(fleet, source, {name: drawn[step] for name, drawn in draws.items()}, record=True)
    return fleet


def alone(given: Experiment, n_steps: int, data: Data) -> Alone:
    engine = Alone(given, data)
    for step in range(n_steps):
        engine.advance(step, record=False)
    return engine


def farthest(fleet: Fleet, given: int, single: Alone) -> float:
    """The largest difference between a member's weights and those of the model trained alone."""
    stacked = fleet.members.given.index(given)
    views = fleet.backend.layout.views(fleet.parameters[stacked : stacked + 1])
    worst = 0.0
    for name, parameter in single.parameters["model"].items():
        own = views[name][0][tuple(slice(0, size) for size in parameter.shape)]
        worst = max(worst, (own - parameter).abs().max().item())
    return worst


def test_convolutions_train_in_a_stack_as_alone() -> None:
    data = micro()
    given = [experiment(seed, CONV) for seed in (0, 1)]
    fleet = trained(given, 3, data)
    for place, member in enumerate(given):
        assert farthest(fleet, place, alone(member, 3, data)) < 2e-6


def test_scalars_latents_objectives_and_seeds_may_differ() -> None:
    data = micro()
    given = [
        experiment(0, objective=BetaVAE(1.0)),
        experiment(1, objective=BetaVAE(16.0), optimiser=Adam(1e-2)),
        experiment(2, objective=BetaVAE(4.0), latents=2),
        experiment(3, objective=VAE(), latents=5),
        experiment(3, objective=FactorVAE(width=9, depth=2, gamma=30.0, protocol="paper", learning_rate=1e-3)),
        experiment(5, objective=OBJECTIVES["beta_tcvae"](), latents=2, warmup=4),
    ]
    fleet = trained(given, 4, data)
    for place, member in enumerate(given):
        assert farthest(fleet, place, alone(member, 4, data)) < 5e-6, member.objective


def test_latents_that_a_member_does_not_have_stay_silent() -> None:
    fleet = trained([experiment(0, latents=2, optimiser=Adam(1e-2)), experiment(1, latents=6)], 3, micro())
    stacked = fleet.members.given.index(0)
    views = fleet.backend.layout.views(fleet.parameters)
    assert views["encoder.heads.mean.weight"][stacked, 2:].abs().max() == 0.0
    assert views["encoder.heads.log_variance.bias"][stacked, 2:].abs().max() == 0.0


@pytest.mark.parametrize("changes", [{"order": "epochs"}, {"holdout": 0.3}, {"optimiser": AdaGrad()}])
def test_other_settings_hold_in_a_fleet(changes: dict[str, object]) -> None:
    data = micro()
    given = [experiment(seed, **changes) for seed in (0, 1)]
    fleet = trained(given, 3, data)
    for place, member in enumerate(given):
        assert (
            farthest(fleet, place, alone(member, 3, data)) < 3e-5
        )  # Adam turns a rounding error in a tiny gradient into a share of its step


@pytest.mark.parametrize("network", [DENSE, CONV])
def test_bits_do_not_depend_on_partners_slot_or_size(network: Network) -> None:
    data, rows = micro(), []
    for n in (1, 2, 7, 64):
        partners = [experiment(seed + 100 * n, network, objective=BetaVAE(float(seed))) for seed in range(n - 1)]
        place = n // 2
        fleet = trained([*partners[:place], experiment(3, network), *partners[place:]], 3, data)
        stacked = fleet.members.given.index(place)
        history = fleet.groups[0].row
        assert history is not None
        rows.append((fleet.parameters[stacked], history[stacked]))
    for weights, history in rows[1:]:
        assert torch.equal(weights, rows[0][0])
        assert torch.equal(history, rows[0][1])


@pytest.mark.parametrize("objective", [FactorVAE(width=9, depth=2), BetaVAEFull(), OBJECTIVES["dip_vae_ii"]()])
def test_bits_do_not_depend_on_the_size_with_other_objectives(objective: object) -> None:
    data = micro()
    small, large = (trained([experiment(s, objective=objective) for s in range(n)], 3, data) for n in (1, 9))
    assert torch.equal(small.parameters[0], large.parameters[0])


def test_a_model_that_diverges_is_frozen_and_the_others_do_not_notice(tmp_path: Path) -> None:
    good, bad = experiment(0), experiment(1, optimiser=Adam(1e30))
    paths = train_many([good, bad], tmp_path / "mixed")
    (only,) = train_many([good], tmp_path / "one")
    assert Run(paths[1]).state == "failed"
    failure = Run(paths[1]).files.read_json("failure.json")
    assert failure["step"] >= 1
    assert failure["term"] in ("reconstruction", "kl")
    assert failure["kept_step"] < failure["step"]
    assert all(part.isfinite().all() for part in Run(paths[1]).load_weights(failure["kept"]).state_dict().values())
    assert Run(paths[0]).files.read("model.safetensors") == Run(only).files.read("model.safetensors")
    assert torch.equal(Run(paths[0]).history.values(), Run(only).history.values())


def test_every_member_becomes_an_ordinary_run(tmp_path: Path) -> None:
    given = [experiment(0, snapshots=(2, 6)), experiment(1, latents=2)]
    paths = train_many(given, tmp_path / "fleet")
    for member, path in zip(given, paths):
        run, single = Run(path), Run(train(member, tmp_path / "alone" / str(member.seed)))
        assert run.state == "done"
        assert run.experiment == member.resolve()
        assert run.history.columns == single.history.columns
        assert run.history.steps == single.history.steps
        assert torch.allclose(run.history.values(), single.history.values(), rtol=1e-4, atol=1e-5)
        for name, weight in single.model.state_dict().items():
            assert torch.allclose(run.model.state_dict()[name], weight, atol=2e-6)
    assert list(Run(paths[0]).snapshots) == [2, 6]
    assert not list((tmp_path / "fleet").glob("fleet-*"))


def test_a_second_call_returns_at_once(tmp_path: Path) -> None:
    given = [experiment(0), experiment(1)]
    paths = train_many(given, tmp_path)
    before = [(path / "model.safetensors").stat().st_mtime_ns for path in paths]
    assert train_many(given, tmp_path) == paths
    assert [(path / "model.safetensors").stat().st_mtime_ns for path in paths] == before


@pytest.mark.parametrize("name", ["beta_vae", "factor_vae"])
def test_resuming_is_exact(tmp_path: Path, name: str) -> None:
    given = [experiment(seed, objective=objective_of(name)) for seed in (0, 1, 2)]
    whole = train_many(given, tmp_path / "whole")
    with pytest.raises(Interrupted, match="step 3"):
        train_many(given, tmp_path / "parts", how=RunOptions(stop=_after(3)))
    parts = train_many(given, tmp_path / "parts")
    for path, other in zip(whole, parts):
        assert Run(path).files.read("model.safetensors") == Run(other).files.read("model.safetensors")
        assert torch.equal(Run(path).history.values(), Run(other).history.values())


def test_a_fleet_killed_while_writing_results_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    given = [experiment(seed) for seed in (0, 1, 2)]
    whole = train_many(given, tmp_path / "whole")
    with pytest.raises(Interrupted):
        train_many(given, tmp_path / "parts", how=RunOptions(stop=_after(4)))
    # one member's result is there already, as after a kill in the middle of the end
    member = tmp_path / "parts" / whole[0].name
    for file in ("model.safetensors", "environment.json", "history.parquet"):
        (member / file).write_bytes((whole[0] / file).read_bytes())
    (member / "SHA256SUMS").write_text((whole[0] / "SHA256SUMS").read_text())
    begun = []
    parts = train_many(given, tmp_path / "parts", how=RunOptions(watchers=(lambda report: begun.append(report.done),)))
    assert min(begun) > 4
    for path, other in zip(whole, parts):
        assert Run(path).files.read("model.safetensors") == Run(other).files.read("model.safetensors")


def test_a_member_is_a_run_like_any_other(tmp_path: Path) -> None:
    given = [experiment(seed, objective=objective_of(name)) for seed, name in enumerate(("beta_vae", "factor_vae"))]
    whole = train_many(given, tmp_path / "whole")
    with pytest.raises(Interrupted, match=f"unweave resume {tmp_path / 'parts'}"):
        train_many(given, tmp_path / "parts", how=RunOptions(stop=_after(5)))
    members = [tmp_path / "parts" / path.name for path in whole]
    for member, single in zip(members, whole):
        assert state_of(RunFolder(member)) == State("interrupted", 5)
        step, history = history_so_far(*home_and_place(RunFolder(member)))
        assert (step, history.steps) == (5, [0, 4])
        assert torch.equal(history.values(), Run(single).history.values()[:2])
    resume(members[1])
    for member, single in zip(members, whole):
        assert Run(member).files.read("model.safetensors") == Run(single).files.read("model.safetensors")
        assert not Run(member).files.has("member.json")


def test_members_are_locked_while_their_fleet_trains(tmp_path: Path) -> None:
    given, seen = [experiment(seed) for seed in (0, 1)], []

    def look(report: StepReport) -> None:
        seen.extend(state_of(RunFolder(tmp_path / member.resolve().id)).word for member in given)
        with pytest.raises(BlockingIOError, match="another process"):
            train(given[0], tmp_path / given[0].resolve().id)

    train_many(given, tmp_path, how=RunOptions((look,)))
    assert set(seen) == {"training"}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"batch_size": 6}, "batch_size"),
        ({"network": MLP((13,), (12,))}, "network.encoder_widths"),
        ({"network": CONV}, "network.name"),
        ({"optimiser": Adam(beta1=0.5)}, "optimiser.beta1"),
        ({"objective": BetaVAEFull()}, "objective.posterior"),
        ({"steps": 7}, "number of updates"),
    ],
)
def test_mixed_structures_are_named(changes: dict[str, object], field: str) -> None:
    with pytest.raises(ValueError, match=f"agree in {field}"):
        arrange([experiment(0), experiment(1, **changes)])


def test_a_fleet_needs_a_member() -> None:
    with pytest.raises(ValueError, match="at least one"):
        arrange([])


def test_small_groups_are_filled_up_with_doubles() -> None:
    members = arrange([experiment(0), experiment(1, latents=2), experiment(2)], least=2)
    assert members.given == (0, 2, 1, -1)
    assert members.groups == (slice(0, 2), slice(2, 4))
    # products of matrices are computed in equal portions on a GPU
    on_gpu = replace(experiment(0, objective=FactorVAE()), plan=Plan("cuda", 1, "bf16"))
    assert len(arrange([on_gpu] * 17, least=16).experiments) == 32
    assert len(arrange([replace(on_gpu, objective=BetaVAE())] * 17, least=16).experiments) == 17
    assert len(arrange([replace(on_gpu, plan=Plan("cpu", 1))] * 17, least=16).experiments) == 17
    assert len(arrange([experiment(0)] * 17, least=16).experiments) == 17


def _after(steps: int) -> Callable[[], bool]:
    """Stops before this step; the loop asks once a step."""
    asked = [0]

    def stop() -> bool:
        asked[0] += 1
        return asked[0] > steps

    return stop


def test_doubles_where_losses_are_computed_change_nothing() -> None:
    data = micro()
    given = [experiment(seed, objective=FactorVAE(width=5, depth=1), latents=2 + seed % 2) for seed in range(4)]

    def after(doubles: int, portion: int | None) -> Fleet:
        members = arrange(given)
        fleet = new_fleet(members, portable(template_of(members, data.shape)), len(data), data.shape)
        for group in fleet.groups:
            group.doubles = doubles
            for network in group.networks.values():
                network.portion = portion
        source = source_of(members.experiments, data)
        draws = draw(source, torch.arange(2))
        for step in range(2):
            advance(fleet, source, {name: drawn[step] for name, drawn in draws.items()}, record=True, step=step)
        return fleet

    plain, filled = after(0, None), after(3, 2)
    assert len(plain.groups) == 2
    for name, tensor in plain.state_tensors().items():
        torch.testing.assert_close(filled.state_tensors()[name], tensor, atol=1e-5, rtol=1e-4)
    for one, other in zip(plain.groups, filled.groups):
        assert one.row is not None
        assert other.row is not None
        assert one.columns == other.columns
        torch.testing.assert_close(other.row, one.row, atol=1e-4, rtol=1e-4)
        assert {*one.terms} == {*other.terms}


def test_the_terms_of_those_who_fail_are_kept_and_of_nobody_else() -> None:
    fleet = trained([experiment(seed) for seed in range(3)], 1, micro())
    (group,) = fleet.groups
    assert group.failed_terms.abs().sum() == 0.0
    keep_failed(group, torch.tensor([False, True, False]))
    assert group.failed_terms[[0, 2]].abs().sum() == 0.0
    found = dict(zip(group.terms, group.failed_terms[1].tolist()))
    assert found == {name: float(term[1]) for name, term in group.terms.items()}
    assert group.failed_terms.shape == (3, 16)
    group.terms = {f"{n}": torch.full((3,), float(n)) for n in range(20)}
    keep_failed(group, torch.tensor([True, False, False]))
    assert group.failed_terms[0].tolist() == [float(n) for n in range(16)]
