"""Small dense models on a GPU: whole steps by one kernel, many in one launch (`unweave.models.kernels.small`).

Steps that nobody looks at wait until one is recorded, or until somebody asks for the models; then they are made
together. A model's bits do not depend on how many that are.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch

from unweave.models.kernels.stacked_code import StackedCode
from unweave.models.objectives.ae import AE
from unweave.models.objectives.beta_vae import VAE, BetaVAE
from unweave.models.optimisers import Adam
from unweave.shapes import Tensor
from unweave.training.batches import Drawing, Source
from unweave.training.fleet.fleet import MOST_TERMS, Fleet, Group, record_row, template_of

if TYPE_CHECKING:
    from unweave.models.kernels.small import SmallStack

BLOCK = 512
"""Steps at most that are drawn, and made, together."""

TERMS = {AE: ("loss", "reconstruction", "regulariser"), VAE: ("loss", "reconstruction", "regulariser", "kl")}
TERMS[BetaVAE] = TERMS[VAE]
"""The methods that the kernel knows, and the first of its terms as they name them."""


class WholeSteps:
    """Advances a fleet as :class:`unweave.training.fleet.stepper.Stepper` does, several steps at a time."""

    def __init__(self, fleet: Fleet, source: Source, stack: "SmallStack") -> None:
        from unweave.models.kernels.small import SmallState

        self.fleet, self.source, self.stack = fleet, source, stack
        self.drawing, self.drawn_at = Drawing(source, most=BLOCK), -1
        self.first, self.count = 0, 0
        n, size, latents = len(fleet.parameters), source.first.batch_size, source.latents
        device = fleet.device
        code = torch.zeros(3, n, size, latents, device=device)
        if not stack.noisy:
            code[1].fill_(-torch.inf)
        failed_terms = torch.zeros(n, MOST_TERMS, device=device)
        for group in fleet.groups:
            group.failed_terms = failed_terms[group.place]
        self.state = SmallState(
            fleet.parameters, fleet.optimiser_state["first"], fleet.optimiser_state["second"], fleet.learning_rate,
            torch.cat([_weight(group, fleet) for group in fleet.groups]),
            torch.cat([torch.full((_n(group),), group.warmup, device=device) for group in fleet.groups]),
            fleet.failed_at, failed_terms, torch.zeros(n, 4, device=device), *code,
        )  # fmt: skip

    def __call__(self, step: int, *, record: bool) -> None:
        """One step, sooner or later; with ``record`` at once, and every group holds a row for the history."""
        block = self.drawing.block
        if self.count and (step != self.first + self.count or step // block != self.first // block):
            self.catch_up()
        if record:
            self.catch_up()
            self._record(step)
            return
        self.first = step if not self.count else self.first
        self.count += 1

    def catch_up(self) -> None:
        """Make the steps that wait."""
        count, self.count = self.count, 0
        if count:
            self._advance(self.first, count)

    def close(self) -> None:
        """There are no graphs to drop."""

    def _record(self, step: int) -> None:
        fleet = self.fleet
        before = fleet.parameters.clone()
        self._advance(step, 1)
        # z is not looked at
        code = StackedCode(self.state.mean, self.state.log_variance, self.state.mean, self.state.kl)
        fleet.good.copy_(torch.where(fleet.alive[:, None], before, fleet.good))
        fleet.good_at.copy_(torch.where(fleet.alive, step, fleet.good_at))
        for group in fleet.groups:
            record_row(group, code)

    def _advance(self, first: int, count: int) -> None:
        from unweave.models.kernels.small import small_draws

        drawn = self.drawing.block_of(first)
        if self.drawn_at != self.drawing.first:
            store = self.source.data.store.flatten(1)
            self.drawn, self.drawn_at = small_draws(store, drawn, self.stack.optimiser), self.drawing.first
        self.stack.advance(self.state, self.drawn, first, first - self.drawing.first, count)
        for group in self.fleet.groups:
            names = TERMS[type(group.method)]  # type: ignore[index]
            group.terms = dict(zip(names, self.state.terms[group.place].unbind(1)))


def whole_steps(fleet: Fleet, source: Source, say: Callable[[str], None]) -> WholeSteps | None:
    """The quick way for these models; None where it is not wanted, or they are wider or of another kind."""
    if not source.first.whole_steps or not _suits(fleet, source):
        return None
    try:
        from unweave.models.kernels.small import small_stack

        template = template_of(fleet.members, source.data.shape)
        optimiser = source.first.optimiser
        assert isinstance(optimiser, Adam)
        stack = small_stack(template, fleet.backend.layout, optimiser, fleet.device)
        if stack is None:
            return None
        stepper = WholeSteps(fleet, source, stack)
        stepper._advance(0, 0)  # compiled here, where a failure can still be answered
        if fleet.device.type == "cuda":
            torch.cuda.synchronize()
        return stepper
    except torch.cuda.OutOfMemoryError:
        raise
    except Exception as error:  # a Triton that is missing, too old, or fails to compile must never stop a training
        reason = (str(error).splitlines() or [""])[0]
        say(f"small models step by step ({type(error).__name__}: {reason})")
        return None


def _suits(fleet: Fleet, source: Source) -> bool:
    data = source.data
    return (
        all(type(group.method) in TERMS and not group.networks for group in fleet.groups)
        and type(source.first.optimiser) is Adam
        and data.comes_as_stored
        and data.packing == "floats"
        and data.store.dtype == torch.float32
        and data.store.is_contiguous()
        and source.parts == {"images", "noise"}
        and source.pairing is None
        and source.latents == fleet.members.latents
    )


def _weight(group: Group, fleet: Fleet) -> Tensor:
    """What multiplies the KL of each member."""
    return group.scalars.get("beta", torch.ones(_n(group), device=fleet.device))


def _n(group: Group) -> int:
    return group.place.stop - group.place.start
