"""unweave bench: how fast this machine trains, beside a plain loop and beside its own memory."""

import argparse
import dataclasses
from collections.abc import Sequence
from typing import Any

import torch

from unweave.cli.console import print_json, print_table, say
from unweave.cli.options import add_fields, collect, command, parse, real, whole
from unweave.config import unknown
from unweave.data import Data
from unweave.training.experiment import TABLES, Experiment, experiment_from

EXAMPLES = """examples:
  unweave bench train                                   the standard model on random pictures, in under a minute
  unweave bench train --models 256 --channels 3
  unweave bench train --objective factor_vae --ways alone,fleet
  unweave bench train synth_nonlin --network mlp --network.encoder-widths 32 --network.decoder-widths 32 --models 32

µs are per model and step; models a day are models of 300,000 steps. The floor is the time to move the bytes of a step,
every layer fused with its neighbours, at the copy rate measured on this device."""

BENCHES = ("train",)
NAMES = {"eager": "plain loop", "alone": "one model", "graph": "CUDA graph", "fleet": "fleet"}


def run(argv: Sequence[str]) -> None:
    """Measure, and print a table or JSON."""
    if argv and not argv[0].startswith("-") and argv[0] not in BENCHES:
        raise unknown("bench", argv[0], BENCHES)
    words = list(argv[1:] if argv and argv[0] in BENCHES else argv)
    world = words.pop(0).replace("-", "_") if words and not words[0].startswith("-") else None
    given = vars(parse(_parser(words), words))
    base = experiment_from(collect(given | {"world": world or "micro", "steps": "1_000_000"}, Experiment, TABLES, {}))
    base = base.resolve()
    data = (base.world.load() if world else _pictures(given["channels"])).to(base.plan.device)
    _measure(base, data, given)


def _pictures(channels: int) -> Data:
    from unweave.recipes.pace import pictures

    if channels not in (1, 2, 3, 4):
        raise ValueError(f"--channels must be 1 to 4, not {channels}")
    return pictures(channels)


def _measure(base: Experiment, data: Data, given: dict[str, Any]) -> None:
    from unweave.recipes.pace import WAYS, pace

    cuda = base.plan.device.startswith("cuda")
    plain = [] if len(base.objective.phases()) > 1 else ["eager"]
    ways = given["ways"].split(",") if given["ways"] else [*plain, "alone", *(["graph"] if cuda else []), "fleet"]
    for way in ways:
        if way not in WAYS or (way == "graph" and not cuda):
            raise unknown("way of training", way, [name for name in WAYS if cuda or name != "graph"])
    models = given["models"] or (256 if cuda else 8)
    found, floor = pace(base, data, models=models, ways=ways, rounds=given["rounds"], seconds=given["seconds"])
    device = torch.cuda.get_device_name() if cuda else f"CPU, {base.plan.threads} threads"
    if given["json"]:
        paces = [dataclasses.asdict(one) for one in found]
        print_json({"device": device, "precision": base.plan.precision, "floor_us": floor, "ways": paces})
        return
    slowest = found[0].microseconds
    rows = [
        (
            NAMES[one.way],
            one.models,
            _short(one.microseconds),
            f"{_short(one.fastest)}–{_short(one.slowest)}",
            _short(one.models_a_day),
            f"{slowest / one.microseconds:.2f}×",
            f"{one.share_of_floor:.1%}",
        )
        for one in found
    ]
    title = f"{base.objective.name}, {base.network.name}, {'×'.join(map(str, data.shape))}, batch {base.batch_size}"
    columns = ("way", "models", "µs a model-step", "range", "models a day", f"to {NAMES[found[0].way]}", "of the floor")
    _show(f"{title}, {base.plan.precision}, {device}", columns, rows, f"memory floor {floor:,.1f} µs a model-step")


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def _show(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], note: str) -> None:
    try:
        print_table(title, columns, rows, note)
    except ImportError:  # a bare GPU machine has no rich
        print(title, " | ".join(columns), *(" | ".join(map(str, row)) for row in rows), note, sep="\n")
        return
    say("")


def _parser(argv: Sequence[str]) -> argparse.ArgumentParser:
    parser = command(
        "unweave bench train",
        "Time a plain loop, one model, a CUDA graph and a fleet in turn.",
        usage="unweave bench train [WORLD] [options]",
        examples=EXAMPLES,
    )
    parser.add_argument(
        "--models", type=whole(0, 10**6), default=0, help="size of the fleet (256 on a GPU, 8 on a CPU)"
    )
    parser.add_argument(
        "--channels", type=whole(1, 1000), default=1, help="of the random pictures, where no world is given (1)"
    )
    parser.add_argument("--ways", help=f"some of {', '.join(NAMES)}, with commas")
    parser.add_argument("--rounds", type=whole(1, 10**6), default=3, help="rounds; every way has its turn in each (3)")
    parser.add_argument("--seconds", type=real(above=0), default=1.0, help="seconds a way takes in a round (1)")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    add_fields(parser, Experiment, argv, TABLES, skip=("world", "steps", "seed", "snapshots"))
    return parser
