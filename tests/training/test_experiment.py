"""Plans and experiments: automatic choices, what is refused, forms of examples, the largest model."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from unweave.data.factors import FactorSpace
from unweave.data.micro import Micro
from unweave.data.mnist import MNIST
from unweave.data.synthetic import SynthLin
from unweave.data.table import Table
from unweave.models.likelihoods import Gaussian
from unweave.models.networks import MLP, Conv
from unweave.models.objectives import GVAE, IVAE, PCL, QLAE, WSGAN, BetaVAE, FactorVAE, SlowVAE
from unweave.models.optimisers import Adam, AdamW
from unweave.training import experiment
from unweave.training.experiment import (
    Experiment,
    Form,
    Plan,
    experiment_to,
    form_of,
    form_of_card,
    is_experiment,
    usable_cores,
)
from unweave.training.loop import train
from unweave.training.many import train_many

ONE = Experiment(Micro(), network=MLP((4,), (4,)), latents=2, steps=9, plan=Plan("cpu", 1))


def test_threads_are_those_given_or_what_the_process_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Plan("cpu", 3).resolve().threads == 3
    for torchs, cores, least in ((4, 2, 2), (2, 4, 2), (1, 9, 1)):
        monkeypatch.setattr(torch, "get_num_threads", lambda n=torchs: n)
        monkeypatch.setattr(experiment, "usable_cores", lambda n=cores: n)
        assert Plan("cpu").resolve().threads == least


def test_cores_are_those_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda who: {0, 3, 7} if who == 0 else {1}, raising=False)
    assert usable_cores() == 3
    monkeypatch.delattr(os, "sched_getaffinity")
    for counted, wanted in ((6, 6), (None, 1)):
        monkeypatch.setattr(os, "cpu_count", lambda n=counted: n)
        assert usable_cores() == wanted


def test_devices_and_precisions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert Plan(threads=1).resolve() == Plan("cpu", 1, "fp32")
    assert Plan("cpu", 1, "fp32").resolve().precision == "fp32"
    with pytest.raises(ValueError, match="PyTorch sees no CUDA device here"):
        Plan("cuda:1", 1).resolve()
    with pytest.raises(ValueError, match=r"plan\.device must be auto, cpu, cuda or cuda:N, not 'tpu'"):
        Plan("tpu", 1).resolve()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    for there, wanted in ((object(), "bf16"), (None, "tf32")):
        monkeypatch.setattr(experiment.importlib.util, "find_spec", lambda name, there=there: there)
        assert Plan(threads=1).resolve() == Plan("cuda", 1, wanted)
    assert Plan("cuda:1", 1, "tf32", "kernels").resolve() == Plan("cuda:1", 1, "tf32", "kernels")


def test_what_cannot_be_is_refused() -> None:
    assert replace(ONE, snapshots=(0, 9)).resolve().snapshots == (0, 9)
    with pytest.raises(ValueError, match=r"snapshots must lie in 0…9, given \(0, 10\)"):
        replace(ONE, snapshots=(0, 10)).resolve()
    with pytest.raises(ValueError, match=r"snapshots must lie in 0…5"):  # nine steps are five updates
        replace(ONE, objective=FactorVAE(protocol="study"), snapshots=(6,)).resolve()
    with pytest.raises(ValueError, match="qlae has an optimiser of its own: leave out optimiser"):
        replace(ONE, objective=QLAE(), optimiser=AdamW()).resolve()
    assert replace(ONE, objective=QLAE(), optimiser=Adam()).resolve().objective == QLAE()
    assert replace(ONE, objective=FactorVAE(), optimiser=AdamW()).resolve().optimiser == AdamW()
    with pytest.raises(ValueError, match="pcl has no regulariser that could fade in: leave out warmup"):
        replace(ONE, objective=PCL(), warmup=1).resolve()
    assert replace(ONE, objective=PCL(), warmup=0).resolve().warmup == 0
    assert replace(ONE, warmup=1).resolve().warmup == 1


def test_a_model_may_have_two_billion_weights_and_not_one_more(monkeypatch: pytest.MonkeyPatch) -> None:
    n = (3 * 4 + 4) + 2 * (4 * 2 + 2) + (2 * 4 + 4) + (4 * 3 + 3)
    for most, fits in ((n, True), (n - 1, False)):
        monkeypatch.setattr(experiment, "MOST_WEIGHTS", most)
        experiment._check_size.cache_clear()
        if fits:
            ONE.architecture((3,))
        else:
            with pytest.raises(ValueError, match=f"such a model would have {n} weights, more than {n - 1}"):
                ONE.architecture((3,))
    experiment._check_size.cache_clear()


def test_tables_have_other_defaults_than_pictures() -> None:
    found = Experiment(Table("rows.csv"))
    assert (found.network, found.likelihood) == (MLP((128, 128), (128, 128)), Gaussian(0.025))
    assert Experiment(Table("rows.csv"), network=Conv()).network == Conv()
    assert Experiment(Micro()).network == Conv()


def test_labels_count_in_the_form_of_those_who_read_them() -> None:
    data = Micro().load()
    for method, reads in ((BetaVAE(), False), (IVAE(), True), (GVAE(), True), (WSGAN(), True), (PCL(), False)):
        assert form_of(method, data) == Form(data.shape, data.label_sizes if reads else ())


def test_forms_of_what_nobody_has_loaded() -> None:
    card = Micro().card()
    assert isinstance(card.space, FactorSpace)
    assert form_of_card(card) == Form(card.shape, card.space.sizes)
    bare = replace(card, space=None)
    assert form_of_card(replace(bare, labels=("a", "b"))) == Form(card.shape, (2, 2))
    assert form_of_card(bare) == Form(card.shape)
    assert form_of_card(replace(bare, segments="three")) == Form(card.shape, (2,))
    assert str(Form((3,))) == "3"
    assert str(Form((1, 4, 4), (2, 0))) == "1,4,4 2,0"


def test_experiments_are_known_by_their_names() -> None:
    plain = experiment_to(ONE)
    assert is_experiment(plain)
    assert not is_experiment({name: value for name, value in plain.items() if name != "steps"})
    assert not is_experiment([plain])
    assert replace(ONE, world=SynthLin()).id.startswith("synth_lin-beta_vae-")


@pytest.mark.parametrize("several", [False, True])
def test_a_world_that_cannot_give_pairs_is_refused_before_it_is_fetched(
    several: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNWEAVE_DATA", str(tmp_path / "data"))
    asked = Experiment(MNIST(), SlowVAE(), plan=Plan("cpu", 1))
    with pytest.raises(ValueError, match="slow_vae learns from pairs of examples, and mnist has none: take a world"):
        train_many([asked], tmp_path) if several else train(asked, tmp_path / "run")
    # its labels it has: there the files are what is missing
    with pytest.raises(FileNotFoundError, match="mnist needs"):
        train(replace(asked, objective=IVAE()), tmp_path / "run")
