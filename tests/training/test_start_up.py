"""What happens before the first step and after the last: nothing heavy is imported, and folders do not wait in line."""

import subprocess
import sys
import threading
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

from unweave.cli import train as cli_train
from unweave.data.synthetic import SynthLin
from unweave.models.networks import Linear
from unweave.runs.folder import RunFolder
from unweave.training import loop, many
from unweave.training import wake as wake_module
from unweave.training.experiment import Experiment, Plan
from unweave.training.many import train_many
from unweave.training.results import for_all
from unweave.training.running import Interrupted, RunOptions
from unweave.training.wake import wake

BASE = Experiment(SynthLin(n_points=100), network=Linear(), latents=2, steps=6, plan=Plan("cpu", 1))
SEVERAL = [replace(BASE, seed=seed) for seed in range(3)]

TRAINS = """
import sys
from unweave.data.synthetic import SynthLin
from unweave.models.networks import Linear
from unweave.studies.plan import plan
from unweave.training.experiment import Experiment, Plan
from unweave.training.many import train_many
settings = {"network": Linear(), "latents": 2, "steps": 2, "plan": Plan("cpu", 1)}
small = [Experiment(SynthLin(n_points=100), seed=seed, **settings) for seed in range(3)]
train_many(list(plan(small).values()), sys.argv[1])
print(sorted({"torch._dynamo", "torch._inductor"} & {*sys.modules}))
"""


def test_training_does_not_import_the_compiler(tmp_path):
    done = subprocess.run([sys.executable, "-c", TRAINS, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_many_are_at_work_at_once_and_answer_in_order():
    meeting = threading.Barrier(8, timeout=20)

    def work(item):
        meeting.wait()  # passes only where eight have come
        return 10 * item

    assert for_all(work, range(8)) == [10 * item for item in range(8)]


def test_a_failure_of_one_is_raised():
    def work(item):
        if item == 3:
            raise OSError("full")
        return item

    with pytest.raises(OSError, match="full"):
        for_all(work, range(5))


@pytest.mark.parametrize("estimator", ["batch", "stratified"])
def test_activations_are_counted_for_losses_that_compare_examples(estimator):
    from unweave.data.micro import Micro
    from unweave.models.networks import MLP
    from unweave.models.objectives.beta_tcvae import BetaTCVAE
    from unweave.training.experiment import Experiment, Form, Plan
    from unweave.training.fleet.choice import models_that_fit

    given = Experiment(Micro(), BetaTCVAE(estimator=estimator), MLP((8,), (8,)), plan=Plan("cpu", 1)).resolve()
    assert models_that_fit(given, Form((1, 32, 32))) > 1


def test_folders_are_claimed_beside_the_first_steps(tmp_path, monkeypatch):
    made, plain = threading.Event(), many._join

    def join(*given):
        assert made.wait(20)  # comes only where steps do not wait for this
        plain(*given)

    monkeypatch.setattr(many, "_join", join)
    seen = []

    def watch(report):
        seen.append(report.done)
        if report.done == 3:
            made.set()

    paths = train_many(SEVERAL, tmp_path, how=RunOptions((watch,)))
    assert seen == [1, 2, 3, 4, 5, 6]
    assert all(RunFolder(path).has("config.json") and RunFolder(path).has("model.safetensors") for path in paths)


@pytest.mark.parametrize("kept", ["a snapshot", "a checkpoint", "the last checkpoint", "a result"])
def test_folders_are_claimed_before_anything_is_kept_in_them(kept, tmp_path, monkeypatch):
    several, claimed = SEVERAL, []
    how = {"a checkpoint": RunOptions(save_every=0.0), "the last checkpoint": RunOptions(stop=lambda: True)}
    if kept == "a snapshot":
        several = [replace(one, snapshots=(0, 3)) for one in SEVERAL]
    if kept == "a result":
        several = [replace(one, steps=1) for one in SEVERAL]

    def checked(place, name):
        plain = getattr(place, name)

        def call(*given, **named):
            claimed.append(all(RunFolder(path).has("config.json") for path in paths))
            return plain(*given, **named)

        monkeypatch.setattr(place, name, call)

    paths = [tmp_path / one.resolve().id for one in several]
    checked(loop, "keep_snapshot")
    checked(loop.Checkpoints, "save")
    checked(loop, "keep_result")
    if kept == "the last checkpoint":
        with pytest.raises(Interrupted):
            train_many(several, tmp_path, how=how[kept])
    else:
        train_many(several, tmp_path, how=how.get(kept, RunOptions()))
    assert claimed
    assert all(claimed)


def test_trackers_begin_in_folders_that_are_claimed(tmp_path, monkeypatch):
    found = []

    def tracked(names, engine, folders):
        found.append([RunFolder(folder).has("config.json") for folder in folders])
        return plain((), engine, folders)

    plain = loop.tracked
    monkeypatch.setattr(many, "check_trackers", lambda names: None)
    monkeypatch.setattr(loop, "tracked", tracked)
    train_many(SEVERAL, tmp_path / "with", how=RunOptions(trackers=("tensorboard",)))
    assert found == [[True] * 3]


def test_a_claim_that_fails_ends_the_training(tmp_path, monkeypatch):
    def join(*given):
        raise OSError("full")

    seen = []

    def watch(report):
        seen.append(report.done)
        time.sleep(0.02)

    monkeypatch.setattr(many, "_join", join)
    with pytest.raises(OSError, match="full"):
        train_many([replace(one, steps=300) for one in SEVERAL], tmp_path, how=RunOptions((watch,), 1e9))
    assert len(seen) < 300  # neither with a checkpoint nor after the last step
    assert not list(tmp_path.glob("*/model.safetensors"))
    monkeypatch.undo()
    train_many(SEVERAL, tmp_path)  # nobody holds a folder
    assert len(list(tmp_path.glob("*/model.safetensors"))) == 3


def test_a_failure_of_the_first_step_leaves_no_folders(tmp_path, monkeypatch):
    def advance(self, step, *, record):
        raise RuntimeError("no step")

    monkeypatch.setattr(many.FleetEngine, "advance", advance)
    with pytest.raises(RuntimeError, match="no step"):
        train_many(SEVERAL, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_folders_are_locked_side_by_side(tmp_path, monkeypatch):
    meeting, plain = threading.Barrier(4, timeout=20), many.RunFolder.locked

    def locked(self):
        if not self.path.name.startswith("fleet"):
            meeting.wait()  # passes only where four have come
        return plain(self)

    monkeypatch.setattr(many.RunFolder, "locked", locked)
    folders = [RunFolder(tmp_path / str(place)) for place in range(4)]
    with many._held(RunFolder(tmp_path / "fleet"), *folders):
        for folder in folders:
            with pytest.raises(BlockingIOError), plain(folder):
                pass
    assert list(tmp_path.iterdir()) == []


def test_one_lock_that_somebody_holds_lets_the_others_go(tmp_path):
    folders = [RunFolder(tmp_path / str(place)) for place in range(4)]
    with folders[2].locked(), pytest.raises(BlockingIOError), many._held(RunFolder(tmp_path / "fleet"), *folders):
        pass
    with many._held(RunFolder(tmp_path / "fleet"), *folders):
        pass


def test_a_gpu_and_triton_are_begun_beside_the_data(monkeypatch):
    order, waiting = [], threading.Event()
    monkeypatch.setattr(wake_module.torch, "zeros", lambda *size, device: order.append(device))
    cache = SimpleNamespace(triton_key=lambda: waiting.wait(20) and order.append("key"))
    monkeypatch.setitem(sys.modules, "triton.runtime.cache", cache)
    waking = wake("cuda:1")
    waiting.set()  # only now, since the caller did not wait
    waking.join(20)
    assert order == ["cuda:1", "key"]


def test_what_fails_there_is_left_to_the_training(monkeypatch):
    order = []

    def fail(*size, device):
        order.append(device)
        raise RuntimeError("no CUDA")

    monkeypatch.setattr(wake_module.torch, "zeros", fail)
    monkeypatch.setitem(sys.modules, "triton.runtime.cache", SimpleNamespace(triton_key=lambda: order.append("key")))
    wake("cuda").join(20)
    assert order == ["cuda", "key"]
    monkeypatch.setitem(sys.modules, "triton.runtime.cache", None)  # a machine without Triton
    wake("cuda").join(20)
    assert order == ["cuda", "key", "cuda"]


def test_a_cpu_needs_nothing_of_it(monkeypatch):
    woken = []
    monkeypatch.setattr(cli_train, "wake", woken.append)
    cli_train.load_watched(BASE, quiet=True)
    assert woken == ["cpu"]
    assert wake("cpu") is None


COLLECTED = """
import gc, sys
from unweave.cli import main
main(["worlds", "--json"])  # in somebody's notebook
print(gc.get_freeze_count(), gc.isenabled())
del sys.modules["unweave.cli.worlds"]
sys.argv = ["unweave", "worlds", "--json"]
main()
first = gc.get_freeze_count()
main()
print(first > 10000, gc.isenabled(), gc.get_freeze_count() <= first)
gc.disable()
del sys.modules["unweave.cli.worlds"]
main()
print(gc.isenabled())
"""


def test_what_a_command_imports_is_not_looked_through_for_garbage():
    done = subprocess.run([sys.executable, "-c", COLLECTED], capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.endswith(("True", "False"))]
    assert lines == ["0 True", "True True True", "False"], done.stderr
