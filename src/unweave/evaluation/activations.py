"""What every layer of a model answers to the same examples, in the order in which the layers are passed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from unweave import rng
from unweave.metrics.polarised.types import Type, variable_types
from unweave.models import Model
from unweave.models.posteriors import Code, Deterministic
from unweave.shapes import Float, Tensor
from unweave.training.run import Run, joined


@dataclass(frozen=True)
class Activations:
    """One table sample × feature a layer, with its name; those from ``n_encoder`` on belong to the decoder.

    The input, the layers of the encoder after their non-linearity, mean, variance and sample of the posterior, the
    layers of the decoder, and its raw output. A deterministic autoencoder has neither variance nor sample. ``prior`` is
    the mean and the variance of a learned one.
    """

    names: tuple[str, ...]
    layers: tuple[Float[Tensor, "sample _"], ...]
    n_encoder: int
    prior: tuple[Float[Tensor, "sample latent"], Float[Tensor, "sample latent"]] | None = None

    def __getitem__(self, name: str) -> Float[Tensor, "sample _"]:
        return self.layers[self.names.index(name)]

    def types(self) -> list[Type]:
        """Active, mixed or passive, latent by latent."""
        mean = self["mean"].double()
        variance = self["variance"].double() if "variance" in self.names else torch.zeros_like(mean)
        mean_of_prior, variance_of_prior = self.prior or (None, None)
        return variable_types(mean, variance, prior_mean=mean_of_prior, prior_variance=variance_of_prior)


def own_noise(run: Run, weights: str, seed: int) -> int:
    """The seed of a model's own noise: codes that are mostly noise would otherwise look alike in every two models.

    Equal weights draw equal noise.
    """
    return noise_of(run.files.sums()[weights], seed)


def noise_of(checksum: str, seed: int) -> int:
    """The same by the SHA-256 of the weights' file."""
    return rng.derive(seed, rng.Purpose.RESAMPLE, int(checksum[:10], 16))


@torch.no_grad()
def activations(
    model: Model,
    images: Float[Tensor, "sample ..."],
    labels: Float[Tensor, "sample label"] | None = None,
    *,
    seed: int = 0,
    batch_size: int = 256,
) -> Activations:
    """Activations of all layers for some images, and their labels where the model reads some.

    Equal seeds give equal samples.
    """
    device = next(model.parameters()).device
    told = (images,) if labels is None else (images, labels)
    batches = enumerate(zip(*(part.split(batch_size) for part in told)))
    parts = [_one_batch(model, [part.to(device) for part in batch], seed, place) for place, batch in batches]
    names, n_encoder, code = parts[0][0], parts[0][2], joined([part[3] for part in parts])
    layers = tuple(torch.cat([part[1][place] for part in parts]) for place in range(len(names)))
    if code.prior_mean is None or code.prior_variance is None:
        return Activations(names, layers, n_encoder)
    return Activations(names, layers, n_encoder, (code.prior_mean, code.prior_variance))


def _one_batch(
    model: Model, batch: Sequence[Tensor], seed: int, place: int
) -> tuple[tuple[str, ...], list[Tensor], int, Code]:
    images, *labels = batch
    noise = rng.normal(seed, rng.Purpose.EVALUATE, place, len(images), model.architecture.latents)
    given, code = inputs_of_layers(model.encoder, lambda: model.code(images, noise.to(images.device), *labels))
    # a layer's output is what the next one is given; after the trunk's layers come the heads
    n_layers = len(_layers(model.encoder.trunk))
    hidden = given[1 : n_layers + 1] if n_layers else []
    posterior = {"mean": code.mean, "variance": code.variance, "sampled": code.sampled}
    if isinstance(model.architecture.posterior, Deterministic):
        posterior = {"mean": code.mean}
    encoder = {"input": images} | {f"encoder {n}": x for n, x in enumerate(hidden, start=1)} | posterior
    named = encoder | _decoder_layers(model, code.sampled)
    return tuple(named), [layer.flatten(1) for layer in named.values()], len(encoder), code


def _decoder_layers(model: Model, codes: Float[Tensor, "sample latent"]) -> dict[str, Tensor]:
    """None for a model without a decoder."""
    if not hasattr(model, "decoder"):
        return {}
    inner, output = inputs_of_layers(model.decoder, lambda: model.decoder(codes))
    return {f"decoder {n}": x for n, x in enumerate(inner[1:], start=1)} | {"output": output}


def inputs_of_layers(part: nn.Module, run: Any) -> tuple[list[Tensor], Any]:
    """What the layers of a part were given, in order, and what ``run`` returned.

    The input of a layer is the output of the one before it with its non-linearity, whatever that was.
    """
    inputs: list[Tensor] = []
    hooks = [leaf.register_forward_pre_hook(lambda _, given: inputs.append(given[0])) for leaf in _layers(part)]
    try:
        returned = run()
    finally:
        for hook in hooks:
            hook.remove()
    return inputs, returned


def _layers(part: nn.Module) -> list[nn.Module]:
    return [module for module in part.modules() if list(module.parameters(recurse=False))]
