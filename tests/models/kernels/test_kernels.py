"""Every kernel under Triton's interpreter, on small shapes, against PyTorch; none leaves its tensors."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed")


def interpreted(case: str) -> dict[str, float]:
    """A case in a process of its own: the interpreter is chosen when Triton is imported."""
    environment = os.environ | {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    script = Path(__file__).with_name("interpreted.py")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(script), case],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize(
    "case",
    [
        "bits",
        pytest.param("colours", marks=pytest.mark.slow),
        "narrow kernels",
        pytest.param("padded", marks=pytest.mark.slow),
        pytest.param("padded bits", marks=pytest.mark.slow),
        pytest.param("learned noise", marks=pytest.mark.slow),
        pytest.param("squared error", marks=pytest.mark.slow),
        pytest.param("full covariance", marks=pytest.mark.slow),
        pytest.param("floats", marks=pytest.mark.slow),
        pytest.param("coloured floats", marks=pytest.mark.slow),
        pytest.param("narrow floats", marks=pytest.mark.slow),
    ],
)
def test_the_kernels_gradients_are_the_portable_ones(case: str) -> None:
    found = interpreted(case)
    assert len(found) > 10
    assert max(found.values()) < 1e-5, found


@pytest.mark.parametrize(
    "case",
    [
        "tuned tiles in bf16",
        *(pytest.param(f"{name} in bf16", marks=pytest.mark.slow) for name in ("colours", "study", "large colours")),
    ],
)
def test_gradients_in_bf16_are_the_portable_ones_to_its_rounding(case: str) -> None:
    found = interpreted(case)
    # a bf16 number has 8 bits; every layer rounds once more
    assert max(found.values()) < 0.2, found
    assert max(found.values()) > 1e-4, "nothing was rounded"


@pytest.mark.slow
@pytest.mark.parametrize(("precision", "bound"), [("fp32", 1e-4), ("bf16", 0.2)])
def test_the_kernels_discriminators_learn_as_the_mapped_ones(precision: str, bound: float) -> None:
    found = interpreted(f"discriminators in {precision}")
    assert found.pop("frozen") == 0.0
    assert found.pop("rounded") == (0.0 if precision == "fp32" else pytest.approx(0.002, abs=0.002))
    assert max(found.values()) < bound, found


@pytest.mark.slow
@pytest.mark.parametrize(("case", "bound"), [("leaky", 1e-5), ("leaky colours", 1e-5), ("leaky in bf16", 0.2)])
def test_leaky_trunks_and_their_slopes_are_pytorchs(case: str, bound: float) -> None:
    found = interpreted(case)
    assert len(found) == 19
    assert max(found.values()) < bound, found
    assert bound < 0.2 or max(found.values()) > 1e-4, "nothing was rounded"


def test_a_network_with_spectral_norms_in_rows_is_pytorchs() -> None:
    found = interpreted("spectral")
    assert len(found) == 23
    assert max(found.values()) < 1e-6, found


def test_slopes_in_runs_of_channels_are_those_of_double_precision() -> None:
    found = interpreted("runs")
    assert len(found) == 4
    # sums are made in fp32, of what was not yet rounded to bf16; where a card rounds the interpreter cuts off
    assert max(value for name, value in found.items() if name.startswith("out")) < 5e-3, found
    assert max(value for name, value in found.items() if name.startswith("sum")) < 1e-6, found


def test_weight_gradients_do_not_depend_on_how_many_taps_a_program_takes() -> None:
    found = interpreted("taps")
    assert len(found) == 3
    assert max(found.values()) < 1e-6, found


@pytest.mark.slow
@pytest.mark.parametrize(("case", "bound"), [("generators", 2e-4), ("generators in bf16", 0.2)])
def test_generators_of_pairs_and_their_slopes_are_pytorchs(case: str, bound: float) -> None:
    found = interpreted(case)
    assert len(found) == 26
    assert max(found.values()) < bound, found
    assert bound < 0.2 or max(found.values()) > 1e-3, "nothing was rounded"


def test_codes_slopes_and_sums_are_those_of_double_precision() -> None:
    found = interpreted("codes")
    assert len(found) == 10
    assert max(found.values()) < 1e-6, found


def test_a_model_does_not_notice_wider_codes_beside_it() -> None:
    found = interpreted("company")
    assert found.pop("groups") == 2.0  # two β-VAEs share one, however many latents each has
    assert len(found) > 40
    assert max(found.values()) == 0.0, found


def test_weighed_losses_are_their_sums_and_name_who_failed() -> None:
    found = interpreted("weighed")
    assert found.pop("terms") < 1e-6
    assert max(found.values()) == 0.0, found


def test_slopes_known_before_their_losses_are_those_of_differentiation() -> None:
    found = interpreted("known slopes")
    assert len(found) > 40
    assert max(found.values()) == 0.0, found


def test_sums_do_not_depend_on_how_many_programs_make_them() -> None:
    found = interpreted("portions")
    assert found["size"] > 0.1
    assert found["bits"] == 0.0


def test_examples_may_come_as_places_in_their_store() -> None:
    assert interpreted("chosen") == {"masks": 0.0}


def test_the_fused_update_is_adam_and_leaves_frozen_models() -> None:
    found = interpreted("adam")
    assert found["parameters"] < 1e-6
    assert found["moved"] == 0.0
    assert found["frozen"] == 0.0
    assert found["rounded"] < 1e-6


def test_layers_that_normalise_are_pytorchs() -> None:
    found = interpreted("norms")
    assert len(found) == 2 * 4 + 3 * 6
    assert max(found.values()) < 2e-6, found


def test_pieces_are_added_up_as_pytorch_does() -> None:
    found = interpreted("folds")
    assert len(found) == 3
    assert max(found.values()) < 1e-6, found


@pytest.mark.parametrize(("case", "most"), [("decoders", 2e-6), ("colour decoders", 2e-6), ("decoders in bf16", 0.25)])
def test_mapped_decoders_are_pytorchs(case: str, most: float) -> None:
    found = interpreted(case)
    assert len(found) == 2 + 4 + 6
    assert max(found.values()) < most, found
    assert most < 0.1 or max(found.values()) > 1e-3, "nothing was rounded"
