"""Checkpoints: when one is due, how many stay, what a file must hold; weights of 16 bits; histories of whole ones."""

import contextlib
import json
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from unweave.data.micro import Micro
from unweave.models.autoencoder import Architecture
from unweave.models.networks import MLP
from unweave.models.objectives import BetaVAE
from unweave.runs.folder import RunFolder
from unweave.training import checkpoint, loop
from unweave.training.alone import Alone
from unweave.training.checkpoint import (
    Checkpoints,
    from_bytes,
    history_so_far,
    in_bits,
    model_with,
    read_tensors,
    to_bytes,
)
from unweave.training.engine import Engine
from unweave.training.experiment import Experiment, Plan
from unweave.training.history import Recording
from unweave.training.loop import train
from unweave.training.running import Interrupted, RunOptions, StepReport

ONE = Experiment(Micro(), network=MLP((4,), (4,)), latents=2, steps=9, batch_size=3, plan=Plan("cpu", 1))
HERE = Path("here/model.safetensors")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    held = SimpleNamespace(now=100.0)
    monkeypatch.setattr(checkpoint.time, "monotonic", lambda: held.now)
    return held


def test_one_is_due_after_so_many_seconds(clock: SimpleNamespace, tmp_path: Path) -> None:
    checkpoints = Checkpoints(RunFolder(tmp_path), 30.0)
    due = []
    for clock.now in (100.0, 129.9, 130.0, 140.0):
        due.append(checkpoints.due())
    assert due == [False, False, True, True]


def test_one_waits_for_an_end_that_is_near_but_hardly_longer(clock: SimpleNamespace, tmp_path: Path) -> None:
    checkpoints = Checkpoints(RunFolder(tmp_path), 40.0)
    clock.now = 140.0
    assert checkpoints.due()  # nobody knows when the end is
    assert checkpoints.due(10.0)  # a quarter of 40
    assert not checkpoints.due(9.9)
    clock.now = 149.9
    assert not checkpoints.due(9.9)
    clock.now = 150.0
    assert checkpoints.due(9.9)  # the end was to come at 149.9
    assert Checkpoints(RunFolder(tmp_path), 0.0).due(0.0)


@pytest.mark.parametrize(
    ("steps", "stop_at", "saved"),
    [(100, 100, [40, 80]), (85, 85, [40]), (85, 82, [40, 82]), (45, 45, []), (300, 90, [40, 80, 90])],
)
def test_no_checkpoint_is_written_just_before_the_end(
    steps: int, stop_at: int, saved: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, written = SimpleNamespace(seconds=0.0), []
    seconds = SimpleNamespace(monotonic=lambda: now.seconds)
    monkeypatch.setattr(checkpoint, "time", seconds)
    monkeypatch.setattr(loop, "time", seconds)
    plain = Checkpoints.save

    def save(self: Checkpoints, engine: Engine, recording: Recording, step: int, *, beside: bool = False) -> None:
        written.append(step)
        plain(self, engine, recording, step, beside=beside)

    def watch(report: StepReport) -> None:
        now.seconds = float(report.done)  # a second a step

    monkeypatch.setattr(Checkpoints, "save", save)
    one = replace(ONE, steps=steps, history_every=1)
    how = RunOptions((watch,), save_every=40.0, stop=lambda: now.seconds >= stop_at)
    with pytest.raises(Interrupted) if stop_at < steps else contextlib.nullcontext():
        train(one, tmp_path / "run", how=how)
    assert written == saved


def test_saving_takes_no_more_than_a_twentieth_of_the_time(
    clock: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, recording = Alone(ONE, Micro().load()), Recording()
    checkpoints, write = Checkpoints(RunFolder(tmp_path), 30.0), RunFolder.write
    for step, (takes, every) in enumerate([(1.0, 30.0), (2.0, 40.0), (0.0, 40.0)]):

        def slow(self: RunFolder, name: str, content: bytes, takes: float = takes) -> None:
            write(self, name, content)
            clock.now += takes

        monkeypatch.setattr(RunFolder, "write", slow)
        checkpoints.save(engine, recording, step)
        assert (checkpoints.every, checkpoints.saved) == (pytest.approx(every), clock.now)


def test_a_state_on_a_gpu_is_written_while_the_training_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As far as a CPU can tell: the state is that of the call, errors come up, and the end waits."""
    state, go, folder = torch.zeros(3), threading.Event(), RunFolder(tmp_path)
    engine, recording = Alone(ONE, Micro().load()), Recording()
    monkeypatch.setattr(engine, "tensors", lambda: {"parameters": on_gpu})
    on_gpu = SimpleNamespace(is_cuda=True, detach=lambda: SimpleNamespace(cpu=state.clone))
    checkpoints, write = Checkpoints(folder, 0.0), RunFolder.write

    def slow(self: RunFolder, name: str, content: bytes) -> Path:
        go.wait(10)
        return write(self, name, content)

    monkeypatch.setattr(RunFolder, "write", slow)
    checkpoints.save(engine, recording, 7, beside=True)
    state += 1
    assert folder.names() == []
    assert not checkpoints.due()
    go.set()
    checkpoints.close()
    assert checkpoint.from_bytes(folder.read("checkpoints/step-000000007.safetensors"))[0]["parameters"].sum() == 0

    def full(self: RunFolder, name: str, content: bytes) -> Path:
        raise OSError("no space left")

    monkeypatch.setattr(RunFolder, "write", full)
    checkpoints = Checkpoints(folder, 0.0)
    checkpoints.save(engine, recording, 8, beside=True)
    with pytest.raises(OSError, match="no space left"):
        checkpoints.close()


def test_the_newest_two_stay_and_the_newest_whole_one_is_loaded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    engine, recording, folder = Alone(ONE, Micro().load()), Recording(), RunFolder(tmp_path)
    checkpoints = Checkpoints(folder, 30.0)
    assert checkpoints.load(engine, recording) == 0
    assert history_so_far(folder)[0] == 0
    for step in range(4):
        checkpoints.save(engine, recording, step)
        engine.advance(step, record=True)
        recording.add(step, engine.rows())
    assert folder.names("checkpoints/") == [f"checkpoints/step-{step:09d}.safetensors" for step in (2, 3)]
    step, history = history_so_far(folder)
    assert (step, history.steps) == (3, [0, 1, 2])
    torch.testing.assert_close(history.values(), recording.of(0, 0).values()[:3])
    (tmp_path / "checkpoints" / "step-000000003.safetensors").write_bytes(b"torn")
    assert history_so_far(folder)[0] == 2
    other, rows = Alone(ONE, Micro().load()), Recording()
    assert checkpoints.load(other, rows) == 2
    assert "going on from the one before" in capsys.readouterr().err
    assert rows.steps == [0, 1]
    for step in (2, 3):
        other.advance(step, record=True)
    for name, tensor in engine.tensors().items():
        assert torch.equal(tensor, other.tensors()[name]), name


def test_numbers_of_sixteen_bits_and_back() -> None:
    weights = {"a.weight": torch.tensor([0.1, -65504.0]), "a.count": torch.tensor([70000, 3])}
    whole = to_bytes(weights, {"shape": "3"})
    short = in_bits(whole, 16, HERE)
    held, told = from_bytes(short)
    assert told == {"shape": "3"}
    assert (held["a.weight"].dtype, held["a.count"].dtype) == (torch.float16, torch.int64)
    assert held["a.weight"].tolist() == weights["a.weight"].half().tolist()
    assert in_bits(short, 16, HERE) is short
    assert in_bits(whole, 32, HERE) is whole
    again = from_bytes(in_bits(short, 32, HERE))[0]
    assert again["a.weight"].dtype == torch.float32
    assert again["a.weight"].tolist() == weights["a.weight"].half().tolist()
    large = to_bytes({"ok": torch.zeros(1), "b.weight": torch.tensor([70000.0])})
    with pytest.raises(ValueError, match=r"b\.weight of .* has weights too large for 16 bits; keep 32"):
        in_bits(large, 16, HERE)


def test_a_file_that_holds_no_weights_is_named() -> None:
    for content in (b"", b"1234567", b"\x05\0\0\0\0\0\0\0[1,2]", b"\xff" * 40):
        with pytest.raises(ValueError, match=r"here.model\.safetensors holds no weights that can be read"):
            read_tensors(content, HERE)
    assert read_tensors(to_bytes({"a": torch.ones(2)}), HERE)[1] == {}


def test_weights_of_another_model_are_refused_by_their_sizes() -> None:
    architecture = Architecture((3,), 2, MLP((4,), (4,)))
    method = BetaVAE()
    held = dict(method.model(architecture).state_dict())
    held["encoder.heads.mean.weight"] = torch.arange(8.0).view(2, 4)
    found = model_with(method, architecture, held, HERE)
    assert torch.equal(found.state_dict()["encoder.heads.mean.weight"], held["encoder.heads.mean.weight"])
    missing = {name: one for name, one in held.items() if name != "decoder.output.bias"}
    for other, words in (
        (held | {"encoder.heads.mean.weight": torch.zeros(4, 2)}, "encoder.heads.mean.weight is 4×2 there, not 2×4"),
        (missing, "decoder.output.bias is missing there, not 3"),
        (held | {"extra": torch.tensor(1.0)}, "extra is one number there, not missing"),
    ):
        with pytest.raises(ValueError, match=words):
            model_with(method, architecture, other, HERE)


def test_what_0_1_0_called_otherwise_is_known() -> None:
    tensors = {"history.values": torch.arange(6.0).view(3, 2), "history.steps": torch.arange(3)}
    kept = checkpoint._translated(tensors, {"step": "7", "columns": json.dumps(["loss", "kl"])})
    assert (kept["step"], kept["columns"], kept["places"]) == ("7", [["loss", "kl"]], [[0, 0]])
    assert tensors["group0/history"].tolist() == [[[0.0, 1.0]], [[2.0, 3.0]], [[4.0, 5.0]]]
    fleet = {"group0/history": torch.zeros(3, 2, 1), "group1/history": torch.zeros(3, 1, 1)}
    fleet |= {"group1/optimiser/first": torch.ones(1), "model/optimiser/first": torch.ones(1)}
    kept = checkpoint._translated(fleet, {"step": "7", "columns": json.dumps([["loss"], ["loss"]])})
    assert kept["places"] == [[0, 0], [0, 1], [1, 0]]
    assert {"group1/discriminator_optimiser/first", "model/optimiser/first"} <= {*fleet}
