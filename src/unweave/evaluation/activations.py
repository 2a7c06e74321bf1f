"""What every layer of a model answers to the same examples, in the order in which the layers are passed."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from unweave import rng
from unweave.models import Autoencoder
from unweave.models.posteriors import Deterministic
from unweave.shapes import Float, Tensor


@dataclass(frozen=True)
class Activations:
    """One table sample × feature a layer, with its name; those from ``n_encoder`` on belong to the decoder.

    The input, the layers of the encoder after their non-linearity, mean, variance and sample of the posterior, the
    layers of the decoder, and its raw output. A deterministic autoencoder has neither variance nor sample.
    """

    names: tuple[str, ...]
    layers: tuple[Float[Tensor, "sample _"], ...]
    n_encoder: int


@torch.no_grad()
def activations(
    model: Autoencoder, images: Float[Tensor, "sample ..."], *, seed: int = 0, batch_size: int = 256
) -> Activations:
    """Activations of all layers for some images; equal seeds give equal samples."""
    device = next(model.parameters()).device
    parts = [_one_batch(model, batch.to(device), seed, place) for place, batch in enumerate(images.split(batch_size))]
    names, n_encoder = parts[0][0], parts[0][2]
    layers = tuple(torch.cat([part[1][place] for part in parts]) for place in range(len(names)))
    return Activations(names, layers, n_encoder)


def _one_batch(model: Autoencoder, images: Tensor, seed: int, place: int) -> tuple[tuple[str, ...], list[Tensor], int]:
    noise = rng.normal(seed, rng.Purpose.EVALUATE, place, len(images), model.architecture.latents)
    before, code = inputs_of_layers(model.encoder.trunk, lambda: model.code(images, noise.to(images.device)))
    with_heads, _ = inputs_of_layers(model.encoder.heads, lambda: model.encoder(images))
    # what the heads are given is the output of the trunk's last layer
    hidden = [*before[1:], with_heads[0]] if before else []
    posterior = {"mean": code.mean, "variance": code.variance, "sampled": code.sampled}
    if isinstance(model.architecture.posterior, Deterministic):
        posterior = {"mean": code.mean}
    encoder = {"input": images} | {f"encoder {n}": x for n, x in enumerate(hidden, start=1)} | posterior
    named = encoder | _decoder_layers(model, code.sampled)
    return tuple(named), [layer.flatten(1) for layer in named.values()], len(encoder)


def _decoder_layers(model: Autoencoder, codes: Float[Tensor, "sample latent"]) -> dict[str, Tensor]:
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
    leaves = [module for module in part.modules() if list(module.parameters(recurse=False))]
    hooks = [leaf.register_forward_pre_hook(lambda _, given: inputs.append(given[0])) for leaf in leaves]
    try:
        returned = run()
    finally:
        for hook in hooks:
            hook.remove()
    return inputs, returned
