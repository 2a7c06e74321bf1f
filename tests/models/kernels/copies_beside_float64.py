"""Run in a process of its own: every layer that a copy engine serves, beside float64, with poisoned outputs.

``paper`` works the kernels out on a CPU, ``cuda`` runs them on a card, in fleets of 1, 2, 7 and 64 models or of the
sizes that are named behind it. Numbers on the last line, as JSON: by layer, how far outputs and sums are, how many bits
differ between fleets of several sizes, or how often work was done anew.
"""

import json
import sys
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import torch
from torch.nn.functional import conv2d, conv_transpose2d

from unweave.models.kernels import boxes, copied_correlate, copied_down, copied_last, copied_up, copied_up_small, copies
from unweave.models.kernels.convolutions import correlate, down, up
from unweave.models.kernels.copies import TUNED
from unweave.models.kernels.join import Join
from unweave.models.kernels.last import last_forward
from unweave.models.kernels.pixels import MASKS, Frame
from unweave.models.kernels.resident import up_forward

DEVICE = "cuda" if sys.argv[1] == "cuda" else "cpu"
ASKED = tuple(int(one) for one in sys.argv[2:] if one.isdigit())
SIZES, BATCH = (ASKED or (1, 2, 7, 64), 64) if DEVICE == "cuda" else ((1, 2), 12)
BEGIN = 64
"""Where weights begin; the bias lies before them."""

Layer = tuple[str, int, int, int, bool]
Outputs = dict[str, torch.Tensor]
LOSS: Layer = ("loss", 32, 1, 32, False)
FRAME = Frame(MASKS, 1, 64, 64, 0, 0)


def main() -> None:
    if DEVICE == "cpu":
        from on_paper import worked_out  # beside this file

        worked_out(boxes, copied_down, copied_up, copied_up_small, copied_correlate, copied_last)
        copies.is_hopper = lambda device: True
    found = {f"{layer[0]} {layer[1:]}": compared(layer) for layer in TUNED}
    error = copies.failure()
    assert error is None, error
    print(json.dumps(found))


def compared(layer: Layer) -> dict[str, float]:
    """Distances from float64 of some models; how many values differ for another size, division or launch."""
    found: dict[str, float] = {"anew": 0.0, "by size": 0.0, "by division": 0.0}
    largest = outputs(layer, drawn(layer, SIZES[-1]))
    for n_models in SIZES:
        given = drawn(layer, n_models)
        one, other = outputs(layer, given), outputs(layer, given)
        fewer = {LOSS: replace(TUNED[LOSS], images=5)}
        with patch.object(copies, "ENOUGH", 1), patch.dict(TUNED, fewer):  # as in the largest fleets
            divided = outputs(layer, given)
        for name, value in one.items():
            found["by division"] += _n_different(value, divided[name])
            found["anew"] += _n_different(value, other[name])
            found["by size"] += _n_different(value, largest[name][:n_models])
        for model in {0, n_models - 1}:
            for name, exact in truth(layer, given, model).items():
                distance = ((one[name][model].double() - exact).norm() / exact.norm()).item()
                found[name] = max(found.get(name, 0.0), distance if distance == distance else float("inf"))
    return found


def _n_different(one: torch.Tensor, other: torch.Tensor) -> float:
    return float((one != other).sum())


def drawn(layer: Layer, n_models: int) -> dict[str, torch.Tensor]:
    """Random images and weights: a model's are the same, whoever stands beside it."""
    _, height, n_big, n_small, _ = layer
    shapes = {
        "big": (BATCH, 2 * height, 2 * height, n_big),
        "small": (BATCH, height, height, n_small),
        "weights": (BEGIN + 16 * n_big * n_small,),
    }
    found = {}
    for name, shape in shapes.items():
        found[name] = torch.empty(n_models, *shape, device=DEVICE, dtype=torch.bfloat16)
        for n in range(n_models):
            found[name][n] = torch.randn(shape, generator=torch.Generator(DEVICE).manual_seed(n), device=DEVICE)
    if layer == LOSS:
        found["masks"] = torch.empty(n_models, BATCH, height**2, device=DEVICE, dtype=torch.int32)
        for n in range(n_models):
            generator = torch.Generator(DEVICE).manual_seed(n)
            found["masks"][n] = torch.randint(0, 2**16, found["masks"].shape[1:], generator=generator, device=DEVICE)
    return found


def outputs(layer: Layer, given: dict[str, torch.Tensor]) -> Outputs:
    """What the layer makes, where its outputs lay full of NaN."""
    what, height, n_big, n_small, back = layer
    join = Join(height, height, n_big, n_small, 4, BEGIN, 0)
    big, small, weights = (given[name] for name in ("big", "small", "weights"))
    if what == "loss":
        return losses(join, given["masks"], small, weights)
    rows = torch.full(weights.shape, float("nan"), device=DEVICE)
    sums, more = rows[:, : n_small if what == "down" else n_big], dict[str, Any]()
    poison = torch.full_like(small if what == "down" else big, float("nan"))
    del poison  # its memory is what the output gets next
    if what == "correlate":
        correlate(join, big, small, rows, "ieee")
        return {"sum": rows[:, BEGIN:]}
    if back:
        more = {"like": small if what == "down" else big, "bias_gradient": sums}
    if what == "up" and not back:
        return {"out": up_forward(join, small, weights, "ieee")}
    made = (
        down(join, big, weights, "ieee", activate=not back, **more)
        if what == "down"
        else up(join, small, weights, "ieee", **more)
    )
    return {"out": made, "sum": sums} if back else {"out": made}


def losses(join: Join, masks: torch.Tensor, small: torch.Tensor, weights: torch.Tensor) -> Outputs:
    """Slopes by outputs; losses beside sums of the slopes."""
    shape = (*small.shape[:2], join.height, join.width, 4)
    poison = [torch.full(shape, float("nan"), device=DEVICE, dtype=torch.bfloat16)]
    poison += [torch.full((*small.shape[:2], size), float("nan"), device=DEVICE) for size in (1, 16)]
    del poison
    loss, pixels, sums = last_forward(join, FRAME, masks, small, weights, "ieee")
    return {"out": pixels, "sum": torch.cat((loss[..., None], sums[..., :4]), -1)}


def truth(layer: Layer, given: dict[str, torch.Tensor], model: int) -> Outputs:
    """A model's outputs in float64."""
    what, _, n_big, n_small, back = layer
    big, small = (given[name][model].double().movedim(-1, 1) for name in ("big", "small"))
    row = given["weights"][model].double()
    weight = row[BEGIN:].view(4, 4, n_big, n_small).permute(3, 2, 0, 1).contiguous()
    if what == "correlate":
        weight.requires_grad_()
        (slope,) = torch.autograd.grad(conv2d(big, weight, stride=2, padding=1), weight, small)
        return {"sum": slope.permute(2, 3, 1, 0).flatten()}
    if what == "loss":
        return true_losses(given["masks"][model], conv_transpose2d(small, weight, row[:1], stride=2, padding=1))
    bias = None if back else row[: n_small if what == "down" else n_big]
    if what == "down":
        made, like = conv2d(big, weight, bias, stride=2, padding=1), small
    else:
        made, like = conv_transpose2d(small, weight, bias, stride=2, padding=1), big
    if not back:
        return {"out": made.relu().movedim(1, -1)}
    made = made * (like > 0)
    return {"out": made.movedim(1, -1), "sum": made.sum((0, 2, 3))}


def true_losses(masks: torch.Tensor, logits: torch.Tensor) -> Outputs:
    """Places 5, 6, 9 and 10 of a mask are the pixels of its four parities."""
    by_parity = logits[:, 0].unflatten(2, (-1, 2)).unflatten(1, (-1, 2)).permute(0, 1, 3, 2, 4).flatten(3)
    seen = torch.stack([masks >> bit & 1 for bit in (5, 6, 9, 10)], -1).double().view(by_parity.shape)
    slopes = by_parity.sigmoid() - seen
    cost = torch.nn.functional.binary_cross_entropy_with_logits(by_parity, seen, reduction="none").flatten(1).sum(1)
    return {"out": slopes, "sum": torch.cat((cost[:, None], slopes.sum((1, 2))), -1)}


if __name__ == "__main__":
    main()
