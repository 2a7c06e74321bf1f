"""Kernels that are kept, and lines about those that are compiled, with a Triton and a card that are not there."""

import os
import sys
from types import SimpleNamespace

import pytest
import torch

from unweave.training import kernel_cache
from unweave.training.kernel_cache import choose_folder, kept_kernels


@pytest.fixture
def triton(monkeypatch, tmp_path):
    made = SimpleNamespace(__version__="9.9", knobs=SimpleNamespace(compilation=SimpleNamespace(listener=None)))
    monkeypatch.setitem(sys.modules, "triton", made)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device=None: "NVIDIA H200")
    monkeypatch.setenv("UNWEAVE_DATA", str(tmp_path))
    monkeypatch.setenv("TRITON_CACHE_DIR", "")
    monkeypatch.delenv("TRITON_CACHE_DIR")
    return made


def test_kernels_are_kept_by_version_and_card(triton, tmp_path):
    with kept_kernels("cuda", print):
        assert os.environ["TRITON_CACHE_DIR"] == str(tmp_path / "kernels" / "triton-9.9-NVIDIA-H200")
    assert (tmp_path / "kernels" / "triton-9.9-NVIDIA-H200").is_dir()


def test_a_place_that_was_chosen_stays_and_one_that_cannot_be_made_is_left_to_triton(triton, tmp_path, monkeypatch):
    (tmp_path / "kernels").write_text("in the way")
    assert choose_folder("9.9", "card") == "~/.triton/cache"
    monkeypatch.setenv("TRITON_CACHE_DIR", "/elsewhere")
    assert choose_folder("9.9", "card") == "/elsewhere"


def test_what_is_compiled_is_said_and_what_is_found_is_not(triton, monkeypatch):
    monkeypatch.setattr(kernel_cache, "EVERY", 0.0)
    said = []
    with kept_kernels("cuda:1", said.append):
        listen = triton.knobs.compilation.listener
        listen(src=None, metadata={}, metadata_group={}, times=None, cache_hit=True)
        assert said == []
        for _ in range(2):
            listen(src=None, metadata={}, metadata_group={}, times=None, cache_hit=False)
    assert len(said) == 2
    assert "compiling kernels for NVIDIA H200" in said[0]
    assert said[1].startswith("2 kernels compiled in")
    assert triton.knobs.compilation.listener is None


def test_neither_a_cpu_nor_an_old_triton_is_listened_to(triton):
    del triton.knobs
    for device in ("cpu", "cuda"):
        with kept_kernels(device, pytest.fail):
            pass


def test_lines_come_every_ten_seconds_and_count_what_was_compiled(monkeypatch):
    clock, said = SimpleNamespace(now=100.0), []
    monkeypatch.setattr(kernel_cache.time, "monotonic", lambda: clock.now)
    listen = kernel_cache._Compiling("H200", "here", said.append)
    for clock.now in (100.0, 104.0, 109.9, 110.0, 119.0, 125.4):
        listen(src=None)
    assert said[0] == "compiling kernels for H200, about a minute; later trainings find them in here"
    assert said[1:] == ["4 kernels compiled in 10 s", "6 kernels compiled in 25 s"]
