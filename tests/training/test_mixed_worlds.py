"""Worlds of one size, and holdouts, in one fleet: every model learns from its own, with the bits it has elsewhere."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from unweave.data.micro import Micro
from unweave.data.synthetic import SynthLin, SynthNonLin
from unweave.models.likelihoods import Gaussian
from unweave.models.networks import Linear
from unweave.models.objectives import OBJECTIVES, BetaVAE
from unweave.studies.pack import pack
from unweave.studies.run import run_study
from unweave.studies.study import Study
from unweave.training.batches import draw, load_together, source_of, stored
from unweave.training.experiment import Experiment, Plan
from unweave.training.fleet.members import check_structure
from unweave.training.many import train_many
from unweave.training.running import Interrupted, RunOptions


def one(ratio: float, seed: int = 0, n_points: int = 200, **changes: object) -> Experiment:
    given = Experiment(
        SynthLin(ratio, n_points), BetaVAE(0.01), Linear(), Gaussian(), latents=2, steps=8, batch_size=9, seed=seed,
        history_every=3, plan=Plan("cpu", 1),
    )  # fmt: skip
    return replace(given, **changes).resolve()  # type: ignore[arg-type]


@pytest.mark.parametrize("order", ["iid", "epochs"])
@pytest.mark.parametrize("holdout", [0.0, 0.25])
def test_every_model_draws_from_its_own_world(order: str, holdout: float) -> None:
    mixed = [one(1.0 + place % 3, place, order=order, holdout=holdout) for place in range(6)]
    data = load_together(mixed)
    steps = torch.arange(40)
    together = source_of(mixed, data)
    for place, experiment in enumerate(mixed):
        alone = source_of([experiment], experiment.world.load())
        expected = stored(alone, draw(alone, steps), "images")[:, 0]
        assert torch.equal(stored(together, draw(together, steps), "images")[:, place], expected)


SHARES = (0.0, 0.25, 0.5, 0.25)


@pytest.mark.parametrize("order", ["iid", "epochs"])
def test_every_model_draws_from_what_its_own_holdout_leaves(order: str) -> None:
    mixed = [one(1.0 + place % 2, place, order=order, holdout=share) for place, share in enumerate(SHARES)]
    data, steps = load_together(mixed), torch.arange(60)
    together = source_of(mixed, data)
    for place, experiment in enumerate(mixed):
        alone = source_of([experiment], experiment.world.load())
        expected = stored(alone, draw(alone, steps), "images")[:, 0]
        assert torch.equal(stored(together, draw(together, steps), "images")[:, place], expected)


def test_holdouts_differ_where_rows_come_by_their_weights_too() -> None:
    mixed = [one(1.0, place, holdout=share) for place, share in enumerate(SHARES)]
    data = mixed[0].world.load()
    data = replace(data, weights=torch.arange(1.0, len(data) + 1))
    steps = torch.arange(60)
    together = source_of(mixed, data)
    for place, experiment in enumerate(mixed):
        alone = source_of([experiment], data)
        expected = draw(alone, steps)["rows of images"][:, 0]
        assert torch.equal(draw(together, steps)["rows of images"][:, place], expected)


def test_bits_are_those_of_fleets_of_one_holdout(tmp_path: Path) -> None:
    mixed = [one(1.0, seed, holdout=share) for seed in range(2) for share in (0.0, 0.5)]
    assert [len(each.experiments) for each in pack(mixed)] == [4]
    together = train_many(mixed, tmp_path / "together")
    for share in (0.0, 0.5):
        train_many([e for e in mixed if e.holdout == share], tmp_path / "apart")
    for path in together:
        for name in ("model.safetensors", "history.parquet", "config.json"):
            assert (path / name).read_bytes() == (tmp_path / "apart" / path.name / name).read_bytes()


def test_bits_are_those_of_fleets_of_one_world(tmp_path: Path) -> None:
    mixed = [one(ratio, seed) for seed in range(2) for ratio in (1.0, 2.0, 3.0)]
    together = train_many(mixed, tmp_path / "together")
    for ratio in (1.0, 2.0, 3.0):
        train_many([e for e in mixed if e.world.ratio == ratio], tmp_path / "apart")  # type: ignore[attr-defined]
    for path in together:
        for name in ("model.safetensors", "history.parquet", "config.json"):
            assert (path / name).read_bytes() == (tmp_path / "apart" / path.name / name).read_bytes()


def test_a_part_of_them_goes_on_with_its_own_worlds(tmp_path: Path) -> None:
    mixed = [one(ratio, seed) for seed in range(2) for ratio in (1.0, 2.0, 3.0)]
    whole = train_many(mixed, tmp_path / "whole")
    train_many(mixed, tmp_path / "parts", size=2)
    left, asked = mixed[3:], iter([False] * 5 + [True] * 99)
    with pytest.raises(Interrupted):
        train_many(left, tmp_path / "left", how=RunOptions(stop=lambda: next(asked)))
    train_many(mixed, tmp_path / "left")
    for path in whole:
        for place in ("parts", "left"):
            assert (path / "model.safetensors").read_bytes() == (
                tmp_path / place / path.name / "model.safetensors"
            ).read_bytes()


def test_a_study_over_worlds_is_one_pack(tmp_path: Path) -> None:
    mixed = tuple(one(ratio, seed) for seed in range(2) for ratio in (1.0, 2.0))
    assert [len(each.experiments) for each in pack(mixed)] == [4]
    assert run_study(Study("ratios", mixed), tmp_path).table.height == 4


def test_what_does_not_mix_is_named() -> None:
    with pytest.raises(ValueError, match=r"must agree in world: .*200 examples.*100 examples"):
        check_structure([one(1.0), one(2.0, n_points=100)])
    with pytest.raises(ValueError, match=r"must agree in world\.name"):
        check_structure([one(1.0), one(1.0, world=SynthNonLin(200))])
    with pytest.raises(ValueError, match=r"must agree in world\."):
        check_structure([one(1.0), one(1.0, world=Micro())])
    labelled = OBJECTIVES["ivae"]()
    with pytest.raises(ValueError, match=r"must agree in world\.ratio"):
        check_structure([one(1.0, objective=labelled), one(2.0, objective=labelled)])
