"""Linear iVAEs that are trained meet their closed forms (Bonheme, 2023, §5.2)."""

from pathlib import Path

import pytest
import torch

from unweave.data.ivae_toy import IVAEToy
from unweave.data.world import Data
from unweave.metrics.polarised.types import variable_types
from unweave.models.closed_form_ivae import ivae_loss, ivae_posterior, ivae_prior
from unweave.models.likelihoods import Gaussian
from unweave.models.networks import Linear
from unweave.models.objectives import IVAE
from unweave.models.optimisers import Adam
from unweave.shapes import Tensor
from unweave.training.alone import Alone
from unweave.training.checkpoint import model_with
from unweave.training.experiment import Experiment, Plan, form_of

NOISE = 0.1
SPREADS = torch.tensor([[2.0, 1.0], [0.8, 1.6], [1.2, 0.5]])
"""Of two sources in three segments."""


@pytest.fixture(scope="module")
def data() -> Data:
    """Points x = W s + noise with orthogonal columns W, and nothing in the direction of a third latent."""
    generator = torch.Generator().manual_seed(0)
    basis = torch.linalg.qr(torch.randn(5, 5, generator=generator)).Q[:, :2]
    segments = torch.arange(6000) // 2000
    sources = torch.randn(6000, 2, generator=generator) * SPREADS[segments]
    points = sources @ basis.T + NOISE**0.5 * torch.randn(6000, 5, generator=generator)
    return Data(points, shape=(5,), packing="floats", labels=sources, label_names=("s1", "s2"), segments=segments)


@pytest.fixture(scope="module")
def trained(data: Data) -> tuple[torch.nn.Module, float]:
    """A linear model whose prior is a table of log-variances, one row a segment, and its mean loss at the end."""
    experiment = Experiment(
        IVAEToy(), IVAE(prior_widths=()), Linear(), Gaussian(NOISE), Adam(3e-3), latents=3, batch_size=600,
        steps=3000, plan=Plan("cpu", 1),
    )  # fmt: skip
    engine, losses = Alone(experiment, data), []
    for step in range(3000):
        if step == 2400:
            engine.experiment = Experiment(**(vars(experiment) | {"optimiser": Adam(3e-4)}))
        engine.advance(step, record=False)
        losses.append(engine.last_terms["loss"].item())
    form = form_of(experiment.objective, data)
    model = model_with(
        experiment.objective, experiment.architecture(form.shape, form.labels), engine.weights(0), Path("model")
    )
    return model, sum(losses[-300:]) / 300


def of_segment(model: torch.nn.Module, data: Data, segment: int) -> tuple[Tensor, Tensor]:
    rows = (data.segments == segment).nonzero()[:, 0]
    return data.store[rows], data.given(rows).float()


def in_use(model: torch.nn.Module) -> Tensor:
    """The two latents that explain most of the data, Σ†_j ‖w_j‖²; the third explains next to nothing."""
    with torch.no_grad():
        prior = model.prior_of(torch.tensor([[0.0], [1.0], [2.0]]))[1].exp().mean(0)
        explained = prior * model.decoder.output.weight.square().sum(0)
    assert float(explained.min()) < 0.02 * float(explained.median())
    return explained > explained.min()


@pytest.mark.parametrize("segment", [0, 1, 2])
def test_posteriors_are_the_closed_form_s(trained: tuple[torch.nn.Module, float], data: Data, segment: int) -> None:
    """Equations 5.7 and 5.9, with the decoder and the prior that were learned."""
    model, _ = trained
    points, labels = of_segment(model, data, segment)
    with torch.no_grad():
        code = model.encode(points, labels)
        weight, bias = model.decoder.output.weight, model.decoder.output.bias
        encoder, _, covariance = ivae_posterior(weight, NOISE, code.prior_variance[0])
        expected = (points - bias) @ encoder.T
    used = in_use(model)
    error = (code.mean - expected)[:, used].square().mean() / expected[:, used].square().mean()
    assert float(error) < 2e-3
    spread = torch.diagonal(covariance)[used]
    assert float((code.variance[:, used].mean(0) / spread).log().abs().max()) < 0.1


@pytest.mark.parametrize("segment", [0, 1, 2])
def test_priors_are_the_closed_form_s(trained: tuple[torch.nn.Module, float], data: Data, segment: int) -> None:
    """Σ†_j = (c_j − γ)₊ / ‖w_j‖², for the columns that are in use; they have become orthogonal."""
    model, _ = trained
    points, labels = of_segment(model, data, segment)
    weight, bias = model.decoder.output.weight.detach(), model.decoder.output.bias.detach()
    used = in_use(model)
    columns = weight[:, used]
    cosine = columns[:, 0] @ columns[:, 1] / columns.norm(dim=0).prod()
    assert abs(float(cosine)) < 0.05
    centred = points - bias
    turned = torch.linalg.qr(columns.double()).Q * columns.norm(dim=0).double()
    expected = ivae_prior(turned, (centred.T @ centred / len(points)).double(), NOISE)
    with torch.no_grad():
        found = model.prior_of(labels[:1])[1].exp()[0, used].double()
    assert float((found / expected).log().abs().max()) < 0.15


def test_the_loss_is_the_closed_form_s(trained: tuple[torch.nn.Module, float], data: Data) -> None:
    """Averaged over segments, at the learned decoder and prior: nothing is left to gain in the encoder."""
    model, loss = trained
    weight, bias = model.decoder.output.weight.detach().double(), model.decoder.output.bias.detach().double()
    total = 0.0
    for segment in range(3):
        points, labels = of_segment(model, data, segment)
        centred = points.double() - bias
        with torch.no_grad():
            prior = model.prior_of(labels[:1])[1].exp()[0].double()
        total += ivae_loss(weight, centred.T @ centred / len(points), NOISE, prior).item() / 3
    assert loss == pytest.approx(total, abs=0.05)


def test_the_third_latent_is_passive(trained: tuple[torch.nn.Module, float], data: Data) -> None:
    """Proposition 5.2.2: it keeps its prior, whatever that is; the others are active."""
    model, _ = trained
    with torch.no_grad():
        code = model.encode(data.store, data.given(torch.arange(6000)).float())
    used = in_use(model)
    types = variable_types(code.mean, code.variance, prior_mean=code.prior_mean, prior_variance=code.prior_variance)
    assert [kind == "passive" for kind in types] == [not one for one in used.tolist()]
    assert float(code.kl[:, ~used].mean()) < 0.05


def test_latents_are_the_sources(trained: tuple[torch.nn.Module, float], data: Data) -> None:
    """What a VAE with a fixed prior cannot promise: the right rotation, up to order and scale."""
    model, _ = trained
    with torch.no_grad():
        mean = model.encode(data.store, data.given(torch.arange(6000)).float()).mean
    used = in_use(model)
    both = torch.corrcoef(torch.cat([mean[:, used], data.labels], dim=1).T)[:2, 2:].abs()
    assert max(float(both[0, 0] + both[1, 1]), float(both[0, 1] + both[1, 0])) / 2 > 0.97
