"""Jacobians of a decoder at many codes, by forward-mode differentiation.

One pass forwards carries the derivatives along all latents for a whole batch of examples, beside one decoding that
they share; going backwards would need one pass for every pixel.
"""

import warnings
from collections.abc import Callable, Sequence

import torch

from unweave.metrics.estimators.side_by_side import side_by_side
from unweave.metrics.geometry.tangents import push
from unweave.shapes import Float, Tensor

Decode = Callable[[Tensor], Tensor]
"""From codes, sample × latent, to outputs, sample × …; every example must be decoded on its own (no batch norm)."""

CHUNK = 12
"""Examples differentiated together on a CPU: intermediate results then stay in the processor's cache."""
CHUNK_ELSEWHERE = 256


def decoder_jacobian(
    decode: Decode,
    codes: Float[Tensor, "sample latent"],
    *,
    latents: Sequence[int] | None = None,
    chunk: int | None = None,
) -> Float[Tensor, "sample feature chosen"]:
    """J of every example: row = output value, column = latent (all, or the chosen ones).

    Takes samples × outputs × latents of memory; :func:`decoder_gram` does not.
    """
    return torch.cat(_of_chunks(decode, codes, latents, chunk, lambda jacobian: jacobian))


def decoder_gram(
    decode: Decode,
    codes: Float[Tensor, "sample latent"],
    *,
    latents: Sequence[int] | None = None,
    chunk: int | None = None,
) -> Float[Tensor, "sample chosen chosen"]:
    """JᵀJ of every example in float64, in memory for one chunk of Jacobians at a time.

    ``latents`` restricts it to some, the active ones for example, and saves the time of the others. The distance to
    orthogonality, the IMA contrast and the linear stochastic loss ask no more of J.
    """
    return torch.cat(_of_chunks(decode, codes, latents, chunk, gram))


def gram(jacobian: Float[Tensor, "sample feature latent"]) -> Float[Tensor, "sample latent latent"]:
    """JᵀJ in float64."""
    jacobian = jacobian.double()
    return jacobian.transpose(-1, -2) @ jacobian


def _of_chunks(
    decode: Decode,
    codes: Tensor,
    latents: Sequence[int] | None,
    chunk: int | None,
    finish: Callable[[Tensor], Tensor],
) -> list[Tensor]:
    """What ``finish`` makes of the Jacobians of every chunk; on a CPU the chunks go side by side."""
    if codes.ndim != 2 or len(codes) == 0 or not codes.is_floating_point():
        raise ValueError(f"codes must be floats, sample × latent, with at least one sample, not {tuple(codes.shape)}")
    units = torch.eye(codes.shape[1], dtype=codes.dtype, device=codes.device)
    if latents is not None:
        if len(latents) == 0:
            raise ValueError("latents must name at least one latent: a collapsed decoder has no directions")
        units = units[list(latents)]
    on_cpu = codes.device.type == "cpu"
    parts = codes.detach().split(chunk or (CHUNK if on_cpu else CHUNK_ELSEWHERE))

    def pushed(part: Tensor) -> Tensor:
        with torch.no_grad():  # a setting of each thread
            # direction × sample × feature, turned without a copy
            return finish(push(decode, part, units).permute(1, 2, 0))

    try:
        first = pushed(parts[0])
    except NotImplementedError:
        with torch.no_grad():
            return [finish(_general(decode, part, units)) for part in parts]
    return [first, *(side_by_side(pushed, parts[1:]) if on_cpu else map(pushed, parts[1:]))]


def _general(
    decode: Decode, codes: Float[Tensor, "sample latent"], units: Float[Tensor, "chosen latent"]
) -> Float[Tensor, "sample feature chosen"]:
    """The same for decoders with operations of any kind, at about half the speed."""
    with warnings.catch_warnings():
        # the first use of torch.func compiles scripts of its own, which it calls deprecated
        warnings.simplefilter("ignore", DeprecationWarning)
        jacobian: Tensor = torch.func.vmap(lambda unit: _along(decode, codes, unit), out_dims=-1)(units)
    return jacobian


def _along(
    decode: Decode, codes: Float[Tensor, "sample latent"], direction: Float[Tensor, " latent"]
) -> Float[Tensor, "sample feature"]:
    outputs, moved = torch.func.jvp(decode, (codes,), (direction.expand_as(codes),))[:2]
    if len(outputs) != len(codes):
        raise ValueError(f"decode must return one output for each of {len(codes)} codes, not {len(outputs)}")
    return moved.flatten(1)
