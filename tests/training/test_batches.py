"""Batches: blocks of draws, what data must have for a method, several worlds in one store, rows that are held out."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from unweave import rng
from unweave.data.micro import Micro
from unweave.data.procedural.nuisances import Tint
from unweave.data.synthetic import SynthLin
from unweave.data.world import Data
from unweave.models.networks import MLP
from unweave.models.objectives import GVAE, IVAE, BetaVAE, FactorVAE, SemiVAE, SlowVAE
from unweave.training import batches
from unweave.training.batches import Drawing, check_supervision, load_together, source_of, training_rows
from unweave.training.experiment import Experiment, Plan

ONE = Experiment(Micro(), network=MLP((4,), (4,)), latents=3, batch_size=4, plan=Plan("cpu", 1))


@pytest.fixture(scope="module")
def data() -> Data:
    return Micro().load()


def test_a_block_holds_64_steps_or_as_many_as_memory_allows(data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    source = source_of([ONE, replace(ONE, seed=1)], data)
    assert source.block == 64
    for most, n in ((2 * 4 * 3 * 5, 5), (2 * 4 * 3 * 5 - 1, 4), (1, 1)):
        monkeypatch.setattr(batches, "MOST_DRAWS", most)
        assert source.block == n
        assert source.block_up_to(3) == min(n, 3)


def test_draws_are_those_of_their_step_whatever_was_asked_before(data: Data) -> None:
    source = source_of([replace(ONE, objective=FactorVAE())], data)
    drawing = Drawing(source, most=4)
    for step in (0, 3, 4, 9, 2, 7, 8, 0):
        found = drawing(step)
        wanted = batches.draw(source, torch.tensor([step]))
        assert drawing.first == step - step % 4
        assert found["steps"] == step
        for name, drawn in wanted.items():
            assert torch.equal(found[name], drawn[0]), name


def test_blocks_are_new(data: Data) -> None:
    drawing = Drawing(source_of([ONE], data))
    first = drawing(0)["noise"]
    kept = first.clone()
    drawing(64)
    assert torch.equal(first, kept)


def test_rows_of_a_holdout_are_what_the_seed_leaves() -> None:
    assert training_rows(ONE, 10) is None
    rows = training_rows(replace(ONE, holdout=0.3, seed=2), 10)
    assert rows is not None
    assert rows.tolist() == (~rng.split_rows(10, 0.3, 2)).nonzero()[:, 0].tolist()
    assert len(rows) == 7
    with pytest.raises(ValueError, match=r"a holdout of 0\.99 leaves none of the 3 examples to train on"):
        training_rows(replace(ONE, holdout=0.99), 3)


def test_members_with_other_holdouts_draw_as_they_do_alone(data: Data) -> None:
    for order in ("iid", "epochs"):
        given = [replace(ONE, order=order, holdout=share, seed=seed) for seed, share in enumerate((0.0, 0.5, 0.9))]
        together = source_of(given, data)
        assert together.sizes == (205, 1024, 2048)
        found = batches.draw(together, torch.tensor([0, 3, 700]))["rows of images"]
        for member, one in enumerate(given):
            alone = batches.draw(source_of([one], data), torch.tensor([0, 3, 700]))["rows of images"]
            assert torch.equal(found[:, member], alone[:, 0])
    assert source_of(given[:1] * 2, data).n_rows is None


def test_weighted_members_with_other_holdouts_draw_as_they_do_alone() -> None:
    world = Micro(correlated=("x=y:0.2",))
    given = [replace(ONE, world=world, holdout=share, seed=seed) for seed, share in enumerate((0.5, 0.9))]
    data, steps = world.load(), torch.tensor([0, 3])
    found = batches.draw(source_of(given, data), steps)["rows of images"]
    for member, one in enumerate(given):
        alone = batches.draw(source_of([one], data), steps)["rows of images"]
        assert torch.equal(found[:, member], alone[:, 0])
        kept = training_rows(one, len(data))
        assert torch.isin(alone, kept).all()


def test_latents_that_a_member_does_not_have_get_no_noise(data: Data) -> None:
    source = source_of([replace(ONE, latents=1), replace(ONE, latents=3)], data)
    assert source.latent_mask is not None
    assert source.latent_mask.tolist() == [[[1.0, 0.0, 0.0]], [[1.0, 1.0, 1.0]]]
    noise = batches.draw(source, torch.tensor([5]))["noise"][0]
    assert noise[0, :, 1:].abs().sum() == 0.0
    for member, one in enumerate(source.seeds.tolist()):
        wanted = rng.normal(one, rng.Purpose.NOISE, 5, 4, 3)
        torch.testing.assert_close(noise[member, :, : (1, 3)[member]], wanted[:, : (1, 3)[member]])
    assert source_of([ONE, ONE], data).latent_mask is None


def test_worlds_lie_one_after_the_other_in_one_store() -> None:
    worlds = [SynthLin(n_points=20), SynthLin(n_points=20, seed=1), SynthLin(n_points=20)]
    given = [replace(ONE, world=world, seed=seed) for seed, world in enumerate(worlds)]
    data = load_together(given)
    assert (len(data.worlds), data.n_of_each, len(data.store)) == (2, 20, 40)
    source = source_of(given, data)
    assert source.offset is not None
    assert source.offset.tolist() == [0, 20, 0]
    rows = batches.draw(source, torch.arange(9))["rows of images"]
    assert rows[:, [0, 2]].max() < 20 <= rows[:, 1].min()
    only = load_together(given[:1])
    assert not only.worlds
    assert torch.equal(only.store, data.store[:20])


def refused(method: Any, data: Data, **given: Any) -> str:
    with pytest.raises(ValueError, match=r".") as found:
        check_supervision(replace(ONE, objective=method, **given), data)
    return str(found.value)


def test_data_must_have_what_a_method_asks_for(data: Data) -> None:
    bare = replace(data, space=None)
    assert "slow_vae learns from pairs of examples, and micro has none" in refused(SlowVAE(), bare)
    assert "set holdout=0 (given 0.1)" in refused(SlowVAE(), data, holdout=0.1)
    check_supervision(replace(ONE, objective=SlowVAE()), data)
    paired = replace(bare, pairs=torch.zeros(3, 2, dtype=torch.int64))
    check_supervision(replace(ONE, objective=SlowVAE()), paired)
    assert "gvae must know which factors the two of a pair share" in refused(GVAE(), paired)
    check_supervision(replace(ONE, objective=GVAE()), data)
    for method in (IVAE(), SemiVAE()):
        assert "learns from labels, and micro has none" in refused(method, replace(bare, labels=None))
    check_supervision(replace(ONE, objective=BetaVAE(), holdout=0.1), bare)


def test_labels_must_be_there_and_differ(data: Data) -> None:
    labels = torch.zeros(len(data), 2)
    labels[7, 1] = 1.0
    told = replace(data, space=None, labels=labels)
    check_supervision(replace(ONE, objective=IVAE()), told)
    labels[5, 1], labels[9, 0] = torch.nan, torch.inf
    words = refused(IVAE(), replace(told, labels=labels))
    assert "and 2 of micro are missing, the first in row 6, " in words
    same = refused(IVAE(), replace(told, labels=torch.ones(len(data), 2)))
    assert "and in micro all have the same" in same


def test_networks_are_rehearsed_with_numbers_up_to_a_size(data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    devices: list[str] = []
    monkeypatch.setattr(batches, "rehearse", lambda one, networks, form: devices.append(_device(networks)))
    with torch.device("meta"):
        networks = ONE.objective.networks(ONE.architecture(data.shape))
    n = sum(parameter.numel() for parameter in networks["model"].parameters())
    for most in (n, n - 1):
        monkeypatch.setattr(batches, "MOST_REHEARSED", most)
        batches.rehearse_anywhere(ONE, networks, batches.form_of(ONE.objective, data))
    assert devices == ["cpu", "meta"]


def _device(networks: Any) -> str:
    return next(iter(networks["model"].parameters())).device.type


def test_zeros_stand_for_weights_and_buffers() -> None:
    from unweave.models.normalisation import BatchNorm

    with torch.device("meta"):
        network = BatchNorm(3)
    made = batches._of_nothing(network)
    held = {**dict(made.named_parameters()), **dict(made.named_buffers())}
    assert {name: one.tolist() for name, one in held.items()} == {name: [0.0] * 3 for name in held}
    assert len(held) == 4
    assert next(iter(network.parameters())).is_meta


@pytest.mark.parametrize("part", ["images", "second_images"])
def test_nuisances_are_drawn_for_every_row_of_every_step(data: Data, part: str) -> None:
    shaded = replace(data, nuisance=Tint())
    source = source_of([replace(ONE, objective=FactorVAE(), seed=seed) for seed in (3, 4)], shaded)
    draws = {name: drawn[0] for name, drawn in batches.draw(source, torch.tensor([7])).items()}
    found = batches.images(source, draws, part)
    assert found.shape == (2, 4, 3, *data.shape[1:])
    purpose = {"images": rng.Purpose.NUISANCE, "second_images": rng.Purpose.SECOND_NUISANCE}[part]
    for member, seed in enumerate((3, 4)):
        drawn = rng.uniform(seed, purpose, 7, 4, 3)
        plain = data.examples(draws[f"rows of {part}"][member])
        torch.testing.assert_close(found[member], Tint().apply(plain, drawn))
