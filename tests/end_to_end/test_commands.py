"""The user's path: every command with good and with bad input, as a person would type it."""

import json
import subprocess
import sys

import pytest

from unweave.cli import COMMANDS, main

SMALL = (
    "train micro --steps 4 --latents 3 --batch-size 4 --network.channels 4,4 --network.kernels 4,4 --network.hidden 8"
    " --plan.threads 1 --quiet"
).split()


@pytest.fixture
def run_folder(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main([*SMALL, "--folder", "run"]) == 0
    capsys.readouterr()
    return tmp_path / "run"


def test_help_of_everything(capsys):
    assert main([]) == 0
    text = capsys.readouterr().out
    assert all(name in text for name in COMMANDS)
    for name in COMMANDS:
        with pytest.raises(SystemExit) as ended:
            main([name, "--help"])
        assert ended.value.code == 0
        assert len(capsys.readouterr().out) > 100


def test_the_module_is_the_command():
    done = subprocess.run([sys.executable, "-m", "unweave", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "0.1.0"


def test_importing_is_light():
    heavy = "polars sklearn scipy lightgbm matplotlib plotly h5py PIL rich"
    code = f"import sys, unweave, unweave.training.loop; print([m for m in '{heavy}'.split() if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_train_show_report_export(run_folder, capsys):
    assert main(["show", "run"]) == 0
    assert "of 3 latents are active" in capsys.readouterr().out
    assert main(["show", "run", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["state"] == "done"
    assert len(shown["latents"]) == 3
    assert main(["report", "run"]) == 0
    page = (run_folder / "report.html").read_text()
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert len(list((run_folder / "figures").glob("*.png"))) >= 5
    assert main(["export", "run", "model"]) == 0
    import unweave as uw

    assert uw.from_pretrained("model").architecture.latents == 3
    subprocess.run(["sha256sum", "--quiet", "-c", "SHA256SUMS"], cwd=run_folder, check=True)


def test_the_same_command_again_and_resume(run_folder, capsys):
    before = (run_folder / "model.safetensors").read_bytes()
    assert main([*SMALL, "--folder", "run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["folder"] == "run"
    assert main(["resume", "run", "--json"]) == 0
    assert (run_folder / "model.safetensors").read_bytes() == before


def test_print_config_can_be_trained_from(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main([*SMALL, "--print-config"]) == 0
    (tmp_path / "config.json").write_text(capsys.readouterr().out)
    assert main(["train", "--config", "config.json", "--seed", "4", "--quiet", "--json"]) == 0
    folder = json.loads(capsys.readouterr().out)["folder"]
    assert json.loads((tmp_path / folder / "config.json").read_text())["seed"] == 4


def test_many_models_at_once(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    small = "train micro --steps 3 --latents 2 --batch-size 4 --network mlp --network.encoder-widths 8".split()
    small += "--network.decoder-widths 8 --plan.threads 1 --quiet --json --seeds 0:2 --objective.beta 1,2".split()
    assert main(small) == 0
    told = json.loads(capsys.readouterr().out)
    assert [run["state"] for run in told] == ["done"] * 4
    configs = [json.loads((tmp_path / run["folder"] / "config.json").read_text()) for run in told]
    found = sorted((config["seed"], config["objective"]["beta"]) for config in configs)
    assert found == [(0, 1.0), (0, 2.0), (1, 1.0), (1, 2.0)]
    assert main(small) == 0


def test_tensorboard(tmp_path, monkeypatch, capsys):
    pytest.importorskip("tensorboard")
    monkeypatch.chdir(tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TF_CPP_MIN_LOG_LEVEL", "3")
        assert main([*SMALL, "--folder", "run", "--tensorboard"]) == 0
    assert list((tmp_path / "run" / "tensorboard").glob("events*"))


def test_worlds(capsys):
    assert main(["worlds"]) == 0
    listed = capsys.readouterr().out
    assert main(["worlds", "--json"]) == 0
    described = json.loads(capsys.readouterr().out)
    assert described["dsprites"]["examples"] == 737_280
    assert all(name in listed for name in ("micro", "shapes3d_like", "synth_lin"))
    assert main(["worlds", "smallnorb"]) == 0
    assert "instance: 10 values, categorical, hidden" in capsys.readouterr().out


def test_worlds_say_what_supervision_they_give(capsys):
    assert main(["worlds"]) == 0
    listed = capsys.readouterr().out
    assert "pairs, labels: dsprites, color_dsprites" in listed
    assert "labels: synth_lin, synth_nonlin, mnist" in listed
    assert "pairs, labels, segments: images" in listed
    assert main(["worlds", "cars3d", "mnist"]) == 0
    described = capsys.readouterr().out
    assert "transitions step elevation, azimuth\n" in described
    assert "1 to 3 factors change" in described
    assert "labels    digit" in described
    assert main(["worlds", "--json"]) == 0
    given = {name: card["supervision"] for name, card in json.loads(capsys.readouterr().out).items()}
    assert set(given["micro"]["pairings"]) == {"transitions", "changes", "share", "change", "rank", "random"}
    assert given["micro"]["steps"] == given["micro"]["labels"] == ["x", "y", "size"]
    assert given["mnist"] == {"pairings": [], "steps": [], "own_pairs": "", "labels": ["digit"], "segments": ""}
    assert given["images"]["own_pairs"]
    assert given["images"]["segments"]


def test_demo_in_small(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["demo", "--steps", "3", "--quiet"]) == 0
    told = capsys.readouterr().out
    assert "of 6 latents are active" in told
    assert (tmp_path / "runs" / "demo" / "report.html").exists()


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ("trian micro", "unknown command 'trian'. Did you mean train"),
        ("train", "say what to learn from: unweave train WORLD"),
        ("train mirco", "unknown world 'mirco'. Did you mean micro?"),
        ("train micro --objective beta-vea", "unknown objective 'beta_vea'. Did you mean"),
        ("train micro --latent 4", "unknown option 'latent'. Did you mean latents"),
        ("train micro --latents 0", "latents must be at least 1, not 0"),
        ("train synth_lin", "the conv network needs images"),
        ("train micro --network.kernels 4,4", "network.kernels must be 4 numbers"),
        ("train micro --plan.device cuda:0", "PyTorch sees no CUDA device here"),
        ("train shapes3d", "3dshapes.h5"),
        ("train images --world.path nowhere", "nowhere"),
        ("show nowhere", "nowhere is not a run folder"),
        ("resume nowhere", "nowhere is not a run folder"),
        ("export nowhere out", "nowhere is not a run folder"),
        ("worlds no_such", "unknown world 'no_such'"),
    ],
)
def test_bad_input_is_answered_in_one_sentence(argv, message, tmp_path, monkeypatch, capsys):
    import torch

    if "cuda" in argv and torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    monkeypatch.chdir(tmp_path)
    assert main(argv.split()) == 2
    told = capsys.readouterr().err.strip()
    assert message in told
    assert told.startswith("unweave: ")
    assert "\n" not in told


def test_ctrl_c_saves_first(tmp_path):
    import os
    import signal
    import time

    command = [
        sys.executable,
        "-m",
        "unweave",
        *SMALL,
        "--folder",
        "run",
        "--steps",
        "100000",
        "--history-every",
        "5000",
    ]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, env=os.environ)
    while not (tmp_path / "run" / "environment.json").exists():
        time.sleep(0.05)
    time.sleep(1.5)
    process.send_signal(signal.SIGINT)
    told = process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert "go on with: unweave resume run" in told
    assert list((tmp_path / "run" / "checkpoints").iterdir())


def test_a_notebook_in_ten_lines(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    import unweave as uw

    data = uw.world("micro")
    small = {"network": uw.Conv((4, 4), (4, 4), 8), "latents": 3, "steps": 3, "plan": uw.Plan(threads=1)}
    run = uw.train("micro", objective=uw.BetaVAE(6), quiet=True, **small)
    assert uw.train("micro", objective=uw.BetaVAE(6), quiet=True, **small).path == run.path
    code = run.encode(run.images(20))
    assert len(uw.variable_types(code.mean, code.variance)) == 3
    assert run.decode(code.mean).shape == (20, 1, 32, 32)
    assert run.traverse(run.images(1)[0], n=5).shape == (3, 5, 1, 32, 32)
    assert len(data.factors(run.rows(7))) == 7
    assert uw.load(run.path).state == "done"
    assert "BetaVAE" in dir(uw)


def test_a_damaged_model_is_not_done(run_folder, capsys):
    file = run_folder / "model.safetensors"
    whole = file.read_bytes()
    file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert main(["resume", "run", "--quiet"]) == 1
    assert "model.safetensors is damaged" in capsys.readouterr().err
    file.unlink()
    assert main(["resume", "run", "--quiet"]) == 0
    assert file.read_bytes() == whole


def test_a_run_that_failed_in_a_study_is_shown(run_folder, capsys):
    from unweave.runs.folder import RunFolder

    folder = RunFolder("failed")
    folder.write("config.json", (run_folder / "config.json").read_bytes())
    folder.write_json("failure.json", {"kind": "memory", "reason": "RuntimeError: out of memory"})
    assert main(["show", "failed"]) == 0
    assert "it failed: RuntimeError: out of memory" in capsys.readouterr().out


def test_a_member_of_a_fleet_is_shown_and_resumed_as_one(tmp_path, monkeypatch, capsys):
    import unweave as uw
    from unweave.data.micro import Micro
    from unweave.training.many import train_many
    from unweave.training.running import Interrupted, RunOptions

    monkeypatch.chdir(tmp_path)
    small = {"network": uw.MLP((8,), (8,)), "latents": 2, "steps": 12, "batch_size": 8, "plan": uw.Plan("cpu", 1)}
    given = [uw.Experiment(Micro(), seed=seed, **small) for seed in range(2)]
    whole = train_many(given, "whole")
    asked = []
    with pytest.raises(Interrupted):
        train_many(given, "parts", how=RunOptions(stop=lambda: asked.append(1) or len(asked) > 5))
    member = tmp_path / "parts" / whole[1].name
    assert main(["show", str(member), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["saved_step"] == 5
    assert main(["resume", str(member), "--quiet"]) == 0
    assert "one of 2 models" in capsys.readouterr().out
    for path in whole:
        other = tmp_path / "parts" / path.name
        assert (other / "model.safetensors").read_bytes() == (path / "model.safetensors").read_bytes()
