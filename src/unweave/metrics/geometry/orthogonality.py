"""Distance to orthogonality, DtO (Rolínek, Zietlow and Martius, 2019; Zietlow, 2022, §3.2.6)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from unweave.metrics.estimators.assignment import largest_assignment
from unweave.shapes import Bool, Float, Int, Tensor


@dataclass(frozen=True)
class Orthogonality:
    """``score`` is the mean of ``per_example``: 0 when every latent moves the image along its own singular direction.

    ``latent`` is the latent matched to each singular direction, largest first. ``degenerate`` is the share of the
    examples in which two singular values agree to a percent: their directions are not determined there, and the
    score is that of an arbitrary rotation (Zietlow, 2022, §3.3.4).
    """

    score: float
    per_example: Float[Tensor, " sample"]
    latent: Int[Tensor, "sample direction"]
    singular_values: Float[Tensor, "sample direction"]
    degenerate: float


def dto(gram: Any, *, active: Any = None) -> Orthogonality:
    """How far the right singular vectors of the decoder's Jacobians are from a signed permutation.

    ``gram`` holds JᵀJ of every example (:func:`unweave.metrics.geometry.jacobian.decoder_gram`, or ``gram`` of your
    own Jacobians). ``active`` restricts it to the latents that are used, and should: the directions of unused ones
    are noise. One latent scores 0.

    The source finds the signed permutation nearest in L¹ by integer programming. Entries of V never exceed 1 in size,
    so that Σ|V − P| = Σ|V| + d − 2 Σ_matched |V|, and the same optimum is the linear assignment of largest Σ|V|.
    """
    table = restricted(gram, active)
    vectors, values = right_singular(table)
    sizes = vectors.abs().cpu().numpy()
    latent = np.empty((len(sizes), sizes.shape[2]), dtype=np.int64)
    matched = np.empty(len(sizes))
    for example, size in enumerate(sizes):
        columns = largest_assignment(size)
        rows = np.arange(len(columns))
        latent[example, columns] = rows
        matched[example] = size[rows, columns].sum()
    # ‖V − P‖² = ‖V‖² + ‖P‖² − 2 Σ_matched |V| = 2 (d − Σ_matched |V|)
    distance = torch.from_numpy(np.sqrt(np.maximum(0.0, 2.0 * (sizes.shape[1] - matched))))
    return Orthogonality(float(distance.mean()), distance, torch.from_numpy(latent), values, _degenerate(values))


def right_singular(
    gram: Float[Tensor, "sample latent latent"],
) -> tuple[Float[Tensor, "sample latent direction"], Float[Tensor, "sample direction"]]:
    """V and the singular values of J = UΣVᵀ, largest first, from JᵀJ = VΣ²Vᵀ."""
    values, vectors = torch.linalg.eigh(gram)
    return vectors.flip(-1), values.clamp(min=0.0).sqrt().flip(-1)


def restricted(gram: Any, active: Any = None) -> Float[Tensor, "sample latent latent"]:
    """Checked Gram matrices of the latents marked in ``active``."""
    table = torch.as_tensor(gram).detach().double()
    if table.ndim != 3 or table.shape[1] != table.shape[2] or table.numel() == 0:
        raise ValueError(f"gram must be sample × latent × latent, JᵀJ of every example, not {tuple(table.shape)}")
    if not bool(torch.isfinite(table).all()):
        raise ValueError("gram must be finite: it holds NaN or infinity; look at the decoder's weights")
    if active is None:
        return table
    kept: Bool[Tensor, " latent"] = torch.as_tensor(active, dtype=torch.bool, device=table.device)
    if kept.shape != table.shape[1:2]:
        raise ValueError(f"active must mark each of the {table.shape[1]} latents, not {tuple(kept.shape)} entries")
    if not bool(kept.any()):
        raise ValueError("no latent is active: a collapsed decoder has no directions to compare")
    return table[:, kept][:, :, kept]


def _degenerate(values: Float[Tensor, "sample direction"]) -> float:
    close = values[:, :-1] - values[:, 1:] <= 0.01 * values[:, :-1]
    return float(close.any(-1).double().mean())
