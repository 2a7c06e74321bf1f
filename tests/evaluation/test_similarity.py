"""Runs compared layer by layer: groups of seeds, snapshots, identical runs, and numbers by the direct route."""

from pathlib import Path
from typing import Any

import pytest
import torch

from unweave.api import train
from unweave.evaluation.activations import activations
from unweave.evaluation.similarity import compact, compare_runs
from unweave.metrics.similarity.cka import cka
from unweave.metrics.similarity.procrustes import procrustes
from unweave.metrics.similarity.svcca import svcca
from unweave.models.networks import MLP, Conv
from unweave.models.objectives import AE, BetaVAE
from unweave.training.experiment import Plan
from unweave.training.run import Run

QUICK: dict[str, Any] = {"n": 40, "n_permutations": 9}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    folder = tmp_path_factory.mktemp("runs")

    def trained(name: str, world: str = "micro", **settings: Any) -> Run:
        small: dict[str, Any] = {"network": Conv((2, 3), (4, 4), 6), "latents": 3, "steps": 2, "plan": Plan("cpu", 1)}
        return train(world, folder / name, quiet=True, **small | settings)

    return {
        "first": trained("first", objective=BetaVAE(1.0), snapshots=(0, 1, 2)),
        "second": trained("second", objective=BetaVAE(1.0), seed=1),
        "strong": trained("strong", objective=BetaVAE(9.0)),
        "plain": trained("plain", objective=AE(), network=MLP((5,), (5,)), latents=2),
        "points": trained("points", "synth_lin", network=MLP((5,), (5,)), likelihood="squared_error", latents=2),
    }


@pytest.mark.parametrize("shape", [(30, 8), (20, 90)])
def test_compact_layers_are_as_similar(shape: tuple[int, int]) -> None:
    draw = torch.Generator().manual_seed(0)
    left = torch.randn(shape, generator=draw, dtype=torch.float64) @ torch.diag(
        0.5 ** torch.arange(shape[1], dtype=torch.float64)
    )
    right = left @ torch.randn(shape[1], 6, generator=draw, dtype=torch.float64)
    small = compact(left)
    assert small.shape[1] < min(shape) or shape[1] == 8
    for measure in (cka, procrustes, svcca):
        assert measure(small, compact(right)) == pytest.approx(measure(left, right), abs=1e-5)


def test_a_constant_layer_is_compact() -> None:
    assert compact(torch.ones(9, 4)).abs().max() == 0


def test_two_groups(runs: dict[str, Run]) -> None:
    found = compare_runs([runs["first"], runs["second"], runs["strong"]], **QUICK)
    assert [(one.left[:1], one.right[:1], one.n_pairs) for one in found.comparisons] == [("A", "B", 2), ("A", "A", 2)]
    assert len(found.matched) == 3
    one = found.comparisons[0]
    images = runs["first"].images(40)
    layers = [
        dict(zip((a := activations(runs[name].model, images)).names, a.layers)) for name in runs if name != "points"
    ]
    for name in ("input", "encoder 2", "mean"):
        cell = one.rows.index(name), one.columns.index(name)
        for measure, shown in ((cka, one.cka), (procrustes, one.procrustes), (svcca, one.svcca)):
            direct = [measure(layers[place][name].double(), layers[2][name].double()) for place in (0, 1)]
            assert float(shown[cell]) == pytest.approx(sum(direct) / 2, abs=1e-4)
    assert one.splits == (7, 7)
    assert bool((one.averaged.quoted <= one.cka).all())
    assert float(one.p_values.min()) == pytest.approx(0.1)


def test_a_single_run_with_and_without_snapshots(runs: dict[str, Run]) -> None:
    found = compare_runs([runs["first"]], **QUICK)
    assert [one.left.partition(" @ ")[2] for one in found.comparisons] == ["", "0", "1"]
    torch.testing.assert_close(found.comparisons[0].cka.diagonal(), torch.ones(11, dtype=torch.float64))
    assert found.matched == ()
    assert len(compare_runs([runs["second"]], **QUICK).comparisons) == 1


def test_identical_runs(runs: dict[str, Run]) -> None:
    found = compare_runs([runs["plain"], runs["plain"]], **QUICK)
    assert found.matched[0].identical
    assert found.matched[0].matching.score == pytest.approx(1.0)
    found = compare_runs([runs["first"], runs["first"]], **QUICK)
    torch.testing.assert_close(found.comparisons[0].cka.diagonal(), torch.ones(11, dtype=torch.float64))


def test_noise_is_not_taken_for_likeness(runs: dict[str, Run]) -> None:
    # after two steps codes are nearly the prior's noise, which two models do not share
    one = compare_runs([runs["first"], runs["strong"]], n=200, n_permutations=1).comparisons[0]
    assert abs(float(one.cka[one.rows.index("sampled"), one.columns.index("sampled")])) < 0.3


def test_other_architectures_and_deterministic_ones(runs: dict[str, Run]) -> None:
    found = compare_runs([runs["first"], runs["plain"]], **QUICK)
    assert found.comparisons[0].cka.shape == (11, 5)
    assert found.comparisons[0].splits == (7, 3)
    assert found.matched[0].matching.partner.shape == (3,)


def test_fewer_examples_than_features(runs: dict[str, Run]) -> None:
    one = compare_runs([runs["first"], runs["strong"]], n=5, n_permutations=1).comparisons[0]
    assert bool(torch.isfinite(one.cka).all())
    assert bool(one.saturated.any())


def test_refusals(runs: dict[str, Run], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="choose two runs of one world"):
        compare_runs([runs["first"], runs["points"]])
    with pytest.raises(ValueError, match="at least one run"):
        compare_runs([])
    with pytest.raises(ValueError, match="at least 4 examples, not 3"):
        compare_runs([runs["first"]], n=3)
    with pytest.raises(ValueError, match="estimator must be unbiased or biased"):
        compare_runs([runs["first"]], n=9, estimator="both")
