"""Packs: grouped by structure, and no result depends on its pack."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tiny_studies import CONV, DENSE, Raises, tiny

import unweave as uw
from unweave.data import WORLDS
from unweave.studies.measures import Polarised
from unweave.studies.pack import Pack, measuring, pack, pack_from, pack_to
from unweave.studies.plan import Poisoned, plan
from unweave.studies.train_and_measure import train_and_measure
from unweave.training.run import Run


def sizes(packs: list[Pack]) -> list[int]:
    return [len(each.experiments) for each in packs]


def test_dense_models_are_stacked_and_convolutions_are_not() -> None:
    dense = [tiny(seed).resolve() for seed in range(70)]
    assert sizes(pack(dense)) == [32, 32, 6]
    assert sizes(pack(dense, workers=4)) == [18, 18, 18, 16]
    assert sizes(pack([tiny(seed, network=CONV).resolve() for seed in range(3)])) == [1, 1, 1]
    large = uw.MLP()
    assert sizes(pack([tiny(seed, network=large).resolve() for seed in range(3)])) == [1, 1, 1]


def test_structures_and_latents_part() -> None:
    given = [tiny(0), tiny(1, objective=uw.BetaVAE(16.0)), tiny(2, latents=3), tiny(3, steps=6), tiny(4, batch_size=9)]
    packs = pack([experiment.resolve() for experiment in given])
    assert [[e.seed for e in each.experiments] for each in packs] == [[0, 1], [2], [3], [4]]


def test_interrupted_fleets_stay_together() -> None:
    given = [tiny(seed).resolve() for seed in range(6)]
    begun = [[given[4].id, given[1].id], ["gone", given[0].id]]
    packs = pack(given, begun=begun)
    assert [[e.seed for e in each.experiments] for each in packs] == [[4, 1], [0, 2, 3, 5]]


def test_a_pack_travels_as_text() -> None:
    packs = pack([tiny(0).resolve(), tiny(1, network=CONV).resolve()], (Polarised(7), Raises(3)))
    assert [pack_from(pack_to(each)) for each in packs] == packs
    later = measuring([tiny(seed).resolve() for seed in range(9)], (Polarised(7),))
    assert sizes(later) == [8, 1]
    assert not pack_from(pack_to(later[0])).trains


@pytest.mark.parametrize("network", [DENSE, CONV])
def test_results_do_not_depend_on_the_pack(tmp_path: Path, network: object) -> None:
    given = [tiny(seed, network=network).resolve() for seed in range(3)]
    train_and_measure(Pack(tuple(given), (Polarised(32),)), tmp_path / "together")
    train_and_measure(Pack((given[1],), (Polarised(32),)), tmp_path / "alone")
    alone, together = (Run(tmp_path / place / given[1].id).files for place in ("alone", "together"))
    for name in ("model.safetensors", "history.parquet", Polarised(32).file):
        assert alone.read(name) == together.read(name)


def test_a_plan_is_steady_and_has_no_doubles() -> None:
    given = [replace(tiny(0), plan=uw.Plan()), replace(tiny(0), plan=uw.Plan("auto", 1)), tiny(1)]
    planned = plan(given)
    if not torch.cuda.is_available():
        assert [e.plan.threads for e in planned.values()] == [1, 1]
        assert len(planned) == 2
    assert list(planned) == [e.id for e in planned.values()]


def test_a_poisoned_experiment_is_named_before_anything_is_trained() -> None:
    with pytest.raises(Poisoned, match=r"number 2 of 2 \(.*on micro, 0 latents, seed 7\).*latents must be at least 1"):
        plan([tiny(0), tiny(7, latents=0)])
    with pytest.raises(Poisoned, match="number 1 of 1"):
        plan([tiny(0, network=uw.Conv((2,) * 9, (2,) * 9, 4))])
    with pytest.raises(Poisoned, match="not on this machine"):
        plan([uw.Experiment(WORLDS["shapes3d"]())])


@pytest.mark.skipif(torch.cuda.is_available(), reason="is about machines without a GPU")
def test_a_machine_without_a_gpu_plans_for_others() -> None:
    with pytest.raises(Poisoned, match="no CUDA device here"):
        plan([tiny(0, plan=uw.Plan("cuda"))])
    (planned,) = plan([tiny(0, plan=uw.Plan("cuda"))], needs_data=False).values()
    assert planned.plan == uw.Plan("cuda", 1, "bf16")
    assert pack([planned])[0].needs_gpu
    assert not measuring([planned], ())[0].needs_gpu
