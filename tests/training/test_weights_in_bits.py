"""Weights of 8, 16 and 32 bits: what is written comes back as near as it can, and nothing odd is read."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch

import unweave as uw
from unweave.cli import main
from unweave.runs.folder import RunFolder
from unweave.training.checkpoint import SMALL, bits_of, from_bytes, in_bits, read_tensors, to_bytes

PLACE = Path("model.safetensors")
Tensors = dict[str, torch.Tensor]


def weights() -> Tensors:
    large = torch.randn(64, 65, generator=torch.Generator().manual_seed(0)) * torch.logspace(-6, 2, 64)[:, None]
    large[3] = 0.0
    kernel = torch.randn(20, 16, 4, 4, generator=torch.Generator().manual_seed(1))
    return {"large": large, "kernel": kernel, "small": large[:8, :8], "bias": large[:, 0], "count": torch.arange(3)}


def test_eight_bits_are_the_nearest_of_255_steps_in_each_row() -> None:
    before = weights()
    content = in_bits(to_bytes(before, {"shape": "1,2"}), 8, PLACE)
    after, metadata = read_tensors(content, PLACE)
    assert metadata["shape"] == "1,2"
    assert sorted(after) == sorted(before)
    for name in ("large", "kernel"):
        for row, found in zip(before[name].double().numpy(), after[name].double().numpy()):
            steps = np.arange(-127, 128) * (np.abs(row).max() / 127)
            nearest = np.abs(row.reshape(-1, 1) - steps).min(1)
            assert np.abs(row - found).ravel() == pytest.approx(nearest, abs=1e-6 * np.abs(row).max())
    for name in ("small", "bias"):
        assert torch.equal(after[name], before[name].half())
    assert torch.equal(after["count"], before["count"])
    assert before["small"].numel() <= SMALL < before["large"].numel()


def test_eight_bits_take_a_quarter_of_32_and_are_written_once() -> None:
    content = to_bytes(weights())
    small = in_bits(content, 8, PLACE)
    assert len(small) < 0.35 * len(content)
    assert (bits_of(content, PLACE), bits_of(small, PLACE)) == ({32}, {8})
    assert in_bits(small, 8, PLACE) is small
    assert in_bits(to_bytes(weights(), {"shape": "1,2", "more": "x"}), 8, PLACE)[-4000:] == small[-4000:]
    for bits in (16, 32):
        wide = in_bits(small, bits, PLACE)
        assert bits_of(wide, PLACE) == {bits}
        after, read = (read_tensors(one, PLACE)[0] for one in (wide, small))
        assert all(torch.equal(after[name], read[name].to(after[name].dtype)) for name in read)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"bias": torch.tensor([1e6])}, "bias of model.safetensors has weights too large for 8 bits; keep 32"),
        ({"large": torch.full((64, 65), torch.inf)}, "large of .* has weights too large"),
        ({"large": torch.full((64, 65), torch.nan)}, "large of .* has weights too large"),
        ({"own": torch.zeros(2, dtype=torch.int8)}, "whole numbers of 8 bits beside its weights; keep 16"),
    ],
)
def test_what_eight_bits_cannot_hold_is_refused(change: Tensors, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        in_bits(to_bytes(weights() | change), 8, PLACE)


def test_a_model_without_large_matrices_has_16_bits() -> None:
    assert bits_of(in_bits(to_bytes({"small": torch.ones(2, 2)}), 8, PLACE), PLACE) == {16}


ODD: dict[str, Callable[[Tensors, str], Any]] = {
    "missing": lambda held, name: held.pop(f"{name}:scale"),
    "too short": lambda held, name: held.update({f"{name}:scale": held[f"{name}:scale"][1:]}),
    "too many": lambda held, name: held.update({f"{name}:scale": held[f"{name}:scale"][:, None]}),
    "negative": lambda held, name: held.update({f"{name}:scale": -held[f"{name}:scale"]}),
    "zero": lambda held, name: held[f"{name}:scale"].zero_(),
    "no number": lambda held, name: held[f"{name}:scale"].fill_(torch.nan),
    "infinite": lambda held, name: held[f"{name}:scale"].fill_(torch.inf),
    "half": lambda held, name: held.update({f"{name}:scale": held[f"{name}:scale"].half()}),
    "alone": lambda held, name: held.pop(name),
    "of another kind": lambda held, name: held.update({name: held[name].float()}),
    "of one number": lambda held, name: held.update({name: held[name][0, 0]}),
    "of a bias": lambda held, name: held.update({"x": torch.zeros(3, dtype=torch.int8), "x:scale": torch.ones(3)}),
}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> uw.Run:
    """A finished run with weights of 8 bits."""
    folder = tmp_path_factory.mktemp("bits") / "run"
    run = uw.train("micro", folder, network=uw.MLP((8,), (8,)), latents=2, steps=3, quiet=True)
    run.files.write("model.safetensors", in_bits(run.files.read("model.safetensors"), 8, folder))
    return uw.load(folder)


def test_runs_with_eight_bits_open_go_on_and_are_exported(
    small: uw.Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bits_of(small.files.read("model.safetensors"), PLACE) == {8}
    images = small.images(4)
    assert all(one.dtype == torch.float32 for one in small.model.state_dict().values())
    mean = small.encode(images).mean
    assert torch.equal(uw.from_pretrained(small.path).encode(images).mean, mean)
    assert torch.equal(uw.from_pretrained(uw.export(small, tmp_path / "out")).encode(images).mean, mean)
    assert main(["resume", str(small.path), "--quiet"]) == 0
    assert main(["show", str(small.path), "--quiet"]) == 0
    assert bits_of(small.files.read("model.safetensors"), PLACE) == {8}


@pytest.mark.parametrize("odd", ODD)
def test_an_odd_scale_is_one_sentence(
    odd: str, small: uw.Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    held, metadata = from_bytes(small.files.read("model.safetensors"))
    name = next(name.removesuffix(":scale") for name in held if name.endswith(":scale"))
    ODD[odd](held, name)
    folder = RunFolder(tmp_path / "odd")
    folder.write("config.json", small.files.read("config.json"))
    folder.write("history.csv", "step,loss\n0,1\n")
    folder.write("model.safetensors", safetensors.torch.save(held, metadata))
    for opened in (lambda: uw.load(folder.path).model, lambda: uw.from_pretrained(folder.path)):
        with pytest.raises(ValueError, match="needs 8-bit numbers and a scale a row"):
            opened()
    assert main(["show", str(folder.path)]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "a scale a row" in told


def test_weights_of_a_later_kind_are_refused() -> None:
    content = to_bytes({":bits": torch.tensor(4), "w": torch.zeros(2, 2, dtype=torch.int8)})
    with pytest.raises(ValueError, match="of a kind that this version of unweave does not know"):
        read_tensors(content, PLACE)


def test_scales_without_the_mark_of_eight_bits_are_none_of_the_model(small: uw.Run, tmp_path: Path) -> None:
    held, metadata = from_bytes(small.files.read("model.safetensors"))
    del held[":bits"]
    folder = RunFolder(tmp_path / "odd")
    folder.write("config.json", small.files.read("config.json"))
    folder.write("model.safetensors", safetensors.torch.save(held, metadata))
    with pytest.raises(ValueError, match=r"scale is .* there, not missing"):
        uw.load(folder.path).model  # noqa: B018
