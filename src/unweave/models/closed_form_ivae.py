"""Closed forms of linear identifiable VAEs (Khemakhem et al., 2020; Bonheme, 2023, ch. 5).

The prior N(μ†, diag Σ†) depends on an observed u; the decoder is N(Wz + b, γI), shared by all u.
"""

import math

import torch

from unweave.shapes import Float, Tensor


def ivae_posterior(
    weight: Float[Tensor, "feature latent"],
    noise: float,
    prior_variance: Float[Tensor, " latent"],
    *,
    diagonal: bool = True,
) -> tuple[Float[Tensor, "latent feature"], Float[Tensor, "latent latent"], Float[Tensor, "latent latent"]]:
    """The best posterior for one u: A, B and Σ with mean A(x − b) + Bμ† and covariance Σ (equations 5.7 and 5.9).

    For Σ† = I and μ† = 0 it is that of the linear VAE.
    """
    if bool((prior_variance <= 0).any()):
        raise ValueError("prior_variance must be positive")
    precision = torch.diag(1.0 / prior_variance)
    gram = weight.T @ weight / noise
    full = torch.linalg.inv(gram + precision)
    # μ = (WᵀW/γ + Σ†⁻¹)⁻¹ (Wᵀ(x − b)/γ + Σ†⁻¹ μ†)
    shrunk = torch.linalg.inv(torch.diag(torch.diagonal(gram)) + precision) if diagonal else full
    return full @ weight.T / noise, full @ precision, shrunk


def ivae_prior(
    weight: Float[Tensor, "feature latent"], covariance: Float[Tensor, "feature feature"], noise: float
) -> Float[Tensor, " latent"]:
    """The best prior variances for one u, of prior mean 0, for a decoder with orthogonal columns.

    ``covariance`` is E[(x − b)(x − b)ᵀ | u]. Latent j sees c = w_jᵀ C w_j / ‖w_j‖² of it; then
    Σ†_j = (c − γ)₊ / ‖w_j‖²: what the noise cannot explain, in the units of the latent. A latent without a column
    or with nothing left is passive, with Σ† = Σ and mean 0 (Proposition 5.2.2); 0 stands for that limit.
    """
    squares = weight.square().sum(0)
    gram = weight.T @ weight
    if float((gram - torch.diag(squares)).abs().max()) > 1e-6 * float(squares.max().clamp(min=1e-300)):
        raise ValueError("the columns of weight must be orthogonal for this closed form; rotate them, or use gradients")
    seen = ((covariance @ weight) * weight).sum(0) / squares.clamp(min=1e-300)
    return torch.where(squares > 0, (seen - noise).clamp(min=0.0) / squares.clamp(min=1e-300), 0.0)


def ivae_loss(
    weight: Float[Tensor, "feature latent"],
    covariance: Float[Tensor, "feature feature"],
    noise: float,
    prior_variance: Float[Tensor, " latent"],
    *,
    diagonal: bool = True,
) -> Float[Tensor, ""]:
    """The loss for one u with its best posterior and prior mean 0, in nats (equation 5.11); differentiable."""
    encoder, _, spread = ivae_posterior(weight, noise, prior_variance, diagonal=diagonal)
    residual = torch.eye(len(covariance), dtype=weight.dtype) - weight @ encoder
    error = torch.trace(residual @ covariance @ residual.T) + torch.trace(spread @ weight.T @ weight)
    second = torch.diagonal(spread) + torch.diagonal(encoder @ covariance @ encoder.T)
    # KL = ½ (Σ_j (Σ_jj + E μ_j²) / Σ†_j + log det Σ† − log det Σ − d)
    kl = 0.5 * ((second / prior_variance).sum() + prior_variance.log().sum() - torch.logdet(spread) - len(spread))
    return error / (2.0 * noise) + 0.5 * len(covariance) * math.log(2.0 * math.pi * noise) + kl
