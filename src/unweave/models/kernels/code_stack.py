"""Stacks of FactorVAE's discriminators on GPU kernels: logits, their slope by the codes, and the update of all weights.

A discriminator has five million weights, so its bytes are what counts. The update never stores a gradient, and logits
of codes that were seen in the same step are not computed twice. The objective stays single-model code: a discriminator
is called inside ``vmap``, and the call's own rule hands the whole stack to the kernels.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from unweave.models.kernels.adam import corrections
from unweave.models.kernels.convolutions import Precision
from unweave.models.kernels.dense import AdamStack, Affine, dense_forward, dense_input_gradient, dense_update
from unweave.models.kernels.layout import Layout, layout_of
from unweave.models.objectives.factor_vae import CodeDiscriminator
from unweave.shapes import Bool, Float, Shaped, Tensor

LEAK = 0.2
MOST_CALLS = 2
"""Batches of codes judged in a step: the models' own, and the shuffled ones."""


@dataclass(frozen=True)
class CodeStack:
    """The structure of the discriminators; ``layers`` are the hidden ones in order, then the logits."""

    layout: Layout
    precision: Precision
    layers: tuple[Affine, ...]

    def weights(self, parameters: Float[Tensor, "model size"]) -> Float[Tensor, "model size"]:
        """What the kernels read: the parameters, rounded to what is stored between layers."""
        return parameters.to(self.precision.stored)

    def tape(self, weights: Float[Tensor, "model size"]) -> "Tape":
        """A new step."""
        return Tape(self, weights)


@dataclass
class Tape:
    """One step of the discriminators: what they were asked, what passed between their layers, the slopes by logits.

    ``passed[i]`` is the input of layer i for all calls, one batch after the other.
    """

    stack: CodeStack
    weights: Float[Tensor, "model size"]
    asked: list[tuple[Any, ...]] = field(default_factory=list)
    passed: list[Float[Tensor, "model row feature"]] = field(default_factory=list)
    logits: list[Float[Tensor, "model batch 2"]] = field(default_factory=list)
    slopes: dict[int, Float[Tensor, "model batch 2"]] = field(default_factory=dict)

    def discriminator(self) -> tuple[Callable[[Tensor], Tensor], Tensor]:
        """One model's discriminator, to be called inside ``vmap``, and what to differentiate by to learn from it."""
        anchor = torch.zeros((), device=self.weights.device, requires_grad=True)
        return lambda codes: _Logits.apply(codes, anchor, self), anchor

    def update(
        self, parameters: Float[Tensor, "model size"], state: dict[str, Tensor], rates: Float[Tensor, " model"],
        count: Shaped[Tensor, ""], good: Bool[Tensor, " model"], betas: tuple[float, float], epsilon: float,
    ) -> None:  # fmt: skip
        """One update by Adam of all weights, from the slopes by logits that were kept."""
        rounded = None if self.weights is parameters else self.weights
        first, second = corrections(count, *betas)
        moments = (parameters, state["first"], state["second"], rounded)
        self._update(AdamStack(*moments, rates / first, second, good, *betas, epsilon))

    def _update(self, state: AdamStack) -> None:
        stored, product = self.stack.precision.stored, self.stack.precision.product
        n_calls, n_batch = len(self.asked), self.logits[0].shape[1]
        none = torch.zeros_like(self.logits[0])
        slope = torch.cat([self.slopes.get(call, none) for call in range(n_calls)], dim=1).to(stored)
        for place in range(len(self.stack.layers) - 1, -1, -1):
            layer, x = self.stack.layers[place], self.passed[place][:, : n_calls * n_batch]
            below = None
            if place:  # before the update: it changes what the slope goes through
                below = dense_input_gradient(layer, slope, self.weights, product, dtype=stored, like=x, leak=LEAK)
            dense_update(layer, slope, x, state, product)
            slope = below if below is not None else slope

    def forward(self, codes: Float[Tensor, "model batch latent"]) -> tuple[int, Float[Tensor, "model batch 2"]]:
        """The number of a call and its logits; equal codes in one step are one call."""
        key = (codes.data_ptr(), codes.shape, codes.stride())
        if key in self.asked:
            return self.asked.index(key), self.logits[self.asked.index(key)]
        call, n_batch = len(self.asked), codes.shape[1]
        assert call < MOST_CALLS
        self._reserve(codes)
        self.asked.append(key)
        rows = slice(call * n_batch, (call + 1) * n_batch)
        self.passed[0][:, rows] = codes
        *hidden, last = self.stack.layers
        product, stored = self.stack.precision.product, self.stack.precision.stored
        for layer, x, out in zip(hidden, self.passed, self.passed[1:]):
            dense_forward(layer, x[:, rows], self.weights, product, activate=True, dtype=stored, out=out[:, rows])
        top = self.passed[-1][:, rows]
        self.logits.append(dense_forward(last, top, self.weights, product, activate=False, dtype=torch.float32))
        return call, self.logits[call]

    def by_codes(self, call: int, slope: Float[Tensor, "model batch 2"]) -> Float[Tensor, "model batch latent"]:
        """The slope by the codes of a call."""
        stored, product, n_batch = self.stack.precision.stored, self.stack.precision.product, slope.shape[1]
        slope = slope.to(stored).contiguous()
        for place in range(len(self.stack.layers) - 1, 0, -1):
            like = self.passed[place][:, call * n_batch : (call + 1) * n_batch]
            layer = self.stack.layers[place]
            slope = dense_input_gradient(layer, slope, self.weights, product, dtype=stored, like=like, leak=LEAK)
        return dense_input_gradient(self.stack.layers[0], slope, self.weights, product, dtype=torch.float32)

    def _reserve(self, codes: Tensor) -> None:
        if not self.passed:
            rows, stored = MOST_CALLS * codes.shape[1], self.stack.precision.stored
            for layer in self.stack.layers:
                shape = (len(codes), rows, layer.n_inputs)
                self.passed.append(torch.empty(shape, dtype=stored, device=codes.device))


def code_stack(discriminator: CodeDiscriminator, precision: Precision) -> CodeStack:
    """The kernels' form of discriminators of this structure."""
    layout = layout_of(discriminator, kernels=True)
    names = [f"layers.{place}" for place in range(len(discriminator.layers))]
    return CodeStack(
        layout, precision, (*(_affine(layout, name, LEAK) for name in names), _affine(layout, "output", 0.0))
    )


class _Logits(torch.autograd.Function):
    """Logits of one model's codes; defined only for a stack of them."""

    @staticmethod
    def forward(codes: Tensor, anchor: Tensor, tape: Tape) -> Tensor:
        raise RuntimeError("a stacked discriminator is called inside vmap")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Nothing is kept here: the stacked call keeps it."""

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], codes: Tensor, anchor: Tensor, tape: Tape) -> Any:
        stacked = codes.expand(info.batch_size, *codes.shape) if in_dims[0] is None else codes.movedim(in_dims[0], 0)
        return _StackedLogits.apply(stacked, anchor, tape), 0


class _StackedLogits(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, codes: Tensor, anchor: Tensor, tape: Tape) -> Tensor:
        ctx.tape = tape
        ctx.call, logits = tape.forward(codes.detach())
        return logits.clone()

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> Any:
        codes = None
        if ctx.needs_input_grad[0]:
            codes = ctx.tape.by_codes(ctx.call, slope)
        else:
            ctx.tape.slopes[ctx.call] = slope
        return codes, torch.zeros((), device=slope.device), None


def _affine(layout: Layout, name: str, leak: float) -> Affine:
    n_outputs, n_inputs = layout.shapes[layout.names.index(f"{name}.weight")]
    return Affine(n_inputs, n_outputs, layout.offsets[f"{name}.weight"], layout.offsets[f"{name}.bias"], leak)
