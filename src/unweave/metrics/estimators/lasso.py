"""Lasso regression (Tibshirani, 1996) by cyclic coordinate descent, for many problems at once.

The problems are given by their inner products, so their cost does not depend on the number of samples. Updates, order
and stopping rule are those of scikit-learn's ``Lasso``, problem by problem: its answers, not only its objective.
"""

import torch

from unweave.shapes import Float, Tensor


def lasso(
    gram: Float[Tensor, "problem latent latent"],
    cross: Float[Tensor, "problem latent"],
    target: Float[Tensor, " problem"],
    penalty: float,
    *,
    tolerance: float = 1e-4,
    max_sweeps: int = 1000,
) -> Float[Tensor, "problem latent"]:
    """Weights w that minimise ½‖y − Xw‖² + penalty·‖w‖₁, given XᵀX, Xᵀy and ‖y‖².

    A problem rests once its weights move by less than the tolerance and its duality gap is below tolerance·‖y‖².
    """
    weights = torch.zeros_like(cross)
    moving = torch.arange(len(cross), device=cross.device)
    for _ in range(max_sweeps):
        w, change = _sweep(gram[moving], cross[moving], weights[moving], penalty)
        weights[moving] = w
        largest = w.abs().amax(-1)
        still = (largest == 0) | (change <= tolerance * largest)
        gap = _gap(gram[moving], cross[moving], target[moving], w, penalty)
        moving = moving[~(still & (gap <= tolerance * target[moving]))]
        if len(moving) == 0:
            break
    return weights


def _sweep(
    gram: Float[Tensor, "problem latent latent"],
    cross: Float[Tensor, "problem latent"],
    weights: Float[Tensor, "problem latent"],
    penalty: float,
) -> tuple[Float[Tensor, "problem latent"], Float[Tensor, " problem"]]:
    weights, change = weights.clone(), torch.zeros_like(cross[:, 0])
    fitted = (gram @ weights[..., None])[..., 0]
    for place in range(cross.shape[1]):
        norm, old = gram[:, place, place], weights[:, place].clone()
        pull = cross[:, place] - fitted[:, place] + norm * old
        # w_j = sign(p) max(|p| − penalty, 0) / ‖x_j‖², with p the pull of the residual without x_j
        new = torch.where(norm > 0, pull.sign() * (pull.abs() - penalty).clamp(min=0.0) / norm.clamp(min=1e-300), 0.0)
        weights[:, place] = new
        fitted = fitted + gram[:, :, place] * (new - old)[:, None]
        change = torch.maximum(change, (new - old).abs())
    return weights, change


def _gap(
    gram: Float[Tensor, "problem latent latent"],
    cross: Float[Tensor, "problem latent"],
    target: Float[Tensor, " problem"],
    weights: Float[Tensor, "problem latent"],
    penalty: float,
) -> Float[Tensor, " problem"]:
    """Primal less dual objective, the dual at the residual scaled into the feasible set."""
    fitted = (gram @ weights[..., None])[..., 0]
    explained = (weights * cross).sum(-1)
    residual = target - 2 * explained + (weights * fitted).sum(-1)
    pull = (cross - fitted).abs().amax(-1)
    scale = (penalty / pull.clamp(min=1e-300)).clamp(max=1.0)
    return 0.5 * residual * (1 + scale**2) + penalty * weights.abs().sum(-1) - scale * (target - explained)
