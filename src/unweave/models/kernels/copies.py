"""Which layers have their images brought by the copy engine of a Hopper card, and how their work is divided.

Other layers, precisions, rectifiers, cards and versions of Triton keep the kernels of ``convolutions.py``. So does a
process in which one of these kernels could not be compiled, or whose environment has ``UNWEAVE_COPIES=0``.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, TypeVar

import torch

from unweave.models.kernels.aside import Later, in_turn
from unweave.models.kernels.join import Join
from unweave.shapes import Float, Tensor

if TYPE_CHECKING:
    from unweave.models.kernels.pixels import Frame

SWITCH = "UNWEAVE_COPIES"

Made = TypeVar("Made")


@dataclass(frozen=True)
class Shares:
    """How work is divided: most images of a program, columns of the kernel in a portion, portions on the way, warps."""

    images: int
    columns: int
    slots: int
    warps: int


SUMMED = 8
"""Images whose slopes are one part of a bias's gradient, and the least of a program. Fixed: bits depend on it."""

ENOUGH = 256
"""Programs that fill an H200, about two for each of its 132 multiprocessors."""

TUNED: dict[tuple[str, int, int, int, bool], Shares] = {
    ("down", 16, 32, 32, False): Shares(16, 1, 3, 4),
    ("down", 16, 32, 32, True): Shares(16, 1, 8, 8),
    ("down", 8, 32, 64, False): Shares(16, 2, 4, 4),
    ("down", 8, 32, 64, True): Shares(16, 1, 8, 4),
    ("up", 16, 32, 32, False): Shares(16, 3, 6, 8),
    ("up", 8, 32, 64, False): Shares(16, 3, 3, 4),
    ("up", 8, 32, 64, True): Shares(16, 3, 3, 4),
    ("up", 4, 64, 64, False): Shares(32, 9, 7, 4),
    ("up", 4, 64, 64, True): Shares(32, 9, 7, 4),
    ("correlate", 16, 32, 32, True): Shares(64, 3, 7, 4),
    ("correlate", 8, 32, 64, True): Shares(64, 3, 7, 4),
    ("loss", 32, 1, 32, False): Shares(264, 256, 2, 8),
}
"""By kernel, height of the small image, big and small channels, and whether it is a slope that passes a rectifier, for
bf16 on an H200 (benchmarks/NOTES.md). Of the loss: programs, pixels in a portion, portions on the way, warps."""


def down_copied(
    join: Join, big: Tensor, weights: Tensor, *, activate: bool = False, like: Tensor | None = None,
    leak: float = 0.0, bias_gradient: Tensor | None = None, later: Later = in_turn,
) -> Float[Tensor, "model batch height width small"] | None:  # fmt: skip
    """What ``down`` makes, where the copy engine serves this layer."""
    chosen = _chosen("down", join, leak, big, weights, like)
    if chosen is None:
        return None

    def made() -> Tensor:
        from unweave.models.kernels.copied_down import down_by_copies

        return down_by_copies(
            join, big, weights, chosen, images_of(chosen, *big.shape[:2]),
            activate=activate, like=like, bias_gradient=bias_gradient, later=later,
        )  # fmt: skip

    return _or_nothing(made)


def up_copied(
    join: Join, small: Tensor, weights: Tensor, *, activate: bool = False, like: Tensor | None = None,
    leak: float = 0.0, bias_gradient: Tensor | None = None, later: Later = in_turn,
) -> Float[Tensor, "model batch height2 width2 big"] | None:  # fmt: skip
    """What ``up`` makes, where the copy engine serves this layer."""
    chosen = _chosen("up", join, leak, small, weights, like)
    if chosen is None:
        return None

    def made() -> Tensor:
        if join.height * join.width < WHOLE:
            from unweave.models.kernels.copied_up_small import up_small_by_copies as up_by_copies
        else:
            from unweave.models.kernels.copied_up import up_by_copies

        return up_by_copies(
            join, small, weights, chosen, images_of(chosen, *small.shape[:2]),
            activate=activate, like=like, bias_gradient=bias_gradient, later=later,
        )  # fmt: skip

    return _or_nothing(made)


def correlate_copied(join: Join, big: Tensor, small: Tensor, gradients: Float[Tensor, "model size"]) -> bool:
    """As ``correlate``, where the copy engine serves this layer: whether it did."""
    chosen = _chosen("correlate", join, 0.0, big, None, small)
    if chosen is None:
        return False

    def made() -> bool:
        from unweave.models.kernels.copied_correlate import correlate_by_copies

        correlate_by_copies(join, big, small, gradients, chosen)
        return True

    return _or_nothing(made) is not None


def loss_copied(
    join: Join, frame: "Frame", examples: Tensor, small: Tensor, weights: Tensor
) -> tuple[Tensor, Tensor, Tensor] | None:
    """What ``last_forward`` makes of one channel, where the copy engine serves this layer."""
    chosen = _chosen("loss", join, 0.0, small, weights, None)
    if chosen is None or not _fits_frame(join, frame):
        return None

    def made() -> tuple[Tensor, Tensor, Tensor]:
        from unweave.models.kernels.copied_last import loss_by_copies

        return loss_by_copies(join, examples, small, weights, chosen)

    return _or_nothing(made)


def _fits_frame(join: Join, frame: "Frame") -> bool:
    """Whether examples are masks of bits that fill the frame."""
    from unweave.models.kernels.pixels import MASKS  # not without Triton, as this module is

    whole = (frame.height, frame.width, frame.top, frame.left) == (2 * join.height, 2 * join.width, 0, 0)
    return whole and frame.channels == 1 and frame.packing == MASKS


WHOLE = 64
"""Small pixels that the matrix units take at least; smaller images come some at a time."""


def _chosen(
    what: str, join: Join, leak: float, images: Tensor, weights: Tensor | None, other: Tensor | None
) -> Shares | None:
    """The division of a layer that the copy engine serves."""
    known = TUNED.get((what, join.height, join.n_big, join.n_small, other is not None))
    if known is None or leak or _FAILURES or os.environ.get(SWITCH) == "0" or not is_hopper(images.device):
        return None
    return known if _fits(join, images, other) and (weights is None or _fits_weights(join, weights)) else None


def _fits(join: Join, *images: Tensor | None) -> bool:
    """Whether boxes can be copied out of these images."""
    given = [one for one in images if one is not None]
    beside = max(1, WHOLE // (join.height * join.width))
    return (
        join.kernel == 4
        and join.width == join.height
        and given[0].shape[1] % beside == 0
        and all(_is_copied(one) for one in given)
    )


def _fits_weights(join: Join, weights: Tensor) -> bool:
    return _is_copied(weights) and weights.shape[1] % join.n_small == 0 and join.weight_at % join.n_small == 0


def _is_copied(tensor: Tensor) -> bool:
    return tensor.dtype == torch.bfloat16 and tensor.is_contiguous() and tensor.data_ptr() % 16 == 0


def images_of(chosen: Shares, n_models: int, n_batch: int) -> int:
    """Images of a program: fewer in small fleets, so that these fill the card too. No bit depends on it."""
    images = chosen.images
    while images > SUMMED and n_models * -(-n_batch // images) < ENOUGH:
        images //= 2
    return images


@cache
def is_hopper(device: torch.device) -> bool:
    """Whether a device has the copy engine and the matrix units that the kernels are written for."""
    return device.type == "cuda" and torch.cuda.get_device_capability(device) == (9, 0)


_FAILURES: list[Exception] = []


def failure() -> Exception | None:
    """Why this process does without these kernels, where one could not be imported or compiled."""
    return _FAILURES[0] if _FAILURES else None


def _or_nothing(made: Callable[[], Made]) -> Made | None:
    """What a kernel makes; nothing where it cannot be had, and then none is asked for again in this process."""
    try:
        return made()
    except torch.cuda.OutOfMemoryError:
        raise
    except Exception as error:  # a Triton without Gluon, or one that compiles it otherwise, must never stop a training
        _FAILURES.append(error)
        return None


def try_copies(device: torch.device) -> None:
    """One of the kernels, on nothing: where Gluon is missing, or does not compile, this is found here."""
    join = Join(8, 8, 32, 64, 4, 64, 0)
    big = torch.zeros(1, SUMMED, 16, 16, 32, dtype=torch.bfloat16, device=device)
    weights = torch.zeros(1, 64 + 16 * 32 * 64, dtype=torch.bfloat16, device=device)
    down_copied(join, big, weights, activate=True)
