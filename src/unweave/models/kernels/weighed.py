"""What is summed of the codes of a stack of models, in Triton: totals, and losses that are two totals times numbers.

Sums go over tiles of one size, so they do not depend on how many models there are, nor on how wide others' codes are: a
latent that a model does not have is silent, and adds zeros.
"""

# ruff: noqa: N803
# mypy: disable-error-code="no-untyped-def"
import triton
import triton.language as tl

from unweave.shapes import Bool, Float, Int, Tensor

ROWS, LATENTS = 64, 16
"""Of a tile whose values are added up."""


def totals_of(
    kl: Float[Tensor, "model batch latent"], reconstructions: Float[Tensor, "model batch"]
) -> Float[Tensor, "2 model"]:
    """Every model's KL, summed over latents and averaged over the batch; then its mean reconstruction loss."""
    n_models, n_batch, latents = kl.shape
    totals = kl.new_empty(2, n_models)
    _totals[(n_models,)](
        kl.contiguous(), reconstructions.contiguous(), totals, n_models, latents, n_batch,
        triton.cdiv(latents, LATENTS), ROWS, LATENTS, num_warps=4,
    )  # fmt: skip
    return totals


def weigh(
    kl: Float[Tensor, "model batch latent"], reconstructions: Float[Tensor, "model batch"],
    weights: Float[Tensor, "model term 2"], share: Float[Tensor, ""] | None, step: Int[Tensor, ""],
    failed_at: Int[Tensor, " model"], failed_terms: Float[Tensor, "model most"], good: Bool[Tensor, " model"],
) -> Float[Tensor, "model term"]:  # fmt: skip
    """Every term: what ``weights`` make of the mean reconstruction loss and the total KL; NaN weighs nothing.

    The first term is the loss, of which ``share`` is how much the KL counts already. Written in place: which models are
    ``good``; and of one whose loss is not finite for the first time, when that was, and its terms.
    """
    n_models, n_batch, latents = kl.shape
    n_terms = weights.shape[1]
    terms = kl.new_empty(n_models, n_terms)
    _weigh[(n_models,)](
        kl.contiguous(), reconstructions.contiguous(), weights.contiguous(), share, step, failed_at, failed_terms, good,
        terms, latents, n_terms, failed_terms.stride(0), n_batch, triton.cdiv(latents, LATENTS), ROWS, LATENTS,
        triton.next_power_of_2(n_terms), num_warps=4, enable_fp_fusion=False,  # as PyTorch rounds
    )  # fmt: skip
    return terms


@triton.jit
def _totals(
    kl, reconstructions, totals, n_models, latents,
    N_BATCH: tl.constexpr, TILES: tl.constexpr, ROWS: tl.constexpr, LATENTS: tl.constexpr,
):  # fmt: skip
    model = tl.program_id(0).to(tl.int64)
    own, rec = _of_model(kl, reconstructions, model, latents, N_BATCH, TILES, ROWS, LATENTS)
    tl.store(totals + model, own)
    tl.store(totals + n_models + model, rec)


@triton.jit
def _weigh(
    kl, reconstructions, weights, share, step, failed_at, failed_terms, good, terms, latents, n_terms, failed_stride,
    N_BATCH: tl.constexpr, TILES: tl.constexpr, ROWS: tl.constexpr, LATENTS: tl.constexpr, TERMS: tl.constexpr,
):  # fmt: skip
    model = tl.program_id(0).to(tl.int64)
    own, rec = _of_model(kl, reconstructions, model, latents, N_BATCH, TILES, ROWS, LATENTS)
    term = tl.arange(0, TERMS)
    here = term < n_terms
    at = weights + (model * n_terms + term) * 2
    by_rec, by_kl = tl.load(at, mask=here, other=0.0), tl.load(at + 1, mask=here, other=0.0)
    # 0 · ∞ is not 0: what a term is not made of must not enter it
    of_rec, of_kl = tl.where(by_rec == by_rec, by_rec * rec, 0.0), tl.where(by_kl == by_kl, by_kl * own, 0.0)
    if share is not None:
        of_kl = tl.where(term == 0, tl.load(share) * of_kl, of_kl)
    value = of_rec + of_kl
    loss = tl.sum(tl.where(term == 0, value, 0.0), axis=0)
    alive, finite = tl.load(failed_at + model) < 0, tl.abs(loss) < float("inf")
    fails = alive & (finite == 0)
    tl.store(good + model, alive & finite)
    tl.store(failed_at + model, tl.load(step), mask=fails)
    tl.store(failed_terms + model * failed_stride + term, value, mask=here & fails)
    tl.store(terms + model * n_terms + term, value, mask=here)


@triton.jit
def _of_model(
    kl, reconstructions, model, latents,
    N_BATCH: tl.constexpr, TILES: tl.constexpr, ROWS: tl.constexpr, LATENTS: tl.constexpr,
):  # fmt: skip
    """A model's KL, summed over latents, and its reconstruction loss, both averaged over the batch."""
    rows, columns = tl.arange(0, ROWS), tl.arange(0, LATENTS)
    total, rec = tl.zeros((ROWS, LATENTS), dtype=tl.float32), tl.zeros((ROWS,), dtype=tl.float32)
    for begin in range(0, N_BATCH, ROWS):
        row = begin + rows
        rec += tl.load(reconstructions + model * N_BATCH + row, mask=row < N_BATCH, other=0.0)
        for tile in range(0, TILES):
            column = tile * LATENTS + columns
            inside = (row < N_BATCH)[:, None] & (column < latents)[None, :]
            place = (model * N_BATCH + row)[:, None] * latents + column[None, :]
            total += tl.load(kl + place, mask=inside, other=0.0)
    return tl.sum(tl.sum(total, axis=1), axis=0) / N_BATCH, tl.sum(rec, axis=0) / N_BATCH
