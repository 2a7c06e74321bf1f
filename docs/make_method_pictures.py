"""Draws what each family of methods gains: every seed of it, beside its control and beside what does without.

    python docs/make_method_pictures.py                        # draws all from images/methods.csv, in seconds
    python docs/make_method_pictures.py --store STORE          # trains and measures first: 20 minutes on one core
    python docs/make_method_pictures.py --store STORE qlae     # only this one

SlowVAE, Ada-GVAE, iVAE and the β-VAEs are those of `unweave reproduce u-supervision --size small`, whose hundred scores
are read from results/portions. All others are trained here, on one thread of a CPU, and their scores kept in
images/methods.csv.
"""

import argparse
import csv
import functools
import gzip
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from unweave.data.micro import Micro
from unweave.data.pcl_toy import PCLToy
from unweave.metrics import infomec
from unweave.models.networks import MLP, Conv, Maxout
from unweave.models.objectives import AE, PCL, QLAE, WSGAN, BetaVAE, SemiVAE
from unweave.models.optimisers import SGD, Adam
from unweave.plots.images import named_rows
from unweave.plots.save import to_png
from unweave.plots.style import ACTIVE, INK, LINE, MIXED, MUTED, NORMAL, PASSIVE, SURFACE, name_axes, new_figure
from unweave.plots.violins import spread_out
from unweave.recipes.own.supervision import MODELS
from unweave.studies.measures.encoded import encoded
from unweave.studies.measures.scores import Scores
from unweave.training.experiment import Experiment, Plan, experiment_from
from unweave.training.loop import train
from unweave.training.run import Run

if TYPE_CHECKING:
    import matplotlib.axes

HERE = Path(__file__).parent
IMAGES = HERE / "images"
TABLE = IMAGES / "methods.csv"
COLUMNS = ("picture", "model", "seed", "score", "value")
PORTION = HERE / "results" / "portions" / "u-supervision"

GAINS, CONTROL, WITHOUT = ACTIVE, MIXED, PASSIVE
"""Colours: the method, its control, and what does without."""

N_SAMPLES = 2048
"""All examples of the micro-world, and as many of others."""

Row = dict[str, str]


@dataclass(frozen=True)
class Line:
    """One line of a picture: a name, its colour, and what to train for it; nothing where the portion has it."""

    name: str
    colour: str
    trained: Experiment | None = None
    portion: str = ""
    """Its name in u-supervision."""
    seeds: int = 5


@dataclass(frozen=True)
class Picture:
    """Lines over one another, each with its seeds, for one score or several side by side."""

    lines: tuple[Line, ...]
    scores: tuple[str, ...] = ("mcc",)
    """``counted.…`` are parts of InfoMEC, of codes that are put into ten bins of equal width: all models alike."""


SMALL = Experiment(
    Micro(),
    network=MLP((128,), (128,)),
    optimiser=Adam(1e-3),
    latents=3,
    steps=10_000,
    history_every=500,
    plan=Plan("cpu", 1),
)
"""As in u-supervision, on a CPU."""

SIX = replace(SMALL, latents=6, steps=5000)
QUANTISED = replace(SIX, optimiser=Adam(), objective=QLAE())
TOY = Experiment(
    PCLToy(n_points=2**16, n_sources=3, layers=2),
    PCL("original"),
    Maxout((12, 12)),
    optimiser=SGD(every=1000),
    latents=3,
    steps=3000,
    batch_size=128,
    init="pytorch",
    plan=Plan("cpu", 1),
)
PAIRED = replace(
    SMALL,
    objective=WSGAN(hidden=64),
    network=Conv((8, 16, 16), (4, 4, 4)),
    optimiser=Adam(),
    steps=4000,
    batch_size=32,
    history_every=200,
)


def taken(name: str, colour: str, portion: str = "") -> Line:
    """A line whose scores u-supervision has."""
    return Line(name, colour, None, portion or name)


WITHOUT_PAIRS = (taken("β-VAE, β = 1", WITHOUT), taken("β-VAE, β = 4", WITHOUT))

PICTURES = {
    "slow_vae": Picture(
        (taken("SlowVAE", GAINS), taken("random pairs", CONTROL, "SlowVAE, random pairs"), *WITHOUT_PAIRS)
    ),
    "pair_vae": Picture(
        (taken("Ada-GVAE", GAINS), taken("random pairs", CONTROL, "Ada-GVAE, random pairs"), *WITHOUT_PAIRS)
    ),
    "ivae": Picture(
        (
            taken("iVAE", GAINS, "segments: iVAE"),
            taken("labels of others", CONTROL, "segments: iVAE, labels of others"),
            taken("β-VAE, β = 1", WITHOUT, "segments: β-VAE, β = 1"),
            taken("β-VAE, β = 4", WITHOUT, "segments: β-VAE, β = 4"),
        )
    ),
    "pcl": Picture(
        (
            Line("PCL", GAINS, TOY),
            Line("random pairs", CONTROL, replace(TOY, objective=PCL("original", pairs="random"))),
        )
    ),
    "semi_supervised": Picture(
        (
            Line("50 labels", GAINS, replace(SMALL, objective=SemiVAE(labelled=50))),
            Line(
                "50 labels of others", CONTROL, replace(SMALL, objective=SemiVAE(labelled=50, labels="random")), seeds=3
            ),
            taken("β-VAE, β = 4", WITHOUT),
        )
    ),
    "qlae": Picture(
        (
            Line("QLAE", GAINS, QUANTISED, seeds=3),
            Line("no weight decay", CONTROL, replace(QUANTISED, objective=QLAE(weight_decay=0.0)), seeds=3),
            Line("autoencoder", WITHOUT, replace(SIX, objective=AE()), seeds=3),
            Line("β-VAE, β = 4", WITHOUT, replace(SIX, objective=BetaVAE(4.0)), seeds=3),
        ),
        ("counted.modularity", "counted.compactness", "counted.explicitness", "mcc"),
    ),
    "ws_gan": Picture(
        (
            Line("share: told what is equal", GAINS, PAIRED, seeds=2),
            Line("random pairs", CONTROL, replace(PAIRED, objective=WSGAN("random", hidden=64)), seeds=2),
        ),
        ("mig", "mcc"),
    ),
}

WORDS = {
    "mcc": "MCC with the factors",
    "mig": "MIG",
    "counted.modularity": "InfoM, modularity",
    "counted.compactness": "InfoC, compactness",
    "counted.explicitness": "InfoE, explicitness",
}


def counted(run: Run) -> dict[str, float]:
    """InfoMEC of codes in ten bins of equal width a latent; quantised codes and others are counted alike."""
    code = encoded(run, N_SAMPLES)
    assert code.factors is not None
    means = code.mean.double()
    low, high = means.amin(0), means.amax(0)
    bins = ((means - low) / (high - low).clamp(min=1e-12) * 10).floor().clamp(max=9)
    found = infomec(bins, code.factors.to(torch.int64), discrete=True)
    return {part: float(getattr(found, part)) for part in ("modularity", "compactness", "explicitness")}


def measured(picture: str, store: Path) -> Iterator[Row]:
    """A row for every score of every model of a picture, trained where the store has none."""
    asked = PICTURES[picture]
    metrics = tuple(score for score in asked.scores if "." not in score)
    for line in asked.lines:
        for seed in range(line.seeds) if line.trained is not None else ():
            assert line.trained is not None
            experiment = replace(line.trained, seed=seed)
            run = Run(train(experiment, store / experiment.resolve().id))
            found = dict(Scores(metrics, n_samples=N_SAMPLES)(run)["mean"])
            if len(metrics) < len(asked.scores):
                found |= {f"counted.{part}": value for part, value in counted(run).items()}
            for score in asked.scores:
                yield dict(zip(COLUMNS, (picture, line.name, str(seed), score, f"{found[score]:.4f}")))
            print(picture, line.name, seed, found, flush=True)


@functools.cache
def from_portion() -> dict[str, list[float]]:
    """The MCC of every seed of u-supervision, by the name of its model."""
    found: dict[str, dict[int, float]] = {name: {} for name in MODELS}
    for part in PORTION.glob("runs-*.jsonl.gz"):
        with gzip.open(part, "rt", encoding="utf-8") as lines:
            for files in (json.loads(line)["files"] for line in lines):
                experiment = experiment_from(json.loads(files["config.json"]))
                (scores,) = (json.loads(text) for name, text in files.items() if name.startswith("measures/scores"))
                for name, model in MODELS.items():
                    if (model.world, model.method) == (experiment.world, experiment.objective):
                        found[name][experiment.seed] = scores["mean"]["mcc"]
    return {name: [by_seed[seed] for seed in sorted(by_seed)] for name, by_seed in found.items()}


def kept() -> list[Row]:
    """What images/methods.csv holds."""
    if not TABLE.exists():
        return []
    with TABLE.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def keep(picture: str, rows: Sequence[Row]) -> None:
    """Puts the scores of a picture into images/methods.csv, in place of those that were there."""
    every = [row for row in kept() if row["picture"] != picture] + list(rows)
    every.sort(key=lambda row: list(PICTURES).index(row["picture"]))
    with TABLE.open("w", encoding="utf-8", newline="") as lines:
        writer = csv.DictWriter(lines, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(every)


def values(picture: str, line: Line, score: str) -> np.ndarray:
    """One number a seed."""
    if line.portion:
        return np.array(from_portion()[line.portion])
    wanted = (picture, line.name, score)
    return np.array([float(row["value"]) for row in kept() if (row["picture"], row["model"], row["score"]) == wanted])


def draw(picture: str) -> bytes:
    """A panel a score, a line a model, a dot a seed."""
    asked = PICTURES[picture]
    wide = 4.2 if len(asked.scores) == 1 else 2.5
    figure, grid = new_figure(2.0 + wide * len(asked.scores), 0.75 + 0.42 * len(asked.lines), 1, len(asked.scores))
    for axes, score in zip(grid[0], asked.scores):
        for place, line in enumerate(asked.lines):
            _dots(axes, place, values(picture, line, score), line.colour)
        axes.set_yticks(range(len(asked.lines)), [])
        axes.set_ylim(len(asked.lines) - 0.4, -0.6)
        axes.set_xlim(0, 1.28)
        axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", ".25", ".5", ".75", "1"])
        axes.grid(visible=False, axis="y")
        axes.grid(visible=True, axis="x", color=LINE, linewidth=0.8)
        axes.spines["bottom"].set_bounds(0, 1)
        name_axes(axes, "", WORDS[score])
    named = [line.name for line in asked.lines]
    grid[0, 0].set_yticks(range(len(named)), named, fontsize=NORMAL, color=INK)
    return to_png(figure)


def _dots(axes: "matplotlib.axes.Axes", place: int, found: np.ndarray, colour: str) -> None:
    mean, deviation = float(found.mean()), float(found.std(ddof=1))
    axes.scatter(found, place + 0.22 * spread_out(len(found)), s=16, color=colour, alpha=0.8, linewidths=0)
    axes.scatter([mean], [place], s=40, color=SURFACE, edgecolors=INK, linewidths=1.1, zorder=3)
    said = f"{mean:.2f} ± {deviation:.2f}".replace("0.", ".")
    axes.text(1.05, place, said, va="center", ha="left", fontsize=NORMAL - 1, color=MUTED)


def generated(store: Path) -> bytes:
    """What the generators of seed 0 make along each latent, from −2 to 2: told what is shared, and the control."""
    told, control = PAIRED, replace(PAIRED, objective=WSGAN("random", hidden=64))
    rows, names = [], []
    for name, experiment in (("told", told), ("control", control)):
        run = Run(store / experiment.resolve().id)
        for latent in range(experiment.latents):
            along = torch.linspace(-2, 2, 11)[:, None] * torch.eye(experiment.latents)[latent]
            rows.append(run.decode(along).numpy())
            names.append(f"{name}, z{latent}")
    return to_png(named_rows(np.stack(rows), names))


def main() -> None:
    """Trains what is asked for, and draws."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(PICTURES)}")
    parser.add_argument("--store", type=Path, help="train and measure here first")
    given = parser.parse_args()
    for name in given.names or PICTURES:
        if given.store is not None:
            keep(name, list(measured(name, given.store)))
            if name == "ws_gan":
                (IMAGES / "method_ws_gan_generated.png").write_bytes(generated(given.store))
        (IMAGES / f"method_{name}.png").write_bytes(draw(name))
        print(name, flush=True)


if __name__ == "__main__":
    main()
