"""The manipulation of images: what moves, what stays, by how much; and the worlds that it makes."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import safetensors.torch
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from unweave.config import to_plain
from unweave.data import WORLDS
from unweave.data.altered import Manipulated, Noise, Perturbed, UniformNoise, fold
from unweave.data.micro import SPACE, Micro
from unweave.data.procedural.nuisances import Tint
from unweave.data.synthetic import SynthLin
from unweave.models.manipulation import altered
from unweave.models.method import Context, Given, new_networks
from unweave.models.networks import MLP
from unweave.models.objectives import Perturbation
from unweave.models.optimisers import Adam
from unweave.recipes.perturb import altered_images
from unweave.runs.folder import RunFolder
from unweave.studies.pack import pack
from unweave.studies.plan import plan
from unweave.training import batches
from unweave.training.alone import Alone
from unweave.training.batches import batch_of_one
from unweave.training.experiment import Experiment, Plan, experiment_from, experiment_to
from unweave.training.fleet.members import check_structure
from unweave.training.given import given_run
from unweave.training.loop import resume, train
from unweave.training.many import train_many
from unweave.training.run import Run
from unweave.training.running import Interrupted, RunOptions

BASE = Experiment(
    Micro(), network=MLP((12,), (12,)), steps=20, batch_size=6, latents=3, history_every=4, plan=Plan("cpu", 1)
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return [train(replace(BASE, seed=seed), tmp_path_factory.mktemp("run")) for seed in (0, 1)]


@pytest.fixture(scope="module")
def method(runs: list[Path]) -> Perturbation:
    foster, diminish = (given_run(str(run)) for run in runs)
    return Perturbation((foster,), (diminish,), epsilon=0.2, samples=2, learning_rate=1e-2)


@pytest.fixture(scope="module")
def manipulation(method: Perturbation, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train(replace(BASE, objective=method), tmp_path_factory.mktemp("manipulation"))


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.floats(0.001, 0.5), st.integers(0, 1000))
@settings(max_examples=200, deadline=None)
def test_no_pixel_moves_further_than_epsilon_nor_out_of_its_range(
    pixels: list[float], epsilon: float, seed: int
) -> None:
    images = torch.tensor(pixels, dtype=torch.float64)
    change = 2 * torch.rand(len(pixels), generator=torch.Generator().manual_seed(seed), dtype=torch.float64) - 1
    seen = altered(images, change, epsilon)
    assert ((seen - images).abs() <= epsilon + 1e-12).all()
    assert ((seen >= 0) & (seen <= 1)).all()


def test_folding_reflects() -> None:
    torch.testing.assert_close(fold(torch.tensor([-0.1, 0.0, 0.4, 1.0, 1.3])), torch.tensor([0.1, 0.0, 0.4, 1.0, 0.7]))


def test_hidden_layers_before_the_one_number(method: Perturbation, tmp_path: Path) -> None:
    """They are no part of older configs; with them m is no function of a linear combination of the factors."""
    assert "hidden" not in to_plain(method)
    asked = replace(BASE, objective=replace(method, hidden=7))
    world = Perturbed(str(train(asked, tmp_path / "m"))).resolve()
    alteration = world.load().alteration
    assert isinstance(alteration, Manipulated)
    weights = safetensors.torch.load_file(tmp_path / "m" / "model.safetensors")
    squeeze = alteration.network.squeeze
    assert {name: tuple(held.shape) for name, held in weights.items() if "squeeze" in name and "weight" in name} == {
        "squeeze.0.weight": (7, 3),
        "squeeze.2.weight": (7, 7),
        "squeeze.4.weight": (1, 7),
    }
    for name, held in squeeze.state_dict().items():
        torch.testing.assert_close(held, weights[f"squeeze.{name}"])
    line = torch.linspace(-1, 1, 5)[:, None].expand(-1, 3)
    bends = squeeze(line)[:, 0].diff().diff().abs().max()
    assert bends > 1e-3


def test_phases_move_what_they_say_and_three_to_one(method: Perturbation) -> None:
    assert [phase.optimiser for phase in method.phases()] == [Adam(1e-2, epsilon=1e-7)] * 2  # as TensorFlow's Adam
    engine = Alone(replace(BASE, objective=method), Micro().load())

    def held() -> dict[str, torch.Tensor]:
        return {
            name: torch.cat([parameter.flatten() for parameter in network.parameters()]).clone()
            for name, network in engine.networks.items()
        }

    before = held()
    moved: list[set[str]] = []
    for step in range(6):
        engine.advance(step, record=True)
        after = held()
        moved.append({name for name in after if not torch.equal(after[name], before[name])})
        before = after
    decoders = {"foster0_decoder", "diminish0_decoder"}
    assert moved == [decoders, decoders, decoders | {"manipulation"}] * 2
    engine.advance(6, record=True)  # the manipulation, whose gap is another one, stays
    (terms,) = engine.terms()
    assert set(terms) == {"loss", "foster", "diminish", "gap"}
    assert terms["gap"] == pytest.approx(terms["foster"] - terms["diminish"], abs=1e-3)


def test_no_gradient_reaches_an_encoder_nor_the_other_phases_networks(method: Perturbation) -> None:
    engine = Alone(replace(BASE, objective=method), Micro().load())
    batch = batch_of_one(engine.source, engine.drawing(0))
    context = Context(0, len(engine.source.data), 0, engine.networks)
    for phase in method.phases():
        for network in engine.networks.values():
            network.requires_grad_(True).zero_grad(set_to_none=True)
        terms, _ = phase.loss(batch, context)
        terms[phase.minimises].backward()
        reached = {
            name
            for name, network in engine.networks.items()
            if any(parameter.grad is not None and parameter.grad.any() for parameter in network.parameters())
        }
        # on their way to m slopes pass through the decoders, which do not move then
        assert reached == {*phase.updates, "foster0_decoder", "diminish0_decoder"}


def test_the_manipulation_widens_the_gap(method: Perturbation) -> None:
    one = replace(BASE, objective=replace(method, learning_rate=1e-2, every=1), batch_size=64)
    engine = Alone(one, Micro().load())
    gaps = []
    for step in range(150):
        engine.advance(step, record=False)
        gaps.append(engine.terms()[0]["gap"])
    assert sum(gaps[-20:]) / 20 < gaps[0] - 1.0


@pytest.mark.parametrize("stopped", [9, 10, 11])
def test_a_manipulation_goes_on_to_the_bit_from_any_step_of_three(
    stopped: int, method: Perturbation, manipulation: Path, tmp_path: Path
) -> None:
    seen: list[object] = []
    how = RunOptions((seen.append,), save_every=1e9, stop=lambda: len(seen) >= stopped)
    with pytest.raises(Interrupted):
        train(replace(BASE, objective=method), tmp_path / "run", how=how)
    resumed = resume(tmp_path / "run")
    assert (resumed / "model.safetensors").read_bytes() == (manipulation / "model.safetensors").read_bytes()


def test_manipulations_of_different_runs_share_a_fleet(method: Perturbation, tmp_path: Path) -> None:
    turned = replace(method, foster=method.diminish, diminish=method.foster)
    given = [replace(BASE, objective=one) for one in (method, turned)]
    assert len(pack([one.resolve() for one in given])) == 1
    both = train_many(given, tmp_path / "both")
    for number, one in enumerate(given):
        (alone,) = train_many([one], tmp_path / f"alone-{number}")
        assert Run(alone).files.read("model.safetensors") == Run(both[number]).files.read("model.safetensors")
    with pytest.raises(ValueError, match=r"must agree in objective\.foster: the first has 1, number 2 has 2"):
        check_structure([given[0], replace(BASE, objective=replace(method, foster=method.foster + method.diminish))])


def test_a_perturbed_world_is_its_base_with_other_images(manipulation: Path) -> None:
    world = Perturbed(str(manipulation)).resolve()
    assert world.base == Micro()
    assert world.epsilon == 0.2
    plain, data, rows = Micro().load(), world.load(), torch.arange(0, SPACE.n_cells, 37)
    assert torch.equal(data.factors(rows), plain.factors(rows))
    assert torch.equal(data.store, plain.store)
    assert (data.space, len(data), world.files()) == (plain.space, len(plain), Micro().files())
    assert torch.equal(data.examples(rows), data.examples(rows, seed=5, step=9))
    assert "perturbed by up to 0.2" in world.card().title


@pytest.mark.parametrize("epsilon", [0.01, 0.2, 0.5])
def test_all_images_stay_within_epsilon_and_range(manipulation: Path, epsilon: float) -> None:
    plain = Micro().load().images()
    for world in (Perturbed(str(manipulation), epsilon=epsilon), Noise(Micro(), epsilon)):
        images = world.load().images()
        assert len(images) == SPACE.n_cells
        assert epsilon / 10 < (images - plain).abs().max() <= epsilon + 1e-6
        assert images.min() >= 0
        assert images.max() <= 1


def test_where_a_manipulation_lies_is_not_what_it_is(manipulation: Path, tmp_path: Path) -> None:
    there = tmp_path / "moved"
    there.mkdir()
    for name in ("config.json", "model.safetensors"):
        (there / name).write_bytes((manipulation / name).read_bytes())
    here, moved = (replace(BASE, world=Perturbed(str(path))).resolve() for path in (manipulation, there))
    assert here.id == moved.id != replace(BASE, world=Perturbed(str(there), epsilon=0.1)).resolve().id
    assert experiment_from(experiment_to(here)) == here


def test_what_a_manipulation_is_can_be_said_without_weights_and_nothing_be_made(
    runs: list[Path], manipulation: Path, tmp_path: Path
) -> None:
    there = {path: tmp_path / name for name, path in {"a": runs[0], "b": runs[1], "m": manipulation}.items()}
    for path, copied in there.items():
        shutil.copytree(path, copied)
        RunFolder(copied).leave_weights()
    left = replace(BASE, world=Perturbed(str(there[manipulation])))
    assert left.resolve().id == replace(BASE, world=Perturbed(str(manipulation))).resolve().id
    with pytest.raises(ValueError, match=r"is not on this machine. Put the model.safetensors"):
        plan([left])
    assert len(plan([left], needs_data=False)) == 1
    named = [given_run(str(there[run])) for run in runs]
    assert [one.checksum for one in named] == [given_run(str(run)).checksum for run in runs]
    with pytest.raises(ValueError, match="has no trained model"):
        plan([replace(BASE, objective=Perturbation((named[0],), (named[1],)))])
    (there[manipulation] / "weights.json").write_text('{"sha256": 5}')
    with pytest.raises(ValueError, match="sha256 must be a checksum, not 5"):
        left.resolve()


def test_noise_is_fixed_uniform_and_as_large_as_said() -> None:
    data, plain, rows = Noise(Micro(), 0.15).load(), Micro().load(), torch.arange(300)
    change = data.examples(rows) - plain.examples(rows)
    assert change.abs().max() <= 0.15 + 1e-6
    inside = change[(plain.examples(rows) > 0.2) & (plain.examples(rows) < 0.8)]
    assert abs(inside.mean().item()) < 0.01
    assert inside.std().item() == pytest.approx(0.15 / 3**0.5, rel=0.05)
    assert torch.equal(data.examples(rows[7:9]), data.examples(rows)[7:9])
    assert not torch.equal(data.examples(rows), Noise(Micro(), 0.15, seed=1).load().examples(rows))


def test_what_a_base_does_comes_first(manipulation: Path) -> None:
    rows = torch.arange(0, SPACE.n_cells, 101)
    perturbed, noisy = Perturbed(str(manipulation)), Noise(Micro(), 0.15)
    drawn = noisy.load().alteration
    made = perturbed.load().alteration
    assert isinstance(drawn, UniformNoise)
    assert isinstance(made, Manipulated)
    for base, world, last in (
        (perturbed, Noise(perturbed, 0.15), drawn),
        (noisy, Perturbed(str(manipulation), base=noisy), made),
    ):
        data = world.load()
        wanted = last.apply(base.load().examples(rows), rows)
        assert torch.equal(data.examples(rows), wanted)
        assert torch.equal(data.to("cpu").examples(rows), wanted)
        assert not torch.equal(wanted, replace(data, alteration=last).examples(rows))
    shown = altered_images(Perturbed(str(manipulation), base=noisy), 4)
    assert (shown.altered - shown.originals).abs().max() <= 0.2 + 1e-6
    assert not torch.equal(shown.originals, altered_images(perturbed, 4).originals)


def test_altered_worlds_train_alone_and_in_fleets(manipulation: Path, tmp_path: Path) -> None:
    from unweave.training.many import train_many

    for world in (Noise(Micro()), Perturbed(str(manipulation))):
        one = replace(BASE, world=world)
        (together,) = train_many([one], tmp_path / world.name)
        assert (together / "model.safetensors").exists()


def test_images_are_altered_once_where_they_have_room(
    manipulation: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, n_bytes = torch.tensor([5, 0, 2047, 5]), 4 * SPACE.n_cells * 32 * 32
    for world in (Noise(Micro()), Perturbed(str(manipulation))):
        data = world.load()
        kept = data.altered_once(n_bytes)
        assert kept.comes_as_stored
        assert torch.allclose(kept.examples(rows), data.examples(rows), atol=1e-6)
        assert (kept.space, kept.shape, len(kept)) == (data.space, data.shape, len(data))
        assert data.altered_once(n_bytes - 1) is data
        one = replace(BASE, world=world)
        assert Alone(one, data).source.data.comes_as_stored
        with monkeypatch.context() as small:
            small.setattr(batches, "MOST_ALTERED", 0)
            assert not Alone(one, data).source.data.comes_as_stored
            slow = train(one, tmp_path / f"{world.name}-slow")
        quick = train(one, tmp_path / f"{world.name}-quick")
        anew, once = (torch.nn.utils.parameters_to_vector(Run(path).model.parameters()) for path in (slow, quick))
        assert torch.allclose(anew, once, atol=1e-5)
    tinted = replace(Noise(Micro()).load(), nuisance=Tint())
    assert tinted.altered_once(n_bytes) is tinted, "what a nuisance draws anew is altered anew"


@pytest.mark.parametrize(
    ("world", "words"),
    [
        (Perturbed(), "none is named"),
        (Perturbed("nowhere"), "there is none in nowhere"),
        (Noise(SynthLin()), "synth_lin has none"),
    ],
)
def test_bad_worlds_are_refused(world: Perturbed | Noise, words: str) -> None:
    with pytest.raises((ValueError, FileNotFoundError), match=words):
        world.load()


def test_another_runs_weights_are_refused(runs: list[Path], manipulation: Path) -> None:
    with pytest.raises(ValueError, match="no manipulation"):
        Perturbed(str(runs[0])).resolve()
    with pytest.raises(ValueError, match="its weights differ"):
        Perturbed(str(manipulation), checksum="0" * 64).resolve()
    assert WORLDS["perturbed"] is Perturbed


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"objective": "perturbation"}, "is a run, but no manipulation"),
        ({"objective": None}, "is a run, but no manipulation"),
        ({"objective": {"name": "perturbation"}}, r"objective\.epsilon must be a number, not None"),
        ({"objective": {"name": "perturbation", "epsilon": "x"}}, r"objective\.epsilon must be a number, not 'x'"),
        ({"network": None}, "network must be a name"),
        ({"world": {"name": "perturbed", "run": "bent"}}, "alters a perturbed world and does not say which"),
    ],
)
def test_a_strangers_manipulation_is_refused_in_words(
    changes: dict[str, object], words: str, manipulation: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(manipulation, "bent")
    config = json.loads(Path("bent/config.json").read_text())
    Path("bent/config.json").write_text(json.dumps(config | changes))
    with pytest.raises(ValueError, match=words):
        Perturbed("bent").load()


def test_runs_that_do_not_fit_are_refused(runs: list[Path], tmp_path: Path) -> None:
    other = train(replace(BASE, latents=4), tmp_path / "other")
    method = Perturbation((given_run(str(runs[0])),), (given_run(str(other)),))
    with pytest.raises(ValueError, match="other layers"):
        Alone(replace(BASE, objective=method), Micro().load())
    with pytest.raises(ValueError, match=r"at least 1|1 to 64"):
        experiment_from({"world": "micro", "objective": {"name": "perturbation"}}).resolve()


def test_reconstructions_by_a_loop() -> None:
    method = Perturbation((Given("a"), Given("b")), (Given("c"),), epsilon=0.3, samples=2)
    architecture = replace(BASE, objective=method, latents=2, network=MLP((3,), (3,))).architecture((1, 2, 2), (3, 2))
    networks = new_networks(method, architecture, "glorot", 4)
    batch = {"images": torch.rand(3, 1, 2, 2), "labels": torch.tensor([[0.0, 1.0], [2.0, 0.0], [1.0, 1.0]])}
    batch["code_noise"] = torch.randn(3, method.draws(architecture)["code_noise"].columns)
    noise = batch["code_noise"].view(3, 2, 2, 2)  # image, side, sample, latent
    seen = method.seen(batch, Context(networks=networks))
    found: dict[str, list[float]] = {"foster0": [], "foster1": [], "diminish0": []}
    for name, losses in found.items():
        heads = networks[f"{name}_encoder"](batch["images"])
        for image in range(3):
            for sample in range(2):
                drawn = noise[image, 0 if name.startswith("foster") else 1, sample]
                code = heads["mean"][image] + heads["log_variance"][image].mul(0.5).exp() * drawn
                shown = torch.sigmoid(networks[f"{name}_decoder"](code[None]))[0]
                each = torch.nn.functional.binary_cross_entropy(shown, seen[image], reduction="sum")
                losses.append(each.item())
    means = {name: sum(losses) / 6 for name, losses in found.items()}
    foster, diminish = (means["foster0"] + means["foster1"]) / 2, means["diminish0"]
    terms, _ = method.decoders_loss(batch, Context(networks=networks))
    wanted = {"loss": foster + diminish, "foster": foster, "diminish": diminish, "gap": foster - diminish}
    assert {name: term.item() for name, term in terms.items()} == pytest.approx(wanted, rel=1e-4, abs=1e-4)
    gap, _ = method.manipulation_loss(batch, Context(networks=networks))
    assert {name: term.item() for name, term in gap.items()} == pytest.approx({"gap": foster - diminish}, abs=1e-3)
