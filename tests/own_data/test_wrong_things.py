"""Wrong things given to the functions of a notebook are answered in one sentence."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import unweave as uw
from unweave import api

FRAME = pl.DataFrame({"a": [1.0, 2.0, 4.0], "kind": ["x", "y", "x"]})


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: uw.train(FRAME), "the frame: column 'kind' holds words"),
        (lambda: uw.dimension(FRAME), "the frame: column 'kind' holds words"),
        (lambda: uw.intrinsic(FRAME), "the column 'kind' of the frame holds words"),
        (lambda: uw.train(np.full((5, 8, 8), 200.0)), "the array: image 0, row 0, column 0: 200 lies outside"),
        (lambda: uw.train(np.zeros((1, 8, 8))), "^the array holds a single image"),
        (lambda: uw.train(np.full((5, 8, 8), 4000, np.uint16)), r"Round 16 bits to bytes first: \(images // 257\)"),
        (lambda: uw.train(np.zeros((3, 5, 5, 7))), "the array holds an array"),
        (lambda: uw.train(np.array([[1.0, np.nan], [2.0, 3.0]])), "the array: row 1 of column 'x1' is empty"),
        (lambda: uw.train({"a": [1, 2]}), "to learn from, give .* not dict"),
        (lambda: uw.train("micro", beta=8), r"unknown option 'beta'; it is given as objective=uw.BetaVAE\(beta=4\)"),
        (lambda: uw.train("micro", lr=1e-3), r"unknown option 'lr'; it is given as optimiser=uw.Adam\(1e-4\)"),
        (lambda: uw.diagnose(uw.world(FRAME, labels="kind")), "diagnose looks at models: train one first"),
        (lambda: api._opened(FRAME), "a run is given as such or by its folder, not as DataFrame"),
        (lambda: api._opened(3), "a run is given as such or by its folder, not as int"),
    ],
)
def test_one_sentence(call: Callable[[], object], words: str) -> None:
    with pytest.raises((ValueError, TypeError), match=words) as refused:
        call()
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("said", api.GIVEN_BY.values())
def test_what_is_said_to_be_given_can_be_given(said: str) -> None:
    call = eval(f"lambda: uw.train('micro', latents=0, {said.partition(', each')[0]})", {"uw": uw})
    with pytest.raises(ValueError, match=r"config\.latents must be at least 1"):
        call()


def test_a_diagnosis_calls_data_by_their_name(tmp_path: Path) -> None:
    run = uw.train(FRAME, tmp_path / "own", labels="kind", called="plants", latents=2, steps=3, quiet=True)
    assert run.diagnose(n_jacobians=2).title == "beta_vae on plants, seed 0"


def test_a_file_of_codes_is_measured(tmp_path: Path) -> None:
    codes = np.random.default_rng(0).normal(size=(200, 2))
    frame = pl.DataFrame({"z0": codes[:, 0], "z1": codes[:, 1], "factor_side": (codes[:, 0] > 0).astype(int)})
    frame.write_csv(tmp_path / "codes.csv")
    found = uw.measure(tmp_path / "codes.csv", metrics=["mig"], seeds=0)
    same = uw.measure(codes, frame["factor_side"].to_numpy(), metrics=["mig"], seeds=0)
    assert float(found["mig"]) == pytest.approx(float(same["mig"]))
