"""Stacks of convolutional VAEs on GPU kernels: encoder, decoder and Bernoulli loss for all models in one launch each.

Only the networks are written out here, and the usual posterior (`unweave.models.kernels.posterior`). Objective and
every other likelihood are the single-model code, mapped over the stack, and PyTorch differentiates them; the two meet
at the code and the reconstruction losses.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial

import torch
from torch import nn

from unweave.models.autoencoder import Autoencoder
from unweave.models.kernels.aside import Later, aside, in_turn
from unweave.models.kernels.chosen import Chosen
from unweave.models.kernels.code_stack import CodeStack, code_stack
from unweave.models.kernels.convolutions import PRECISIONS, Join, Precision
from unweave.models.kernels.decoder import (
    in_rows,
    inner_images,
    inner_images_backward,
    outputs_by_channel,
    sum_pixels,
)
from unweave.models.kernels.dense import Affine, dense_forward, dense_input_gradient, dense_weight_gradient
from unweave.models.kernels.encoder import bias_of, covers, encoded_images, encoded_images_backward, join_of
from unweave.models.kernels.first import ready, ready_chosen
from unweave.models.kernels.last import last_backward, last_forward
from unweave.models.kernels.layout import Layout, layout_of
from unweave.models.kernels.pixels import BITS, BYTES, FLOATS, MASKS, Frame, pitch
from unweave.models.kernels.posterior import coded, stacked_code
from unweave.models.kernels.stacked_code import Early, Losses, StackedCode
from unweave.models.kernels.sums import add_up
from unweave.models.layers import Convolution
from unweave.models.likelihoods import Bernoulli
from unweave.models.networks.conv import ConvDecoder, ConvTrunk
from unweave.models.objectives.factor_vae import CodeDiscriminator
from unweave.shapes import Float, Shaped, Tensor


@dataclass(frozen=True)
class ConvStack:
    """The engine: gradients of every model's loss. ``layout`` keeps weights as the kernels read them."""

    template: Autoencoder
    layout: Layout
    precision: Precision
    convolutions: tuple[Join, ...]
    trunk: Affine
    heads: dict[str, Affine]
    dense: Affine
    spread: Affine
    deconvolutions: tuple[Join, ...]
    rows: dict[tuple[int, torch.device], Float[Tensor, "model size"]] = field(default_factory=dict)
    name: str = "kernels"

    @property
    def reads_stored(self) -> bool:
        """Bits and bytes go straight into the kernels; other likelihoods than Bernoulli's want numbers."""
        return self._fused

    @property
    def gathers(self) -> bool:
        """What is stored may come as places in a store."""
        return self._fused

    def gradients(
        self, parameters: Float[Tensor, "model size"], weights: Float[Tensor, "model size"],
        examples: Shaped[Tensor, "model batch ..."] | Chosen, noise: Float[Tensor, "model batch latent"],
        losses: Losses, early: Early | None = None,
    ) -> tuple[Float[Tensor, "model size"], StackedCode]:  # fmt: skip
        """The gradient of every model's loss, and the codes it was computed from."""
        gradients, side = self._row(parameters), aside(len(parameters), parameters.device)
        later = side or in_turn
        seen, shown = self._ready(examples)
        layers, heads = self._encode(weights, *seen)
        code = coded(self.template.architecture.posterior, heads, noise, self.precision.stored)
        kept, reconstructions, leaves = self._decode(weights, parameters, *shown, code.z)
        by_code, by_leaves = code.slopes(losses, reconstructions, leaves)
        by_sampled = self._decode_backward(weights, kept, by_leaves, gradients, later)
        by_heads = code.backward(by_code, by_sampled, self.precision.stored)
        if early is not None and side is not None:
            settled = partial(side.after_all, early.columns, gradients, self._last_settled)
        else:
            settled = None
        self._encode_backward(weights, *seen, layers, by_heads, gradients, later, settled)
        if side is not None:
            side.join()
        return gradients, code.code.detach()

    @torch.no_grad()
    def code(
        self, weights: Float[Tensor, "model size"], examples: Shaped[Tensor, "model batch ..."] | Chosen,
        noise: Float[Tensor, "model batch latent"],
    ) -> StackedCode:  # fmt: skip
        """The codes of some models (rows of the stack) for a batch each."""
        _, heads = self._encode(weights, *self._ready(examples)[0])
        return stacked_code(self.template.architecture.posterior, heads, noise)

    def weights(self, parameters: Float[Tensor, "model size"]) -> Float[Tensor, "model size"]:
        """What the kernels read: the parameters, rounded to what is stored between layers."""
        return parameters.to(self.precision.stored)

    def network(self, module: nn.Module) -> CodeStack | None:
        """Kernels for FactorVAE's discriminators; others are mapped."""
        return code_stack(module, self.precision) if isinstance(module, CodeDiscriminator) else None

    def _encode(self, weights: Tensor, frame: Frame, examples: Tensor) -> tuple[list[Tensor], dict[str, Tensor]]:
        stored, product = self.precision.stored, self.precision.product
        layers = encoded_images(self.convolutions, self.precision, weights, frame, examples)
        features = dense_forward(self.trunk, layers[-1].flatten(2), weights, product, activate=True, dtype=stored)
        heads = {
            name: dense_forward(head, features, weights, product, activate=False, dtype=torch.float32)
            for name, head in self.heads.items()
        }
        return [*layers, features], heads

    def _encode_backward(
        self, weights: Tensor, frame: Frame, examples: Tensor, layers: list[Tensor], slopes: dict[str, Tensor],
        gradients: Tensor, later: Later, settled: Callable[[], None] | None,
    ) -> None:  # fmt: skip
        stored, product = self.precision.stored, self.precision.product
        *images, features = layers
        so_far, last = None, list(self.heads)[-1]
        for name, head in self.heads.items():
            slope = slopes[name]
            later(dense_weight_gradient, head, slope, features, gradients, product)
            dtype, like = (stored, features) if name == last else (torch.float32, None)
            so_far = dense_input_gradient(head, slope, weights, product, dtype=dtype, like=like, add=so_far)
        assert so_far is not None
        flat = images[-1].flatten(2)
        later(dense_weight_gradient, self.trunk, so_far, flat, gradients, product)
        slope = dense_input_gradient(self.trunk, so_far, weights, product, dtype=stored, like=flat).view_as(images[-1])
        encoded_images_backward(
            self.convolutions, self.precision, weights, frame, examples, images, slope, gradients, later, settled
        )  # fmt: skip

    def _decode(
        self, weights: Tensor, parameters: Tensor, frame: Frame, examples: Tensor, code: Tensor
    ) -> tuple[list[Tensor], Tensor, dict[str, Tensor]]:
        """Kept activations, the reconstruction losses, and the leaves by which those are differentiated."""
        stored, product = self.precision.stored, self.precision.product
        hidden = dense_forward(self.dense, code, weights, product, activate=True, dtype=stored)
        wide = dense_forward(self.spread, hidden, weights, product, activate=True, dtype=stored)
        first = self.deconvolutions[0]
        *inner, last = self.deconvolutions
        images = inner_images(inner, wide.unflatten(2, (first.height, first.width, first.n_small)), weights, product)
        fused = self._fused
        loss, pixels, sums = last_forward(last, frame, examples if fused else None, images[-1], weights, product)
        kept = [code, hidden, *images, pixels, sums]
        if fused:
            return kept, loss.requires_grad_(), {"loss": loss}
        return kept, *self._likelihood(parameters, examples, pixels.requires_grad_())

    def _likelihood(self, parameters: Tensor, examples: Tensor, pixels: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        frame, likelihood = self._frame(examples), self.template.architecture.likelihood
        leaves = {"pixels": pixels}
        outputs = in_rows(pixels, frame.channels)
        cropped = outputs[..., frame.top : frame.top + frame.height, frame.left : frame.left + frame.width]
        if likelihood.learns_noise:
            leaves["log_noise"] = self.layout.views(parameters)["log_noise"].detach().requires_grad_()
        if "log_noise" in leaves:
            return torch.vmap(likelihood.loss)(examples, cropped, leaves["log_noise"]), leaves
        return torch.vmap(likelihood.loss)(examples, cropped), leaves

    def _decode_backward(
        self, weights: Tensor, kept: list[Tensor], slopes: dict[str, Tensor], gradients: Tensor, later: Later
    ) -> Tensor:
        stored, product = self.precision.stored, self.precision.product
        code, hidden, *images, pixels, sums = kept
        *inner, last = self.deconvolutions
        if "log_noise" in slopes:
            self.layout.views(gradients)["log_noise"].copy_(slopes["log_noise"])
        bias = bias_of(gradients, last, last.n_big)
        if "pixels" in slopes:
            later(sum_pixels, slopes["pixels"], bias)
            pixels = slopes["pixels"].to(stored)
        else:
            later(_sum_parts, sums[..., : 4 * pitch(last.n_big)], slopes.get("loss"), last.n_big, bias)
        below = inner[-1]
        slope = last_backward(
            last, last.n_big, pixels, slopes.get("loss"), images[-1], weights, gradients, product,
            bias_gradient=bias_of(gradients, below, below.n_big), later=later,
        )  # fmt: skip
        flat = inner_images_backward(inner, images, slope, weights, gradients, product, later).flatten(2)
        later(dense_weight_gradient, self.spread, flat, hidden, gradients, product)
        flat = dense_input_gradient(self.spread, flat, weights, product, dtype=stored, like=hidden)
        later(dense_weight_gradient, self.dense, flat, code, gradients, product)
        return dense_input_gradient(self.dense, flat, weights, product, dtype=torch.float32)

    @cached_property
    def _last_settled(self) -> int:
        """Where the gradients begin that are there before those of the first two convolutions are made."""
        first, offsets = ("encoder.trunk.convolutions.0.", "encoder.trunk.convolutions.1."), self.layout.offsets
        begin = min(offset for name, offset in offsets.items() if not name.startswith(first))
        assert all(offset < begin for name, offset in offsets.items() if name.startswith(first))
        return begin

    def _ready(self, examples: Tensor | Chosen) -> tuple[tuple[Frame, Tensor], tuple[Frame, Tensor]]:
        """Examples as the first convolution reads them, and as the last one does."""
        frame, first, stored = self._frame(examples), self.convolutions[0], self.precision.stored
        if isinstance(examples, Chosen):
            return ready_chosen(first, frame, examples, stored)
        examples = examples.contiguous()
        seen = ready(first, frame, examples, stored)
        return seen, seen if seen[0].packing == MASKS else (frame, examples)

    @property
    def _fused(self) -> bool:
        likelihood = self.template.architecture.likelihood
        return isinstance(likelihood, Bernoulli) and likelihood == Bernoulli()

    def _frame(self, examples: Tensor | Chosen) -> Frame:
        examples = examples.store[None] if isinstance(examples, Chosen) else examples
        trunk, shape = self.template.encoder.trunk, self.template.architecture.shape
        assert isinstance(trunk, ConvTrunk)
        left, _, top, _ = trunk.margin
        packing = FLOATS if examples.is_floating_point() else (BITS if examples.dim() == 3 else BYTES)
        return Frame(packing, shape[0], shape[1], shape[2], top, left)

    def _row(self, parameters: Tensor) -> Tensor:
        """Where gradients are written: kept between steps, so that the padding between parameters stays 0."""
        key = (len(parameters), parameters.device)
        if key not in self.rows:
            self.rows[key] = torch.zeros_like(parameters)
        return self.rows[key]


def conv_stack(template: Autoencoder, precision: str) -> ConvStack:
    """The engine for models of this structure; ValueError says what the kernels do not cover."""
    trunk, decoder = template.encoder.trunk, template.decoder
    if not isinstance(trunk, ConvTrunk) or not isinstance(decoder, ConvDecoder):
        raise ValueError("the kernels are for the convolutional networks")
    inner = [convolution.bias.numel() for convolution in trunk.convolutions if isinstance(convolution, Convolution)]
    if refused := covers(inner, template.architecture.shape[0]):
        raise ValueError(refused)
    layout = layout_of(template, kernels=True)
    heights, n_layers = decoder.coarse[1:], len(inner)
    sizes = [(heights[0] << (n_layers - 1 - i), heights[1] << (n_layers - 1 - i)) for i in range(n_layers)]
    return ConvStack(
        template,
        layout,
        PRECISIONS[precision],
        tuple(join_of(layout, f"encoder.trunk.convolutions.{i}", size) for i, size in enumerate(sizes)),
        affine_of(layout, "encoder.trunk.dense"),
        {name: affine_of(layout, f"encoder.heads.{name}") for name in template.encoder.heads},
        affine_of(layout, "decoder.dense"),
        affine_of(layout, "decoder.spread"),
        tuple(join_of(layout, f"decoder.deconvolutions.{i}", size) for i, size in enumerate(reversed(sizes))),
    )


def _sum_parts(parts: Float[Tensor, "model batch 4*pitch"], scale: Tensor | None, n_channels: int, out: Tensor) -> None:
    """The sum over a batch of the slopes by outputs."""
    add_up(outputs_by_channel(parts if scale is None else parts * scale[..., None], n_channels), out)


def affine_of(layout: Layout, name: str) -> Affine:
    """A dense layer's sizes and places."""
    n_outputs, n_inputs = layout.shapes[layout.names.index(f"{name}.weight")]
    return Affine(n_inputs, n_outputs, layout.offsets[f"{name}.weight"], layout.offsets[f"{name}.bias"])
