"""What needs no training holds at any size: a theorem, a limit, a loophole of a metric."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from unweave.metrics.dimension.intrinsic import intrinsic
from unweave.recipes.bonheme2023 import fig_8_4
from unweave.recipes.locatello2019 import k_8
from unweave.recipes.reproductions import find_reproduction
from unweave.recipes.zietlow2022 import fig_7_6, theorem_1
from unweave.studies.results import Results
from unweave.studies.store import Store


@pytest.fixture
def judge(tmp_path: Path):
    def judged(name):
        one = find_reproduction(name)
        outcome = one.judge(Results(one.study("smoke"), Store(tmp_path), ()), "smoke")
        assert outcome.figures
        assert outcome.notes
        return [claim.verdict for claim in outcome.comparisons]

    return judged


def test_every_descent_ends_in_the_global_minimum(judge, monkeypatch):
    monkeypatch.setitem(theorem_1.N_STARTS, "smoke", 1)
    assert judge("z-theorem-1") == ["agrees"] * 6
    # the same starts with equal noise stay where they are
    stuck = theorem_1.descend(3, 0, free_noise=False)
    assert stuck.excess > 0.1
    assert stuck.cosine > 0.1


@pytest.mark.slow
def test_the_elbo_approaches_the_regularised_likelihood(judge, monkeypatch):
    monkeypatch.setitem(fig_7_6.N_POINTS, "smoke", 200)
    assert judge("z-fig-7.6") == ["agrees"] * 2


def test_the_gap_without_the_regulariser_is_the_contrast():
    with_it, without = (np.array(fig_7_6._gaps(0, 200, regularised)) for regularised in (True, False))
    # ELBO − (likelihood − contrast), and ELBO − likelihood: they differ by the contrast at every γ²
    assert np.ptp(with_it - without) == pytest.approx(0.0, abs=1e-9)
    assert without[-1] == pytest.approx(-(with_it - without)[0], abs=0.01)


def test_a_missing_factor_costs_the_beta_vae_metric_nothing(judge, monkeypatch):
    monkeypatch.setattr(k_8, "SIZES", {"shape": 3, "x": 8, "y": 8})
    monkeypatch.setattr(k_8, "N_ROWS", 4_000)
    monkeypatch.setitem(k_8.N_TRAIN, "smoke", 500)
    monkeypatch.setattr(k_8, "N_TEST", 500)
    assert judge("k-8") == ["agrees"] * 3


def test_the_dimension_by_the_code_is_written_out():
    points = torch.randn(60, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    found = intrinsic(points, neighbours=fig_8_4.NEIGHBOURS)
    sums = []
    for point in points:
        near = sorted((point - other).norm().item() for other in points)[1:21]
        sums.append(sum(math.log(near[-1] / distance) for distance in near[:-1]) / (20 - 2))
    assert fig_8_4._by_the_code(found) == pytest.approx([len(sums) / sum(sums)], rel=1e-12)
