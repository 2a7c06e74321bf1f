"""Breaking the bias (Zietlow et al., 2021): a change of images that suits entangled VAEs, not disentangled ones."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import nn

from unweave.config import later, number
from unweave.models.autoencoder import Architecture, Encoder
from unweave.models.manipulation import ManipulationNetwork, altered
from unweave.models.method import Batch, Context, Draw, Given, Method, Phase, Terms
from unweave.models.optimisers import Adam
from unweave.shapes import Float, Scalar, Tensor

MANIPULATION = "manipulation"


@dataclass(frozen=True)
class Perturbation(Method):
    """min over m of E[rec_foster(x′) − rec_diminish(x′)], x′ = fold(x + ε m(w)); decoders keep learning to show x′.

    Encoders are frozen and see the original images. Every decoder learns in every step, m in every ``every``-th; losses
    are means over ``samples`` codes of an image and over the models of a side. The networks must be those of the runs.
    The same models on both sides are the control: nothing is to be gained, and m goes where chance leads it.
    """

    name: ClassVar[str] = "perturbation"
    warms_up: ClassVar[bool] = False
    kept: ClassVar[tuple[str, ...]] = (MANIPULATION,)
    encodes: ClassVar[bool] = False
    at_once: ClassVar[int] = 1
    exact_decoders: ClassVar[bool] = True  # m learns from small differences of losses
    foster: tuple[Given, ...] = number((), entries=(1, 64), help="runs whose models the change is to suit")
    diminish: tuple[Given, ...] = number((), entries=(1, 64), help="runs whose models it is to hurt")
    epsilon: Scalar = number(0.1, above=0, most=0.5, help="how much a pixel may change")
    samples: int = number(5, least=1, most=1000, help="codes drawn of every image")
    every: int = number(3, least=1, most=10**6, help="steps of the decoders to one of the manipulation")
    learning_rate: Scalar = number(1e-4, above=0, help="of the manipulation and of the decoders")
    hidden: int = later(0, least=0, most=10_000, help="width of two layers before m's one number (0: none)")

    @property
    def batch(self) -> tuple[str, ...]:
        return ("images", "labels")

    @property
    def given(self) -> Mapping[str, tuple[Given, str]]:
        return {f"{name}_{part}": (run, part) for name, run in self._runs().items() for part in ("encoder", "decoder")}

    def draws(self, architecture: Architecture) -> dict[str, Draw]:
        # each side draws its own codes: a model against itself is then a fair game, and not one that stands still
        return {"code_noise": Draw("normal", 2 * self.samples * architecture.latents)}

    def networks(self, architecture: Architecture) -> dict[str, nn.Module]:
        networks: dict[str, nn.Module] = {MANIPULATION: self.model(architecture)}
        for name in self._runs():
            networks[f"{name}_encoder"] = Encoder(architecture)
            networks[f"{name}_decoder"] = architecture.network.decoder(architecture.latents, architecture.shape)
        return networks

    def phases(self) -> tuple[Phase, ...]:
        optimiser = Adam(self.learning_rate, epsilon=1e-7)
        decoders = tuple(f"{name}_decoder" for name in self._runs())
        return (
            Phase(decoders, self.decoders_loss, optimiser=optimiser),
            Phase((MANIPULATION,), self.manipulation_loss, "gap", optimiser, every=self.every),
        )

    def model(self, architecture: Architecture) -> nn.Module:
        return ManipulationNetwork(architecture, self.hidden)

    def decoders_loss(self, batch: Batch, context: Context) -> tuple[Terms, None]:
        """What all decoders minimise: how badly they show the altered images."""
        with torch.no_grad():
            seen = self.seen(batch, context)
        foster, diminish = (self.reconstruction(side, seen, batch, context) for side in ("foster", "diminish"))
        return {"loss": foster + diminish, "foster": foster, "diminish": diminish, "gap": foster - diminish}, None

    def manipulation_loss(self, batch: Batch, context: Context) -> tuple[Terms, None]:
        """What the manipulation minimises: how much better the fostered models show its images than the others."""
        seen = self.seen(batch, context)
        foster, diminish = (self.reconstruction(side, seen, batch, context) for side in ("foster", "diminish"))
        return {"gap": foster - diminish}, None

    def seen(self, batch: Batch, context: Context) -> Float[Tensor, "batch ..."]:
        """The altered images."""
        return altered(batch["images"], context.networks[MANIPULATION](batch["labels"]), self.epsilon)

    def reconstruction(self, side: str, seen: Tensor, batch: Batch, context: Context) -> Float[Tensor, ""]:
        """How badly the models of a side show the altered images, from codes of the original ones."""
        losses = [self._of_model(name, seen, batch, context) for name in self._runs() if name.startswith(side)]
        return torch.stack(losses).mean()

    def _of_model(self, name: str, seen: Tensor, batch: Batch, context: Context) -> Float[Tensor, ""]:
        architecture = context.networks[MANIPULATION].architecture
        with torch.no_grad():
            heads = context.networks[f"{name}_encoder"](batch["images"])
            noise = batch["code_noise"].unflatten(-1, (2, self.samples, architecture.latents))
            noise = noise[:, 0 if name.startswith("foster") else 1]
            many = {head: value.repeat_interleave(self.samples, 0) for head, value in heads.items()}
            sampled = architecture.posterior.code(many, noise.flatten(0, 1)).sampled
        outputs = context.networks[f"{name}_decoder"](sampled)
        losses: Tensor = architecture.likelihood.loss(seen.repeat_interleave(self.samples, 0), outputs)
        return losses.mean()

    def _runs(self) -> dict[str, Given]:
        sides = {"foster": self.foster, "diminish": self.diminish}
        return {f"{side}{number}": run for side, runs in sides.items() for number, run in enumerate(runs)}
