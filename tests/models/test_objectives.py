"""Objectives: the reference implementation's values, a slow version of every formula, and the traps."""

import json
import math

import numpy as np
import pytest
import torch
from torch.distributions import Independent, MultivariateNormal, Normal, kl_divergence

from unweave.models.likelihoods import Bernoulli, SquaredError
from unweave.models.objectives import OBJECTIVES, Context, Objective
from unweave.models.objectives.annealed_vae import AnnealedVAE
from unweave.models.objectives.beta_tcvae import BetaTCVAE, decompose
from unweave.models.objectives.beta_vae import VAE, BetaVAE
from unweave.models.objectives.dip_vae import DIPVAEI, DIPVAEII
from unweave.models.objectives.factor_vae import FactorVAE
from unweave.models.posteriors import Code, Deterministic, Diagonal, FullCovariance


@pytest.fixture(scope="module")
def losses(reference):
    stored = np.load(reference / "loss_inputs.npz")
    inputs = {name: torch.from_numpy(stored[name]) for name in stored if stored[name].ndim}
    return inputs, int(stored["step"]), json.loads((reference / "loss_outputs.json").read_text())


def reference_code(inputs):
    return Diagonal().code({"mean": inputs["mean"], "log_variance": inputs["logvar"]}, inputs["eps"])


def linear_discriminator(inputs):
    return lambda codes: codes @ inputs["disc_w"] + inputs["disc_b"]


@pytest.mark.parametrize(
    ("key", "objective"),
    [
        ("beta_vae(beta=4)", BetaVAE(4.0)),
        ("annealed_vae(gamma=1000,c_max=25,thr=100000)", AnnealedVAE(1000.0, 25.0, 100_000)),
        ("beta_tc_vae(beta=6)", BetaTCVAE(6.0)),
        ("dip_vae_i(lambda_od=10,d_factor=10)", DIPVAEI(10.0, 10.0)),
        ("dip_vae_ii(lambda_od=10,d_factor=1)", DIPVAEII(10.0, 1.0)),
        ("factor_vae(gamma=10)", FactorVAE(10.0)),
    ],
)
def test_objectives_agree_with_the_reference(losses, key, objective):
    inputs, step, outputs = losses
    terms = objective.terms(
        reference_code(inputs), Context(step, 737_280, networks={"discriminator": linear_discriminator(inputs)})
    )
    reconstruction = Bernoulli().loss(inputs["images"], inputs["logits"]).mean()
    expected = outputs[key]
    assert terms["kl"].item() == pytest.approx(expected["kl_loss"], rel=1e-5)
    assert terms["regulariser"].item() == pytest.approx(expected["regularizer"], rel=1e-5)
    assert reconstruction.item() == pytest.approx(expected["reconstruction_loss"], rel=1e-5)
    assert (reconstruction + terms["regulariser"]).item() == pytest.approx(expected["loss"], rel=1e-5)


@pytest.mark.parametrize(
    ("step", "warmup", "share"), [(7, 0, 1.0), (0, 10, 0.0), (3, 10, 0.3), (10, 10, 1.0), (25, 10, 1.0)]
)
@pytest.mark.parametrize("tensor", [False, True])
def test_the_regulariser_is_added_in_its_share_of_the_warmup(losses, step, warmup, share, tensor):
    inputs, _, _ = losses
    code, each = reference_code(inputs), torch.arange(8.0)
    context = Context(
        torch.tensor(step) if tensor else step, 100, warmup, {"model": lambda images, noise: (code, each)}
    )
    terms, found = BetaVAE(4.0).loss({"images": inputs["images"], "noise": inputs["eps"]}, context)
    kl = (0.5 * (code.mean**2 + code.variance - code.variance.log() - 1)).sum(1).mean().item()
    assert terms["reconstruction"].item() == pytest.approx(3.5)
    assert terms["loss"].item() == pytest.approx(3.5 + share * 4.0 * kl, rel=1e-5)
    assert found is code


@pytest.mark.parametrize(
    ("key", "likelihood"),
    [
        ("beta_vae(beta=4)", Bernoulli()),
        ("beta_vae(beta=4)/bernoulli_minus_entropy", Bernoulli(subtract_entropy=True)),
        ("beta_vae(beta=4)/tanh", Bernoulli("tanh")),
        ("beta_vae(beta=4)/l2", SquaredError("sigmoid")),
        ("beta_vae(beta=4)/l2/tanh", SquaredError("tanh")),
    ],
)
def test_reconstruction_losses_agree_with_the_reference(losses, key, likelihood):
    inputs, _, outputs = losses
    found = likelihood.loss(inputs["images"], inputs["logits"]).mean()
    assert found.item() == pytest.approx(outputs[key]["reconstruction_loss"], rel=1e-5)


def test_the_discriminator_agrees_with_the_reference(losses):
    inputs, _, outputs = losses
    context = Context(networks={"discriminator": linear_discriminator(inputs)}, code=reference_code(inputs))
    terms, _ = FactorVAE(protocol="study").discriminator_loss({"permutation": inputs["perm"]}, context)
    found = terms["discriminator"]
    # the reference reports the quantity that it maximises
    assert found.item() == pytest.approx(-outputs["factor_vae(gamma=10)"]["discriminator_loss"], rel=1e-5)


def random_code(n=12, latents=4, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    mean, log_variance, noise = (torch.randn(n, latents, generator=generator, dtype=dtype) for _ in range(3))
    return Diagonal().code({"mean": mean, "log_variance": 0.3 * log_variance - 1}, noise)


def test_diagonal_kl_is_the_textbook_one():
    code = random_code()
    exact = kl_divergence(Normal(code.mean, code.variance.sqrt()), Normal(0.0, 1.0))
    torch.testing.assert_close(code.kl, exact)


def test_full_covariance_kl_and_samples_are_the_textbook_ones():
    generator = torch.Generator().manual_seed(1)
    sizes = FullCovariance().heads(3)
    assert sizes == {"mean": 3, "log_diagonal": 3, "below": 3}
    heads = {name: torch.randn(6, size, generator=generator, dtype=torch.float64) for name, size in sizes.items()}
    code = FullCovariance().code(heads, torch.zeros(6, 3, dtype=torch.float64))
    factor = torch.diag_embed(heads["log_diagonal"].exp())
    for (row, column), value in zip([(1, 0), (2, 0), (2, 1)], heads["below"].T):
        factor[:, row, column] = value
    posterior = MultivariateNormal(heads["mean"], scale_tril=factor)
    prior = MultivariateNormal(torch.zeros(3, dtype=torch.float64), torch.eye(3, dtype=torch.float64))
    torch.testing.assert_close(code.kl.sum(-1), kl_divergence(posterior, prior))
    torch.testing.assert_close(code.variance, posterior.variance)
    noise = torch.randn(6, 3, generator=generator, dtype=torch.float64)
    moved = FullCovariance().code(heads, noise).sampled - heads["mean"]
    torch.testing.assert_close(moved, (factor @ noise[..., None])[..., 0])


def test_a_deterministic_code_is_its_mean():
    mean = torch.randn(3, 2)
    code = Deterministic().code({"mean": mean}, torch.randn(3, 2))
    assert torch.equal(code.sampled, mean)
    assert float(code.variance.sum()) == float(code.kl.sum()) == 0.0


@pytest.mark.parametrize("second", [False, True])
def test_dip_vae_by_loops(second):
    code = random_code()
    objective = (DIPVAEII if second else DIPVAEI)(3.0, 5.0)
    n, latents = code.mean.shape
    expected = code.kl.sum(-1).mean().item()
    for i in range(latents):
        for j in range(latents):
            products = [float(code.mean[k, i] * code.mean[k, j]) for k in range(n)]
            value = sum(products) / n - float(code.mean[:, i].mean() * code.mean[:, j].mean())
            if second and i == j:
                value += float(code.variance[:, i].mean())
            expected += 3.0 * 5.0 * (value - 1) ** 2 if i == j else 3.0 * value**2
    assert objective.terms(code, Context())["regulariser"].item() == pytest.approx(expected, rel=1e-9)


def test_beta_tcvae_by_loops():
    code = random_code(n=7, latents=3)
    correlation = 0.0
    for i in range(7):
        densities = [
            [float(Normal(code.mean[j, d], code.variance[j, d].sqrt()).log_prob(code.sampled[i, d])) for d in range(3)]
            for j in range(7)
        ]
        joint = math.log(sum(math.exp(sum(row)) for row in densities))
        product = sum(math.log(sum(math.exp(row[d]) for row in densities)) for d in range(3))
        correlation += (joint - product) / 7
    terms = BetaTCVAE(4.0).terms(code, Context(n_examples=100))
    assert terms["total_correlation"].item() == pytest.approx(correlation, rel=1e-9)
    expected = float(code.kl.sum(-1).mean()) + 3.0 * correlation
    assert terms["regulariser"].item() == pytest.approx(expected, rel=1e-9)


def test_beta_tcvae_general_form_weighs_its_three_parts():
    code, context = random_code(), Context(n_examples=500)
    parts = BetaTCVAE(estimator="weighted").terms(code, context)
    found = BetaTCVAE(5.0, 2.0, 3.0, "weighted").terms(code, context)["regulariser"]
    expected = (
        parts["kl"] + parts["mutual_information"] + 4.0 * parts["total_correlation"] + 2.0 * parts["dimensionwise_kl"]
    )
    torch.testing.assert_close(found, expected)


def test_the_three_parts_sum_to_the_sampled_kl():
    code = random_code()
    information, correlation, dimensionwise = decompose(code, "stratified", 300)
    posterior = Independent(Normal(code.mean, code.variance.sqrt()), 1)
    sampled_kl = (posterior.log_prob(code.sampled) - Normal(0, 1).log_prob(code.sampled).sum(-1)).mean()
    torch.testing.assert_close(information + correlation + dimensionwise, sampled_kl)


def mixture(sd, n=1000, latents=10, seed=0):
    generator = torch.Generator().manual_seed(seed)
    mean = torch.randn(n, latents, generator=generator, dtype=torch.float64)
    log_variance = torch.full_like(mean, 2 * math.log(sd))
    noise = torch.randn(n, latents, generator=generator, dtype=torch.float64)
    return Code(mean, log_variance, mean + sd * noise, torch.zeros_like(mean))


def exact_total_correlation(code):
    distance = (code.sampled[:, None] - code.mean[None]).square()
    densities = -0.5 * (distance * torch.exp(-code.log_variance) + code.log_variance + math.log(2 * math.pi))
    n = math.log(len(code.mean))
    joint = torch.logsumexp(densities.sum(-1), 1) - n
    return float((joint - (torch.logsumexp(densities, 1) - n).sum(-1)).mean())


@pytest.mark.parametrize("sd", [0.1, 0.3, 0.7])
def test_estimators_against_the_exact_mixture(sd):
    whole = mixture(sd)
    exact = exact_total_correlation(whole)
    found = {"batch": [], "weighted": [], "stratified": []}
    for begin in range(0, 960, 64):
        rows = slice(begin, begin + 64)
        part = Code(*(getattr(whole, f)[rows] for f in ("mean", "log_variance", "sampled", "kl")))
        for estimator, values in found.items():
            values.append(float(decompose(part, estimator, 1000)[1]))
    mean = {estimator: sum(values) / len(values) for estimator, values in found.items()}
    # stratified sampling is the one that estimates; the others are off by a constant, (d − 1) log NM between them
    assert mean["stratified"] == pytest.approx(exact, abs=2.0)
    assert mean["weighted"] - mean["batch"] == pytest.approx(9 * math.log(1000 * 64), rel=1e-6)
    assert abs(mean["weighted"] - exact) > 60


def test_with_the_whole_data_set_as_batch_stratified_weights_are_exact():
    whole = mixture(0.3, n=200)
    _, correlation, _ = decompose(whole, "stratified", 200)
    assert float(correlation) == pytest.approx(exact_total_correlation(whole), rel=1e-9)


def test_factor_vae_shuffles_every_latent_by_itself():
    codes = torch.arange(8.0)[:, None].repeat(1, 2)
    permutation = torch.stack([torch.arange(8).flip(0), torch.arange(8)], dim=1)
    seen = []

    def spy(given):
        seen.append(given)
        return torch.zeros(len(given), 2)

    context = Context(networks={"discriminator": spy}, code=Code(codes, codes, codes, codes))
    FactorVAE(protocol="study").discriminator_loss({"permutation": permutation}, context)
    assert torch.equal(seen[1][:, 0], codes[:, 0].flip(0))
    assert torch.equal(seen[1][:, 1], codes[:, 1])


def test_factor_vae_by_loops():
    code = random_code()
    weight = torch.randn(4, 2, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    odds = []
    for row in code.sampled:
        first, second = (math.exp(float(row @ column)) for column in weight.T)
        share = first / (first + second)
        odds.append(math.log(share / (1 - share)))
    terms = FactorVAE(7.0).terms(code, Context(networks={"discriminator": lambda codes: codes @ weight}))
    assert terms["total_correlation"].item() == pytest.approx(sum(odds) / len(odds), rel=1e-9)
    expected = float(code.kl.sum(-1).mean()) + 7.0 * sum(odds) / len(odds)
    assert terms["regulariser"].item() == pytest.approx(expected, rel=1e-9)


def test_study_protocol_counts_a_step_twice():
    assert FactorVAE(protocol="study").iterations(300_000) == 150_000
    assert FactorVAE().iterations(300_000) == 300_000
    assert "second_images" in FactorVAE().batch
    assert "second_images" not in FactorVAE(protocol="study").batch


@pytest.mark.parametrize("step", [0, 50, 100, 1000])
def test_annealed_capacity(step):
    terms = AnnealedVAE(10.0, 5.0, 100).terms(random_code(), Context(step))
    assert terms["capacity"].item() == pytest.approx(min(5.0, 5.0 * step / 100))
    assert terms["regulariser"].item() == pytest.approx(10 * abs(terms["kl"].item() - terms["capacity"].item()))


def test_neutral_settings_are_the_elbo():
    zero = {"discriminator": lambda codes: torch.zeros(len(codes), 2, dtype=codes.dtype)}
    code, context = random_code(), Context(0, 100, networks=zero)
    elbo = VAE().terms(code, context)["regulariser"]
    neutral = [BetaVAE(1.0), BetaTCVAE(1.0), DIPVAEI(0.0), DIPVAEII(0.0), FactorVAE(0.0), AnnealedVAE(1.0, 0.0)]
    for objective in neutral:
        torch.testing.assert_close(objective.terms(code, context)["regulariser"], elbo)


@pytest.mark.parametrize("name", [name for name, kind in OBJECTIVES.items() if issubclass(kind, Objective)])
def test_gradients_are_right(name):
    objective = OBJECTIVES[name]()
    sizes, n_told = objective.posterior.heads(3), objective.training_posterior.n_told
    generator = torch.Generator().manual_seed(4)
    heads = [torch.randn(6, n, generator=generator, dtype=torch.float64, requires_grad=True) for n in sizes.values()]
    noise = torch.randn(6, 3 + n_told, generator=generator, dtype=torch.float64)
    weight = torch.randn(3, 2, generator=generator, dtype=torch.float64)

    def loss(*values):
        code = objective.training_posterior.code(dict(zip(sizes, values)), noise)
        terms = objective.terms(code, Context(10, 100, networks={"discriminator": lambda codes: codes.tanh() @ weight}))
        return terms["regulariser"] + code.sampled.square().sum()

    assert torch.autograd.gradcheck(loss, heads)
