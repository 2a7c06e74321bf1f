"""How large a model is in a fleet, how many fit, and which backend it gets: counted by hand, with GPUs that are not."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from unweave.data.micro import Micro
from unweave.data.synthetic import SynthNonLin
from unweave.models import Autoencoder
from unweave.models.kernels.layout import Layout
from unweave.models.likelihoods import Gaussian, LearnedGaussian
from unweave.models.networks import MLP, Conv
from unweave.models.objectives import GVAE, QLAE, BetaVAE, FactorVAE
from unweave.training.experiment import Experiment, Form, Plan
from unweave.training.fleet import choice, share
from unweave.training.fleet.engine import FleetEngine
from unweave.training.fleet.members import arrange
from unweave.training.fleet.portable import Portable, portable

BASE = Experiment(
    SynthNonLin(n_points=200), BetaVAE(), MLP((8,), (8,)), Gaussian(), latents=3, batch_size=5, plan=Plan("cpu", 1)
)
FORM = Form((6,))
MODEL = (6 * 8 + 8) + 2 * (8 * 3 + 3) + (3 * 8 + 8) + (8 * 6 + 6)
BETWEEN = 5 * (8 + 3 + 3 + 8 + 6)
ENCODED = 5 * (8 + 3 + 3)
"""Of the second batch, which FactorVAE only encodes."""
BESIDE = (3 * 9 + 9) + (9 * 9 + 9) + (9 * 2 + 2)
SMALL_FACTOR = FactorVAE(width=9, depth=2)


def fitting(experiment: Experiment, memory: int, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(choice, "_free_memory", lambda device: memory)
    return choice.models_that_fit(experiment, FORM)


def named(name: str, template: Autoencoder) -> Portable:
    return replace(portable(template), name=name)


def test_sizes_are_those_that_one_counts() -> None:
    assert choice.size_of(BASE, FORM) == (MODEL, MODEL, BETWEEN, 4)
    assert choice.size_of(replace(BASE, objective=SMALL_FACTOR), FORM) == (MODEL + BESIDE, MODEL, BETWEEN + ENCODED, 4)
    # one head, three latents of ten values each; the quantiser is a layer too; nothing lies in a stack of the backend's
    quantised = choice.size_of(replace(BASE, objective=QLAE()), FORM)
    assert quantised == (MODEL - (8 * 3 + 3) + 3 * 10, 0, 5 * (8 + 3 + 3 + 8 + 6), 4)


def test_kernels_store_two_bytes_where_products_are_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    conv = replace(BASE, world=Micro(), network=Conv((4, 4), (4, 4), 8))
    stored = {
        (kind, precision): choice.size_of(
            replace(one, plan=Plan("cuda", 1, precision, dense)), Form((1, 16, 16))
        ).stored
        for kind, one, dense in (
            ("conv", conv, "auto"),
            ("mlp", BASE, "auto"),
            ("told", BASE, "kernels"),
            ("mapped", replace(conv, objective=QLAE()), "auto"),
        )
        for precision in ("bf16", "tf32")
    }
    short = {key for key, n_bytes in stored.items() if n_bytes == 2}
    assert short == {("conv", "bf16"), ("told", "bf16")}
    assert {*stored.values()} == {2, 4}


def test_as_many_fit_as_nine_tenths_of_the_memory_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    # seven numbers of four bytes a weight; activations twice
    each = 28 * MODEL + 8 * BETWEEN
    assert fitting(BASE, 10**9, monkeypatch) == 9 * 10**8 // each
    beside = each + 40 * BESIDE + 8 * ENCODED
    assert fitting(replace(BASE, objective=SMALL_FACTOR), 10**9, monkeypatch) == 9 * 10**8 // beside
    assert [fitting(BASE, n * each, monkeypatch) for n in (0, 1, 2, 3, 10)] == [1, 1, 1, 2, 9]


def test_free_memory_is_what_the_system_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (5, 9) if str(device) == "cuda:1" else (0, 0))
    assert choice._free_memory("cuda:1") == 5
    monkeypatch.setattr(choice.os, "sysconf", {"SC_AVPHYS_PAGES": 10, "SC_PAGE_SIZE": 4096}.__getitem__)
    assert choice._free_memory("cpu") == 40960

    def unknown(name: str) -> int:
        raise ValueError(name)

    monkeypatch.setattr(choice.os, "sysconf", unknown)
    assert choice._free_memory("cpu") == 2**31


@pytest.mark.parametrize(("width", "narrow"), [(128, True), (129, False)])
def test_narrow_is_up_to_128(width: int, narrow: bool) -> None:
    one = replace(BASE, network=MLP((width,), (8,)), likelihood=LearnedGaussian())
    with torch.device("meta"):
        template = one.objective.networks(one.architecture((6,)))["model"]
    assert choice._is_narrow(template) is narrow  # type: ignore[arg-type]


def test_wide_dense_models_on_a_gpu_have_kernels_unless_told_that_round_only_when_asked_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    asked: list[str] = []

    def kernels(template: Any, precision: str) -> Any:
        asked.append(precision)
        return named("kernels", template)

    monkeypatch.setattr(choice, "_kernels", kernels)
    tried: list[int] = []
    monkeypatch.setattr(choice, "_try", lambda backend, first, n_models, *given: tried.append(n_models))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    found = {}
    for dense in ("auto", "mapped", "kernels"):
        for width in (128, 129):
            one = replace(BASE, network=MLP((width,), (8,)), plan=Plan("cuda", 1, "bf16", dense))
            members = arrange([replace(one, seed=seed) for seed in range(3)])
            found[dense, width] = choice.choose_backend(members, BASE.world.load(), pytest.fail).name
    assert [key for key, name in found.items() if name == "kernels"] == [("auto", 129), ("kernels", 129)]
    assert asked == ["tf32", "bf16"]
    assert tried == [3, 3]  # of as many models as there are


@pytest.mark.parametrize("name", ["kernels", "portable"])
def test_only_kernels_do_without_doubles(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def chosen(members: Any, data: Any, say: Any) -> Any:
        seen.append(len(members.experiments))
        return named(name, choice.template_of(members, (6,)))

    monkeypatch.setattr(choice, "choose_backend", chosen)
    given = [replace(BASE, plan=Plan("cuda", 1), seed=seed) for seed in range(3)]
    members, backend = choice.arranged(given, BASE.world.load(), pytest.fail)
    assert backend.name == name
    assert seen == [3]
    assert len(members.experiments) == (3 if name == "kernels" else 16)
    assert members.given[:3] == (0, 1, 2)


def test_products_are_exact_only_where_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    before = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    try:
        for precision in ("fp32", "tf32", "fp32", "bf16"):
            assert choice.choose_precision(replace(BASE, plan=Plan("cuda", 1, precision))) == precision
            allowed = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
            assert allowed == (precision != "fp32",) * 2
    finally:
        torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = before


def test_a_rehearsal_has_the_shapes_of_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: order.append("waited"))
    monkeypatch.setattr("unweave.models.kernels.posterior.try_sums", lambda like: order.append("summed"))
    one, data = replace(BASE, world=Micro(), objective=GVAE(), network=MLP((4,), (4,))), Micro().load()
    template = choice.template_of(arrange([one]), data.shape)
    seen: dict[bool, list[torch.Tensor]] = {}

    def rehearsed(reads_stored: bool) -> None:
        def gradients(parameters: Any, weights: Any, examples: Any, noise: Any, total_loss: Any, early: Any) -> None:
            code = SimpleNamespace(kl=torch.tensor([2.0, 3.0]))
            assert float(total_loss(code, torch.tensor([10.0, 20.0]))) == 35.0
            seen[reads_stored] = [parameters, weights, examples, noise]

        backend = SimpleNamespace(
            layout=Layout(("weight",), ((9,),), ((0,),)), reads_stored=reads_stored, gathers=False, template=template,
            rows={"kept": 1}, weights=lambda parameters: parameters + 1.0, gradients=gradients,
        )  # fmt: skip
        choice._try(backend, one, 7, 3, data)
        assert backend.rows == {}

    rehearsed(False)
    rehearsed(True)
    assert order == ["summed", "waited", "summed", "waited"]
    for reads_stored, (parameters, weights, examples, noise) in seen.items():
        assert parameters.shape == (7, 9)
        assert float(parameters.abs().sum()) == 0.0
        assert float(weights.sum()) == 7 * 9
        # the posterior of GVAE is told one number beside the noise
        assert noise.shape == (7, 5, 4)
        stored = data.store.shape[1:] if reads_stored and data.comes_as_stored else data.shape
        assert examples.shape == (7, 5, *stored)
        assert examples.dtype == (data.store.dtype if reads_stored and data.comes_as_stored else torch.float32)
    assert data.comes_as_stored
    assert data.store.dtype != torch.float32


def test_a_cpu_maps_its_layers_and_says_nothing_of_kernels() -> None:
    one = replace(BASE, objective=QLAE())
    engine = FleetEngine([one, replace(one, seed=1)], BASE.world.load(), pytest.fail)
    assert engine.name == "mapped"


def test_an_error_without_words_is_said_too() -> None:
    said: list[str] = []
    choice._say_without(said.append, RuntimeError())
    choice._say_without(said.append, ValueError("first\nsecond"))
    assert said == ["training without GPU kernels (RuntimeError: )", "training without GPU kernels (ValueError: first)"]


def test_the_share_of_a_card_is_what_steps_move_of_what_it_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(share, "copy_rate", lambda device: 1e6 if device == "cpu" else 0.0)
    least = 7 * 4 * (BETWEEN + ENCODED) + 28 * (MODEL + BESIDE)
    one = replace(BASE, objective=SMALL_FACTOR, steps=1000)
    assert share.least_bytes(one, FORM) == least
    assert share.share_of_card(one, FORM, 50.0) == pytest.approx(1000 * least / 1e6 / 50.0)


class Counted(torch.Tensor):
    n_copies = 0

    def copy_(self, *given: Any) -> Any:
        Counted.n_copies += 1
        return self


def test_copies_are_timed_eight_at_a_time_and_the_best_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter([10.0, 13.0])
    with monkeypatch.context() as clock:
        clock.setattr(share.time, "perf_counter", lambda: next(ticks))
        assert share._seconds(torch.zeros(3), torch.zeros(3).as_subclass(Counted)) == 3.0
    assert Counted.n_copies == 8
    times = iter([4.0, 2.0, 3.0, 5.0, 0.1])
    monkeypatch.setattr(share, "_seconds", lambda source, target: next(times) if len(source) == 100 else 0.0)
    # read and written: twice the bytes
    assert share.copy_rate("cpu", 100) == 2 * 8 * 100 / 2.0
    assert next(times) == 0.1
