"""Codes of a stack of models on a GPU: from heads to codes and back in one kernel each, and what is summed of them.

Only the diagonal posterior has kernels; any other is its single-model code, mapped, and PyTorch differentiates it. Sums
do not depend on the company (`unweave.models.kernels.weighed`).
"""

# ruff: noqa: N803
# mypy: disable-error-code="no-untyped-def"
from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl

from unweave.models.kernels.stacked_code import Losses, StackedCode, Weighed
from unweave.models.kernels.weighed import LATENTS, ROWS, totals_of, weigh
from unweave.models.posteriors import Deterministic, Diagonal, Posterior
from unweave.shapes import Float, Shaped, Tensor

ALIKE = 16
"""Models whose small matrix products are computed together; fleets with such products are filled up to a multiple."""

BLOCK = 1024
"""Values that a program codes."""


@dataclass
class Coded:
    """The codes of all models: ``code`` are leaves, by which a loss is differentiated before :meth:`backward`."""

    posterior: Posterior
    heads: dict[str, Float[Tensor, "model batch output"]]
    noise: Float[Tensor, "model batch latent"]
    made: StackedCode
    """With its history, where PyTorch keeps one."""
    code: StackedCode
    z: Shaped[Tensor, "model batch latent"]
    """What the decoder reads: the sampled codes, rounded."""

    def slopes(
        self, losses: Losses, reconstructions: Float[Tensor, "model batch"], leaves: dict[str, Tensor]
    ) -> tuple[list[Tensor | None], dict[str, Tensor]]:
        """The slopes of all losses by the parts of the code, and by other leaves: None, or 0, where there is none."""
        if isinstance(losses, Weighed):
            losses.judge(self.code.kl.detach(), reconstructions.detach())
            by_kl = losses.by_kl[:, None, None].expand(self.code.kl.shape)
            return [None, None, None, by_kl], _slopes_through(reconstructions, losses.by_reconstruction, leaves)
        found = torch.autograd.grad(
            losses(self.code, reconstructions), [*self.code, *leaves.values()], allow_unused=True
        )
        own: list[Tensor | None] = list(found[: len(self.code)])
        others = found[len(self.code) :]
        zeros = ((leaf, slope) for leaf, slope in zip(leaves.values(), others))
        return own, dict(zip(leaves, (torch.zeros_like(leaf) if slope is None else slope for leaf, slope in zeros)))

    def backward(
        self, slopes: list[Tensor | None], by_sampled: Float[Tensor, "model batch latent"], dtype: torch.dtype
    ) -> dict[str, Float[Tensor, "model batch output"]]:
        """The slopes by the heads, from those by the code's parts and what the decoder adds to that by z."""
        if type(self.posterior) is Diagonal:
            return _diagonal_backward(self.heads, self.noise, slopes, by_sampled, dtype)
        by_mean, by_log_variance, own, by_kl = slopes
        parts = (by_mean, by_log_variance, by_sampled if own is None else own + by_sampled, by_kl)
        known = [(part, slope) for part, slope in zip(self.made, parts) if slope is not None and part.requires_grad]
        found = torch.autograd.grad(
            [part for part, _ in known], list(self.heads.values()), [slope for _, slope in known], allow_unused=True
        )
        return {
            name: torch.zeros_like(head, dtype=dtype) if slope is None else slope.to(dtype).contiguous()
            for (name, head), slope in zip(self.heads.items(), found)
        }


def _slopes_through(reconstructions: Tensor, by_reconstruction: Tensor, leaves: dict[str, Tensor]) -> dict[str, Tensor]:
    """The slopes by the leaves that reconstruction losses were made of, which may be these losses themselves."""
    if any(leaf is reconstructions for leaf in leaves.values()):
        return dict.fromkeys(leaves, by_reconstruction)
    return dict(zip(leaves, torch.autograd.grad(reconstructions, list(leaves.values()), by_reconstruction)))


def coded(
    posterior: Posterior, heads: dict[str, Tensor], noise: Float[Tensor, "model batch told"], dtype: torch.dtype
) -> Coded:
    """The codes of all models from their heads' outputs, and what their decoders read."""
    if type(posterior) is Diagonal:
        z = torch.empty_like(noise, dtype=dtype)
        made = diagonal_code(heads["mean"], heads["log_variance"], noise, z)
    else:
        heads = {name: head.detach().requires_grad_() for name, head in heads.items()}
        made = mapped_code(posterior, heads, noise)
        z = made.sampled.detach().to(dtype).contiguous()
    return Coded(posterior, heads, noise, made, StackedCode(*(part.detach().requires_grad_() for part in made)), z)


def stacked_code(
    posterior: Posterior, heads: dict[str, Tensor], noise: Float[Tensor, "model batch told"]
) -> StackedCode:
    """The same codes, when nothing is learned from them."""
    if type(posterior) is Diagonal:
        return diagonal_code(heads["mean"], heads["log_variance"], noise)
    return mapped_code(posterior, heads, noise)


def mapped_code(posterior: Posterior, heads: dict[str, Tensor], noise: Tensor) -> StackedCode:
    """The codes by any posterior's own lines."""

    def one(heads: dict[str, Tensor], noise: Tensor) -> tuple[Tensor, ...]:
        code = posterior.code(heads, noise)
        return code.mean, code.log_variance, code.sampled, code.kl

    # small products of matrices go in equal portions: a library chooses its way by how many there are
    portion = None if isinstance(posterior, Diagonal | Deterministic) else ALIKE
    return StackedCode(*torch.vmap(one, chunk_size=portion)(heads, noise))


def diagonal_code(
    mean: Float[Tensor, "model batch latent"],
    log_variance: Float[Tensor, "model batch latent"],
    noise: Float[Tensor, "model batch latent"],
    rounded: Shaped[Tensor, "model batch latent"] | None = None,
) -> StackedCode:
    """z = μ + σ ε and KL_j = ½ (μ² + σ² − log σ² − 1), without history; ``rounded`` takes z in another precision."""
    mean, log_variance = mean.detach().contiguous(), log_variance.detach().contiguous()
    sampled, kl = torch.empty_like(mean), torch.empty_like(mean)
    programs = triton.cdiv(mean.numel(), BLOCK)
    _code[(programs,)](mean, log_variance, noise.contiguous(), sampled, rounded, kl, mean.numel(), BLOCK, num_warps=4)
    return StackedCode(mean, log_variance, sampled, kl)


def _diagonal_backward(
    heads: dict[str, Tensor], noise: Tensor, slopes: list[Tensor | None], by_sampled: Tensor, dtype: torch.dtype
) -> dict[str, Tensor]:
    mean, log_variance = heads["mean"].contiguous(), heads["log_variance"].contiguous()
    by_mean, by_log_variance, own, by_kl = slopes
    out = [torch.empty_like(mean, dtype=dtype) for _ in range(2)]
    given = [None if slope is None else slope.contiguous() for slope in (by_mean, by_log_variance, own)]
    # the slope by a KL is often one number for a whole model, and is read as that
    strides = (0, 0, 0) if by_kl is None else by_kl.stride()
    n_batch, latents = mean.shape[1:]
    programs = triton.cdiv(mean.numel(), BLOCK)
    _code_backward[(programs,)](
        mean, log_variance, noise.contiguous(), by_sampled.contiguous(), *given, by_kl, *out,
        mean.numel(), n_batch, latents, *strides, BLOCK, num_warps=4,
    )  # fmt: skip
    return {"mean": out[0], "log_variance": out[1]}


class Totals(torch.autograd.Function):
    """Every model's KL, summed over latents and averaged over the batch, and its mean reconstruction loss."""

    @staticmethod
    def forward(
        ctx: Any, kl: Float[Tensor, "model batch latent"], reconstructions: Float[Tensor, "model batch"]
    ) -> tuple[Float[Tensor, " model"], Float[Tensor, " model"]]:
        ctx.shape = kl.shape
        found = totals_of(kl, reconstructions)
        return found[0], found[1]

    @staticmethod
    def backward(ctx: Any, by_kl: Tensor, by_reconstruction: Tensor) -> tuple[Tensor, Tensor]:
        n_models, n_batch, latents = ctx.shape
        each = (by_kl / n_batch)[:, None, None].expand(n_models, n_batch, latents)
        return each, (by_reconstruction / n_batch)[:, None].expand(n_models, n_batch).contiguous()


def latent_statistics(code: StackedCode) -> Float[Tensor, "model statistic latent"]:
    """What the history keeps of every latent (`unweave.training.engine.LATENT_STATISTICS`), summed in a fixed order."""
    n_models, n_batch, latents = code.mean.shape
    found = code.mean.new_empty(n_models, 5, latents)
    tiles = triton.cdiv(latents, LATENTS)
    _statistics[(n_models * tiles,)](
        code.mean.contiguous(), code.log_variance.contiguous(), code.kl.contiguous(), found,
        latents, tiles, n_batch, ROWS, LATENTS, num_warps=4,
    )  # fmt: skip
    return found


def try_sums(like: Float[Tensor, "model batch latent"]) -> None:
    """The sums over codes once, on nothing: what does not compile is found here."""
    Totals.apply(like, like[..., 0])
    n, now = len(like), like.new_zeros((), dtype=torch.int64)
    nobody, terms, good = (
        now.expand(n).contiguous(),
        like.new_zeros(n, 1),
        torch.zeros_like(like[:, 0, 0], dtype=torch.bool),
    )
    weigh(like, like[..., 0], like.new_zeros(n, 1, 2), None, now, nobody, terms, good)
    latent_statistics(StackedCode(like, like, like, like))


@triton.jit
def _code(mean, log_variance, noise, sampled, rounded, kl, n_values, BLOCK: tl.constexpr):
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = place < n_values
    mu, log_var = tl.load(mean + place, mask=inside, other=0.0), tl.load(log_variance + place, mask=inside, other=0.0)
    # z = μ + σ ε,  KL_j = ½ (μ² + σ² − log σ² − 1)
    z = mu + tl.exp(0.5 * log_var) * tl.load(noise + place, mask=inside, other=0.0)
    tl.store(sampled + place, z, mask=inside)
    if rounded is not None:
        tl.store(rounded + place, z.to(rounded.dtype.element_ty), mask=inside)
    tl.store(kl + place, 0.5 * (mu * mu + tl.exp(log_var) - log_var - 1.0), mask=inside)


@triton.jit
def _code_backward(
    mean, log_variance, noise, by_decoder, by_mean, by_log_variance, by_sampled, by_kl, out_mean, out_log_variance,
    n_values, n_batch, latents, model_stride, example_stride, latent_stride, BLOCK: tl.constexpr,
):  # fmt: skip
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = place < n_values
    mu, log_var = tl.load(mean + place, mask=inside, other=0.0), tl.load(log_variance + place, mask=inside, other=0.0)
    by_z = tl.load(by_decoder + place, mask=inside, other=0.0)
    if by_sampled is not None:
        by_z += tl.load(by_sampled + place, mask=inside, other=0.0)
    # ∂z/∂μ = 1,  ∂z/∂log σ² = ½ σ ε
    to_mean = by_z
    to_log_variance = by_z * 0.5 * tl.exp(0.5 * log_var) * tl.load(noise + place, mask=inside, other=0.0)
    if by_kl is not None:
        example = place // latents
        at = example // n_batch * model_stride + example % n_batch * example_stride + place % latents * latent_stride
        weight = tl.load(by_kl + at, mask=inside, other=0.0)
        # ∂KL/∂μ = μ,  ∂KL/∂log σ² = ½ (σ² − 1)
        to_mean += weight * mu
        to_log_variance += weight * 0.5 * (tl.exp(log_var) - 1.0)
    if by_mean is not None:
        to_mean += tl.load(by_mean + place, mask=inside, other=0.0)
    if by_log_variance is not None:
        to_log_variance += tl.load(by_log_variance + place, mask=inside, other=0.0)
    tl.store(out_mean + place, to_mean.to(out_mean.dtype.element_ty), mask=inside)
    tl.store(out_log_variance + place, to_log_variance.to(out_log_variance.dtype.element_ty), mask=inside)


@triton.jit
def _statistics(
    mean, log_variance, kl, out, latents, tiles, N_BATCH: tl.constexpr, ROWS: tl.constexpr, LATENTS: tl.constexpr
):  # fmt: skip
    model = (tl.program_id(0) // tiles).to(tl.int64)
    column = tl.program_id(0) % tiles * LATENTS + tl.arange(0, LATENTS)
    own = column < latents
    rows = tl.arange(0, ROWS)
    sum_kl = tl.zeros((ROWS, LATENTS), dtype=tl.float32)
    sum_mean = tl.zeros((ROWS, LATENTS), dtype=tl.float32)
    sum_var = tl.zeros((ROWS, LATENTS), dtype=tl.float32)
    for begin in range(0, N_BATCH, ROWS):
        row = begin + rows
        inside, place = _tile(model, row, column, N_BATCH, latents)
        sum_kl += tl.load(kl + place, mask=inside, other=0.0)
        sum_mean += tl.load(mean + place, mask=inside, other=0.0)
        sum_var += tl.where(inside, tl.exp(tl.load(log_variance + place, mask=inside, other=0.0)), 0.0)
    middle, middle_var = tl.sum(sum_mean, axis=0) / N_BATCH, tl.sum(sum_var, axis=0) / N_BATCH
    away = tl.zeros((ROWS, LATENTS), dtype=tl.float32)
    away_var = tl.zeros((ROWS, LATENTS), dtype=tl.float32)
    for begin in range(0, N_BATCH, ROWS):
        row = begin + rows
        inside, place = _tile(model, row, column, N_BATCH, latents)
        from_mean = tl.load(mean + place, mask=inside, other=0.0) - middle[None, :]
        from_var = tl.exp(tl.load(log_variance + place, mask=inside, other=0.0)) - middle_var[None, :]
        away += tl.where(inside, from_mean * from_mean, 0.0)
        away_var += tl.where(inside, from_var * from_var, 0.0)
    at = out + model * 5 * latents + column
    tl.store(at, tl.sum(sum_kl, axis=0) / N_BATCH, mask=own)
    tl.store(at + latents, middle, mask=own)
    tl.store(at + 2 * latents, tl.sum(away, axis=0) / N_BATCH, mask=own)
    tl.store(at + 3 * latents, middle_var, mask=own)
    tl.store(at + 4 * latents, tl.sum(away_var, axis=0) / N_BATCH, mask=own)


@triton.jit
def _tile(model, row, column, n_batch, latents):
    inside = (row < n_batch)[:, None] & (column < latents)[None, :]
    return inside, (model * n_batch + row)[:, None] * latents + column[None, :]
