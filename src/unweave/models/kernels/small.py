"""Whole training steps of small dense VAEs in Triton: one program is one model, and makes many steps in one launch.

A step of such a model is some twenty products of small matrices: as single operations it is all launches. Here a
program goes through forward pass, loss, backward pass and Adam by itself, its activations in a scratch of its own that
stays in the cache. No program knows of another, so a model's bits depend neither on the fleet's size nor on how many
steps are made at once.
"""

# ruff: noqa: N803
# mypy: disable-error-code="no-untyped-def"
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
import triton
import triton.language as tl

from unweave.models.autoencoder import Autoencoder
from unweave.models.kernels.adam import adam_at, corrections
from unweave.models.kernels.elementwise import kind_of, loss_and_slope, tanh, variance_of
from unweave.models.kernels.layout import Layout
from unweave.models.kernels.products import multiplied
from unweave.models.networks.mlp import Layers, MLPDecoder
from unweave.models.optimisers import Adam, Tensors
from unweave.models.posteriors import Deterministic, Diagonal
from unweave.shapes import Float, Int, Tensor

MOST = 128
"""The widest layer that one program is quick enough for."""

TILE = 64
"""Inputs and outputs of a layer that are worked on at a time; fewer where no layer has more."""

WARPS = 4

PRODUCT = "tf32x3"
"""How products are made (`unweave.models.kernels.products`): three of tf32, which is fp32 to its last bits."""

KNOWN = 0
"""1: kernels are compiled for the sizes of their layers; not timed on a card yet."""

SHARED = 0
"""1, with ``KNOWN``: what both products of a layer's backward pass read is read once; not timed on a card yet."""

LIMIT = 0
"""Registers of a thread at most; 0: as many as the compiler takes."""

ROWS = 64
"""Rows of a batch that are worked on at a time. Fixed: a model's bits depend on it."""

ACTIVATIONS = {"relu": 1, "tanh": 2}


class Layer(NamedTuple):
    """A row of the table that a program goes through: sizes, places in the parameters, places in the scratch.

    ``slope_at`` holds the slope by the layer's output before its activation, ``below_at`` takes that by the layer
    below; with ``adds`` it is added to what lies there, and only with ``goes`` it is made at all.
    """

    n_inputs: int
    n_outputs: int
    weight_at: int
    bias_at: int
    input_at: int
    input_pitch: int
    output_at: int
    output_pitch: int
    activation: int
    slope_at: int
    below_at: int
    input_activation: int
    goes: int
    adds: int


@dataclass(frozen=True)
class Places:
    """Where in a model's scratch the parts that no layer names lie, and how many columns rows of them have.

    The log-variance follows the mean; the slopes by both follow that by the sampled code.
    """

    examples_at: int
    examples_pitch: int
    mean_at: int
    sampled_at: int
    code_pitch: int
    outputs_at: int
    outputs_slope_at: int
    sampled_slope_at: int
    size: int


@dataclass
class SmallStack:
    """Steps of every model of one structure."""

    table: Int[Tensor, "layer field"]
    n_encoder: int
    places: Places
    n_inputs: int
    latents: int
    width: int
    noisy: bool
    likelihood: int
    variance: float
    optimiser: Adam
    fields: tuple[int, ...] = ()
    scratch: dict[tuple[int, int], Float[Tensor, "model size"]] = field(default_factory=dict)

    def advance(self, state: "SmallState", drawn: "SmallDraws", first: int, begin: int, count: int) -> None:
        """Steps ``first`` … ``first + count − 1``, whose draws begin at ``begin``; every tensor is changed in place."""
        n_models, n_batch = len(state.parameters), drawn.rows.shape[2]
        adam, at = self.optimiser, self.places
        _steps[(n_models,)](
            state.parameters, state.first, state.second, drawn.store, drawn.rows, drawn.noise,
            drawn.correction, drawn.root, state.rates, state.weight, state.warmup, state.failed_at,
            state.failed_terms, state.terms, state.mean, state.log_variance, state.kl,
            self._scratch(n_models, n_batch, state.parameters.device), self.table,
            n_models, begin, count, first, len(self.table), self.n_encoder, state.failed_terms.stride(0),
            adam.beta1, adam.beta2, 1.0 - adam.beta1, 1.0 - adam.beta2, adam.epsilon, self.variance,
            state.parameters.shape[1], at.size * _padded(n_batch, ROWS), at.examples_at, at.examples_pitch, at.mean_at,
            at.sampled_at, at.code_pitch, at.outputs_at, at.outputs_slope_at, at.sampled_slope_at, n_batch,
            self.n_inputs, self.latents, self.noisy, self.likelihood, self.table.shape[1], self.width,
            triton.next_power_of_2(self.places.code_pitch), _padded(n_batch, ROWS), ROWS, PRODUCT,
            self.fields if KNOWN else None, self.n_encoder, _width(self.n_inputs, self.width) if KNOWN else self.width,
            SHARED, num_warps=_warps(), num_stages=1, maxnreg=LIMIT or None,
        )  # fmt: skip

    def _scratch(self, n_models: int, n_batch: int, device: torch.device) -> Tensor:
        key = (n_models, n_batch)
        if key not in self.scratch:
            self.scratch[key] = torch.zeros(n_models, self.places.size * _padded(n_batch, ROWS), device=device)
        return self.scratch[key]


@dataclass(frozen=True)
class SmallState:
    """What steps read and change. ``weight`` multiplies a model's KL; ``warmup`` is over how many steps it fades in.

    Of the last step: ``terms`` are loss, reconstruction, weighted and plain KL; the rest is the code.
    """

    parameters: Float[Tensor, "model size"]
    first: Float[Tensor, "model size"]
    second: Float[Tensor, "model size"]
    rates: Float[Tensor, " model"]
    weight: Float[Tensor, " model"]
    warmup: Int[Tensor, " model"]
    failed_at: Int[Tensor, " model"]
    failed_terms: Float[Tensor, "model term"]
    terms: Float[Tensor, "model 4"]
    mean: Float[Tensor, "model batch latent"]
    log_variance: Float[Tensor, "model batch latent"]
    kl: Float[Tensor, "model batch latent"]


@dataclass(frozen=True)
class SmallDraws:
    """A block of steps' draws, and the examples they are of; ``correction`` is 1 − β₁ᵗ, ``root`` √(1 − β₂ᵗ)."""

    store: Float[Tensor, "sample feature"]
    rows: Int[Tensor, "step model batch"]
    noise: Float[Tensor, "step model batch latent"]
    correction: Float[Tensor, " step"]
    root: Float[Tensor, " step"]


def small_draws(store: Tensor, drawn: Tensors, optimiser: Adam) -> SmallDraws:
    """The draws of a block of steps as the kernel reads them."""
    correction, root = corrections(drawn["steps"] + 1, optimiser.beta1, optimiser.beta2)
    rows, noise = drawn["rows of images"].contiguous(), drawn["noise"].contiguous()
    return SmallDraws(store, rows, noise, correction, root)


def small_stack(
    template: Autoencoder, layout: Layout, optimiser: Adam, device: torch.device | str
) -> SmallStack | None:
    """The kernel for models of this structure; None where it has wider layers, or other parts than it knows."""
    trunk, decoder, architecture = template.encoder.trunk, template.decoder, template.architecture
    if not isinstance(trunk, Layers) or not isinstance(decoder, MLPDecoder) or type(optimiser) is not Adam:
        return None
    likelihood = kind_of(architecture.likelihood)
    if not isinstance(architecture.posterior, Diagonal | Deterministic) or likelihood is None:
        return None
    widest = max(max(shape) for shape in layout.shapes)
    if widest > MOST:
        return None
    table, n_encoder, places = _table(layout, trunk, decoder, list(template.encoder.heads))
    return SmallStack(
        torch.tensor(table, dtype=torch.int32, device=device),
        n_encoder,
        places,
        table[0].n_inputs,
        architecture.latents,
        min(TILE, triton.next_power_of_2(max(16, widest))),
        isinstance(architecture.posterior, Diagonal),
        likelihood,
        variance_of(architecture.likelihood),
        optimiser,
        tuple(value for layer in table for value in layer),
    )


def _table(layout: Layout, trunk: Layers, decoder: MLPDecoder, heads: Sequence[str]) -> tuple[list[Layer], int, Places]:
    """The layers in the order of the forward pass, how many of them encode, and the other places of the scratch."""
    hidden = [f"encoder.trunk.layers.{number}" for number in range(len(trunk.layers))]
    tops = [f"encoder.heads.{name}" for name in heads]
    after = [*(f"decoder.hidden.layers.{number}" for number in range(len(decoder.hidden.layers))), "decoder.output"]
    names = [*hidden, *tops, *after]
    sizes = {name: layout.shapes[layout.names.index(f"{name}.weight")] for name in names}
    scratch, widest = _Scratch(), max(size for shape in sizes.values() for size in shape)
    examples = scratch.take(sizes[names[0]][1])
    outputs = {name: scratch.take(sizes[name][0]) for name in names}
    sampled, *turns = (scratch.take(size) for size in (sizes[tops[0]][0], widest, widest))
    by_sampled = scratch.take(sampled[1])
    slopes = {name: scratch.take(sampled[1]) for name in tops}
    # other slopes go back and forth between two places
    slopes |= {name: turns[place % 2] for place, name in enumerate(reversed(after))}
    slopes |= {name: turns[place % 2] for place, name in enumerate(reversed(hidden))}
    below = dict(zip(hidden[1:], hidden)) | dict(zip(after[1:], after))
    below |= dict.fromkeys(tops, hidden[-1]) if hidden else {}
    kinds = dict.fromkeys(hidden, _activation(trunk)) | dict.fromkeys(after[:-1], _activation(decoder.hidden))
    table = []
    for name in names:
        under, decodes = below.get(name), name in after
        # heads are gone through backwards: the last one begins the sum of their slopes, the first one ends it
        ends = name not in tops[1:]
        table.append(
            Layer(
                sizes[name][1],
                sizes[name][0],
                layout.offsets[f"{name}.weight"],
                layout.offsets[f"{name}.bias"],
                *(outputs[under] if under else sampled if decodes else examples),
                *outputs[name],
                kinds.get(name, 0),
                slopes[name][0],
                (slopes[under] if under else by_sampled)[0],
                kinds.get(under, 0) if under and ends else 0,
                int(under is not None or decodes),
                int(name in tops[:-1]),
            )
        )
    last = outputs["decoder.output"][0]
    places = Places(
        *examples, outputs[tops[0]][0], *sampled, last, slopes["decoder.output"][0], by_sampled[0], scratch.size
    )
    return table, len(hidden) + len(heads), places


class _Scratch:
    """Hands out columns of the scratch: a place begins where the last one ended, for one row of the batch."""

    def __init__(self) -> None:
        self.size = 0

    def take(self, columns: int) -> tuple[int, int]:
        begin, pitch = self.size, _padded(columns, 16)
        self.size += pitch
        return begin, pitch


def _activation(layers: Layers) -> int:
    return ACTIVATIONS["relu" if layers.activation is torch.relu else "tanh"]


def _warps() -> int:
    """Of a program. Triton 3.6 divides 16 columns of tf32 among 8 warps by instructions of 8 (``m64n8k8``).

    On an H200 every way with that instruction ended in an illegal access, and none without it, though all addresses in
    shared memory that the machine code forms are its own (benchmarks/NOTES.md).
    """
    if KNOWN and WARPS != 4:
        raise ValueError(f"small models compiled for their sizes run with 4 warps, not {WARPS}")
    return WARPS


def _padded(size: int, to: int) -> int:
    return -(-size // to) * to


@triton.constexpr_function
def _width(size: int, most: int) -> int:
    """Inputs or outputs of a layer that are worked on at a time, where its size is known."""
    return min(most, triton.next_power_of_2(max(16, size)))


@triton.jit(do_not_specialize=["n_models", "begin", "count", "first_step", "n_layers", "n_encoder", "term_stride"])
def _steps(
    parameters, first, second, store, rows, noise, correction, root, rates, weight, warmup, failed_at,
    failed_terms, terms, means, log_variances, kls, scratch, table,
    n_models, begin, count, first_step, n_layers, n_encoder, term_stride,
    beta1, beta2, rest1, rest2, epsilon, variance,
    SIZE: tl.constexpr, SCRATCH: tl.constexpr, EXAMPLES: tl.constexpr, EXAMPLES_PITCH: tl.constexpr,
    MEAN: tl.constexpr, SAMPLED: tl.constexpr, CODE_PITCH: tl.constexpr, OUTPUTS: tl.constexpr,
    OUTPUTS_SLOPE: tl.constexpr, SAMPLED_SLOPE: tl.constexpr, N_BATCH: tl.constexpr,
    N_INPUTS: tl.constexpr, LATENTS: tl.constexpr, NOISY: tl.constexpr, LIKELIHOOD: tl.constexpr,
    FIELDS: tl.constexpr, WIDTH: tl.constexpr, CODE: tl.constexpr, ALL_ROWS: tl.constexpr,
    ROWS: tl.constexpr, PRODUCT: tl.constexpr, LAYERS: tl.constexpr, N_ENCODER: tl.constexpr, ACROSS: tl.constexpr,
    SHARED: tl.constexpr,
):  # fmt: skip
    model = tl.program_id(0).to(tl.int64)
    parameters += model * SIZE
    first += model * SIZE
    second += model * SIZE
    scratch += model * SCRATCH
    latent = tl.arange(0, CODE)
    alive = tl.load(failed_at + model) < 0
    fades, beta = tl.load(warmup + model), tl.load(weight + model)
    for turn in range(count):
        place = begin + turn
        drawn = (place * n_models + model) * N_BATCH
        for tile in range(0, ALL_ROWS, ROWS):
            row = tile + tl.arange(0, ROWS)
            chosen = tl.load(rows + drawn + row, mask=row < N_BATCH, other=0)
            for across in range(0, N_INPUTS, ACROSS):
                column = across + tl.arange(0, ACROSS)
                there = (row < N_BATCH)[:, None] & (column < N_INPUTS)[None, :]
                x = tl.load(store + chosen[:, None] * N_INPUTS + column[None, :], mask=there, other=0.0)
                _put(scratch, EXAMPLES, EXAMPLES_PITCH, row, column, x, ALL_ROWS)
        tl.debug_barrier()
        if LAYERS is None:
            for number in range(n_encoder):
                _forward(scratch, parameters, table + number * FIELDS, WIDTH, ALL_ROWS, ROWS, PRODUCT)
        else:
            for number in tl.static_range(N_ENCODER):
                _forward_known(scratch, parameters, LAYERS, number * FIELDS, WIDTH, ALL_ROWS, ROWS, PRODUCT)
        costs = tl.zeros((ROWS, CODE), dtype=tl.float32)
        for tile in range(0, ALL_ROWS, ROWS):
            row = tile + tl.arange(0, ROWS)
            inside = (row < N_BATCH)[:, None] & (latent < LATENTS)[None, :]
            out = (model * N_BATCH + row)[:, None] * LATENTS + latent[None, :]
            mean = _take(scratch, MEAN, CODE_PITCH, row, latent, ALL_ROWS)
            sampled = mean
            tl.store(means + out, mean, mask=inside)
            if NOISY:
                log_variance = _take(scratch, MEAN + CODE_PITCH, CODE_PITCH, row, latent, ALL_ROWS)
                drawn_noise = tl.load(
                    noise + (drawn + row)[:, None] * LATENTS + latent[None, :], mask=inside, other=0.0
                )
                # z = μ + σ ε,  KL_j = ½ (μ² + σ² − log σ² − 1)
                sampled = mean + tl.exp(0.5 * log_variance) * drawn_noise
                kl = tl.where(inside, 0.5 * (mean * mean + tl.exp(log_variance) - log_variance - 1.0), 0.0)
                costs += kl
                tl.store(log_variances + out, log_variance, mask=inside)
                tl.store(kls + out, kl, mask=inside)
            _put(scratch, SAMPLED, CODE_PITCH, row, latent, sampled, ALL_ROWS)
        total_kl = tl.sum(tl.sum(costs, axis=1), axis=0) / N_BATCH
        tl.debug_barrier()
        if LAYERS is None:
            for number in range(n_encoder, n_layers):
                _forward(scratch, parameters, table + number * FIELDS, WIDTH, ALL_ROWS, ROWS, PRODUCT)
        else:
            for number in tl.static_range(N_ENCODER, len(LAYERS) // FIELDS):
                _forward_known(scratch, parameters, LAYERS, number * FIELDS, WIDTH, ALL_ROWS, ROWS, PRODUCT)
        losses = tl.zeros((ROWS, ACROSS), dtype=tl.float32)
        for tile in range(0, ALL_ROWS, ROWS):
            row = tile + tl.arange(0, ROWS)
            for across in range(0, N_INPUTS, ACROSS):
                column = across + tl.arange(0, ACROSS)
                inside = (row < N_BATCH)[:, None] & (column < N_INPUTS)[None, :]
                x = _take(scratch, EXAMPLES, EXAMPLES_PITCH, row, column, ALL_ROWS)
                output = _take(scratch, OUTPUTS, EXAMPLES_PITCH, row, column, ALL_ROWS)
                loss, slope = loss_and_slope(x, output, variance, LIKELIHOOD)
                losses += tl.where(inside, loss, 0.0)
                slope = tl.where(inside, slope / N_BATCH, 0.0)
                _put(scratch, OUTPUTS_SLOPE, EXAMPLES_PITCH, row, column, slope, ALL_ROWS)
        reconstruction = tl.sum(tl.sum(losses, axis=1), axis=0) / N_BATCH
        step = first_step + turn
        share = tl.where(fades > 0, tl.minimum(step.to(tl.float32) / tl.maximum(fades, 1).to(tl.float32), 1.0), 1.0)
        regulariser = beta * total_kl
        whole = reconstruction + share * regulariser
        finite = (whole - whole) == 0.0
        good = alive & finite
        # loss, reconstruction, regulariser, kl
        four = tl.arange(0, 4)
        told = tl.where(
            four == 0, whole, tl.where(four == 1, reconstruction, tl.where(four == 2, regulariser, total_kl))
        )
        tl.store(terms + model * 4 + four, told)
        fails = alive & (finite == 0)
        tl.store(failed_at + model, step.to(tl.int64), mask=fails)
        tl.store(failed_terms + model * term_stride + four, told, mask=fails & (four >= 0))
        alive = good
        rate, divisor = tl.load(rates + model) / tl.load(correction + place), tl.load(root + place)
        tl.debug_barrier()
        if LAYERS is None:
            for number in range(n_layers - n_encoder):
                _backward(
                    scratch, parameters, first, second, table + (n_layers - 1 - number) * FIELDS, good, rate, divisor,
                    beta1, beta2, rest1, rest2, epsilon, WIDTH, ALL_ROWS, ROWS, PRODUCT,
                )  # fmt: skip
        else:
            for number in tl.static_range(len(LAYERS) // FIELDS - N_ENCODER):
                _backward_known(
                    scratch, parameters, first, second, LAYERS, (len(LAYERS) // FIELDS - 1 - number) * FIELDS, good,
                    rate, divisor, beta1, beta2, rest1, rest2, epsilon, WIDTH, ALL_ROWS, ROWS, PRODUCT, SHARED,
                )  # fmt: skip
        pull = share * beta / N_BATCH
        for tile in range(0, ALL_ROWS, ROWS):
            row = tile + tl.arange(0, ROWS)
            inside = (row < N_BATCH)[:, None] & (latent < LATENTS)[None, :]
            slope = _take(scratch, SAMPLED_SLOPE, CODE_PITCH, row, latent, ALL_ROWS)
            by_mean = slope
            if NOISY:
                mean = _take(scratch, MEAN, CODE_PITCH, row, latent, ALL_ROWS)
                log_variance = _take(scratch, MEAN + CODE_PITCH, CODE_PITCH, row, latent, ALL_ROWS)
                drawn_noise = tl.load(
                    noise + (drawn + row)[:, None] * LATENTS + latent[None, :], mask=inside, other=0.0
                )
                by_mean = slope + pull * mean
                by_variance = 0.5 * tl.exp(0.5 * log_variance) * drawn_noise * slope
                by_variance += 0.5 * pull * (tl.exp(log_variance) - 1.0)
                by_variance = tl.where(inside, by_variance, 0.0)
                _put(scratch, SAMPLED_SLOPE + 2 * CODE_PITCH, CODE_PITCH, row, latent, by_variance, ALL_ROWS)
            by_mean = tl.where(inside, by_mean, 0.0)
            _put(scratch, SAMPLED_SLOPE + CODE_PITCH, CODE_PITCH, row, latent, by_mean, ALL_ROWS)
        tl.debug_barrier()
        if LAYERS is None:
            for number in range(n_encoder):
                _backward(
                    scratch, parameters, first, second, table + (n_encoder - 1 - number) * FIELDS, good, rate, divisor,
                    beta1, beta2, rest1, rest2, epsilon, WIDTH, ALL_ROWS, ROWS, PRODUCT,
                )  # fmt: skip
        else:
            for number in tl.static_range(N_ENCODER):
                _backward_known(
                    scratch, parameters, first, second, LAYERS, (N_ENCODER - 1 - number) * FIELDS, good, rate, divisor,
                    beta1, beta2, rest1, rest2, epsilon, WIDTH, ALL_ROWS, ROWS, PRODUCT, SHARED,
                )  # fmt: skip


@triton.jit
def _take(scratch, at, pitch, row, column, ALL_ROWS: tl.constexpr):
    """[row, column] of a part of the scratch; columns beyond its own are 0."""
    inside = (row >= 0)[:, None] & (column < pitch)[None, :]
    return tl.load(scratch + at * ALL_ROWS + row[:, None] * pitch + column[None, :], mask=inside, other=0.0)


@triton.jit
def _put(scratch, at, pitch, row, column, value, ALL_ROWS: tl.constexpr):
    inside = (row >= 0)[:, None] & (column < pitch)[None, :]
    tl.store(scratch + at * ALL_ROWS + row[:, None] * pitch + column[None, :], value, mask=inside)


@triton.jit
def _forward(
    scratch, parameters, layer, WIDTH: tl.constexpr, ALL_ROWS: tl.constexpr, ROWS: tl.constexpr, PRODUCT: tl.constexpr
):
    """A layer of the table, forward."""
    _through(
        scratch, parameters, tl.load(layer), tl.load(layer + 1), tl.load(layer + 2), tl.load(layer + 3),
        tl.load(layer + 4), tl.load(layer + 5), tl.load(layer + 6), tl.load(layer + 7), tl.load(layer + 8),
        WIDTH, WIDTH, ALL_ROWS, ROWS, PRODUCT,
    )  # fmt: skip


@triton.jit
def _forward_known(
    scratch, parameters, LAYERS: tl.constexpr, AT: tl.constexpr, WIDTH: tl.constexpr, ALL_ROWS: tl.constexpr,
    ROWS: tl.constexpr, PRODUCT: tl.constexpr,
):  # fmt: skip
    """A layer whose sizes and places are known, forward."""
    _through(
        scratch, parameters, LAYERS[AT], LAYERS[AT + 1], LAYERS[AT + 2], LAYERS[AT + 3], LAYERS[AT + 4],
        LAYERS[AT + 5], LAYERS[AT + 6], LAYERS[AT + 7], LAYERS[AT + 8],
        _width(LAYERS[AT], WIDTH), _width(LAYERS[AT + 1], WIDTH), ALL_ROWS, ROWS, PRODUCT,
    )  # fmt: skip


@triton.jit
def _backward(
    scratch, parameters, first, second, layer, good, rate, root, beta1, beta2, rest1, rest2, epsilon,
    WIDTH: tl.constexpr, ALL_ROWS: tl.constexpr, ROWS: tl.constexpr, PRODUCT: tl.constexpr,
):  # fmt: skip
    """A layer of the table, backward."""
    _back(
        scratch, parameters, first, second, tl.load(layer), tl.load(layer + 1), tl.load(layer + 2), tl.load(layer + 3),
        tl.load(layer + 4), tl.load(layer + 5), tl.load(layer + 7), tl.load(layer + 9), tl.load(layer + 10),
        tl.load(layer + 11), tl.load(layer + 12), tl.load(layer + 13), good, rate, root, beta1, beta2, rest1, rest2,
        epsilon, WIDTH, WIDTH, ALL_ROWS, ROWS, PRODUCT,
    )  # fmt: skip


@triton.jit
def _backward_known(
    scratch, parameters, first, second, LAYERS: tl.constexpr, AT: tl.constexpr, good, rate, root, beta1, beta2, rest1,
    rest2, epsilon, WIDTH: tl.constexpr, ALL_ROWS: tl.constexpr, ROWS: tl.constexpr, PRODUCT: tl.constexpr,
    SHARED: tl.constexpr,
):  # fmt: skip
    """A layer whose sizes and places are known, backward."""
    if SHARED and ALL_ROWS == ROWS and LAYERS[AT] <= WIDTH and LAYERS[AT + 1] <= WIDTH:
        _back_at_once(
            scratch, parameters, first, second, LAYERS[AT], LAYERS[AT + 1], LAYERS[AT + 2], LAYERS[AT + 3],
            LAYERS[AT + 4], LAYERS[AT + 5], LAYERS[AT + 7], LAYERS[AT + 9], LAYERS[AT + 10], LAYERS[AT + 11],
            LAYERS[AT + 12], LAYERS[AT + 13], good, rate, root, beta1, beta2, rest1, rest2, epsilon,
            _width(LAYERS[AT], WIDTH), _width(LAYERS[AT + 1], WIDTH), ROWS, PRODUCT,
        )  # fmt: skip
    else:
        _back(
            scratch, parameters, first, second, LAYERS[AT], LAYERS[AT + 1], LAYERS[AT + 2], LAYERS[AT + 3],
            LAYERS[AT + 4], LAYERS[AT + 5], LAYERS[AT + 7], LAYERS[AT + 9], LAYERS[AT + 10], LAYERS[AT + 11],
            LAYERS[AT + 12], LAYERS[AT + 13], good, rate, root, beta1, beta2, rest1, rest2, epsilon,
            _width(LAYERS[AT], WIDTH), _width(LAYERS[AT + 1], WIDTH), ALL_ROWS, ROWS, PRODUCT,
        )  # fmt: skip


@triton.jit
def _through(
    scratch, parameters, n_inputs, n_outputs, weight_at, bias_at, input_at, input_pitch, output_at, output_pitch,
    activation, INPUTS: tl.constexpr, OUTPUTS: tl.constexpr, ALL_ROWS: tl.constexpr, ROWS: tl.constexpr,
    PRODUCT: tl.constexpr,
):  # fmt: skip
    """x Wᵀ + b through the layer's activation."""
    for across in range(0, n_outputs, OUTPUTS):
        n = across + tl.arange(0, OUTPUTS)
        bias = tl.load(parameters + bias_at + n, mask=n < n_outputs, other=0.0)
        for tile in range(0, ALL_ROWS, ROWS):
            row = tile + tl.arange(0, ROWS)
            y = tl.zeros((ROWS, OUTPUTS), dtype=tl.float32)
            for down in range(0, n_inputs, INPUTS):
                k = down + tl.arange(0, INPUTS)
                inside = (k < n_inputs)[:, None] & (n < n_outputs)[None, :]
                places = weight_at + n[None, :] * n_inputs + k[:, None]
                weights = tl.load(parameters + places, mask=inside, other=0.0)
                x = _take(scratch, input_at, input_pitch, row, k, ALL_ROWS)
                y = multiplied(x, weights, y, PRODUCT)
            y += bias[None, :]
            if activation == 1:
                y = tl.maximum(y, 0.0)
            elif activation == 2:
                y = tanh(y)
            _put(scratch, output_at, output_pitch, row, n, y, ALL_ROWS)
    tl.debug_barrier()


@triton.jit
def _back(
    scratch, parameters, first, second, n_inputs, n_outputs, weight_at, bias_at, input_at, input_pitch, output_pitch,
    slope_at, below_at, activation, goes, adds, good, rate, root, beta1, beta2, rest1, rest2, epsilon,
    INPUTS: tl.constexpr, OUTPUTS: tl.constexpr, ALL_ROWS: tl.constexpr, ROWS: tl.constexpr, PRODUCT: tl.constexpr,
):  # fmt: skip
    """The slope by the layer's input, then one update of its weights and bias by Adam."""
    for across in range(0, n_inputs * goes, INPUTS):
        k = across + tl.arange(0, INPUTS)
        for tile in range(0, ALL_ROWS, ROWS):
            row = tile + tl.arange(0, ROWS)
            below = tl.zeros((ROWS, INPUTS), dtype=tl.float32)
            for down in range(0, n_outputs, OUTPUTS):
                n = down + tl.arange(0, OUTPUTS)
                inside = (n < n_outputs)[:, None] & (k < n_inputs)[None, :]
                places = weight_at + n[:, None] * n_inputs + k[None, :]
                weights = tl.load(parameters + places, mask=inside, other=0.0)
                slope = _take(scratch, slope_at, output_pitch, row, n, ALL_ROWS)
                below = multiplied(slope, weights, below, PRODUCT)
            if adds != 0:
                below += _take(scratch, below_at, input_pitch, row, k, ALL_ROWS)
            if activation != 0:
                x = _take(scratch, input_at, input_pitch, row, k, ALL_ROWS)
                below = tl.where(activation == 1, tl.where(x > 0, below, 0.0), below * (1.0 - x * x))
            _put(scratch, below_at, input_pitch, row, k, below, ALL_ROWS)
    # everyone has read the weights that now change
    tl.debug_barrier()
    for across in range(0, n_outputs, OUTPUTS):
        n = across + tl.arange(0, OUTPUTS)
        summed = tl.zeros((ROWS, OUTPUTS), dtype=tl.float32)
        for tile in range(0, ALL_ROWS, ROWS):
            summed += _take(scratch, slope_at, output_pitch, tile + tl.arange(0, ROWS), n, ALL_ROWS)
        adam_at(
            parameters, first, second, None, bias_at + n, tl.sum(summed, axis=0), (n < n_outputs) & good, rate, root,
            beta1, beta2, rest1, rest2, epsilon,
        )  # fmt: skip
        for down in range(0, n_inputs, INPUTS):
            k = down + tl.arange(0, INPUTS)
            inside = (n < n_outputs)[:, None] & (k < n_inputs)[None, :] & good
            total = tl.zeros((OUTPUTS, INPUTS), dtype=tl.float32)
            for tile in range(0, ALL_ROWS, ROWS):
                row = tile + tl.arange(0, ROWS)
                slope = _take(scratch, slope_at, output_pitch, row, n, ALL_ROWS)
                x = _take(scratch, input_at, input_pitch, row, k, ALL_ROWS)
                total = multiplied(tl.trans(slope), x, total, PRODUCT)
            adam_at(
                parameters, first, second, None, weight_at + n[:, None] * n_inputs + k[None, :], total, inside, rate,
                root, beta1, beta2, rest1, rest2, epsilon,
            )  # fmt: skip
    tl.debug_barrier()


@triton.jit
def _back_at_once(
    scratch, parameters, first, second, n_inputs, n_outputs, weight_at, bias_at, input_at, input_pitch, output_pitch,
    slope_at, below_at, activation, goes, adds, good, rate, root, beta1, beta2, rest1, rest2, epsilon,
    INPUTS: tl.constexpr, OUTPUTS: tl.constexpr, ROWS: tl.constexpr, PRODUCT: tl.constexpr,
):  # fmt: skip
    """The same where a layer and a batch are one tile: everything is read once."""
    row, k, n = tl.arange(0, ROWS), tl.arange(0, INPUTS), tl.arange(0, OUTPUTS)
    slope = _take(scratch, slope_at, output_pitch, row, n, ROWS)
    x = _take(scratch, input_at, input_pitch, row, k, ROWS)
    places, inside = weight_at + n[:, None] * n_inputs + k[None, :], (n < n_outputs)[:, None] & (k < n_inputs)[None, :]
    if goes:
        weights = tl.load(parameters + places, mask=inside, other=0.0)
        below = multiplied(slope, weights, tl.zeros((ROWS, INPUTS), dtype=tl.float32), PRODUCT)
        if adds != 0:
            below += _take(scratch, below_at, input_pitch, row, k, ROWS)
        if activation != 0:
            below = tl.where(activation == 1, tl.where(x > 0, below, 0.0), below * (1.0 - x * x))
        _put(scratch, below_at, input_pitch, row, k, below, ROWS)
    # everyone has read the weights that now change
    tl.debug_barrier()
    adam_at(
        parameters, first, second, None, bias_at + n, tl.sum(slope, axis=0), (n < n_outputs) & good, rate, root, beta1,
        beta2, rest1, rest2, epsilon,
    )  # fmt: skip
    total = multiplied(tl.trans(slope), x, tl.zeros((OUTPUTS, INPUTS), dtype=tl.float32), PRODUCT)
    adam_at(
        parameters, first, second, None, places, total, inside & good, rate, root, beta1, beta2, rest1, rest2, epsilon
    )
    tl.debug_barrier()
