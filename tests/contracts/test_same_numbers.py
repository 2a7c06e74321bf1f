"""Numbers are the same as last year: everything that computes some, on small inputs, odd ones among them.

python tests/contracts/test_same_numbers.py writes down what is new or gone, and says which numbers have changed;
with --again it writes those down too: each of them is a change that whoever reads a result must be told of.
Numbers that differ by another machine's last bits stay as they are written.
"""

import dataclasses
import json
import math
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))

import edge_cases

import unweave as uw
from unweave.data import WORLDS, pairings, pairs
from unweave.data.micro import SPACE, Micro
from unweave.evaluation.activations import activations
from unweave.evaluation.decoder import look_at_decoder, random_dto
from unweave.evaluation.describe import describe
from unweave.evaluation.diagnosis import diagnose_codes
from unweave.evaluation.findings import expected_of, findings, sentences
from unweave.evaluation.matrices import matrices
from unweave.evaluation.measure import measure
from unweave.evaluation.over_training import over_training
from unweave.evaluation.sampling import half, permutation, whole
from unweave.evaluation.score_differences import score_differences
from unweave.evaluation.similarity import compare_runs
from unweave.evaluation.traversal import eigenfaces, plane, strips
from unweave.evaluation.truth import as_truth
from unweave.metrics import METRICS
from unweave.models import LIKELIHOODS, NETWORKS, OBJECTIVES, OPTIMISERS, Method
from unweave.models.autoencoder import Architecture, Autoencoder
from unweave.models.networks import Maxout
from unweave.models.objectives import IVAE, PCL, WSGAN, AnnealedVAE, FactorVAE, LabelGAN, SemiVAE
from unweave.studies.measures import MEASURES, Measure
from unweave.studies.statistics import intervals
from unweave.studies.statistics import permutation as tests_of
from unweave.studies.statistics.line_search import line_search
from unweave.studies.statistics.pairwise import holm, pairwise
from unweave.studies.statistics.rank_correlations import rank_correlations
from unweave.studies.statistics.transfer import transfer
from unweave.studies.statistics.variance_explained import variance_explained
from unweave.training.alone import Alone
from unweave.training.run import Run

KNOWN = Path(__file__).parents[1] / "reference" / "numbers.json"
MOST = 24
"""Numbers of an array that are written down one by one; of more, the shape and three sums."""

QUICK: dict[str, dict[str, Any]] = {
    "dci": {"n_rounds": 4},
    "beta_vae": {"n_train": 60, "n_test": 30, "batch_size": 8},
    "factor_vae": {"n_train": 60, "n_test": 30, "n_variance": 60, "batch_size": 8},
}
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
Case = Callable[[], Any]
RUNS = tempfile.TemporaryDirectory()


def tables() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Codes and factors: some that go together; constant, repeated and integer codes; few of them."""
    draw = np.random.default_rng(5)
    factors = draw.integers(0, (4, 5, 3), (90, 3))
    codes = np.c_[factors[:, :2] + draw.normal(0, 0.4, (90, 2)), draw.normal(size=(90, 2)), factors.sum(1)]
    odd = np.c_[np.zeros(40), np.repeat(codes[:40, :1], 2, 1), codes[:40, :2].round(), -codes[:40, 1]]
    single = np.c_[np.zeros(40, int), factors[:40, 1], np.arange(40) // 20]
    return {"plain": (codes, factors), "odd": (odd, factors[:40]), "single": (codes[:40], single)}


def posteriors() -> dict[str, dict[str, np.ndarray]]:
    """Means and variances: polarised, collapsed, mixed, deterministic, and passive latents that follow others."""
    draw = np.random.default_rng(6)
    mean = draw.normal(size=(60, 4)) * [1.0, 1.0, 0.05, 0.02]
    variance = np.full((60, 4), 1.0) * [0.01, 0.02, 0.98, 1.0] * draw.uniform(0.95, 1.05, (60, 4))
    mixed = np.where(draw.uniform(size=(60, 4)) < 0.5, variance, 1.0)
    follow = np.c_[mean[:, :2], 0.05 * mean[:, :1] + 0.01 * mean[:, 2:3], 0.7 * mean[:, 1:2] + 0.3 * mean[:, :1]]
    return {
        "polarised": {"mean": mean, "variance": variance},
        "collapsed": {"mean": mean * 0.01, "variance": np.ones((60, 4))},
        "mixed": {"mean": mean, "variance": mixed},
        "deterministic": {"mean": mean},
        "following": {"mean": follow, "variance": variance[:, [0, 1, 2, 0]]},
        "one": {"mean": mean[:, :1], "variance": variance[:, :1]},
        "prior": {
            "mean": mean, "variance": variance, "prior_mean": np.full(4, 0.3), "prior_variance": np.full(4, 0.5)
        },
    }  # fmt: skip


def of_metrics() -> Iterator[tuple[str, Case]]:
    for name, (codes, factors) in tables().items():
        for metric in METRICS:
            if "models" not in METRICS[metric].needs.split() and METRICS[metric].kind != "downstream":
                given = {"variance": np.full_like(codes, 0.1), "metrics": [metric], "seeds": 0}
                options = {metric: QUICK[metric]} if metric in QUICK else None
                yield f"{metric} of {name}", partial(_parts, codes, factors, options=options, **given)
    models = np.stack([tables()["plain"][0][:, order] for order in ([0, 1, 2, 3], [1, 0, 3, 4], [4, 2, 1, 0])])
    yield "udr", lambda: METRICS["udr"].function(models, np.arange(12.0).reshape(3, 4) / 4)
    codes, factors = tables()["plain"]
    few = ["mig", "sap", "modularity", "total_correlation"]
    for adjust in (None, "chance"):
        yield (
            f"measured, {adjust}",
            partial(_numbers, codes, factors, metrics=few, seeds=3, adjust=adjust, factor_bins=2, seed=4),
        )
    yield "measured, split", partial(_numbers, codes, factors, metrics=few, seeds=2, split=(40, 30))
    yield "models at once", partial(_numbers, models, factors, metrics=few, seeds=2, adjust="chance")


def _parts(codes: Any, factors: Any, **given: Any) -> Any:
    return measure(codes, factors, **given).to_plain()["parts"]


def _numbers(codes: Any, factors: Any, **given: Any) -> Any:
    return {name: [one.value, one.draws, one.chance] for name, one in measure(codes, factors, **given).numbers.items()}


def of_evaluation() -> Iterator[tuple[str, Case]]:
    codes, factors = tables()["plain"]
    for name, given in posteriors().items():
        for rule in ("variance", "spread", "mean_variance", "kl") if name == "mixed" else ("variance",):
            yield f"diagnosis, {name}, {rule}", lambda given=given, rule=rule: diagnose_codes(**given, rule=rule)
        for n in (None, 2, 6):
            yield (
                f"findings, {name}, {n}",
                lambda given=given, n=n: findings(diagnose_codes(**given), expected_of(None, n)),
            )
    yield "matrices", lambda: matrices(codes, factors, factor_bins=3)
    yield "matrices without factors", lambda: matrices(codes)
    for paired in (True, False):
        yield (
            f"differences, {paired}",
            lambda paired=paired: {
                name: [one.draws, one.interval]
                for name, one in score_differences(*map(_few, (codes, codes[:, ::-1] ** 3)), paired=paired).items()
            },
        )
    yield "draws", lambda: [half(whole(9, (5, 3), 2), 1), half(whole(9), 3), whole(4), permutation(7, 2)]
    yield "truth", lambda: [as_truth(codes, n).numbers for n in (2, 3)]
    for n in (1, 3):
        yield f"random directions, {n}", lambda n=n: random_dto(n, n=20)


def _few(codes: np.ndarray) -> Any:
    return measure(codes, tables()["plain"][1], metrics=["mig", "modularity"], seeds=4)


@cache
def trained(seed: int = 0) -> Run:
    """A small run with snapshots."""
    place = Path(RUNS.name) / f"{seed}"
    given = {"network": uw.MLP((12,), (12,)), "latents": 3, "steps": 30, "batch_size": 16, "history_every": 5}
    return uw.train("micro", place, seed=seed, snapshots=(0, 10, 20), quiet=True, plan=uw.Plan("cpu", 1), **given)


@cache
def told_labels() -> Run:
    """A small run whose prior is one of labels, with examples that it never saw."""
    given = {"network": uw.MLP((6,), (6,)), "latents": 3, "steps": 10, "batch_size": 16, "holdout": 0.2}
    place = Path(RUNS.name) / "labels"
    return uw.train("micro", place, objective=IVAE(), quiet=True, plan=uw.Plan("cpu", 1), **given)


def of_runs() -> Iterator[tuple[str, Case]]:
    def code() -> Any:
        return trained().encode(trained().images(24, 1), seed=2)

    def images() -> torch.Tensor:
        return trained().images(24, 1)

    yield "history", lambda: [trained().history.steps, trained().history.values()]
    yield "code", lambda: [code().mean, code().variance, code().sampled, code().kl]
    for name, run in {"plain": trained, "labels": told_labels}.items():
        yield f"samples, {name}", lambda run=run: [run().sample(3, seed=seed) for seed in (0, 1)]
        yield (
            f"drawn, {name}",
            lambda run=run: [[run().rows(6, seed), run().labels(2, seed), run().start().mean] for seed in (0, 1)],
        )
    yield "samples, chosen", lambda: told_labels().sample(3, labels={"size": 1})
    yield "description", lambda: describe(trained(), n=40)
    yield "sentences", lambda: sentences(describe(trained(), n=40), expected_of(SPACE))
    yield "layers", lambda: [*activations(trained().model, images(), seed=3).layers]
    yield "strips", lambda: strips(trained(), describe(trained(), n=40), n=5)
    yield "strips, chosen", lambda: strips(trained(), describe(trained(), n=40), latents=[2, 0], n=3, width=1.0)
    yield "plane", lambda: plane(trained(), 0, 2, n=3)
    yield "eigenfaces", lambda: eigenfaces(trained(), describe(trained(), n=40), n_latents=2, width=1.5)
    used = torch.tensor([True, False, True])
    yield "decoder", lambda: look_at_decoder(trained(), images(), code(), used, n_jacobians=8)
    yield "over training", lambda: over_training(trained(), images(), ["active", "passive", "mixed"])
    for name, measured in MEASURES.items():
        if name in ("classifier", "accuracy_by_type", "downstream"):  # which fit for long
            continue
        for n in (9,) if name in ("elbow", "scores") else (9, 60):  # whose trees split at a machine's last bits
            yield f"{name} over {n}", lambda measured=measured, n=n: _measured(measured, n)
    yield "two runs", lambda: _compared([trained(), trained(1)])
    yield "snapshots", lambda: _compared([trained()], snapshots=True)


def _compared(runs: list[Run], **given: Any) -> Any:
    """Runs compared with noise that follows from names: a model's own follows the last bits of its weights."""
    by_name = "unweave.evaluation.similarity.own_noise"
    with patch(by_name, lambda run, weights, seed: 100 * run.experiment.seed + len(weights) + seed):
        return compare_runs(runs, n=40, n_permutations=9, **given)


def _measured(measure_of: type[Measure], n: int) -> Any:
    """A measure of the small run over few examples."""
    known = {field.name for field in dataclasses.fields(measure_of)}
    given: dict[str, Any] = {"n_samples": n} if "n_samples" in known else {}
    quick = {"layers": True, "every": 10}
    given |= {name: value for name, value in quick.items() if name in known}
    return measure_of(**given)(trained())


def of_studies() -> Iterator[tuple[str, Case]]:
    draw = np.random.default_rng(7)
    one, other = draw.normal(0.4, 0.1, 6), draw.normal(0.5, 0.1, 5)
    yield "intervals", lambda: [
        intervals.mean_interval(one), intervals.welch_interval(one, other), intervals.welch_reach(0.0, 3, 0.0, 3),
        intervals.wilson_interval(3, 9), intervals.wilson_interval(0, 5), intervals.jackknife_interval(0.3, one),
        intervals.bootstrap_interval(lambda rows: float(one[rows].mean()), 6, n_draws=50),
        *(intervals.correlation_interval(r, n) for r, n in ((0.3, 9), (0.3, 4), (0.3, 3), (1.0, 9), (-0.9, 5))),
    ]  # fmt: skip
    by_seed = {"a": dict(enumerate(one)), "b": dict(enumerate(other)), "c": {9: 0.1, 8: 0.2, 0: 0.3}}
    yield "pairs of groups", lambda: pairwise(by_seed)
    yield "holm", lambda: holm(np.array([0.04, 0.01, 0.5, 0.03]))
    yield "paired tests", lambda: [tests_of.paired_test(one[:n] - other[:n]) for n in (2, 5)]
    long = draw.normal(0.1, 1.0, 30)
    yield "long tests", lambda: [
        tests_of.paired_test(long), tests_of.unpaired_test(long[:12], long[12:]), tests_of.unpaired_test(one, other)
    ]  # fmt: skip
    x, y = np.arange(12) % 4 * 1.0, np.arange(12) % 4 + draw.normal(0, 1.0, 12)
    yield "trends", lambda: [tests_of.trend_test(x, y), tests_of.trend_test(x, y, np.arange(12) // 4)]
    columns = {"a": y, "b": -y + draw.normal(0, 0.3, 12), "c": np.where(x == 2, np.nan, x), "d": np.ones(12)}
    yield "rank correlations", lambda: rank_correlations(columns, n_draws=40)
    yield (
        "variance explained",
        lambda: [variance_explained(y, x), variance_explained(x, x), variance_explained(y, y > 0)],
    )
    scores = draw.normal(size=(3, 4, 2, 3)).round(1)
    yield "transfer", lambda: transfer(scores)
    yield "line search", lambda: line_search([1, 2, 4, 8, 16], [0.1, 0.4, 0.6, 0.5, 0.2], [5, 5, 4, 3, 1], 3)


def of_data() -> Iterator[tuple[str, Case]]:
    for name, world in WORLDS.items():
        yield f"card of {name}", lambda world=world: dataclasses.replace(world().card(), how_to_get="")
    given = {
        "transitions": [pairings.Transitions(), pairings.Transitions(2.0, cyclic=False, categorical_change=True)],
        "changes": [pairings.Changes(), pairings.Changes(1), pairings.Changes(2, must_differ=True)],
        "share": [pairings.SharePairs(), pairings.SharePairs((("x", "y"), ("size",)))],
        "change": [pairings.ChangePairs(), pairings.ChangePairs((("x",), ("y", "size")))],
        "rank": [pairings.RankPairs(), pairings.RankPairs(("size",))],
        "random": [pairings.RandomPairs()],
    }
    for name, some in given.items():
        for number, pairing in enumerate(some):
            yield f"pairs, {name} {number}", lambda pairing=pairing: pairs.drawn_pairs(pairing, SPACE, 12, 3)
    yield "images", lambda: Micro().load().examples(torch.tensor([0, 5, 900, 2047]))
    yield "correlated", lambda: Micro(correlated=("x=y:0.2",)).load().examples(torch.tensor([1]))


def of_methods() -> Iterator[tuple[str, Case]]:
    methods: dict[str, Method] = {name: method() for name, method in OBJECTIVES.items() if name != "perturbation"}
    methods |= {"factor_vae": FactorVAE(width=9, depth=2), "ws_gan": WSGAN(hidden=5)}
    methods |= {"label_gan": LabelGAN(hidden=5), "label_gan, some": LabelGAN((1,), nuisances=1, hidden=5)}
    methods |= {"ws_gan, change": WSGAN("change", 1, hidden=5), "ws_gan, rank": WSGAN("rank", 2, hidden=5)}
    methods |= {"annealed_vae": AnnealedVAE(rise=2), "semi_vae": SemiVAE(labelled=40), "pcl": PCL(protocol="original")}
    for regulariser in ("l2", "cov", "embed"):
        methods[f"semi_vae, {regulariser}"] = SemiVAE(regulariser, labelled=40, annealing="linear", threshold=3)
    methods |= {"ivae, sampled": IVAE("learned", "values", "monte_carlo", (4,))}
    for name, method in methods.items():
        yield name, partial(_terms, method, warmup=3 if name == "vae" else 0)
    for likelihood in LIKELIHOODS:
        yield likelihood, partial(_terms, likelihood=LIKELIHOODS[likelihood]())
    for optimiser in OPTIMISERS:
        yield optimiser, partial(_terms, optimiser=OPTIMISERS[optimiser](), order="epochs", holdout=0.2, init="pytorch")
    for network in NETWORKS:
        for shape in ((1, 64, 64), (3, 32, 32)):
            yield f"{network} for {shape}", partial(_sizes, network, shape)


def _terms(method: Method | None = None, **given: Any) -> Any:
    """What a method minimises after a few steps, and what its networks weigh then."""
    small = uw.Conv((3, 4, 4), (4, 4, 4), 6) if isinstance(method, WSGAN | LabelGAN) else uw.MLP((12,), (12,))
    small = Maxout((7,)) if isinstance(method, PCL) else small
    given = {"steps": 9, "batch_size": 6, "latents": 3, "plan": uw.Plan("cpu", 1), "network": small} | given
    engine = Alone(uw.Experiment(Micro(), method or uw.BetaVAE(), **given), Micro().load())
    for step in range(4):
        engine.advance(step, record=True)
    sums = [sum(float(p.detach().double().abs().sum()) for p in part.parameters()) for part in engine.networks.values()]
    return [engine.terms(), sums]


def _sizes(network: str, shape: tuple[int, ...]) -> Any:
    with torch.device("meta"):
        made = Autoencoder(Architecture(shape, 7, NETWORKS[network]()))
    return {name: [*held.shape] for name, held in made.state_dict().items()}


GROUPS = {
    "metrics": of_metrics,
    "evaluation": of_evaluation,
    "runs": of_runs,
    "studies": of_studies,
    "data": of_data,
    "methods": of_methods,
} | edge_cases.GROUPS
CLOSE = {"studies", "data", *edge_cases.GROUPS}
"""Groups without training and without fits that stop early: float64, to the fifth digit."""
OF_TODAY = {"edges of estimators", "edges of statistics", "edges of data"}
"""Groups with words of NumPy, warnings of SciPy and pixels of Pillow, which older ones have otherwise."""


def numbers_of(value: Any) -> Any:
    """Any result as lists, words and numbers of seven digits."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {one.name: numbers_of(getattr(value, one.name)) for one in dataclasses.fields(value)}
    if isinstance(value, torch.Tensor):
        value = value.detach().double().numpy() if value.is_floating_point() else value.numpy()
    if isinstance(value, np.ndarray | np.generic):
        if value.size > MOST and value.dtype.kind in "fiub":
            flat = np.asarray(value, dtype=np.float64).ravel()
            weights = np.cos(np.arange(flat.size))
            return {
                "shape": [*value.shape],
                "sums": numbers_of([flat.sum(), np.abs(flat).sum(), (flat * weights).sum()]),
            }
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): numbers_of(one) for key, one in value.items() if key != "seconds"}
    if isinstance(value, list | tuple):
        return [numbers_of(one) for one in value]
    if isinstance(value, bool | int | str | None):
        return value
    return f"{value:.7g}" if isinstance(value, float) else type(value).__name__


def differences(found: Any, known: Any, place: str = "", close: float = 2e-4) -> Iterator[str]:
    """Where two results differ, by more than the last bits of another machine."""
    if isinstance(known, dict) and isinstance(found, dict) and known.keys() == found.keys():
        for key in known:
            yield from differences(found[key], known[key], f"{place}.{key}", close)
    elif isinstance(known, list) and isinstance(found, list) and len(known) == len(found):
        for number, (one, other) in enumerate(zip(found, known)):
            yield from differences(one, other, f"{place}[{number}]", close)
    elif found != known and (type(found) is not type(known) or not _close(str(found), str(known), close)):
        yield f"{place or 'all'}: {str(found)[:120]}, was {str(known)[:120]}"


def _close(found: str, known: str, close: float) -> bool:
    """Whether two numbers are close, or two sentences the same but for rounded numbers that are."""
    if NUMBER.fullmatch(found) and NUMBER.fullmatch(known):
        return math.isclose(float(found), float(known), rel_tol=close, abs_tol=close / 100)
    parts, others = NUMBER.split(found), NUMBER.split(known)
    numbers = zip(NUMBER.findall(found), NUMBER.findall(known))
    return parts == others and all(math.isclose(float(one), float(other), rel_tol=0.02) for one, other in numbers)


def everything(group: str) -> dict[str, Any]:
    """Every result of a group; what is refused is written down with its words."""
    return {name: json.loads(json.dumps(numbers_of(edge_cases.said(case)))) for name, case in GROUPS[group]()}


@pytest.mark.parametrize("group", GROUPS)
def test_numbers_are_those_of_last_year(group: str) -> None:
    if group in OF_TODAY and np.lib.NumpyVersion(np.__version__) < "2.0.0":
        pytest.skip("written down with the packages of constraints.txt")
    known, found = json.loads(KNOWN.read_text())[group], everything(group)
    assert found.keys() ^ known.keys() == set(), "cases that are new or gone: run this file to write them down"
    assert [*differences(found, known, close=_tolerance(group))] == []


def _tolerance(group: str) -> float:
    return 1e-5 if group in CLOSE else 2e-4


if __name__ == "__main__":
    before = json.loads(KNOWN.read_text()) if KNOWN.exists() else {}
    now, changed = {group: everything(group) for group in GROUPS}, []
    for group, cases in now.items():
        for name, written in before.get(group, {}).items():
            words = [*differences(cases.get(name, written), written, close=_tolerance(group))]
            changed += [f"{group}, {name}{one}" for one in words]
            if name in cases and not words:
                cases[name] = written
    print(*changed, sep="\n")
    if not changed or "--again" in sys.argv:
        lines = [
            f"{json.dumps(g)}: {{\n"
            + ",\n".join(f"{json.dumps(n)}: {json.dumps(one)}" for n, one in cases.items())
            + "\n}"
            for g, cases in now.items()
        ]
        KNOWN.write_text("{\n" + ",\n".join(lines) + "\n}\n")
