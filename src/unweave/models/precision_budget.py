"""The precision budget: how best to spread noise over latents (Zietlow, 2022, §3.2.4)."""

import math
from dataclasses import dataclass

from unweave.shapes import Float, Tensor


@dataclass(frozen=True)
class PrecisionBudget:
    """``loss`` is the least E ‖Mε‖², ``variance`` the noise that attains it, ``coefficient`` the loss at C = 0."""

    loss: float
    coefficient: float
    variance: Float[Tensor, " latent"]


def precision_budget(decoder: Float[Tensor, "feature latent"], budget: float = 0.0) -> PrecisionBudget:
    """Minimise E ‖Mε‖² over ε ~ N(0, diag σ²) with Σ_j −log σ_j² = ``budget``, for a linear decoder M.

    Only the product of the column norms matters, so of all rotations of the latents the one with orthogonal columns is
    cheapest (Hadamard's inequality): that is why VAEs pursue PCA directions. The source writes the factor of the
    budget C as e^(−C); from its own constraint it is e^(−C/d), e^(−C/2) for its two latents.
    """
    squares = decoder.double().square().sum(0)
    if bool((squares <= 0).any()):
        raise ValueError("every latent must move the output: a column of zeros would take unbounded noise")
    d = len(squares)
    # E ‖Mε‖² = Σ_j σ_j² ‖M_j‖² ≥ d (Π_j σ_j² ‖M_j‖²)^(1/d), with equality for equal summands
    coefficient = d * math.exp(float(squares.log().mean()))
    loss = coefficient * math.exp(-budget / d)
    return PrecisionBudget(loss, coefficient, loss / d / squares)
