"""Closed forms of linear VAEs (Dai et al., 2017; Lucas et al., 2019; Bonheme, 2023, ch. 4; Tipping and Bishop, 1999).

A linear VAE has the decoder N(Wz + b, γI), an affine mean, and a posterior covariance that does not depend on x.
Weighting the KL by β is the same as a decoder of noise βγ, so everything below knows only their product. In terms of
the eigenvalues λ of the data's covariance, every direction with λ > βγ gets a latent of posterior variance βγ/λ and
loses exactly βγ in reconstruction; every other one is passive. That is reverse water-filling, with βγ the water.
"""

import math
from dataclasses import dataclass

import torch

from unweave.shapes import Float, Tensor

ROUNDING = 1e-12
"""Of the largest eigenvalue: what a computed one may be off."""


@dataclass(frozen=True)
class LinearOptimum:
    """The best linear β-VAE for data of a given covariance, latents in the order of their eigenvalues.

    With a diagonal posterior it is unique up to order and sign of the latents (and a rotation among equal
    eigenvalues); with a full covariance up to any rotation. ``rate`` and ``distortion`` are in nats; the
    distortion includes the likelihood's constants, so ``loss`` = distortion + β rate is what training reaches.
    """

    weight: Float[Tensor, "feature latent"]
    encoder: Float[Tensor, "latent feature"]
    variance: Float[Tensor, " latent"]
    eigenvalues: Float[Tensor, " feature"]
    n_active: int
    noise: float
    rate: float
    distortion: float
    loss: float


def linear_optimum(
    covariance: Float[Tensor, "..."], n_latents: int, *, noise: float | None = None, beta: float = 1.0
) -> LinearOptimum:
    """Decoder, encoder and posterior variances of the optimum for a covariance (feature × feature).

    The decoder's bias is the data's mean.
    ``noise`` is γ, the variance of the Gaussian likelihood (½ for a plain squared error); without it, it is learned
    as well, and the optimum is that of probabilistic PCA.
    """
    if n_latents < 1:
        raise ValueError(f"a model needs at least one latent, given {n_latents}")
    eigenvalues, directions = _principal(covariance)
    gamma = learned_noise(eigenvalues, n_latents, beta=beta) if noise is None else noise
    if not (gamma > 0.0 and beta > 0.0):
        raise ValueError(f"noise and beta must be positive, given {gamma} and {beta}")
    water = beta * gamma
    size = min(n_latents, len(eigenvalues))
    top = torch.zeros(n_latents, dtype=torch.float64)
    top[:size] = eigenvalues[:size]
    basis = torch.zeros(len(eigenvalues), n_latents, dtype=torch.float64)
    basis[:, :size] = directions[:, :size]
    # W = U √(λ − βγ)₊,  μ = √(λ − βγ)₊ / λ · Uᵀ(x − b),  σ² = min(1, βγ / λ)
    above = top - water
    # a direction just as strong as the noise is off, whichever way its last bits fell
    signal = torch.where(above > ROUNDING * eigenvalues[0], above, 0.0)
    n_active = int((signal > 0).sum())
    variance = torch.where(signal > 0, water / top.clamp(min=1e-300), 1.0)
    encoder = (signal.sqrt() / (signal + water))[:, None] * basis.T
    # rate = ½ Σ_active log λ / βγ,  distortion = (Σ_active βγ + Σ_rest λ) / 2γ + m/2 log 2πγ
    rate = -0.5 * float(variance.log().sum())
    error = n_active * water + float(eigenvalues[n_active:].sum())
    distortion = error / (2.0 * gamma) + 0.5 * len(eigenvalues) * math.log(2.0 * math.pi * gamma)
    weight = basis * signal.sqrt()
    loss = distortion + beta * rate
    return LinearOptimum(weight, encoder, variance, eigenvalues, n_active, gamma, rate, distortion, loss)


def learned_noise(eigenvalues: Float[Tensor, " feature"], n_latents: int, *, beta: float = 1.0) -> float:
    """The likelihood's variance γ when it is learned with the weights.

    With a active latents γ = Σ_rest λ / (m − βa): for β = 1 the mean of the eigenvalues left over, as in probabilistic
    PCA. Of the numbers of active latents that agree with their own γ the one of lowest loss is taken.
    """
    m, total = len(eigenvalues), float(eigenvalues.sum())
    found: list[tuple[float, float]] = []
    for n_active in range(min(n_latents, m) + 1):
        kept, rest, room = eigenvalues[:n_active], float(eigenvalues[n_active:].sum()), m - beta * n_active
        if room <= 0.0:
            break  # the loss falls as γ grows, until fewer latents are active
        if rest <= 1e-12 * total:
            raise ValueError(
                f"the noise cannot be learned: {n_active} latents explain all variance of {m} features, and it would"
                " fall to 0; give a noise, or use fewer latents than the data has directions"
            )
        gamma = rest / room
        if n_active == 0 or float(kept[-1]) > beta * gamma:
            # loss = m/2 log γ + (aβγ + Σ_rest λ) / 2γ + β/2 Σ_active log λ / βγ, but for constants
            loss = 0.5 * (m * math.log(gamma) + m + beta * float((kept / (beta * gamma)).log().sum()))
            found.append((loss, gamma))
    return min(found)[1]


def posterior(
    weight: Float[Tensor, "feature latent"], noise: float, *, beta: float = 1.0, diagonal: bool = True
) -> tuple[Float[Tensor, "latent feature"], Float[Tensor, "latent latent"]]:
    """The best encoder matrix and posterior covariance for a given linear decoder, optimal or not."""
    water = beta * noise
    gram = weight.T @ weight
    identity = torch.eye(len(gram), dtype=weight.dtype)
    # μ = Wᵀ(βγ I + WWᵀ)⁻¹ (x − b) = (βγ I + WᵀW)⁻¹ Wᵀ (x − b)
    encoder = torch.linalg.solve(water * identity + gram, weight.T)
    # Σ = (WᵀW / βγ + I)⁻¹, its diagonal form with the diagonal of WᵀW
    precision = (torch.diag(torch.diagonal(gram)) if diagonal else gram) / water + identity
    return encoder, torch.linalg.inv(precision)


def linear_loss(
    weight: Float[Tensor, "feature latent"],
    covariance: Float[Tensor, "feature feature"],
    noise: float,
    *,
    beta: float = 1.0,
    diagonal: bool = True,
) -> float:
    """The loss, reconstruction + β KL in nats, of a linear decoder with its best encoder.

    With a full covariance it depends on WWᵀ alone, so no rotation of the latents is preferred; the diagonal one is
    never lower, and equal only where the columns of W are orthogonal (Hadamard's inequality).
    """
    return differentiable_loss(weight, covariance, noise, beta=beta, diagonal=diagonal).item()


def differentiable_loss(
    weight: Float[Tensor, "feature latent"],
    covariance: Float[Tensor, "feature feature"],
    noise: float,
    *,
    beta: float = 1.0,
    diagonal: bool = True,
) -> Float[Tensor, ""]:
    """The same as a tensor: it has a gradient."""
    encoder, spread = posterior(weight, noise, beta=beta, diagonal=diagonal)
    residual = torch.eye(len(covariance), dtype=weight.dtype) - weight @ encoder
    # E ‖x − Wμ − b‖² + tr ΣWᵀW
    error = torch.trace(residual @ covariance @ residual.T) + torch.trace(spread @ weight.T @ weight)
    constant = 0.5 * len(covariance) * math.log(2.0 * math.pi * noise)
    # KL = ½ (tr Σ + E ‖μ‖² − log det Σ − d)
    moved = torch.trace(encoder @ covariance @ encoder.T)
    kl = 0.5 * (torch.trace(spread) + moved - torch.logdet(spread) - len(spread))
    return error / (2.0 * noise) + constant + beta * kl


def _principal(covariance: Tensor) -> tuple[Float[Tensor, " feature"], Float[Tensor, "feature feature"]]:
    if covariance.ndim != 2 or covariance.shape[0] != covariance.shape[1]:
        raise ValueError(f"covariance must be feature × feature, not {tuple(covariance.shape)}")
    values, vectors = torch.linalg.eigh(covariance.double())
    return values.clamp(min=0.0).flip(0), vectors.flip(1)
