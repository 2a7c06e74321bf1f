"""β-TCVAE (Chen et al., 2018): the KL split into mutual information, total correlation and dimension-wise KL."""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch

from unweave.config import number
from unweave.models.method import Context, Terms
from unweave.models.objectives.objective import Objective, total_kl
from unweave.models.posteriors import Code
from unweave.shapes import Float, Scalar, Tensor

Estimator = Literal["batch", "weighted", "stratified"]


@dataclass(frozen=True)
class BetaTCVAE(Objective):
    """α MI + β TC + γ dimension-wise KL.

    Written as KL + (α−1) MI + (β−1) TC + (γ−1) DWKL, with the exact KL. Estimators of the aggregate posterior:
    ``batch`` leaves out all constants (the published study's; its gradient is that of ``weighted``), ``weighted`` is
    minibatch-weighted sampling, ``stratified`` its stratified form with the example's own weight on the diagonal.
    """

    name: ClassVar[str] = "beta_tcvae"
    beta: Scalar = number(6.0, least=0, help="weight of the total correlation")
    alpha: Scalar = number(1.0, least=0, help="weight of the mutual information of index and code")
    gamma: Scalar = number(1.0, least=0, help="weight of the dimension-wise KL")
    estimator: Estimator = "batch"

    def terms(self, code: Code, context: Context) -> Terms:
        kl = total_kl(code)
        information, correlation, dimensionwise = decompose(code, self.estimator, context.n_examples)
        regulariser = (
            kl + (self.alpha - 1.0) * information + (self.beta - 1.0) * correlation + (self.gamma - 1.0) * dimensionwise
        )
        parts = {"mutual_information": information, "total_correlation": correlation, "dimensionwise_kl": dimensionwise}
        return {"regulariser": regulariser, "kl": kl} | parts


def decompose(
    code: Code, estimator: Estimator, n_examples: int
) -> tuple[Float[Tensor, ""], Float[Tensor, ""], Float[Tensor, ""]]:
    """Index-code mutual information, total correlation and dimension-wise KL, each estimated from one batch."""
    densities = log_densities(code)
    weights = log_weights(len(code.mean), estimator, n_examples).to(densities)
    log_joint = torch.logsumexp(densities.sum(-1) + weights, dim=1)
    log_product = torch.logsumexp(densities + weights[..., None], dim=1).sum(-1)
    log_own = torch.diagonal(densities.sum(-1))
    log_prior = -0.5 * (code.sampled.square() + math.log(2.0 * math.pi)).sum(-1)
    # MI = E log q(z|x)/q(z),  TC = E log q(z)/Π q(z_j),  DWKL = E log Π q(z_j)/p(z)
    return (log_own - log_joint).mean(), (log_joint - log_product).mean(), (log_product - log_prior).mean()


def log_densities(code: Code) -> Float[Tensor, "batch batch latent"]:
    """log q(z_i,d | x_j) for every sample i and every posterior j of the batch."""
    distance = code.sampled[:, None] - code.mean[None]
    return -0.5 * (
        distance.square() * torch.exp(-code.log_variance)[None] + code.log_variance[None] + math.log(2.0 * math.pi)
    )


def log_weights(batch: int, estimator: Estimator, n_examples: int) -> Float[Tensor, "batch batch"]:
    """log of how much posterior j counts in the estimate of q(z_i)."""
    if estimator == "batch":
        return torch.zeros(batch, batch, dtype=torch.float64)
    if estimator == "weighted":
        return torch.full((batch, batch), -math.log(batch * n_examples), dtype=torch.float64)
    if n_examples < 2 or batch < 2:
        raise ValueError("stratified estimates need at least two examples in the data and in the batch")
    # the example's own posterior counts 1/N; the others share the remaining (N − 1)/N evenly
    others = (n_examples - 1) / (n_examples * (batch - 1))
    weights = torch.full((batch, batch), math.log(others), dtype=torch.float64)
    return weights.fill_diagonal_(-math.log(n_examples))
