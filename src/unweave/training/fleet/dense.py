"""The backend for small dense networks: batched products of all models, without mapping single ones.

On a CPU a step of such a network is a few hundred small operations, and what ``vmap`` adds to each of them costs more
than the arithmetic. Posterior, likelihood and objective are the single-model code all the same.
"""

from dataclasses import dataclass

import torch

from unweave.models import Autoencoder
from unweave.models.kernels.layout import layout_of
from unweave.models.kernels.stacked_code import Early, Losses, StackedCode, Weighed
from unweave.models.networks.mlp import Layers, MLPDecoder
from unweave.models.posteriors import Deterministic, Diagonal
from unweave.shapes import Float, Tensor
from unweave.training.fleet.portable import Portable


@dataclass(frozen=True)
class DenseStack(Portable):
    """Gradients by automatic differentiation of stacked layers."""

    name: str = "stacked"

    def gradients(
        self,
        parameters: Float[Tensor, "model size"],
        weights: Float[Tensor, "model size"],
        examples: Float[Tensor, "model batch ..."],
        noise: Float[Tensor, "model batch latent"],
        losses: Losses,
        early: Early | None = None,
    ) -> tuple[Float[Tensor, "model size"], StackedCode]:
        """The gradient of every model's loss, and the codes it was computed from."""
        assert not isinstance(losses, Weighed), "only kernels sum what is weighed"
        leaves = self._leaves_of(weights)
        codes = self._codes(leaves, examples, noise)
        outputs = self._decoded(leaves, codes.sampled)
        flat = examples.flatten(0, 1)
        # a likelihood sums over an example, whichever model it belongs to
        reconstructions = self.template.architecture.likelihood.loss(flat, outputs.reshape(flat.shape))
        total = losses(codes, reconstructions.view(examples.shape[:2]))
        found = torch.autograd.grad(total, list(leaves.values()))
        return self.layout.rows(dict(zip(leaves, found))), codes.detach()

    @torch.no_grad()
    def code(
        self,
        weights: Float[Tensor, "model size"],
        examples: Float[Tensor, "model batch ..."],
        noise: Float[Tensor, "model batch latent"],
    ) -> StackedCode:
        """The codes of some models (rows of the stack) for a batch each."""
        return self._codes(self.layout.views(weights), examples, noise)

    def _codes(self, leaves: dict[str, Tensor], examples: Tensor, noise: Tensor) -> StackedCode:
        trunk = self.template.encoder.trunk
        assert isinstance(trunk, Layers)
        features = _through(trunk, "encoder.trunk", leaves, examples.flatten(2))
        heads = {name: _affine(leaves, f"encoder.heads.{name}", features) for name in self.template.encoder.heads}
        # a posterior knows one batch: to it the models' batches are one long one
        flat = {name: head.flatten(0, 1) for name, head in heads.items()}
        code = self.template.architecture.posterior.code(flat, noise.flatten(0, 1))
        fields = (code.mean, code.log_variance, code.sampled, code.kl)
        return StackedCode(*(part.unflatten(0, noise.shape[:2]) for part in fields))

    def _decoded(self, leaves: dict[str, Tensor], sampled: Tensor) -> Float[Tensor, "model batch feature"]:
        decoder = self.template.decoder
        assert isinstance(decoder, MLPDecoder)
        return _affine(leaves, "decoder.output", _through(decoder.hidden, "decoder.hidden", leaves, sampled))


def dense_stack(template: Autoencoder) -> DenseStack | None:
    """The backend for models of this structure, or None where it has layers of another kind."""
    architecture = template.architecture
    plain = isinstance(template.encoder.trunk, Layers) and isinstance(template.decoder, MLPDecoder)
    simple = isinstance(architecture.posterior, Diagonal | Deterministic) and not architecture.likelihood.learns_noise
    return DenseStack(template, layout_of(template)) if plain and simple else None


def _through(layers: Layers, place: str, leaves: dict[str, Tensor], x: Tensor) -> Tensor:
    for number in range(len(layers.layers)):
        x = layers.activation(_affine(leaves, f"{place}.layers.{number}", x))
    return x


def _affine(leaves: dict[str, Tensor], place: str, x: Float[Tensor, "model batch input"]) -> Tensor:
    # x Wᵀ + b
    return torch.baddbmm(leaves[f"{place}.bias"][:, None], x, leaves[f"{place}.weight"].transpose(1, 2))
