"""The weakly supervised GAN: a whole step of the authors' code, value by value and gradient by gradient."""

import json

import numpy as np
import pytest
import torch

from unweave.data.micro import Micro
from unweave.models.autoencoder import Architecture
from unweave.models.layers import fresh_of
from unweave.models.method import Context, new_networks
from unweave.models.networks import MLP, Conv
from unweave.models.networks.gan import NormalEncoder, PairDiscriminator
from unweave.models.objectives.ws_gan import WSGAN, log_density
from unweave.training.experiment import Experiment, Plan
from unweave.training.loop import train
from unweave.training.run import Run

TINY = Conv((3, 4), (4, 4), 6)


@pytest.fixture(scope="module")
def given(reference):
    stored = np.load(reference / "weak_wsgan.npz")
    return {name: torch.from_numpy(stored[name]) for name in stored}


@pytest.fixture(scope="module")
def numbers(reference):
    return json.loads((reference / "weak_wsgan.json").read_text())


class TheirGenerator(torch.nn.Module):
    """The linear one that stood in for the generator when the reference was made."""

    def __init__(self, given):
        super().__init__()
        self.weight = torch.nn.Parameter(given["step/gen/0_Dense/kernel"].clone())
        self.bias = torch.nn.Parameter(given["step/gen/0_Dense/bias"].clone())

    def forward(self, z):
        return (z @ self.weight + self.bias).unflatten(1, (16, 16, 1)).permute(0, 3, 1, 2)


def layers_of(network):
    neck = (
        [*network.neck, network.alone, network.given]
        if isinstance(network, PairDiscriminator)
        else [*network.heads.values()]
    )
    return [*network.trunk.convolutions, network.trunk.dense, *neck]


def kernel(array):
    return array.permute(3, 2, 0, 1) if array.dim() == 4 else array.T


def theirs(given, prefix, place, part):
    """The array of a layer in our layout, or None."""
    (name,) = [name for name in given if name.startswith(f"{prefix}/{place}_") and name.endswith(f"/{part}")] or [None]
    if name is None:
        return None
    array = given[name]
    if part == "kernel":
        return array if (prefix.endswith("dis") and place == 8) else kernel(array)
    if part == "v" and "Conv" in name:
        return array.reshape(4, 4, -1).permute(2, 0, 1).flatten()
    return array[:, 0] if part in ("u", "v") else array


def fill(network, given, prefix):
    with torch.no_grad():
        for place, layer in enumerate(layers_of(network)):
            layer.weight.copy_(theirs(given, prefix, place, "kernel"))
            if getattr(layer, "bias", None) is not None:
                layer.bias.copy_(theirs(given, prefix, place, "bias"))
            if hasattr(layer, "norm"):
                layer.norm.u.copy_(theirs(given, prefix, place, "u"))
                layer.norm.v.copy_(theirs(given, prefix, place, "v"))


def settle(network):
    buffers = dict(network.named_buffers())
    for name, value in fresh_of(network).items():
        buffers[name].copy_(value)


def close(found, wanted, at_most=1e-5):
    assert (found - wanted).abs().max().item() <= at_most * max(1e-12, wanted.abs().max().item())


def halves(given, step):
    """Their latents as one draw of ours, and a word that stands for their group."""
    first, second = given[f"step/{step}/z1"], given[f"step/{step}/z2"]
    words = ((given[f"step/{step}/y"].long() << 32) // 3 + 5)[:, None]
    return torch.cat([first, second], dim=-1), words


@pytest.fixture
def step(given):
    networks = {
        "discriminator": PairDiscriminator((1, 16, 16), 3, (4, 4, 4, 4), 8),
        "encoder": NormalEncoder((1, 16, 16), 3, (4, 4, 4, 4), 8),
        "generator": TheirGenerator(given),
    }
    fill(networks["discriminator"], given, "step/dis")
    fill(networks["encoder"], given, "step/enc")
    images = torch.cat([given["step/x1_real"], given["step/x2_real"]]).permute(0, 3, 1, 2)
    batch = {"images": images, "group": given["step/y_real"].long()}
    batch["z"], batch["z_word"] = halves(given, "dis_enc_step")
    batch["second_z"], batch["second_z_word"] = halves(given, "gen_step")
    return WSGAN(nuisances=1), batch, networks


def test_latents_are_shared_as_theirs(given, step):
    method, batch, _ = step
    for name, part in (("dis_enc_step", ""), ("gen_step", "second_")):
        first, second, group = method._made(batch[f"{part}z"], batch[f"{part}z_word"], 3)
        assert torch.equal(first, given[f"step/{name}/z1"])
        assert torch.equal(second, given[f"step/{name}/z2"])
        assert torch.equal(group.argmax(-1), given[f"step/{name}/y"].long())


def test_a_whole_step_agrees_with_the_reference(given, numbers, step):
    method, batch, networks = step
    context = Context(networks=networks)
    terms, code = method.critics_loss(batch, context)
    assert terms["discriminator"].item() == pytest.approx(numbers["step"]["dis_loss"], rel=1e-5)
    assert terms["encoder"].item() == pytest.approx(numbers["step"]["enc_loss"], rel=1e-5)
    close(code.mean.detach(), given["step/enc_mean"])
    close(code.variance.sqrt().detach(), given["step/enc_stddev"])
    for name, prefix in (("discriminator", "dis"), ("encoder", "enc")):
        for place, layer in enumerate(layers_of(networks[name])):
            for ours, part in (("weight", "kernel"), ("bias", "bias")):
                parameter = getattr(layer, ours, None)
                if parameter is not None:
                    (slope,) = torch.autograd.grad(terms["loss"], [parameter], retain_graph=True)
                    close(slope, theirs(given, f"step/grad/{prefix}", place, part))
    for network in (networks["discriminator"], networks["encoder"]):
        settle(network)
    terms, _ = method.generator_loss(batch, context)
    assert terms["generator"].item() == pytest.approx(numbers["step"]["gen_loss"], rel=1e-5)
    generator = networks["generator"]
    slopes = torch.autograd.grad(terms["generator"], [generator.weight, generator.bias])
    close(slopes[0], given["step/grad/gen/0_Dense/kernel"])
    close(slopes[1], given["step/grad/gen/0_Dense/bias"])


def test_the_encoders_density_agrees_with_the_reference(given):
    found = log_density(given["enc/z"], given["enc/mean"], given["enc/stddev"])
    close(found, given["enc/log_prob"])


@pytest.mark.parametrize(
    ("pairs", "same"), [("share", [False, True, False]), ("change", [True, False, True]), ("random", [False] * 3)]
)
def test_what_generated_pairs_have_in_common(pairs, same):
    z = torch.randn(4, 10, generator=torch.Generator().manual_seed(0))
    first, second, group = WSGAN(pairs=pairs, nuisances=2)._made(z, torch.full((4, 1), 1 << 31), 3)
    assert torch.equal(group, torch.tensor([0.0, 1.0, 0.0]).repeat(4, 1))
    assert ((first == second).all(0)).tolist() == [*same, False, False]


def test_ranks_are_told_of_latents_and_of_factors():
    method = WSGAN(pairs="rank", nuisances=1)
    z = torch.tensor([[1.0, 0.0, 9.0, 0.5, 0.5, 0.0]])
    first, second, greater = method._made(z, torch.zeros(1, 1, dtype=torch.int64), 2)
    assert greater.tolist() == [[1.0, 0.0]]
    assert (first.tolist(), second.tolist()) == ([[1.0, 0.0, 9.0]], [[0.5, 0.5, 0.0]])
    told = method._told({"labels": torch.tensor([[3.0, 1.0], [2.0, 1.0]]), "z": z})
    assert told.tolist() == [[1.0, 0.0]]


@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 10, 6), (1, 64, 64)])
@pytest.mark.parametrize("nuisances", [0, 2])
def test_generators_make_images_of_any_size(shape, nuisances):
    method, architecture = WSGAN(nuisances=nuisances, hidden=5), Architecture(shape, 3, TINY, labels=(2, 2, 2))
    networks = new_networks(method, architecture, "glorot", 0)
    model = method.model(architecture)
    model.load_state_dict({f"{net}.{k}": v for net in method.kept for k, v in networks[net].state_dict().items()})
    pictures = model.eval().decode(torch.randn(4, 3))
    assert pictures.shape == (4, *shape)
    assert pictures.min() >= 0
    assert pictures.max() <= 1
    assert model.decode(torch.randn(4, 3 + nuisances)).shape == (4, *shape)
    assert networks["discriminator"](pictures, pictures, torch.eye(3)[[0, 1, 2, 0]]).shape == (4,)


def test_the_authors_network_has_their_sizes():
    networks = WSGAN().networks(Architecture((1, 64, 64), 5, Conv(), labels=(3, 6, 40, 32, 32)))
    sizes = {name: sum(p.numel() for p in network.parameters()) for name, network in networks.items()}
    # by hand from their networks.py; a batch norm has two numbers a channel
    conv = lambda c_in, c_out: 16 * c_in * c_out + c_out  # noqa: E731
    dense = lambda n_in, n_out: n_in * n_out + n_out  # noqa: E731
    encoder = conv(1, 32) + conv(32, 32) + conv(32, 64) + conv(64, 64) + dense(1024, 128) + dense(128, 10)
    body = conv(1, 64) + conv(64, 64) + conv(64, 128) + conv(128, 128) + dense(2048, 256)
    discriminator = body + dense(512, 256) + dense(256, 256) + 256 + 5 * 256
    generator = dense(5, 128) + dense(128, 1024) + conv(64, 64) + conv(64, 32) + conv(32, 32) + conv(32, 1)
    generator += 2 * (128 + 1024 + 64 + 32 + 32)
    assert sizes == {"encoder": encoder, "generator": generator, "discriminator": discriminator}


def test_bad_settings_are_answered_in_one_sentence():
    with pytest.raises(ValueError, match="there are 5 factors: set latents to 5, not 10"):
        WSGAN().networks(Architecture((1, 64, 64), 10, Conv(), labels=(3, 6, 40, 32, 32)))
    with pytest.raises(ValueError, match="take the network conv, not mlp"):
        WSGAN().networks(Architecture((1, 64, 64), 5, MLP(), labels=(3, 6, 40, 32, 32)))
    with pytest.raises(ValueError, match=r"ws_gan makes images, and these examples have the shape \(4,\): take images"):
        WSGAN().networks(Architecture((4,), 2, Conv(), labels=(3, 6)))
    with pytest.raises(ValueError, match="too small"):
        WSGAN().networks(Architecture((1, 4, 4), 2, Conv(), labels=(3, 6)))


@pytest.mark.parametrize("pairs", ["share", "rank"])
def test_a_trained_encoder_needs_no_labels(pairs, tmp_path):
    small = Experiment(
        Micro(),
        WSGAN(pairs, hidden=6),
        Conv((3, 4, 4), (4, 4, 4), 6),
        latents=3,
        steps=2,
        batch_size=4,
        plan=Plan("cpu", 1),
    )
    run = Run(train(small, tmp_path / "run"))
    assert run.encode(run.images(4)).mean.shape == (4, 3)
    assert run.labels(4) is None
