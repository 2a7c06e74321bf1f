"""Kernels whose images come by a card's copy engine: right, with the same bits in any fleet, and never in the way."""

import importlib.util
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from unweave.models.kernels import copies
from unweave.models.kernels.copies import TUNED, Shares, images_of
from unweave.models.kernels.join import Join
from unweave.models.kernels.pixels import BITS, MASKS, Frame
from unweave.training.fleet import choice


def has_gluon() -> bool:
    try:
        return importlib.util.find_spec("triton.experimental.gluon.language.nvidia.hopper") is not None
    except ModuleNotFoundError:  # nor what it would lie in
        return False


def beside_float64(where: str) -> dict[str, dict[str, float]]:
    script = Path(__file__).with_name("copies_beside_float64.py")
    command = [sys.executable, "-W", "ignore", str(script), where]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, dict[str, float]] = json.loads(done.stdout.splitlines()[-1])
    return found


def agrees(found: dict[str, float], sums: float) -> bool:
    """bf16 has 8 bits; sums are made in fp32, of what was not yet rounded."""
    bits = ("anew", "by size", "by division")
    return all(found[name] == 0 for name in bits) and found.get("out", 0.0) < 2.5e-3 and found.get("sum", 0.0) < sums


@pytest.mark.skipif(not has_gluon(), reason="this Triton has no Gluon")
def test_on_paper_every_kernel_is_right_and_no_bit_depends_on_the_division() -> None:
    found = beside_float64("paper")
    assert len(found) == len(TUNED)
    assert all(agrees(one, 1e-6) for one in found.values()), found


@pytest.mark.gpu
@pytest.mark.skipif(
    not (torch.cuda.is_available() and copies.is_hopper(torch.device("cuda")) and has_gluon()),
    reason="needs a card with a copy engine, and Gluon",
)
def test_on_a_card_every_kernel_is_right_and_no_bit_depends_on_the_fleet() -> None:
    found = beside_float64("cuda")
    assert len(found) == len(TUNED)
    # the matrix units add up many products with fewer digits than fp32 has
    assert all(agrees(one, 1e-4) for one in found.values()), found


def test_small_fleets_are_divided_so_that_they_fill_a_card_too() -> None:
    chosen = Shares(32, 9, 7, 4)
    assert [images_of(chosen, n, 64) for n in (1, 16, 63, 64, 127, 128, 1000)] == [8, 8, 8, 16, 16, 32, 32]
    assert images_of(Shares(8, 1, 3, 4), 1, 64) == 8


JOIN = Join(4, 4, 64, 64, 4, 64, 0)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Exception]:
    """A card with a copy engine, as far as is asked; what fails is forgotten afterwards."""
    failures = list[Exception]()
    monkeypatch.setattr(copies, "is_hopper", lambda device: True)
    monkeypatch.setattr(copies, "_FAILURES", failures)
    monkeypatch.delenv(copies.SWITCH, raising=False)
    return failures


def served(join: Join = JOIN, leak: float = 0.0, batch: int = 8, **numbers: Any) -> bool:
    numbers = {"dtype": torch.bfloat16} | numbers
    small = torch.zeros(2, batch, join.height, join.width, join.n_small, **numbers)
    weights = torch.zeros(2, 64 + 16 * join.n_big * join.n_small, **numbers)
    return copies._chosen("up", join, leak, small, weights, None) is not None


def test_only_the_layers_that_were_measured_are_served(asked: list[Exception]) -> None:
    assert served()
    assert served(batch=12)
    assert not served(batch=10), "four images make a tile"
    assert not served(leak=0.2)
    assert not served(dtype=torch.float32)
    assert not served(Join(4, 4, 64, 64, 2, 64, 0))
    assert not served(Join(4, 4, 32, 64, 4, 64, 0))
    assert not served(Join(4, 8, 64, 64, 4, 64, 0))
    assert not served(Join(8, 8, 64, 64, 4, 64, 0))
    assert not served(Join(4, 4, 64, 64, 4, 32, 0)), "weights begin within a line"


def test_what_is_spread_out_in_memory_is_not_served(asked: list[Exception]) -> None:
    small, weights = torch.zeros(2, 8, 4, 4, 64).bfloat16(), torch.zeros(2, 64 + 16 * 64 * 64).bfloat16()
    assert copies._chosen("up", JOIN, 0.0, small, weights, None)
    assert not copies._chosen("up", JOIN, 0.0, small.transpose(2, 3), weights, None)
    assert not copies._chosen("up", JOIN, 0.0, small, weights[:, : 16 * 64 * 64], None)
    assert not copies._chosen("up", JOIN, 0.0, small, weights, torch.zeros(2, 8, 8, 64, 8).bfloat16().transpose(3, 4))


def test_the_environment_turns_them_off(asked: list[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(copies.SWITCH, "0")
    assert not served()
    monkeypatch.setenv(copies.SWITCH, "1")
    assert served()


@pytest.mark.skipif(not has_gluon(), reason="this Triton has no Gluon")
def test_the_loss_of_bits_that_fill_the_frame_is_served(
    asked: list[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    from unweave.models.kernels import copied_last

    asked_for = list[Shares]()

    def made(*given: Any) -> tuple[torch.Tensor, ...]:
        asked_for.append(given[-1])
        return torch.zeros(2, 3), torch.zeros(2, 3, 32, 32, 4), torch.zeros(2, 3, 16)

    monkeypatch.setattr(copied_last, "loss_by_copies", made)
    small, weights = torch.zeros(2, 3, 32, 32, 32).bfloat16(), torch.zeros(2, 64 + 512).bfloat16()
    join, frame = Join(32, 32, 1, 32, 4, 64, 0), Frame(MASKS, 1, 64, 64, 0, 0)

    def served(frame: Frame, join: Join = join, small: torch.Tensor = small) -> bool:
        masks = torch.zeros(2, 3, 1024, dtype=torch.int32)
        return copies.loss_copied(join, frame, masks, small, weights) is not None

    assert served(frame)
    assert asked_for == [TUNED["loss", 32, 1, 32, False]]
    assert not served(replace(frame, packing=BITS))
    assert not served(replace(frame, height=60, top=2))
    assert not served(frame, replace(join, n_big=3))
    assert not served(frame, small=small.float())
    monkeypatch.setenv(copies.SWITCH, "0")
    assert not served(frame)
    assert not asked


def test_no_other_device_is_asked() -> None:
    assert not copies.is_hopper(torch.device("cpu"))
    assert not served()


def test_without_gluon_the_other_kernels_are_kept_and_one_line_says_why(
    asked: list[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("copied_down", "copied_up_small", "copied_correlate"):
        monkeypatch.setitem(sys.modules, f"unweave.models.kernels.{name}", None)
    said = list[str]()
    choice._say_without_copies(said.append)
    assert not said
    copies.try_copies(torch.device("cpu"))
    assert isinstance(copies.failure(), ImportError)
    assert not served(), "what failed once is not tried again"
    choice._say_without_copies(said.append)
    (line,) = said
    assert line.startswith("training without the card's copy engine (ModuleNotFoundError: ")


def test_what_cannot_be_compiled_is_answered_with_nothing(asked: list[Exception]) -> None:
    def fail() -> torch.Tensor:
        raise RuntimeError("PassManager::run failed")

    assert copies._or_nothing(fail) is None
    assert str(copies.failure()) == "PassManager::run failed"

    def full() -> torch.Tensor:
        raise torch.cuda.OutOfMemoryError("nothing is left")

    with pytest.raises(torch.cuda.OutOfMemoryError):
        copies._or_nothing(full)
    assert len(asked) == 1
