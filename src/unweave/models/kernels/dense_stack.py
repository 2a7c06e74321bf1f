"""Stacks of fully connected VAEs on GPU kernels: all layers of all models in one launch each, gradients into one row.

As for convolutions only the networks are written out, and the usual posterior; the objective is the single-model code,
mapped over the stack, and PyTorch differentiates it.
"""

# ruff: noqa: N803
# mypy: disable-error-code="no-untyped-def"
from dataclasses import dataclass, field

import torch
import triton
import triton.language as tl
from torch import nn

from unweave.models.autoencoder import Autoencoder
from unweave.models.kernels.code_stack import CodeStack, code_stack
from unweave.models.kernels.conv_stack import affine_of
from unweave.models.kernels.convolutions import PRECISIONS, Precision
from unweave.models.kernels.dense import (
    AdaGradStack,
    AdamStack,
    Affine,
    dense_forward,
    dense_input_gradient,
    dense_update,
    dense_weight_gradient,
)
from unweave.models.kernels.elementwise import kind_of, loss_and_slope, variance_of
from unweave.models.kernels.layout import Layout, layout_of
from unweave.models.kernels.posterior import coded, stacked_code
from unweave.models.kernels.stacked_code import Early, Losses, StackedCode
from unweave.models.networks.mlp import Layers, MLPDecoder
from unweave.models.objectives.factor_vae import CodeDiscriminator
from unweave.shapes import Float, Tensor

Update = AdamStack | AdaGradStack

COLUMNS = 1024
"""Values of an example whose losses one program adds up at a time."""


@dataclass(frozen=True)
class DenseKernels:
    """The engine: gradients of every model's loss."""

    template: Autoencoder
    layout: Layout
    precision: Precision
    trunk: tuple[Affine, ...]
    heads: dict[str, Affine]
    hidden: tuple[Affine, ...]
    output: Affine
    curved: tuple[bool, bool]
    rows: dict[tuple[int, torch.device], Float[Tensor, "model size"]] = field(default_factory=dict)
    name: str = "kernels"
    reads_stored: bool = False
    gathers: bool = False

    def gradients(
        self, parameters: Float[Tensor, "model size"], weights: Float[Tensor, "model size"],
        examples: Float[Tensor, "model batch ..."], noise: Float[Tensor, "model batch latent"], losses: Losses,
        early: Early | None = None,
    ) -> tuple[Float[Tensor, "model size"] | None, StackedCode]:  # fmt: skip
        """The gradient of every model's loss, and the codes it was computed from.

        None where the parameters were updated with ``early``, in the kernels that make their gradients: those are
        never stored then.
        """
        stored = self.precision.stored
        encoded, heads = self._encode(weights, examples)
        code = coded(self.template.architecture.posterior, heads, noise, stored)
        decoded = self._through(self.hidden, self.curved[1], code.z, weights)
        outputs = dense_forward(
            self.output, decoded[-1], weights, self.precision.product, activate=False, dtype=torch.float32
        )
        reconstructions, leaves, slope = self._losses(parameters, examples, outputs)
        by_code, by_leaves = code.slopes(losses, reconstructions, leaves)
        update = early.inside() if early is not None and "log_noise" not in leaves else None
        gradients = self._row(parameters) if update is None else None
        if gradients is not None and "log_noise" in leaves:
            self.layout.views(gradients)["log_noise"].copy_(by_leaves["log_noise"])
        slope = slope * by_leaves["losses"][..., None] if slope is not None else by_leaves["outputs"]
        by_sampled = self._decode_backward(weights, decoded, slope.to(stored), gradients, update)
        by_heads = code.backward(by_code, by_sampled, stored)
        self._encode_backward(weights, encoded, by_heads, gradients, update)
        return gradients, code.code.detach()

    @torch.no_grad()
    def code(
        self, weights: Float[Tensor, "model size"], examples: Float[Tensor, "model batch ..."],
        noise: Float[Tensor, "model batch latent"],
    ) -> StackedCode:  # fmt: skip
        """The codes of some models (rows of the stack) for a batch each."""
        return stacked_code(self.template.architecture.posterior, self._encode(weights, examples)[1], noise)

    def weights(self, parameters: Float[Tensor, "model size"]) -> Float[Tensor, "model size"]:
        """What the kernels read: the parameters, rounded to what is stored between layers."""
        return parameters.to(self.precision.stored)

    def network(self, module: nn.Module) -> CodeStack | None:
        """Kernels for FactorVAE's discriminators; others are mapped."""
        return code_stack(module, self.precision) if isinstance(module, CodeDiscriminator) else None

    def _encode(self, weights: Tensor, examples: Tensor) -> tuple[list[Tensor], dict[str, Tensor]]:
        stored, product = self.precision.stored, self.precision.product
        layers = self._through(self.trunk, self.curved[0], examples.flatten(2).to(stored).contiguous(), weights)
        heads = {
            name: dense_forward(head, layers[-1], weights, product, activate=False, dtype=torch.float32)
            for name, head in self.heads.items()
        }
        return layers, heads

    def _through(self, layers: tuple[Affine, ...], curved: bool, x: Tensor, weights: Tensor) -> list[Tensor]:
        """What goes into the first layer and comes out of every one."""
        seen, stored = [x], self.precision.stored
        for layer in layers:
            seen.append(
                dense_forward(
                    layer, seen[-1], weights, self.precision.product, activate=True, dtype=stored, curved=curved
                )
            )
        return seen

    def _losses(
        self, parameters: Tensor, examples: Tensor, outputs: Tensor
    ) -> tuple[Tensor, dict[str, Tensor], Tensor | None]:
        """The losses of all examples, the leaves by which they are differentiated, and their slopes where known."""
        likelihood = self.template.architecture.likelihood
        kind = kind_of(likelihood)
        if kind is not None:
            losses, slope = _losses(examples.flatten(2), outputs, kind, variance_of(likelihood))
            return losses.requires_grad_(), {"losses": losses}, slope
        leaves, shown = {"outputs": outputs.requires_grad_()}, outputs.view(examples.shape)
        if not likelihood.learns_noise:
            return torch.vmap(likelihood.loss)(examples, shown), leaves, None
        leaves["log_noise"] = self.layout.views(parameters)["log_noise"].detach().requires_grad_()
        return torch.vmap(likelihood.loss)(examples, shown, leaves["log_noise"]), leaves, None

    def _decode_backward(
        self, weights: Tensor, seen: list[Tensor], slope: Tensor, gradients: Tensor | None, update: Update | None
    ) -> Float[Tensor, "model batch latent"]:
        stored, product = self.precision.stored, self.precision.product
        layers = (*self.hidden, self.output)
        for place in range(len(layers) - 1, -1, -1):
            dtype, like = (stored, seen[place]) if place else (torch.float32, None)
            below = dense_input_gradient(
                layers[place], slope, weights, product, dtype=dtype, like=like, curved=self.curved[1]
            )
            _learn(layers[place], slope, seen[place], gradients, update, product)
            slope = below
        return slope

    def _encode_backward(
        self,
        weights: Tensor,
        seen: list[Tensor],
        slopes: dict[str, Tensor],
        gradients: Tensor | None,
        update: Update | None,
    ) -> None:
        stored, product = self.precision.stored, self.precision.product
        so_far, last, features = None, list(self.heads)[-1], seen[-1]
        for name, head in self.heads.items():
            slope = slopes[name]
            if self.trunk:
                dtype, like = (stored, features) if name == last else (torch.float32, None)
                so_far = dense_input_gradient(
                    head, slope, weights, product, dtype=dtype, like=like, add=so_far, curved=self.curved[0]
                )
            _learn(head, slope, features, gradients, update, product)
        for place in range(len(self.trunk) - 1, -1, -1):
            assert so_far is not None
            layer, slope = self.trunk[place], so_far
            if place:
                so_far = dense_input_gradient(
                    layer, slope, weights, product, dtype=stored, like=seen[place], curved=self.curved[0]
                )
            _learn(layer, slope, seen[place], gradients, update, product)

    def _row(self, parameters: Tensor) -> Tensor:
        """Where gradients are written: kept between steps, so that the padding between parameters stays 0."""
        key = (len(parameters), parameters.device)
        if key not in self.rows:
            self.rows[key] = torch.zeros_like(parameters)
        return self.rows[key]


def dense_kernels(template: Autoencoder, precision: str) -> DenseKernels:
    """The engine for models of this structure; ValueError says what the kernels do not cover."""
    trunk, decoder = template.encoder.trunk, template.decoder
    if not isinstance(trunk, Layers) or not isinstance(decoder, MLPDecoder):
        raise ValueError("the kernels are for fully connected networks")
    layout = layout_of(template, kernels=True)
    return DenseKernels(
        template,
        layout,
        PRECISIONS[precision],
        tuple(affine_of(layout, f"encoder.trunk.layers.{place}") for place in range(len(trunk.layers))),
        {name: affine_of(layout, f"encoder.heads.{name}") for name in template.encoder.heads},
        tuple(affine_of(layout, f"decoder.hidden.layers.{place}") for place in range(len(decoder.hidden.layers))),
        affine_of(layout, "decoder.output"),
        (trunk.activation is torch.tanh, decoder.hidden.activation is torch.tanh),
    )


def _learn(
    layer: Affine, slope: Tensor, x: Tensor, gradients: Tensor | None, update: Update | None, product: str
) -> None:
    """The gradient of a layer's weights; or their update, once the slope went through them as they were."""
    if update is None:
        assert gradients is not None
        dense_weight_gradient(layer, slope, x, gradients, product)
    else:
        dense_update(layer, slope, x, update, product)


def _losses(
    x: Float[Tensor, "model batch feature"], outputs: Float[Tensor, "model batch feature"], kind: int, variance: float
) -> tuple[Float[Tensor, "model batch"], Float[Tensor, "model batch feature"]]:
    """−log p(x|z) of every example, summed in a fixed order, and its slope by every output."""
    losses, slope = outputs.new_empty(outputs.shape[:2]), torch.empty_like(outputs)
    columns = min(COLUMNS, triton.next_power_of_2(outputs.shape[2]))
    _loss[(losses.numel(),)](
        x.contiguous(), outputs, losses, slope, variance, outputs.shape[2], kind, columns, num_warps=4
    )
    return losses, slope


@triton.jit
def _loss(x, outputs, losses, slopes, variance, SIZE: tl.constexpr, LIKELIHOOD: tl.constexpr, COLUMNS: tl.constexpr):
    example = tl.program_id(0).to(tl.int64)
    total = tl.zeros((COLUMNS,), dtype=tl.float32)
    for begin in range(0, SIZE, COLUMNS):
        column = begin + tl.arange(0, COLUMNS)
        inside, place = column < SIZE, example * SIZE + column
        given, output = tl.load(x + place, mask=inside, other=0.0), tl.load(outputs + place, mask=inside, other=0.0)
        loss, slope = loss_and_slope(given, output, variance, LIKELIHOOD)
        total += tl.where(inside, loss, 0.0)
        tl.store(slopes + place, slope, mask=inside)
    tl.store(losses + example, tl.sum(total, axis=0))
