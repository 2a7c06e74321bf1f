"""Training: exact resumption for every objective, non-finite losses, and damaged files."""

import json
import math
import subprocess
from dataclasses import replace

import pytest
import torch

from unweave.data.micro import Micro
from unweave.models import OBJECTIVES
from unweave.models.networks.conv import Conv
from unweave.models.networks.mlp import MLP
from unweave.models.objectives import Context
from unweave.models.objectives.beta_vae import BetaVAE
from unweave.models.objectives.factor_vae import FactorVAE
from unweave.models.optimisers import AdaGrad, Adam
from unweave.runs.folder import DamagedFile, RunFolder
from unweave.training.alone import Alone
from unweave.training.batches import batches, training_rows
from unweave.training.checkpoint import Checkpoints, from_bytes, to_bytes
from unweave.training.experiment import Experiment, Plan, experiment_from, experiment_to
from unweave.training.history import Recording
from unweave.training.loop import resume, train
from unweave.training.results import failure_words
from unweave.training.run import Run
from unweave.training.running import Interrupted, NotFinite, RunOptions

TINY = Experiment(
    Micro(),
    network=Conv((4, 8), (4, 4), 16),
    latents=3,
    steps=20,
    batch_size=8,
    history_every=5,
    plan=Plan("cpu", 1),
)


@pytest.fixture(scope="module")
def data():
    return Micro().load()


def small(name):
    return FactorVAE(width=8, depth=2) if name == "factor_vae" else OBJECTIVES[name]()


def stop_after(steps):
    """Options that stop cleanly after so many steps."""
    seen = []
    return RunOptions((lambda *given: seen.append(given),), save_every=1e9, stop=lambda: len(seen) >= steps)


def weights(path):
    return (path / "model.safetensors").read_bytes(), Run(path).history.values()


@pytest.mark.parametrize("name", [name for name in OBJECTIVES if name != "perturbation"])  # it needs runs; see there
def test_twenty_steps_are_ten_and_ten(name, data, tmp_path):
    objective = small(name)
    experiment = replace(TINY, objective=objective, warmup=7 if objective.warms_up else 0)
    whole = train(experiment, tmp_path / "whole", data=data)
    with pytest.raises(Interrupted, match="unweave resume"):
        train(experiment, tmp_path / "parts", data=data, how=stop_after(10))
    parts = resume(tmp_path / "parts", data=data)
    assert weights(whole)[0] == weights(parts)[0]
    assert torch.equal(weights(whole)[1], weights(parts)[1])


@pytest.mark.parametrize("optimiser", [Adam(1e-3), AdaGrad(1e-2)])
@pytest.mark.parametrize("network", [Conv((4, 8), (4, 2), 16), MLP((16,), (16,))])
def test_training_lowers_the_loss(optimiser, network, data, tmp_path):
    experiment = replace(TINY, optimiser=optimiser, network=network, objective=BetaVAE(1.0), steps=60, history_every=1)
    loss = Run(train(experiment, tmp_path / "run", data=data)).history.column("loss")
    assert loss[-10:].mean() < 0.9 * loss[:10].mean()


def test_the_same_command_twice_returns_at_once(data, tmp_path):
    path = train(TINY, tmp_path / "run", data=data)
    before = (path / "model.safetensors").stat().st_mtime_ns
    assert train(TINY, tmp_path / "run", data=data) == path
    assert (path / "model.safetensors").stat().st_mtime_ns == before


def test_another_experiment_does_not_take_the_folder(data, tmp_path):
    train(TINY, tmp_path / "run", data=data)
    with pytest.raises(ValueError, match=r"objective.beta is 4.0 there and 2.0 here"):
        train(replace(TINY, objective=BetaVAE(2.0)), tmp_path / "run", data=data)


def test_two_processes_do_not_share_a_folder(data, tmp_path):
    with RunFolder(tmp_path / "run").locked(), pytest.raises(BlockingIOError, match="another process"):
        train(TINY, tmp_path / "run", data=data)


def test_a_run_keeps_what_it_should(data, tmp_path):
    path = train(replace(TINY, snapshots=(0, 10, 20)), tmp_path / "run", data=data)
    run = Run(path)
    assert run.state == "done"
    assert sorted(run.snapshots) == [0, 10, 20]
    assert run.history.steps == [0, 5, 10, 15, 19]
    assert run.history.latent("kl").shape == (5, 3)
    assert not run.files.names("checkpoints/")
    start, end = (run.load_weights(run.snapshots[step]) for step in (0, 20))
    assert torch.equal(end.encoder.trunk.dense.weight, run.model.encoder.trunk.dense.weight)
    assert not torch.equal(start.encoder.trunk.dense.weight, end.encoder.trunk.dense.weight)
    subprocess.run(["sha256sum", "--quiet", "-c", "SHA256SUMS"], cwd=path, check=True)


def test_history_rows_are_the_batch_they_claim(data, tmp_path):
    run = Run(train(TINY, tmp_path / "run", data=data))
    engine = Alone(TINY, data)
    engine.advance(0, record=True)
    terms, code = engine.last_terms, engine.last_code
    assert run.history.column("loss")[0].item() == terms["loss"].item()
    torch.testing.assert_close(run.history.latent("kl")[0], code.kl.mean(0).detach(), rtol=0, atol=0)
    torch.testing.assert_close(run.history.latent("mean_variance")[0], code.variance.mean(0).detach())
    assert run.history.column("reconstruction")[0] + 4.0 * run.history.column("kl")[0] == pytest.approx(
        terms["loss"].item(), rel=1e-6
    )


def test_batches_do_not_depend_on_where_one_starts(data):
    whole = list(batches(TINY, data, 0, 70))
    tail = list(batches(TINY, data, 66, 70))
    for early, late in zip(whole[66:], tail):
        assert torch.equal(early["images"], late["images"])
        assert torch.equal(early["noise"], late["noise"])


def test_epochs_show_every_example_once(data):
    experiment = replace(TINY, order="epochs", batch_size=64)
    seen = torch.cat([batch["images"] for batch in batches(experiment, data, 0, len(data) // 64)]).flatten(1)
    expected = data.examples(torch.arange(len(data))).flatten(1)
    assert torch.equal(seen.sum(1).sort().values, expected.sum(1).sort().values)
    assert len(torch.unique(seen, dim=0)) == len(data)


def test_held_out_examples_are_never_trained_on(data, tmp_path):
    experiment = replace(TINY, holdout=0.25)
    rows = training_rows(experiment, len(data))
    run = Run(train(experiment, tmp_path / "run", data=data))
    assert len(rows) == 1536
    assert not set(run.rows(500).tolist()) & set(rows.tolist())


def test_a_loss_that_is_not_finite_stops_at_once_and_names_its_term(data, tmp_path):
    experiment = replace(TINY, optimiser=Adam(1e12), objective=BetaVAE(1.0), steps=200)
    with pytest.raises(NotFinite, match=r"training stopped at step \d+: (kl|reconstruction) became (inf|nan)"):
        train(experiment, tmp_path / "run", data=data)
    run = Run(tmp_path / "run")
    failure = run.files.read_json("failure.json")
    assert run.state == "failed"
    assert failure["term"] in ("kl", "reconstruction")
    # what is kept are the last recorded weights whose loss was finite, and they still give it
    assert failure["kept_step"] < failure["step"]
    model = run.load_weights(failure["kept"])
    batch = next(iter(batches(experiment, data, failure["kept_step"], failure["kept_step"] + 1)))
    context = Context(failure["kept_step"], len(data), networks={"model": model})
    assert math.isfinite(experiment.objective.loss(batch, context)[0]["loss"].item())


def test_a_damaged_checkpoint_is_passed_over_and_the_result_is_the_same(data, tmp_path, capsys):
    whole = train(TINY, tmp_path / "whole", data=data)
    run = RunFolder(tmp_path / "run")
    engine, recording, checkpoints = Alone(TINY, data), Recording(), Checkpoints(run, 1.0)
    with pytest.raises(Interrupted):
        train(TINY, run.path, data=data, how=stop_after(4))
    assert checkpoints.load(engine, recording) == 4
    for step in range(4, 8):
        engine.advance(step, record=False)
    checkpoints.save(engine, recording, 8)
    newest = run.path / run.names("checkpoints/")[-1]
    content = bytearray(newest.read_bytes())
    content[len(content) // 2] ^= 1
    newest.write_bytes(content)
    assert weights(resume(run.path, data=data))[0] == weights(whole)[0]
    assert "is damaged" in capsys.readouterr().err


def test_a_flipped_bit_in_a_finished_model_is_noticed(data, tmp_path):
    path = train(TINY, tmp_path / "run", data=data)
    content = bytearray((path / "model.safetensors").read_bytes())
    content[-5] ^= 4
    (path / "model.safetensors").write_bytes(content)
    with pytest.raises(DamagedFile, match=r"model.safetensors is damaged"):
        _ = Run(path).model


def test_a_full_disk_leaves_the_checkpoint_before_it(data, tmp_path, monkeypatch):
    run = RunFolder(tmp_path / "run")
    with pytest.raises(Interrupted):
        train(TINY, run.path, data=data, how=stop_after(6))
    before = run.names("checkpoints/")

    def full(path):
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr("unweave.files.sync", full)
    with pytest.raises(OSError, match="No space left"):
        train(TINY, run.path, data=data, how=RunOptions(save_every=0.0))
    monkeypatch.undo()
    assert run.names("checkpoints/") == before
    assert not list(run.path.rglob("*.part"))
    assert weights(resume(run.path, data=data))[0] == weights(train(TINY, tmp_path / "whole", data=data))[0]


def test_experiments_survive_json():
    experiment = replace(TINY, objective=FactorVAE(3.0, "study"), snapshots=(1, 2)).resolve()
    again = experiment_from(json.loads(json.dumps(experiment_to(experiment))))
    assert again == experiment
    assert again.id == experiment.id


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"latents": 0}, "latents must be at least 1, not 0"),
        ({"steps": -1}, "steps must be at least 1"),
        ({"holdout": 1.0}, r"holdout must lie in \[0, 1\)"),
        ({"seed": -3}, "seed must be 0 or more, not -3"),
        ({"snapshots": (30,)}, r"snapshots must lie in 0…20"),
        ({"plan": Plan("tpu")}, "plan.device must be auto, cpu, cuda"),
    ],
)
def test_bad_settings(changes, message):
    with pytest.raises(ValueError, match=message):
        replace(TINY, **changes).resolve()


def test_a_whole_number_and_a_float_are_one_experiment():
    assert replace(TINY, objective=BetaVAE(6)).resolve().id == replace(TINY, objective=BetaVAE(6.0)).resolve().id


def test_the_discriminator_never_teaches_the_model(data, tmp_path):
    """With γ = 0 the discriminator trains beside the model, and the model must not notice."""
    from unweave.models.objectives.beta_vae import VAE

    alone = Run(train(replace(TINY, objective=VAE()), tmp_path / "alone", data=data))
    beside = Run(train(replace(TINY, objective=FactorVAE(0.0, width=8, depth=2)), tmp_path / "beside", data=data))
    for name, weight in alone.model.state_dict().items():
        torch.testing.assert_close(beside.model.state_dict()[name], weight, rtol=0, atol=1e-7)
    losses = beside.history.column("discriminator")
    assert losses[0] != losses[-1]
    taught = Run(train(replace(TINY, objective=FactorVAE(50.0, width=8, depth=2)), tmp_path / "taught", data=data))
    assert not torch.equal(taught.model.encoder.trunk.dense.weight, alone.model.encoder.trunk.dense.weight)


def test_a_checkpoint_of_other_settings_is_refused_by_name(data, tmp_path):
    with pytest.raises(Interrupted):
        train(TINY, tmp_path / "run", data=data, how=stop_after(3))
    folder = RunFolder(tmp_path / "run")
    folder.write_json("config.json", experiment_to(replace(TINY, latents=1).resolve()))
    with pytest.raises(ValueError, match=r"step-000000003\.safetensors does not fit the run's settings: \S+ is .* not"):
        resume(tmp_path / "run", data=data)
    folder.write_json("config.json", experiment_to(TINY.resolve()))
    (name,) = folder.names("checkpoints/")
    for content in (b"", b"x", b"\x02" + bytes(7) + b"[]", to_bytes({"x": torch.ones(1)})):
        folder.write(name, content)
        with pytest.raises(ValueError, match=r"step-000000003\.safetensors (holds no weights|does not fit)"):
            resume(tmp_path / "run", data=data)


@pytest.mark.parametrize("network", [MLP((8,), (8,)), Conv()], ids=["mlp", "conv"])
@pytest.mark.parametrize("shape", ["1,99999,99999", "3,64", "1,1,1", "1,16,16,1,1", "x", ""])
def test_weights_for_other_examples_are_refused_by_their_file(network, shape, tmp_path):
    run = Run(train(replace(TINY, network=network, steps=1), tmp_path / "run"))
    tensors, _ = from_bytes(run.files.read("model.safetensors"))
    run.files.write("model.safetensors", to_bytes(tensors, {"shape": shape}))
    with pytest.raises(ValueError, match=r"run/model\.safetensors (says that|does not)") as told:
        _ = run.model
    assert "\n" not in str(told.value)


def test_a_failure_says_which_weights_are_left(tmp_path):
    failure = {"step": 7, "term": "kl", "value": "nan"}
    said = failure_words(RunFolder(tmp_path), failure)
    assert f"{tmp_path}: training stopped at step 7: kl became nan. No weights were kept" in said
    said = failure_words(RunFolder(tmp_path), failure | {"kept_step": 6})
    assert "Weights of step 6, whose loss was finite, are in " in said
    assert "No weights" not in said
