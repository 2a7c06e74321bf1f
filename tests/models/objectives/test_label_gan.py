"""Restricted labelling: its losses beside slow ones, what is told of which factor, and what is refused."""

import math
from dataclasses import replace

import pytest
import torch

from unweave.data.micro import Micro
from unweave.models.autoencoder import Architecture
from unweave.models.labels import standardised_labels
from unweave.models.method import Context, new_networks
from unweave.models.networks import MLP, Conv
from unweave.models.objectives import LabelGAN
from unweave.training.experiment import Experiment, Plan
from unweave.training.loop import train
from unweave.training.run import Run

TINY = Conv((3, 4), (4, 4), 6)
MICRO = Architecture((1, 16, 16), 3, TINY, labels=(16, 16, 8))


def given(method, n=5):
    random = torch.Generator().manual_seed(3)
    z, second = (torch.randn(n, 3 + method.nuisances, generator=random) for _ in range(2))
    labels = torch.stack([torch.randint(size, (n,), generator=random).float() for size in MICRO.labels], dim=-1)
    images = torch.rand(n, 1, 16, 16, generator=random)
    order = torch.tensor([[1], [2], [3], [4], [0]])
    return {"images": images, "labels": labels, "z": z, "second_z": second, "others": order}


def softplus(x):
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


def slow_latents(labels, z, known):
    """Row by row and column by column."""
    rows = []
    for row, noise in zip(labels.tolist(), z.tolist()):
        values = list(noise)
        for place, size in enumerate(MICRO.labels):
            if place in known:
                every = range(size)
                mean = sum(every) / size
                values[place] = (row[place] - mean) / math.sqrt(sum((v - mean) ** 2 for v in every) / size)
        rows.append(values)
    return torch.tensor(rows)


@pytest.mark.parametrize(
    ("method", "known"),
    [(LabelGAN(hidden=5), (0, 1, 2)), (LabelGAN((2,), nuisances=2, hidden=5), (2,)), (LabelGAN((0, 2)), (0, 2))],
)
def test_losses_are_those_of_the_formula(method, known):
    batch, networks = given(method), new_networks(method, MICRO, "glorot", 0)
    for network in networks.values():
        network.eval()
    context = Context(networks=networks)
    judge, make, encode = (networks[name] for name in ("discriminator", "generator", "encoder"))
    z, second = (slow_latents(batch["labels"], batch[name], known) for name in ("z", "second_z"))
    told = torch.tensor([1.0 if place in known else 0.0 for place in range(3)]) * z[:, :3]

    made = torch.sigmoid(make(second))
    by_hand = [softplus(-logit) for logit in judge(made, told).tolist()]
    assert method.generator_loss(batch, context)[0]["generator"].item() == pytest.approx(sum(by_hand) / 5, rel=1e-5)

    made = torch.sigmoid(make(z))
    real, false = (judge(images, told).tolist() for images in (batch["images"], made))
    by_hand = [softplus(-logit) for logit in real] + [softplus(logit) for logit in false]
    mean, deviation = encode(made)
    density = torch.distributions.Normal(mean, deviation).log_prob(z[:, :3]).sum(-1).mean()
    terms, code = method.critics_loss(batch, context)
    assert terms["discriminator"].item() == pytest.approx(sum(by_hand) / 10, rel=1e-5)
    assert terms["encoder"].item() == pytest.approx(-density.item(), rel=1e-5)
    assert torch.allclose(code.mean, mean)


def test_labels_are_told_to_discriminator_and_generator_only_where_they_are_known():
    method = LabelGAN((1,), nuisances=1)
    batch, context = given(method), Context(networks=new_networks(method, MICRO, "glorot", 0))
    told = method._told(batch, context)
    assert told[:, [0, 2]].abs().max() == 0
    assert torch.equal(told[:, 1], standardised_labels(batch["labels"], MICRO.labels)[:, 1])
    latents = method._latents(batch["z"], told)
    assert torch.equal(latents[:, [0, 2, 3]], batch["z"][:, [0, 2, 3]])
    assert torch.equal(latents[:, 1], told[:, 1])


def test_the_control_tells_the_labels_of_others():
    own, other = LabelGAN(), LabelGAN(labels="random")
    batch, context = given(own), Context(networks=new_networks(own, MICRO, "glorot", 0))
    assert torch.equal(other._told(batch, context), own._told(batch, context)[[1, 2, 3, 4, 0]])
    assert "others" in other.draws(MICRO)
    assert "others" not in own.draws(MICRO)


def test_standardised_labels_have_mean_zero_and_deviation_one_over_their_values():
    values = torch.arange(8.0)[:, None].expand(8, 2)
    found = standardised_labels(values.clone(), (8, 1))
    assert found[:, 0].mean().item() == pytest.approx(0, abs=1e-6)
    assert found[:, 0].std(correction=0).item() == pytest.approx(1, abs=1e-6)
    assert torch.equal(found[:, 1], values[:, 1])  # one value only: there is nothing to divide by


def test_the_discriminator_has_the_authors_sizes():
    found = LabelGAN().networks(Architecture((1, 64, 64), 5, Conv(), labels=(3, 6, 40, 32, 32)))["discriminator"]
    conv = lambda c_in, c_out: 16 * c_in * c_out + c_out  # noqa: E731
    dense = lambda n_in, n_out: n_in * n_out + n_out  # noqa: E731
    body = conv(1, 32) + conv(32, 32) + conv(32, 64) + conv(64, 64)
    wanted = body + dense(5, 128) + dense(1024 + 128, 128) + dense(128, 128) + 128
    assert sum(p.numel() for p in found.parameters()) == wanted


def test_a_run_decodes_and_encodes(tmp_path):
    small = Experiment(
        Micro(),
        LabelGAN(hidden=6),
        Conv((3, 4, 4), (4, 4, 4), 6),
        latents=3,
        steps=3,
        batch_size=6,
        plan=Plan("cpu", 1),
    )
    run = Run(train(small, tmp_path / "run"))
    assert run.decode(torch.zeros(2, 3)).shape == (2, 1, 32, 32)
    assert run.encode(run.images(4)).mean.shape == (4, 3)
    two = run.sample(5, labels={"x": 3, "y": 9, "size": 7})
    assert torch.equal(two, two[:1].expand(5, -1, -1, -1))  # all labels are told: nothing is left to chance
    wanted = standardised_labels(torch.tensor([[3.0, 9.0, 7.0]]), (16, 16, 8))
    torch.testing.assert_close(two[:1], run.decode(wanted))
    with pytest.raises(ValueError, match="label_gan has no regulariser that could fade in: leave out warmup"):
        replace(small, warmup=5).resolve()


def test_samples_have_the_labels_that_are_known_and_no_others(tmp_path):
    small = Experiment(
        Micro(),
        LabelGAN((2,), hidden=6),
        Conv((3, 4, 4), (4, 4, 4), 6),
        latents=3,
        steps=2,
        batch_size=4,
        plan=Plan("cpu", 1),
    )
    run = Run(train(small, tmp_path / "run"))
    mean, log_variance = run.model.prior_of(torch.tensor([[3.0, 9.0, 7.0]]))
    assert mean[0, :2].tolist() == [0.0, 0.0]
    assert mean[0, 2].item() == pytest.approx(3.5 / math.sqrt(63 / 12))
    assert log_variance.exp().tolist() == [[1.0, 1.0, 0.0]]
    drawn = run.sample(3, labels={"size": 7})
    assert torch.isfinite(drawn).all()
    assert not torch.equal(drawn[0], drawn[1])
    with pytest.raises(ValueError, match=r"unknown label 'x'. Known: size"):
        run.sample(3, labels={"x": 7})


def test_bad_settings_are_answered_in_one_sentence():
    with pytest.raises(ValueError, match="there are 3 factors: set latents to 3, not 10"):
        LabelGAN().networks(replace(MICRO, latents=10))
    with pytest.raises(ValueError, match="label_gan makes images by convolutions: take the network conv, not mlp"):
        LabelGAN().networks(replace(MICRO, network=MLP()))
    with pytest.raises(ValueError, match=r"objective.known names factor 3, and there are 3: 0 to 2"):
        LabelGAN((0, 3)).networks(MICRO)
    with pytest.raises(ValueError, match=r"label 2 of 3 is a continuous number"):
        LabelGAN().networks(replace(MICRO, labels=(16, 0, 8)))
