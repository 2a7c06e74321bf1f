"""unweave traverse: what moves when a latent moves."""

import argparse
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from unweave.cli.console import patiently, print_json, say
from unweave.cli.options import add_quiet, command, parse, read, real, whole
from unweave.data.columns import Columns
from unweave.evaluation.describe import describe
from unweave.evaluation.traversal import Strips, by_deviation, eigenfaces, plane, strips
from unweave.plots import columns, images
from unweave.plots.save import to_png
from unweave.training.run import Run

EXAMPLES = """examples:
  unweave traverse runs/demo                      strips, a plane of the two most precise latents, eigenfaces
  unweave traverse runs/demo --plane 0,3 --plane 1,4 --width 3
  unweave traverse runs/demo --latents 2,0 --row 17"""


def run(argv: Sequence[str]) -> None:
    """Write strips, planes and eigenfaces as PNG into the run's folder."""
    parser = command(
        "unweave traverse",
        "Pictures of what the decoder draws along latents, the most precise (smallest mean σ) first; of a table, its"
        " columns along every latent.",
        examples=EXAMPLES,
    )
    parser.add_argument("run", metavar="RUN", help="the run's folder")
    parser.add_argument("--latents", metavar="I,J", help="only these latents, in this order (default: all)")
    parser.add_argument(
        "--plane", action="append", metavar="I,J", help="a grid over two latents; repeatable (default: the first two)"
    )
    parser.add_argument(
        "--row", type=whole(0), metavar="N", help="start from this example of the data (default: a random one)"
    )
    parser.add_argument(
        "--steps", type=whole(1, 1000), default=11, metavar="N", help="pictures in a strip and along a plane (11)"
    )
    parser.add_argument(
        "--width",
        type=real(above=0),
        default=2.5,
        metavar="X",
        help="how far to go to both sides, in deviations of the prior (2.5)",
    )
    parser.add_argument(
        "--eigenfaces", type=whole(1, 10_000), default=5, metavar="N", help="latents around the mean code (5)"
    )
    parser.add_argument("--json", action="store_true", help="print the files as JSON")
    add_quiet(parser)
    given = parse(parser, argv)
    opened = Run(given.run)
    with patiently("drawing", given.json or given.quiet):
        made = _drawn(opened, given)
    paths = {name: str(opened.files.write(f"figures/{name}.png", to_png(figure))) for name, figure in made.items()}
    if given.json:
        print_json({"folder": str(opened.path), "figures": paths})
        return
    for path in paths.values():
        say(f"written: {path}")


def _drawn(opened: Run, given: argparse.Namespace) -> dict[str, Any]:
    _check(opened, given)
    description = describe(opened)
    start, labels = _start(opened, given.row)
    chosen = None if given.latents is None else _latents(given.latents, "latents")
    along = strips(opened, description, latents=chosen, image=start, labels=labels, n=given.steps, width=given.width)
    if opened.data.columns is not None:
        return {"traversals": _column_figure(along, opened.data.columns)}
    around = eigenfaces(opened, description, n_latents=given.eigenfaces, width=given.width)
    made = {"strips": _figure(along), "eigenfaces": _figure(around)}
    for first, second in _planes(given.plane, by_deviation(description)):
        shown = plane(opened, first, second, image=start, labels=labels, n=given.steps, width=given.width)
        values = torch.linspace(-given.width, given.width, given.steps)
        made[f"plane_{first}_{second}"] = images.plane(
            shown.numpy(), values.flip(0).numpy(), values.numpy(), f"latent {first}", f"latent {second}"
        )
    return made


def _check(opened: Run, given: argparse.Namespace) -> None:
    opened.require_decoder()
    for name in ("steps", "eigenfaces"):
        if getattr(given, name) < 1:
            raise ValueError(f"--{name} must be at least 1, not {getattr(given, name)}")
    if given.width <= 0:
        raise ValueError(f"--width must be positive, not {given.width}")
    if len(opened.data.shape) != 3 and opened.data.columns is None:
        raise ValueError(f"{opened.path} learned from points {opened.data.shape}, not images: there is nothing to draw")


def _start(opened: Run, row: int | None) -> tuple[torch.Tensor, torch.Tensor | None]:
    if row is not None and not 0 <= row < len(opened.data):
        raise ValueError(f"--row must lie in 0…{len(opened.data) - 1}, not {row}")
    rows = opened.rows(1) if row is None else torch.tensor([row])
    labels = opened.labels(rows=rows)
    return opened.data.examples(rows)[0], None if labels is None else labels[0]


def _planes(texts: list[str] | None, order: list[int]) -> list[tuple[int, int]]:
    if texts is None:
        return [(order[0], order[1])] if len(order) > 1 else []
    pairs = []
    for text in texts:
        found = _latents(text, "plane")
        if len(found) != 2:
            raise ValueError(f"--plane must be two latents as in 0,3, not {text!r}")
        pairs.append((found[0], found[1]))
    return pairs


def _latents(text: str, place: str) -> list[int]:
    found = read(tuple[int, ...], text, place)
    if not found:
        raise ValueError(f"--{place} must name latents as in 0,3, not {text!r}")
    return [int(latent) for latent in found]


def _figure(along: Strips) -> Any:
    return images.traversals(along.images.numpy(), along.types, along.kl.numpy(), along.values.numpy(), along.latents)


def _column_figure(along: Strips, of_table: Columns) -> Any:
    """Lines of every column along every latent."""
    values = of_table.in_units(along.images).numpy()
    return columns.column_traversals(
        values, of_table.names, along.types, along.values.numpy(), along.latents, np.array(of_table.deviations)
    )
