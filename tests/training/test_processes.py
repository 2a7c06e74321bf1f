"""Convolutional members side by side on a CPU: each exactly the run it would be alone."""

import io
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from unweave.data.micro import Micro
from unweave.models.networks import Conv
from unweave.models.objectives import Context
from unweave.models.objectives.beta_vae import BetaVAE
from unweave.models.optimisers import Adam
from unweave.training import progress
from unweave.training.batches import batches
from unweave.training.experiment import Experiment, Plan
from unweave.training.loop import train
from unweave.training.many import train_many
from unweave.training.processes import _Seen
from unweave.training.run import Run
from unweave.training.running import Interrupted, RunOptions, StepReport


def test_a_member_that_fails_keeps_its_last_good_weights_and_its_history(tmp_path: Path) -> None:
    network = Conv((4, 4), (4, 4), 8)
    base = Experiment(Micro(), BetaVAE(1.0), network, steps=60, batch_size=4, latents=2, history_every=1)
    given = [replace(base, optimiser=Adam(1e12)), replace(base, seed=1)]
    bad, good = (Run(path) for path in train_many(given, tmp_path))
    assert (bad.state, good.state) == ("failed", "done")
    failure = bad.files.read_json("failure.json")
    assert failure["kept_step"] == failure["step"] - 1 == bad.history.steps[-1]
    assert bad.history.column("loss").isfinite().all()
    kept = bad.load_weights(failure["kept"])
    batch = next(iter(batches(bad.experiment, bad.data, failure["kept_step"], failure["step"])))
    context = Context(failure["kept_step"], len(bad.data), networks={"model": kept})
    assert bad.experiment.objective.loss(batch, context)[0]["loss"].isfinite()
    with pytest.raises(ValueError, match=rf"failed at step {failure['step']}"):
        bad.model  # noqa: B018


@pytest.mark.slow
def test_members_side_by_side_are_the_single_runs_to_the_last_bit(tmp_path: Path) -> None:
    base = Experiment(Micro(), network=Conv((4, 4), (4, 4), 8), steps=3, batch_size=4, latents=2, plan=Plan("cpu", 2))
    given = [base, replace(base, seed=1), replace(base, seed=2, optimiser=Adam(1e30))]
    paths = train_many(given, tmp_path / "fleet")
    for member, path in zip(given[:2], paths):
        single = replace(member, plan=Plan("cpu", 1))
        assert Run(path).experiment == single.resolve()
        other = Run(train(single, tmp_path / "alone" / str(member.seed)))
        assert Run(path).files.read("model.safetensors") == other.files.read("model.safetensors")
    assert Run(paths[2]).state == "failed"
    assert train_many(given, tmp_path / "fleet") == paths


def test_progress_is_the_mean_over_members_that_have_begun() -> None:
    seen = _Seen([2.0, 0.5, 6.0, 0.25, 0.0, 0.0, 4.0, float("nan")])
    assert seen.mean_step() == 3
    assert seen.terms() == [{"loss": 0.5}, {"loss": 0.25}]


def test_the_pace_is_that_of_all_steps_that_were_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten models of which two train: 200 steps of each in ten seconds are 40 steps a second of all."""
    clock, out = SimpleNamespace(now=100.0), io.StringIO()
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock.now)
    seen = _Seen([0.0] * 20)
    seen.begin_at([500, *[0] * 9])
    with progress.progress("ten", out) as watch:
        watch(StepReport(seen.mean_step(), 1000, True, seen, 10))
        clock.now += 10.0
        seen.held[0:4] = [700.0, 1.5, 200.0, 2.5]
        watch(StepReport(seen.mean_step(), 1000, True, seen, 10))
    # 40 · 86,400 s / 1,000 steps; 9,100 steps are left
    line = "ten: step 90 of 1,000, 10 models, 40 model-steps/s, 3,456.0 models a day, mean loss 2.00, 3 min left\n"
    assert out.getvalue() == line


def test_who_goes_on_begins_where_it_was_saved(tmp_path: Path) -> None:
    base = Experiment(Micro(), network=Conv((4, 4), (4, 4), 8), steps=40, batch_size=4, latents=2, plan=Plan("cpu", 1))
    stopped = RunOptions((lambda report: steps.append(report.done),), stop=lambda: bool(steps) and steps[-1] >= 20)
    steps = list[int]()
    with pytest.raises(Interrupted):
        train(base, tmp_path / base.resolve().id, how=stopped)
    seen = list[tuple[int, int]]()
    train_many(
        [base, replace(base, seed=1)], tmp_path, how=RunOptions((lambda one: seen.append((one.done, one.members)),))
    )
    assert seen[0][0] >= 10  # half of the twenty that one of two had
    assert seen[-1] == (40, 2)
