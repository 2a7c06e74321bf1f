"""An autoencoder whose encoder sees labels beside the examples, and whose prior is a function of the labels."""

from abc import abstractmethod

import torch
from torch import nn
from torch.nn import functional

from unweave.models.autoencoder import Architecture, Autoencoder, Encoder
from unweave.models.labels import Encoding, encode_labels, label_columns
from unweave.models.layers import Dense
from unweave.models.posteriors import Code, Heads, under_prior
from unweave.shapes import Float, Tensor

SLOPE = 0.1
"""Of the leaky rectifiers of the prior, for negative numbers."""


class LabelledAutoencoder(Autoencoder):
    """An autoencoder that encodes examples together with their labels."""

    def forward(
        self,
        x: Float[Tensor, "batch ..."],
        noise: Float[Tensor, "batch latent"],
        labels: Float[Tensor, "batch label"] | None = None,
    ) -> tuple[Code, Tensor]:
        code = self.code(x, noise, labels)
        return code, self.architecture.likelihood.loss(x, self.decoder(code.sampled), self.log_noise)

    @abstractmethod
    def code(
        self,
        x: Float[Tensor, "batch ..."],
        noise: Float[Tensor, "batch latent"],
        labels: Float[Tensor, "batch label"] | None = None,
    ) -> Code:
        """Mean, variance, sample and KL of every latent."""

    def encode(self, x: Float[Tensor, "batch ..."], labels: Float[Tensor, "batch label"] | None = None) -> Code:
        noise = torch.zeros(len(x), self.architecture.latents, dtype=x.dtype, device=x.device)
        return self.code(x, noise, labels)

    def told(self, labels: Float[Tensor, "batch label"] | None) -> Float[Tensor, "batch label"]:
        """The labels, which are asked for where there are none."""
        if labels is None:
            raise ValueError(
                f"this model encodes examples together with their {len(self.architecture.labels)} labels, and got none:"
                " give encode() the labels too, one row an example"
            )
        return labels


class ConditionalAutoencoder(LabelledAutoencoder):
    """q(z|x,u), p(x|z) and p(z|u) = N(μ†(u), diag σ†²(u)); ``learns_mean``: whether μ† is learned or 0."""

    def __init__(
        self, architecture: Architecture, encoding: Encoding, widths: tuple[int, ...], *, learns_mean: bool
    ) -> None:
        super().__init__(architecture, None)
        self.encoding = encoding
        n_columns = label_columns(architecture.labels, encoding)
        self.encoder = Encoder(architecture, n_columns)
        self.prior = LabelPrior(n_columns, widths, architecture.latents, learns_mean=learns_mean)

    def code(
        self,
        x: Float[Tensor, "batch ..."],
        noise: Float[Tensor, "batch latent"],
        labels: Float[Tensor, "batch label"] | None = None,
    ) -> Code:
        """Mean, variance and sample of every latent, its prior, and its KL to that."""
        columns = self._columns(x, labels)
        return under_prior(self._posterior(self.encoder(x, columns), noise), *self.prior(columns))

    def prior_of(
        self, labels: Float[Tensor, "batch label"]
    ) -> tuple[Float[Tensor, "batch latent"], Float[Tensor, "batch latent"]]:
        """Mean and log-variance of the codes of examples with these labels."""
        return self.prior(encode_labels(labels, self.architecture.labels, self.encoding))

    def _posterior(self, heads: Heads, noise: Tensor) -> Code:
        return self.architecture.posterior.code(heads, noise)

    def _columns(self, x: Tensor, labels: Tensor | None) -> Float[Tensor, "batch column"]:
        return encode_labels(self.told(labels), self.architecture.labels, self.encoding).to(x.dtype)


class LabelPrior(nn.Module):
    """From labels to the mean and the log-variance of every latent, by two equal networks of leaky rectifiers."""

    def __init__(self, n_columns: int, widths: tuple[int, ...], latents: int, *, learns_mean: bool) -> None:
        super().__init__()
        self.log_variance = LeakyLayers(n_columns, widths, latents)
        self.mean = LeakyLayers(n_columns, widths, latents) if learns_mean else None

    def forward(
        self, columns: Float[Tensor, "batch column"]
    ) -> tuple[Float[Tensor, "batch latent"], Float[Tensor, "batch latent"]]:
        log_variance = self.log_variance(columns)
        return torch.zeros_like(log_variance) if self.mean is None else self.mean(columns), log_variance


class LeakyLayers(nn.Module):
    def __init__(self, n_inputs: int, widths: tuple[int, ...], n_outputs: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(map(Dense, (n_inputs, *widths[:-1]), widths))
        self.output = Dense((n_inputs, *widths)[-1], n_outputs)

    def forward(self, x: Float[Tensor, "batch column"]) -> Float[Tensor, "batch output"]:
        for layer in self.layers:
            x = functional.leaky_relu(layer(x), SLOPE)
        return self.output(x)
