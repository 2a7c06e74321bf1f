"""IMA contrast of independent mechanism analysis (Gresele et al., 2021)."""

from dataclasses import dataclass
from typing import Any

import torch

from unweave.metrics.geometry.orthogonality import restricted
from unweave.shapes import Float, Tensor


@dataclass(frozen=True)
class ImaContrast:
    """``score`` is the mean of ``per_example`` over those with a regular Jacobian; ``singular`` the share of others.

    It is 0 exactly when the columns of the Jacobian are orthogonal, positive else, and infinite where they are
    linearly dependent. With no regular example the score is infinite.
    """

    score: float
    per_example: Float[Tensor, " sample"]
    singular: float


def ima_contrast(gram: Any, *, active: Any = None) -> ImaContrast:
    """Logarithm of what the columns of J would span if they were orthogonal, over what they do span.

    ``gram`` holds JᵀJ of every example; ``active`` restricts it to the latents that are used. Unlike DtO it does not
    change with the scale of a latent, and needs no singular vectors, so equal singular values do not disturb it.
    """
    table = restricted(gram, active)
    norms = torch.diagonal(table, dim1=-2, dim2=-1)
    scale = norms.clamp(min=1e-300).sqrt()
    cosines = table / (scale[..., :, None] * scale[..., None, :])
    eigenvalues = torch.linalg.eigvalsh(cosines)
    floor = 64 * torch.finfo(torch.float64).eps * table.shape[-1]
    regular = (norms > 0).all(-1) & (eigenvalues > floor).all(-1)
    # Σ log ‖J_j‖ − ½ log det JᵀJ = −½ log det of the cosines between the columns
    contrast = -0.5 * torch.where(regular[:, None], eigenvalues.clamp(min=floor), 1.0).log().sum(-1)
    per_example = contrast.clamp(min=0.0).masked_fill(~regular, torch.inf)
    score = float(per_example[regular].mean()) if bool(regular.any()) else torch.inf
    return ImaContrast(score, per_example, float((~regular).double().mean()))
