"""SlowVAE and the VAEs over pairs: against the original codes' values and gradients, and against slow formulas."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from unweave.data.micro import SPACE, Micro
from unweave.data.pairings import Changes, RandomPairs, Transitions
from unweave.models.method import Context
from unweave.models.networks import MLP
from unweave.models.objectives import GVAE, MLVAE, VAE, AdaGVAE, AdaMLVAE, SlowVAE
from unweave.models.objectives.pair_vae import AVERAGES, changed_latents, shared_code
from unweave.models.objectives.slow_vae import laplace_cross_entropy
from unweave.models.posteriors import Diagonal
from unweave.training.batches import batches
from unweave.training.experiment import Experiment
from unweave.training.loop import train

REFERENCE = Path(__file__).parent.parent / "reference"
SLOW, SLOW_VALUES = np.load(REFERENCE / "weak_slowvae.npz"), json.loads((REFERENCE / "weak_slowvae.json").read_text())
PAIRS, PAIR_VALUES = (
    np.load(REFERENCE / "weak_pairs_dlib.npz"),
    json.loads((REFERENCE / "weak_pairs_dlib.json").read_text()),
)
SLOW_CASES = sorted({name.split("/")[0] for name in SLOW.files})
PAIR_CASES = sorted({name.split("/")[0] for name in PAIRS.files})
CONTEXT = Context()


def halves(array: np.ndarray) -> torch.Tensor:
    """Interleaved frames as ours: all firsts, then all seconds."""
    return torch.as_tensor(np.concatenate([array[::2], array[1::2]]))


def close(ours: torch.Tensor, original: np.ndarray | torch.Tensor) -> None:
    original = torch.as_tensor(original).double()
    torch.testing.assert_close(
        ours.detach().double(), original, rtol=0, atol=1e-5 * max(1e-9, float(original.abs().max()))
    )


@pytest.mark.parametrize("precision", ["f64", "f32"])
@pytest.mark.parametrize("case", SLOW_CASES)
def test_slow_vae_is_the_original(case: str, precision: str) -> None:
    kind = torch.float64 if precision == "f64" else torch.float32
    given = case.partition("(")[0]
    mean, log_variance = (halves(SLOW[f"{given}/{name}"]).to(kind).requires_grad_() for name in ("mean", "logvar"))
    values = SLOW_VALUES[case].get(precision, SLOW_VALUES[case]["f64"])
    objective = SlowVAE(beta=4.0, gamma=2.5, rate=3.0) if "gamma=2.5" in case else SlowVAE()
    code = Diagonal().code({"mean": mean, "log_variance": log_variance}, torch.zeros_like(mean))
    target, logits = (halves(SLOW[f"{given}/{name}"]).to(kind) for name in ("target", "logits"))
    pixels = torch.nn.functional.binary_cross_entropy_with_logits(logits, target, reduction="none")
    terms = objective.totals(code, pixels.flatten(1).sum(1), CONTEXT)
    assert terms["reconstruction"].item() == pytest.approx(values["recon_loss"], rel=1e-5)
    assert terms["kl"].item() == pytest.approx(values["kl_normal"], rel=1e-5, abs=1e-5)
    assert terms["slowness"].item() == pytest.approx(values["kl_laplace"], rel=1e-5, abs=1e-5)
    assert terms["loss"].item() == pytest.approx(values["vae_loss"], rel=1e-5)
    slopes = torch.autograd.grad(terms["loss"], (mean, log_variance))
    for name, slope in zip(("grad_mean", "grad_logvar"), slopes):
        # where single precision loses the original's gradient, the double one is what counts
        close(slope, halves(SLOW[f"{case}/f64/{name}"]))


def test_a_laplace_cross_entropy_is_what_sampling_says() -> None:
    generator = torch.Generator().manual_seed(0)
    for step, deviation, rate in ((0.0, 1.0, 6.0), (0.7, 0.4, 2.0), (3.0, 0.1, 6.0)):
        drawn = step + deviation * torch.randn(400_000, generator=generator, dtype=torch.float64)
        sampled = (rate * drawn.abs() - math.log(rate / 2)).mean()
        ours = laplace_cross_entropy(torch.tensor(step), torch.tensor(deviation), rate)
        assert float(ours) == pytest.approx(float(sampled), abs=0.02)


def test_the_papers_slowness_is_two_divergences() -> None:
    generator = torch.Generator().manual_seed(1)
    heads = {name: torch.randn(8, 3, generator=generator, dtype=torch.float64) for name in ("mean", "log_variance")}
    code = Diagonal().code(heads, torch.zeros(8, 3, dtype=torch.float64))
    paper, study = (SlowVAE(protocol=protocol).terms(code, CONTEXT)["slowness"] for protocol in ("paper", "study"))
    entropy = torch.distributions.Normal(code.mean, code.variance.sqrt()).entropy().sum(-1).mean()
    torch.testing.assert_close(study - paper, entropy)


@pytest.mark.parametrize("method", ["ada_gvae", "ada_mlvae", "gvae_labels", "mlvae_labels"])
@pytest.mark.parametrize("case", PAIR_CASES)
def test_averaged_posteriors_are_the_originals(case: str, method: str) -> None:
    given = {name: torch.as_tensor(PAIRS[f"{case}/in/{name}"]) for name in ("mean_1", "logvar_1", "mean_2", "logvar_2")}
    mean, log_variance = (
        torch.cat([given[f"{name}_1"], given[f"{name}_2"]]).requires_grad_() for name in ("mean", "logvar")
    )
    heads = {"mean": mean, "log_variance": log_variance}
    changed = changed_latents(heads)
    if method.endswith("labels"):
        changed = torch.as_tensor(PAIRS[f"{case}/in/index"]) == torch.arange(6)
    else:
        assert torch.equal(changed, torch.as_tensor(PAIRS[f"{case}/bins"] == 1))
    average = "gvae" if "gvae" in method else "ml_vae"
    means, log_variances = AVERAGES[average](mean.chunk(2), log_variance.chunk(2))
    close(means, PAIRS[f"{case}/{method}/new_mean"])
    close(log_variances, PAIRS[f"{case}/{method}/new_logvar"])
    code = shared_code(heads, torch.zeros_like(mean), changed, average)
    close(code.mean, np.concatenate([PAIRS[f"{case}/{method}/mean_{n}"] for n in (1, 2)]))
    close(code.log_variance, np.concatenate([PAIRS[f"{case}/{method}/logvar_{n}"] for n in (1, 2)]))
    kind = {"ada_gvae": AdaGVAE, "ada_mlvae": AdaMLVAE, "gvae_labels": GVAE, "mlvae_labels": MLVAE}[method]
    regulariser = kind(beta=4.0).terms(code, CONTEXT)["regulariser"]
    assert regulariser.item() == pytest.approx(PAIR_VALUES[case][method]["regularizer"], rel=1e-5, abs=1e-6)
    slopes = torch.autograd.grad(regulariser, (mean, log_variance))
    for name, slope in zip(("mean", "logvar"), slopes):
        close(slope, np.concatenate([PAIRS[f"{case}/{method}/grad_{name}_{n}"] for n in (1, 2)]))


def test_neutral_settings_are_the_vae() -> None:
    generator = torch.Generator().manual_seed(2)
    same = {name: torch.randn(4, 3, generator=generator).repeat(2, 1) for name in ("mean", "log_variance")}
    noise = torch.randn(8, 3, generator=generator)
    plain = Diagonal().code(same, noise)
    elbo = VAE().terms(plain, CONTEXT)["regulariser"]
    torch.testing.assert_close(SlowVAE(gamma=0.0).terms(plain, CONTEXT)["regulariser"], elbo)
    for method in (AdaGVAE(), AdaMLVAE()):
        # two equal images share everything, and an average of equals changes nothing
        code = method.training_posterior.code(same, noise)
        torch.testing.assert_close(code.sampled, plain.sampled)
        torch.testing.assert_close(method.terms(code, CONTEXT)["regulariser"], elbo)


def test_a_batch_holds_firsts_then_partners() -> None:
    data = Micro().load()
    experiment = Experiment(Micro(), GVAE(changes=1), batch_size=32, steps=2).resolve()
    (batch,) = batches(experiment, data, 1, 2)
    assert batch["images"].shape == (64, 1, 32, 32)
    assert batch["noise"].shape == (64, 10)
    rows = (batch["images"][:, None] == data.examples(torch.arange(len(data)))[None]).flatten(2).all(-1).int().argmax(1)
    first, second = data.factors(rows).chunk(2)
    here = torch.arange(3) == batch["group"][:, None]
    assert torch.equal(first[~here], second[~here])
    assert (first[here] != second[here]).float().mean() > 0.7


def test_pairs_come_as_a_method_says() -> None:
    assert SlowVAE().pairing == Transitions(cyclic=False)
    assert SlowVAE(protocol="paper").pairing == Transitions()
    assert SlowVAE(pairs="random").pairing == AdaGVAE(pairs="random").pairing == RandomPairs()
    assert AdaGVAE().pairing == Changes(often_one=True)
    assert AdaGVAE(changes=2).pairing == Changes(2)
    assert len(SPACE.factors) == 3


@pytest.mark.parametrize("log_variance", [-60.0, -150.0, -400.0])
@pytest.mark.parametrize("apart", [0.0, 1e-20, 1e-3, 3.0])
def test_slowness_is_finite_however_sure_the_encoder_is(log_variance: float, apart: float) -> None:
    heads = {"mean": torch.tensor([[0.3], [0.3 + apart]]), "log_variance": torch.full((2, 1), log_variance)}
    leaves = [head.requires_grad_() for head in heads.values()]
    found = SlowVAE().terms(Diagonal().code(heads, torch.zeros(2, 1)), CONTEXT)["slowness"]
    deviation, entropy = math.exp(log_variance / 2), 0.5 * (log_variance + math.log(2 * math.pi * math.e))
    # E|z| is the larger of the step and the noise, where one of them is next to nothing
    folded = max(float((heads["mean"][0] - heads["mean"][1]).detach().abs()), deviation * math.sqrt(2 / math.pi))
    assert found.item() == pytest.approx(2 * (6 * folded - math.log(3)) - entropy, rel=1e-5)
    assert all(torch.isfinite(slope).all() for slope in torch.autograd.grad(found, leaves))


@pytest.mark.parametrize("method", [GVAE(), MLVAE()])
def test_every_factor_has_a_latent_where_it_is_told_which_changed(method: GVAE, tmp_path: Path) -> None:
    few = Experiment(Micro(), method, network=MLP((4,), (4,)), latents=2, steps=1)
    with pytest.raises(ValueError, match=f"{method.name} gives every factor a latent of its own: 3 factors need at le"):
        train(few, tmp_path)
