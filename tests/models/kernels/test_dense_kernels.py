"""The kernels of dense networks under Triton's interpreter, on small shapes, against PyTorch."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed")


def interpreted(case: str) -> dict[str, Any]:
    """A case in a process of its own: the interpreter is chosen when Triton is imported."""
    environment = os.environ | {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    script = Path(__file__).with_name("interpreted_dense.py")
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
        "mixed latents",
        "known mixed latents",
        "known shared three mixed latents",
        pytest.param("known shared three tanh", marks=pytest.mark.slow),
        pytest.param("known tanh", marks=pytest.mark.slow),
        pytest.param("known autoencoder", marks=pytest.mark.slow),
        pytest.param("tanh", marks=pytest.mark.slow),
        pytest.param("linear", marks=pytest.mark.slow),
        pytest.param("autoencoder", marks=pytest.mark.slow),
    ],
)
def test_whole_steps_are_those_of_the_portable_fleet(case: str) -> None:
    found = interpreted(case)
    assert found.pop("same in one launch") == 1.0
    assert found.pop("good at") == 3.0
    assert max(found.values()) < 1e-5, found


@pytest.mark.slow
def test_a_small_model_that_fails_is_frozen_and_its_neighbour_goes_on() -> None:
    found = interpreted("failing")
    assert found.pop("moved") > 1e-4
    assert found == {"failed at": 0.0, "healthy": -1.0, "frozen": 1.0, "blamed": 0.0}


@pytest.mark.slow
def test_whole_steps_resume_exactly_and_do_not_mind_who_looks() -> None:
    found = interpreted("resuming")
    assert {name.partition("/")[2] for name in found} >= {"model.safetensors", "snapshots/step-000000003.safetensors"}
    assert set(found.values()) == {1.0}, found


@pytest.mark.parametrize(
    "case",
    [
        "wide",
        pytest.param("full", marks=pytest.mark.slow),
        pytest.param("learned noise", marks=pytest.mark.slow),
    ],
)
def test_the_layers_gradients_are_the_portable_ones(case: str) -> None:
    found = interpreted(case)
    assert max(found.values()) < 1e-5, found


@pytest.mark.slow
def test_gradients_in_bf16_are_the_portable_ones_to_its_rounding() -> None:
    found = interpreted("wide in bf16")
    assert 1e-4 < max(found.values()) < 0.2, found


def test_the_fused_adagrad_is_adagrad_and_leaves_frozen_models() -> None:
    found = interpreted("adagrad")
    assert found["parameters"] < 1e-6
    assert found["moved"] == 0.0
    assert found["frozen"] == 0.0
    assert found["rounded"] < 1e-6


@pytest.mark.parametrize("way", ["three", "six"])
def test_products_by_pieces_have_the_digits_of_fp32(way: str) -> None:
    found = interpreted(f"products {way}")
    assert found["away"] < 1.5 * found["plain"], found


@pytest.mark.parametrize(
    ("case", "rows", "least", "most"),
    [
        ("adam", 0.0, 0.0, 1e-5),
        ("adagrad", 0.0, 0.0, 1e-5),
        ("adam in bf16", 0.0, 1e-4, 0.2),
        pytest.param("adagrad in bf16", 0.0, 1e-4, 0.2, marks=pytest.mark.slow),
        pytest.param("adamw", 1.0, 0.0, 1e-5, marks=pytest.mark.slow),
        pytest.param("noise", 1.0, 0.0, 1e-5, marks=pytest.mark.slow),
        pytest.param("factor", 0.0, 0.0, 1e-4, marks=pytest.mark.slow),
        pytest.param("factor in bf16", 0.0, 1e-4, 0.3, marks=pytest.mark.slow),
    ],
)
def test_updates_by_kernels_are_pytorchs_and_leave_models_that_failed(
    case: str, rows: float, least: float, most: float
) -> None:
    found = interpreted(f"updates {case}")
    assert least <= found["far"] < most, found
    assert found["rows"] == rows
    assert found["rounded"] == (pytest.approx(0.002, abs=0.002) if "bf16" in case else 0.0)
    assert found["moved"] > 1e-3
    assert (found["failed"], found["healthy"]) == (0.0, -1.0)


def test_small_models_compiled_for_their_sizes_refuse_more_than_four_warps() -> None:
    assert "4 warps" in interpreted("known eight refused")["said"]
