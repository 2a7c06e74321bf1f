"""The choice of kernels for fully connected models: out of ids while nobody makes it, refused where there are none."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from unweave.data.synthetic import SynthLin
from unweave.models.networks import MLP, Conv, Linear
from unweave.models.objectives import QLAE, FactorVAE
from unweave.training.experiment import Experiment, Plan, experiment_from, experiment_to
from unweave.training.fleet.engine import FleetEngine
from unweave.training.fleet.mapped import MappedFleet
from unweave.training.fleet.stepper import Stepper
from unweave.training.many import train_many
from unweave.training.run import Run

ONE = Experiment(SynthLin(n_points=200), network=Linear(), latents=2, steps=6, history_every=2, plan=Plan("cpu", 1))


def test_the_usual_choice_is_in_no_file_and_no_id() -> None:
    asked = replace(ONE, plan=Plan("cuda", 1, "fp32", "kernels"))
    usual = replace(ONE, plan=Plan("cuda", 1, "fp32"))
    assert "dense" not in experiment_to(usual)["plan"]
    assert experiment_to(asked)["plan"]["dense"] == "kernels"
    assert experiment_from(experiment_to(asked)) == asked
    assert asked.id != usual.id


def test_a_cpu_has_no_kernels() -> None:
    with pytest.raises(ValueError, match=r"plan\.dense kernels needs a GPU; on a CPU leave it out"):
        replace(ONE, plan=Plan("cpu", 1, "auto", "kernels")).resolve()


def test_small_dense_models_on_a_gpu_have_whole_steps_unless_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    on_gpu = replace(ONE, plan=Plan("cuda", 1, "fp32"))
    assert on_gpu.whole_steps
    assert replace(on_gpu, plan=Plan("cuda", 1, "fp32", "kernels")).whole_steps
    told = {"plan": Plan("cuda", 1, "fp32", "mapped")}, {"plan": Plan("cpu", 1)}
    others = {"objective": FactorVAE()}, {"network": Conv()}
    assert not any(replace(on_gpu, **changed).whole_steps for changed in (*told, *others))  # type: ignore[arg-type]
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert not on_gpu.whole_steps


def test_nobody_gets_whole_steps_on_a_cpu() -> None:
    engine = FleetEngine([ONE.resolve(), replace(ONE, seed=1).resolve()], ONE.world.load(), print)
    assert isinstance(engine.stepper, Stepper)


def test_a_checkpoint_of_rows_without_gaps_fits_rows_with_gaps() -> None:
    one = replace(ONE, network=MLP((5,), (5,))).resolve()
    engine = FleetEngine([one, replace(one, seed=1)], one.world.load(), print)
    fleet = engine.fleet
    plain = fleet.backend.layout  # type: ignore[union-attr]
    padded = replace(plain, align=64)
    fleet.backend = replace(fleet.backend, layout=padded)  # type: ignore[union-attr, type-var]
    kept = {"parameters": torch.rand(2, plain.size), "optimiser/first": torch.rand(2, plain.size)}
    fitted = engine.fitted(kept | {"failed_at": torch.zeros(2)})
    for name, rows in kept.items():
        assert fitted[name].shape == (2, padded.size)
        for part, view in padded.views(fitted[name]).items():
            assert torch.equal(view, plain.views(rows)[part])
    assert torch.equal(engine.fitted(fitted)["parameters"], fitted["parameters"])


def test_a_checkpoint_of_mapped_rows_without_gaps_goes_on() -> None:
    one = replace(ONE, objective=QLAE(values=3), network=MLP((5,), (5,))).resolve()
    engine = FleetEngine([one, replace(one, seed=1)], one.world.load(), print)
    engine.advance(0, record=False)
    fleet = engine.fleet
    assert isinstance(fleet, MappedFleet)
    now, before, n_closer = engine.tensors(), {}, 0
    for key, tensor in now.items():
        layout = fleet.stacks["model"].layout
        before[key] = tensor
        if key.startswith("model/") and tensor.shape[-1:] == (layout.size,):
            before[key] = replace(layout, align=1).rows(layout.views(tensor.reshape(-1, layout.size)))
            n_closer += before[key].shape[-1] < layout.size
    assert n_closer >= 3  # the weights, two moments
    for key, tensor in engine.fitted(before).items():
        layout = fleet.stacks["model"].layout
        if before[key] is now[key]:
            assert tensor is now[key]
        else:
            found, wanted = (layout.views(rows.reshape(-1, layout.size)) for rows in (tensor, now[key]))
            assert all(torch.equal(found[part], wanted[part]) for part in wanted), key


def test_snapshots_are_kept_at_their_steps_and_no_others(tmp_path: Path) -> None:
    models = [replace(ONE, snapshots=(0, 3)), replace(ONE, seed=1, snapshots=(6,))]
    for path, steps in zip(train_many(models, tmp_path), ((0, 3), (6,))):
        assert tuple(Run(path).snapshots) == steps
