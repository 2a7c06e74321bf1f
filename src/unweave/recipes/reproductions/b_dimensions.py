"""Figures 8.4 and 8.9 to 8.11: intrinsic dimensions of data, of codes and of layers (Bonheme, 2023, §8.5.1, §8.8.1)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from statistics import fmean
from typing import Any

from unweave import rng
from unweave.data.world import World
from unweave.metrics.dimension.intrinsic import Intrinsic, intrinsic
from unweave.plots.curves import line_bands, stacked_types
from unweave.recipes.reproductions.b_elbows import N_SEEDS, PLAIN, STEPS, panels_at
from unweave.recipes.reproductions.b_results import THESIS, Measured, check_size, chosen, measured, notes
from unweave.recipes.reproductions.b_rows import DATA_DIMENSION, EXTENTS, STAND_INS, WORLDS, base_of
from unweave.recipes.reproductions.reproduction import Outcome, Reproduction
from unweave.studies.measures.intrinsic import IntrinsicDimensions
from unweave.studies.results import Results
from unweave.studies.study import Study
from unweave.studies.verdicts import Comparison, compare_difference, compare_exact, compare_mean, compare_trend
from unweave.training.experiment import Experiment

NEIGHBOURS = (3, 5, 10, 20)
SEEDS = (0, 1, 2)
N_SNAPSHOTS = 5
LATENTS = {"smoke": 6, "small": 10, "paper": 10}


def no_training(name: str, size: str) -> Study:
    """Data are asked directly."""
    check_size(size)
    return Study(f"{name}-{size}", ())


def codes_study(name: str, size: str) -> Study:
    """VAEs with more and more latents: the models of the elbow curves."""
    asked = [experiment for panel in panels_at(PLAIN, size) for experiment in panel.curve(size)]
    return Study(f"{name}-{size}", tuple(asked), (codes_measure(size),))


def layers_study(name: str, size: str) -> Study:
    """VAEs with ten latents and snapshots."""
    return Study(f"{name}-{size}", tuple(layers_experiments(size)), (layers_measure(size),))


def codes_measure(size: str) -> IntrinsicDimensions:
    """On 10,000 examples as published."""
    return IntrinsicDimensions(EXTENTS[size].n_samples)


def layers_measure(size: str) -> IntrinsicDimensions:
    """All layers at all snapshots; a fifth of the examples at small, where wide layers are measured on a CPU."""
    n_samples = {"smoke": 1_000, "small": 2_000, "paper": 10_000}[size]
    return IntrinsicDimensions(n_samples, layers=True)


def layers_experiments(size: str) -> Iterator[Experiment]:
    """The first snapshot comes after the published first epoch, or after a tenth of a shorter training."""
    for panel in panels_at(PLAIN, size):
        base = replace(base_of(panel.rows[0], size), steps=STEPS[size], latents=LATENTS[size])
        first = base.steps // 10 if size != "paper" else base_of(replace(panel.rows[0], epochs=1), size).steps
        later = (base.steps * place // N_SNAPSHOTS for place in range(1, N_SNAPSHOTS))
        kept = tuple(sorted({first, *later}))
        yield from (replace(base, snapshots=kept, seed=seed) for seed in range(N_SEEDS[size]))


def judge_data(results: Results, size: str) -> Outcome:
    """Figure 8.4: maximum likelihood for several numbers of neighbours, and TwoNN."""
    found = {name: _estimates(world, EXTENTS[size].n_samples) for name, world in _worlds(size).items()}
    lines = {
        name: {float(k): [float(run.per_k[i]) for run in one.mle_runs] for i, k in enumerate(NEIGHBOURS)}
        for name, one in found.items()
    }
    table = [
        {"data": name}
        | {f"MLE, k = {int(k)}": round(fmean(values), 2) for k, values in lines[name].items()}
        | {"TwoNN": round(one.two_nn, 2)}
        for name, one in found.items()
    ]
    comparisons = [one for name in found for one in _of_data(name, found[name], lines[name], size)]
    figures = {"Intrinsic dimension": line_bands(lines, "neighbours", "intrinsic dimension")}
    words = "Three draws of the examples; the published values are read off the text (4, 11 and 22 for k = 20)."
    return Outcome(tuple(comparisons), figures, {"Estimates": table}, notes(size, words))


def judge_codes(results: Results, size: str) -> Outcome:
    """Figure 8.9: dimensions of mean and sampled codes part where latents turn passive."""
    comparisons: list[Comparison] = []
    figures: dict[str, Any] = {}
    for name, rows in _by_world(measured(results, codes_measure(size))):
        lines = {f"{kind} codes": _over_latents(rows, kind) for kind in ("mean", "sampled")}
        figures[name] = line_bands(lines, "latents", "intrinsic dimension", name, even=False)
        gap = [row.found["sampled"] - row.found["mean"] for row in rows]
        unused = [float(row.found["n_passive"] + row.found["n_mixed"]) for row in rows]
        latents, seeds = [row.experiment.latents for row in rows], [row.seed for row in rows]
        comparisons += [
            compare_trend(f"{name}: sampled less mean dimension against latents", latents, gap, 1, seeds=seeds),
            compare_trend(f"{name}: sampled less mean dimension against unused latents", unused, gap, 1, seeds=seeds),
        ]
    return Outcome(tuple(comparisons), figures, notes=notes(size, _curve_words(size)))


def judge_types(results: Results, size: str) -> Outcome:
    """Figure 8.10: beyond what is needed, further latents are mixed or passive."""
    comparisons: list[Comparison] = []
    figures: dict[str, Any] = {}
    for name, rows in _by_world(measured(results, codes_measure(size))):
        numbers = sorted({row.experiment.latents for row in rows})
        kinds = {kind: _over_latents(rows, f"n_{kind}") for kind in ("active", "mixed", "passive")}
        counts = {kind: [fmean(line[float(n)]) for n in numbers] for kind, line in kinds.items()}
        figures[name] = stacked_types([float(n) for n in numbers], counts, x="latents", title=name)
        latents, seeds = [row.experiment.latents for row in rows], [row.seed for row in rows]
        unused = [float(row.found["n_passive"] + row.found["n_mixed"]) for row in rows]
        comparisons.append(compare_trend(f"{name}: mixed and passive against latents", latents, unused, 1, seeds=seeds))
        spare = {row.seed: float(row.found["n_passive"]) for row in rows if row.experiment.latents == numbers[-1]}
        none = dict.fromkeys(spare, 0.0)
        what = f"{name}: passive latents among {numbers[-1]}, less none"
        comparisons.append(compare_difference(what, spare, none, 1))
    return Outcome(tuple(comparisons), figures, notes=notes(size, _curve_words(size)))


def judge_layers(results: Results, size: str) -> Outcome:
    """Figure 8.11: dimensions of layers hardly change after the first epoch."""
    comparisons: list[Comparison] = []
    figures: dict[str, Any] = {}
    for name, rows in _by_world(measured(results, layers_measure(size))):
        figures[name] = line_bands(_layer_lines(rows), "step", "intrinsic dimension", name, even=False)
        changes = {row.seed: _change(row.found["layers"]) for row in rows}
        what = f"{name}: mean relative change of a layer's dimension, first snapshot to the end"
        comparisons.append(compare_mean(what, changes, 0.0, tolerance=0.2))
    words = "'Not much' is read as within a fifth of the final dimension, on average over layers."
    return Outcome(tuple(comparisons), figures, notes=notes(size, words))


def _worlds(size: str) -> Mapping[str, World]:
    if size == "smoke":
        return {"Synth-Lin": STAND_INS["symsol"], "Synth-NonLin": STAND_INS["dsprites"]}
    return {name: WORLDS[name] for name in EXTENTS[size].worlds}


def _estimates(world: World, n_samples: int) -> Intrinsic:
    data = world.load()
    # a few thousand rows more than one draw, so that draws differ and not all images need be unpacked
    order = rng.words(0, rng.Purpose.EVALUATE, 0, len(data), 1)[:, 0].argsort(stable=True)[: 2 * n_samples]
    points = data.examples(order).flatten(1)
    return intrinsic(points, neighbours=NEIGHBOURS, n_samples=n_samples, seeds=SEEDS)


def _of_data(name: str, found: Intrinsic, line: Mapping[float, Sequence[float]], size: str) -> Iterator[Comparison]:
    last, before = line[20.0], line[10.0]
    known = 2.0 if size == "smoke" else float(DATA_DIMENSION[name])
    what = f"{name}: dimension with 20 neighbours" + (", a square" if size == "smoke" else "")
    yield compare_mean(what, last, known, tolerance=0.5 if size == "smoke" else 1.0)
    change = abs(fmean(last) - fmean(before)) / fmean(last)
    yield compare_exact(f"{name}: relative change from 10 to 20 neighbours (stable)", change, 0.0, 0.1)
    if name != "celeba":
        apart = abs(found.two_nn - fmean(last)) / fmean(last)
        yield compare_exact(f"{name}: TwoNN relative to 20 neighbours (close)", apart, 0.0, 0.25)


def _by_world(rows: Sequence[Measured]) -> Iterator[tuple[str, list[Measured]]]:
    """Rows by world; two worlds of one name are told apart by their options."""
    for world in dict.fromkeys(row.experiment.world for row in rows):
        mine = [row for row in chosen(rows, world=world.name) if row.experiment.world == world]
        seed = getattr(world, "seed", 0)
        yield world.name + (f" {seed}" if seed else ""), mine


def _over_latents(rows: Sequence[Measured], column: str) -> dict[float, list[float]]:
    line: dict[float, list[float]] = {}
    for row in rows:
        line.setdefault(float(row.experiment.latents), []).append(float(row.found[column]))
    return line


def _layer_lines(rows: Sequence[Measured]) -> dict[str, dict[float, list[float]]]:
    lines: dict[str, dict[float, list[float]]] = {}
    for row in rows:
        for step, layers in row.found["layers"].items():
            for layer, value in layers.items():
                if value is not None:
                    lines.setdefault(layer, {}).setdefault(float(step), []).append(value)
    return lines


def _change(layers: Mapping[str, Mapping[str, float | None]]) -> float:
    steps = sorted(layers, key=int)
    first, last = layers[steps[0]], layers[steps[-1]]
    pairs = [(first[name], last[name]) for name in last if name != "input"]
    return fmean(abs(one - other) / other for one, other in pairs if one is not None and other)


def _curve_words(size: str) -> str:
    return f"The models of the elbow curves: {N_SEEDS[size]} seeds, {STEPS[size]:,} steps (published: 5 and 300,000)."


def _fig(number: str, title: str, study: Any, judge: Any) -> Reproduction:
    name = f"b-fig-{number}"
    return Reproduction(name, title, f"{THESIS}, Figure {number}", partial(study, name), judge)


REPRODUCED = {
    one.id: one
    for one in (
        _fig("8.4", "Intrinsic dimension of the data", no_training, judge_data),
        _fig("8.9", "Intrinsic dimension of mean and sampled codes", codes_study, judge_codes),
        _fig("8.10", "Types of latents against their number", codes_study, judge_types),
        _fig("8.11", "Intrinsic dimension of layers over training", layers_study, judge_layers),
    )
}
