"""Cases for test_same_numbers.py at the edges: nothing, one, two; ties; exactly at a threshold; what never varies."""

import base64
import dataclasses
import io
import itertools
import math
import re
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path, PurePath
from typing import Any

import numpy as np
import polars as pl
import torch
from PIL import Image

import unweave as uw
from unweave.data import WORLDS, cells, image_sources, pairings, pairs, pixels, sequences
from unweave.data import correlated as correlations
from unweave.data.altered import UniformNoise, fold
from unweave.data.factors import Factor, FactorSpace
from unweave.data.images import Images
from unweave.data.labels_csv import read_labels_csv
from unweave.data.micro import SPACE, Micro
from unweave.data.notebook import chosen_rows, strip_of
from unweave.data.pairs_csv import checked_pairs, read_pairs_csv
from unweave.data.pcl_toy import PCLToy
from unweave.data.procedural import disc, dsprites, nuisances, shapes3d, sprites
from unweave.data.synthetic import rotation
from unweave.data.world import Data
from unweave.evaluation import findings_in_codes, findings_in_runs
from unweave.evaluation.decoder import Decoder
from unweave.evaluation.diagnosis import diagnose_codes
from unweave.evaluation.finding import Expected, counted, named
from unweave.evaluation.score_differences import Difference, differences_to_plain
from unweave.evaluation.scores import Number, around, spread, written
from unweave.evaluation.tables import read_tables
from unweave.metrics import METRICS
from unweave.metrics.dimension.intrinsic import intrinsic
from unweave.metrics.dimension.neighbours import distinct, neighbour_distances
from unweave.metrics.dimension.stable import stable_range
from unweave.metrics.entropy.renyi import renyi, renyi_entropy, silverman
from unweave.metrics.entropy.spi import spi
from unweave.metrics.estimators import arrays, information
from unweave.metrics.estimators.assignment import by_augmenting_paths, largest_assignment
from unweave.metrics.estimators.bins import discretise
from unweave.metrics.estimators.correlation import correlation, covariance, ranks
from unweave.metrics.estimators.lasso import lasso
from unweave.metrics.estimators.neighbours import neighbour_information
from unweave.metrics.estimators.softmax import fit_softmax, probabilities
from unweave.metrics.geometry.consistency import self_consistency
from unweave.metrics.geometry.coordinates import polar_or_cartesian
from unweave.metrics.geometry.ima import ima_contrast
from unweave.metrics.geometry.orthogonality import dto, restricted, right_singular
from unweave.metrics.polarised.by_type import by_type
from unweave.metrics.polarised.passive import passive_correlation
from unweave.metrics.polarised.rate_distortion import rate_distortion
from unweave.metrics.polarised.reconstruction import ReconstructionSplit, linear_stochastic_loss, reconstruction_split
from unweave.metrics.polarised.regime import regime, regime_share
from unweave.metrics.polarised.types import RULES, variable_types
from unweave.metrics.similarity.cka import cka, cka_matrix
from unweave.metrics.similarity.matching import matching
from unweave.metrics.similarity.minibatch import minibatch_cka
from unweave.metrics.similarity.over_seeds import over_seeds
from unweave.metrics.similarity.permutation import cka_test
from unweave.metrics.similarity.procrustes import procrustes, procrustes_matrix
from unweave.metrics.similarity.svcca import svcca, svcca_matrix
from unweave.metrics.supervised import dci, ds, explicitness, interventions, linear_svc, logistic, trees
from unweave.metrics.supervised.split import split
from unweave.models import OBJECTIVES, OPTIMISERS, POSTERIORS, closed_form, closed_form_ivae, impossibility, labels
from unweave.models.initialise import initialise
from unweave.models.likelihoods import Bernoulli, Gaussian, LearnedGaussian, SquaredError
from unweave.models.manipulation import altered
from unweave.models.normalisation import BatchNorm, SpectralNorm
from unweave.models.objectives import beta_tcvae, pair_vae, slow_vae
from unweave.models.objectives.dip_vae import covariance as dip_covariance
from unweave.models.objectives.ivae import sampled_kl
from unweave.models.objectives.semi_supervised import covariance_penalty, embedding_loss
from unweave.models.objectives.ws_gan import log_density
from unweave.models.optimisers import StackedUpdate
from unweave.models.posteriors import Diagonal, under_prior
from unweave.models.precision_budget import precision_budget
from unweave.studies import cost, verdicts
from unweave.studies.index import frame
from unweave.studies.statistics import intervals, permutation
from unweave.studies.statistics.line_search import line_search
from unweave.studies.statistics.pairwise import holm, pairwise
from unweave.studies.statistics.rank_correlations import rank_correlations
from unweave.studies.statistics.transfer import share_beaten, transfer
from unweave.studies.statistics.variance_explained import variance_explained
from unweave.training.batches import Source, batch_of, draw, source_of
from unweave.training.experiment import form_of
from unweave.training.fleet import choice
from unweave.training.fleet.members import arrange
from unweave.training.progress import duration

NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
Case = Callable[[], Any]
Cases = Iterator[tuple[str, Case]]


def said(function: Callable[..., Any], *given: Any, **options: Any) -> Any:
    """What a function gives, or the sentence with which it refuses."""
    try:
        return function(*given, **options)
    except (ValueError, KeyError, TypeError, IndexError) as error:
        return str(error)


def all_of(function: Callable[..., Any], *given: tuple[Any, ...], **options: Any) -> Case:
    """The function with each of several sets of arguments."""
    return lambda: [said(function, *one, **options) for one in given]


def tables() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Codes and factors at their limits."""
    draw = np.random.default_rng(15)
    factors = draw.integers(0, (3, 4), (30, 2))
    codes = draw.normal(size=(30, 3))
    return {
        "the factors themselves": (factors * 1.0, factors),
        "constant codes": (np.ones((30, 2)), factors),
        "constant factors": (codes, np.zeros((30, 2), int)),
        "one factor": (codes, factors[:, :1]),
        "one latent": (factors[:, :1] + 0.1 * codes[:, :1], factors),
        "twice the same": (factors[:, [0, 0, 1]] * 1.0, factors),
        "two rows": (codes[:2], np.array([[0, 1], [1, 0]])),
        "one row": (codes[:1], factors[:1]),
        "all different": (codes[:12], np.arange(24).reshape(12, 2)),
        "more factors": (codes[:, :1], np.c_[factors, factors[:, ::-1]]),
        "steps of a half": (np.round(codes * 2) / 2, factors),
        "huge": (1e6 * codes[:, [0, 1, 2, 0]], factors),
        "minute": (1e-6 * codes[:, [0, 1, 2, 0]], factors),
    }


OPTIONS: dict[str, list[dict[str, Any]]] = {
    "mig": [{"normalise": "ceiling", "n_bins": 3}, {"n_bins": 2}, {"n_bins": 1}],
    "mig_sup": [{"active": [True, False, True]}, {"active": [False] * 3}, {"n_bins": 3}],
    "modularity": [{"average": "informative"}, {"average": "weighted"}, {"n_bins": 3}],
    "infomec": [{"discrete": True}, {"n_neighbours": 2}, {"n_neighbours": 1}],
    "irs": [{"quantile": 0.5}, {"quantile": 1.0}, {"n_bins": 2}],
    "mcc": [{"method": "spearman"}],
    "beta_vae_sklearn": [{"n_train": 40, "n_test": 20, "batch_size": 4, "scheme": "ovr"}],
    "factor_vae_score": [
        {"n_train": 40, "n_test": 20, "n_variance": 30, "batch_size": 4, "prune": prune, "threshold": 0.5}
        for prune in ("study", "relative", "none")
    ],
    "dci": [{"n_rounds": 2, "n_train": 20, "n_test": 10, "seed": 1}],
    "sap_score": [{"continuous": True}, {"n_train": 20, "n_test": 10, "seed": 1}],
    "explicitness": [{"scheme": "ovr"}, {"n_train": 20, "n_test": 10, "seed": 1}],
    "ds": [{"form": form, "n_neighbours": n} for form in ("bounded", "printed") for n in (1, 3)],
    "mutual_info_score": [{"n_bins": 2}],
    "effective_rank": [{"centre": True}],
    "mle": [{"neighbours": (2,)}, {"neighbours": (3, 5), "averaging": "mackay_ghahramani"}],
    "two_nn": [{"anchor": 0.5}, {"anchor": 1.0}],
}
QUICK: dict[str, dict[str, Any]] = {
    "beta_vae_sklearn": {"n_train": 30, "n_test": 15, "batch_size": 4},
    "factor_vae_score": {"n_train": 30, "n_test": 15, "n_variance": 30, "batch_size": 4},
    "dci": {"n_rounds": 2},
}


def of_metrics() -> Cases:
    for row in METRICS.values():
        told = (row.name, row.range, row.better, row.needs, row.scores, row.label, row.labels, row.invariant_to)
        flags = (row.ordered, row.counted, row.batched, row.compact, row.on_cpu, row.kind)
        yield f"row of {row.name}", lambda told=told, flags=flags: [told, flags]
        if "models" in row.needs or row.kind == "downstream":
            continue
        for name, (codes, factors) in tables().items():
            yield f"{row.name} of {name}", partial(_asked, row, codes, factors, **QUICK.get(row.name, {}))
        usual = np.random.default_rng(16)
        factors = usual.integers(0, (3, 4), (40, 2))
        codes = np.c_[factors + usual.normal(0, 0.3, (40, 2)), usual.normal(size=40)]
        for number, options in enumerate(OPTIONS.get(row.name, [])):
            yield f"{row.name} with options {number}", partial(_asked, row, codes, factors, **options)


def _asked(row: Any, codes: np.ndarray, factors: np.ndarray, **options: Any) -> Any:
    given = [codes, *([factors] if "factors" in row.needs.split() else [])]
    given += [np.full_like(codes, 0.5)] if "variance" in row.needs.split() else []
    return said(row.function, *given, **options)


def of_estimators() -> Cases:
    draw = np.random.default_rng(17)
    wide = torch.from_numpy(draw.normal(size=(14, 3)))
    tied = wide.mul(2).round()
    still = torch.cat([wide[:, :1], torch.ones(14, 1, dtype=torch.float64)], 1)
    some = {"wide": wide, "tied": tied, "still": still, "two": wide[:2], "line": wide[:, :1]}
    twice = torch.cat([wide, wide[:, :1] - wide[:, 1:2]], 1)
    some |= {"huge": 1e6 * twice, "minute": 1e-6 * twice}
    for name, table in some.items():
        yield f"{name}: bins", all_of(discretise, *((table, n) for n in (1, 2, 5, 20)))
        yield f"{name}: covariance", all_of(covariance, (table,))
        yield f"{name}: correlation", all_of(correlation, (table, table), (table, wide[: len(table)]))
        yield f"{name}: ranks", all_of(ranks, (table,))
        yield f"{name}: distances", all_of(neighbour_distances, *((table, n) for n in (1, 2, 3)))
        yield f"{name}: distinct", all_of(distinct, (table,), (torch.cat([table, table[:2]]),))
        yield f"{name}: dimension", partial(said, intrinsic, table, neighbours=(2, 3), n_samples=10, seeds=(0, 1))
        yield f"{name}: information", all_of(information.code_information, (table, 3), (table, 20))
        yield f"{name}: entropies", all_of(renyi_entropy, (table,))
        yield f"{name}: entropies, α", lambda table=table: [said(renyi_entropy, table, alpha=a) for a in (0.5, 1.01)]
        yield f"{name}: widths", all_of(silverman, (table,))
        yield f"{name}: two entropies", lambda table=table: [
            said(renyi, table, table), said(renyi, table, table.flip(0), widths=(0.5, 1.0))
        ]  # fmt: skip
        other = table.flip(1) * 2 + 0.1
        for measured in (cka, svcca, procrustes, matching):
            yield f"{name}: {measured.__name__}", all_of(measured, (table, other), (table, table))
    little = {
        "single": wide[:1, :1],
        "no rows": wide[:0],
        "no columns": wide[:, :0],
        "row": wide[:1],
        "flat": wide[:, 0],
    }
    for name, table in little.items():
        yield (
            f"{name}, asked",
            lambda table=table: (
                [said(f, table, table) for f in (cka, svcca, procrustes, matching, spi, renyi)]
                + [said(f, table) for f in (intrinsic, renyi_entropy)]
            ),
        )
    for estimator, form in itertools.product(("unbiased", "biased"), ("auto", "gram", "feature")):
        yield (
            f"cka {estimator} {form}",
            lambda e=estimator, f=form: [said(cka, wide[:n], tied[:n], estimator=e, form=f) for n in (3, 4, 14)],
        )
    for share in (0.5, 0.9, 1.0):
        yield (
            f"svcca {share}",
            lambda share=share: [
                said(svcca, one, tied, share=share) for one in (wide, *some.values()) if len(one) == len(tied)
            ],
        )
    layers = {"a": wide, "b": tied[:, :2], "c": still}
    yield "matrices of layers", lambda: [said(f, layers) for f in (cka_matrix, procrustes_matrix, svcca_matrix)]
    yield "minibatches", lambda: [said(minibatch_cka, layers, batch_size=n) for n in (3, 4, 5, 7, 14, 20)]
    yield "tested", lambda: [said(cka_test, wide, tied, n_permutations=n, n_samples=8) for n in (1, 9)]
    seeds = torch.from_numpy(draw.uniform(size=(3, 3, 2, 2)))
    yield "over seeds", lambda: [said(over_seeds, seeds, 1 - seeds, tolerance=t) for t in (0.0, 0.1, 1.0)]
    yield (
        "matched",
        lambda: [
            said(matching, wide, tied, method=m, left_active=[True, False, True])
            for m in ("pearson", "spearman", "lasso")
        ],
    )
    yield (
        "assignments",
        lambda: [
            said(f, np.array(gains))
            for f in (largest_assignment, by_augmenting_paths)
            for gains in ([[1.0, 1.0], [1.0, 1.0]], [[0.2, 0.9, 0.3]], [[-1.0, -2.0], [-3.0, -5.0]])
        ],
    )
    values = np.array([0, 0, 1, 1, 2, 2, 2, 0, 1, 2, 0, 1, 2, 2])
    yield (
        "neighbours",
        lambda: [
            said(neighbour_information, column, torch.from_numpy(values), n)
            for column in (wide[:, 0], tied[:, 0], still[:, 1], torch.from_numpy(values).double())
            for n in (1, 3, 12)
        ],
    )
    classes = torch.from_numpy(np.c_[values, values // 2, np.zeros(14, int)])
    yield "of labels", lambda: [information.entropy(classes), information.mutual_information(classes, classes)]
    yield (
        "known already",
        lambda: (
            [said(information.information, wide, values[:, None], n) for n in (1, 3, 30)]
            + [said(information.informed, *given, 3) for given in ((wide, None), (wide, values[:, None]))]
        ),
    )
    gram = torch.from_numpy(np.eye(3)[None] * [[[2.0]], [[0.5]]] + 0.3)
    cross = torch.tensor([[1.0, -0.4, 0.05], [0.0, 0.0, 0.0]], dtype=torch.float64)
    yield (
        "lasso",
        lambda: [
            said(lasso, gram, cross, torch.tensor([1.0, 0.0], dtype=torch.float64), penalty)
            for penalty in (0.0, 0.05, 0.4, 1.0, 5.0)
        ],
    )
    yield (
        "softmax",
        lambda: [
            probabilities(fit_softmax(wide.numpy(), values, balanced=balanced, cost=cost), wide.numpy()[:3])
            for balanced, cost in itertools.product((True, False), (0.1, 10.0))
        ],
    )
    yield "as tables", lambda: [
        said(f, given)
        for f in (arrays.as_codes, arrays.as_factors, arrays.as_numbers)
        for given in (
            [[1, 2], [3, 4]], [1.0, 2.0], [], [[]], [["a", "b"], ["b", "b"]], [[True, False]], [[np.nan, 1.0]],
            [[np.inf, 1.0]], np.zeros((2, 2, 2)), [[1.5, 2.0], [1.5, 1.0]], np.zeros((0, 3)), [[2**53 + 1, 1]], "abc",
            [[b"x", b"y"]], np.array([[1, 2]], dtype=np.uint8),
        )
    ]  # fmt: skip
    yield "counts", all_of(arrays.check_count, *((n, "n") for n in (0, 1, 2, 1.0, True, "1", None, -1)))
    yield "categories", all_of(arrays.as_categories, (tied,), (still,), (wide,))


def of_supervised() -> Cases:
    draw = np.random.default_rng(18)
    labels_of = np.array([0, 0, 0, 1, 1, 2, 2, 2, 2, 1, 0, 2])
    column = labels_of + draw.normal(0, 0.4, 12)
    constant = np.zeros(12)
    two = (labels_of > 0).astype(int)
    for name, feature in {"some": column, "constant": constant, "tied": column.round()}.items():
        for kind, truth in {"three": labels_of, "two": two, "one": np.zeros(12, int)}.items():
            yield (
                f"svc {name} {kind}",
                lambda f=feature, t=truth: [
                    (fit := said(linear_svc.linear_svc, f, t, cost=c), _decided(f, fit)) for c in (0.01, 1.0, 100.0)
                ],
            )
            both = np.c_[feature, column]
            yield (
                f"logistic {name} {kind}",
                lambda b=both, t=truth: [said(logistic.logistic, b, t, (b[:3],), s) for s in ("multinomial", "ovr")],
            )
            yield (
                f"trees {name} {kind}",
                lambda b=both, t=truth: [said(trees.fast_trees, b, t, b[:4], n) for n in (1, 3)],
            )
    yield (
        "shares",
        lambda: [
            logistic.shares(np.array(rows))
            for rows in ([[0.0, 0.0, 0.0], [0.5, 0.5, 0.0]], [[0.2], [1.0]], [[0.0, 0.4]])
        ],
    )
    yield (
        "thresholds",
        lambda: [
            said(trees.thresholds, np.array(values), n)
            for values in ([1.0], [1.0, 1.0], [1.0, 2.0], [3.0, 1.0, 2.0, 2.0], [*range(20)] * 1)
            for n in (2, 3, 8)
            for values in [np.array(values, dtype=float)]
        ],
    )
    tables = [
        [[1.0, 0.0], [0.0, 1.0]],
        [[0.0, 0.0], [0.0, 0.0]],
        [[1.0, 1.0], [0.0, 0.0]],
        [[0.3], [0.7]],
        [[2.0, 1.0]],
    ]
    for table in tables:
        given = np.array(table)
        yield (
            f"importance {table}",
            lambda given=given: [said(f, given) for f in (dci.disentanglement, dci.completeness, dci.concentration)],
        )
    yield (
        "areas",
        lambda: [
            said(explicitness.macro_area, np.array(classes), np.array(chances), np.array(truth))
            for classes, chances, truth in (
                ([0, 1], [[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]], [0, 1, 1]),
                ([0, 1], [[0.5, 0.5]] * 4, [0, 1, 0, 1]),
                ([0, 1, 2], [[0.6, 0.3, 0.1], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6]], [0, 1, 1]),
                ([0], [[1.0], [1.0]], [0, 0]),
            )
        ],
    )
    yield (
        "nearest",
        lambda: [
            said(ds.nearest, np.array(train), np.array(test), n)
            for train, test in (([1.0, 2.0, 4.0, 8.0], [0.0, 3.0, 9.0]), ([1.0, 1.0, 1.0], [1.0]), ([5.0], [1.0, 9.0]))
            for n in (1, 2, 3)
        ],
    )
    factors = np.c_[labels_of, two]
    table = interventions.grouped(factors)
    yield "fixed batches", lambda: interventions.fixed_batches(table, 6, 3, np.random.default_rng(1))
    yield "fixed pairs", lambda: interventions.fixed_pairs(table, 6, 3, np.random.default_rng(1))
    codes = np.c_[column, constant]
    sizes: list[dict[str, Any]] = [
        {}, {"n_train": 5}, {"n_test": 5}, {"n_train": 11}, {"n_train": 12}, {"n_train": 6, "n_test": 6}, {"seed": 3},
        {"n_train": 7, "n_test": 6}, {"share": 0.5}, {"share": 0.0}, {"share": 1.0}, {"n_train": 0}, {"n_test": 12},
        {"n_test": 11, "seed": 0}, {"n_train": 1, "n_test": 1},
    ]  # fmt: skip
    yield "splits", lambda: [said(split, codes, factors, **size) for size in sizes]
    ordered = np.sort(labels_of)[:, None]
    yield (
        "ds of two rows",
        lambda: [said(ds.ds, codes[rows], factors[rows], n_neighbours=1) for rows in ([0, 3], [3, 0, 5])],
    )
    yield "sorted rows", lambda: [said(split, codes, ordered, **size) for size in sizes]
    steps = np.c_[np.arange(12) // 6, np.zeros(12, int)]
    yield (
        "moving late",
        lambda: [said(split, codes, steps[order], n_train=4) for order in ([*range(12)], [6, *range(11)])],
    )
    yield (
        "second table",
        lambda: (
            [said(split, codes, factors, codes[:n], factors[:n]) for n in (1, 3)]
            + [said(split, codes, factors, codes[:3]), said(split, codes, factors, codes[:3], factors[:2])]
        ),
    )


def _decided(feature: np.ndarray, fit: Any) -> Any:
    return fit if isinstance(fit, str) else linear_svc.decide(feature, *fit[:2])


def of_polarised() -> Cases:
    """Posteriors whose averages lie exactly at the thresholds of every rule, and a step to each side."""
    for rule, (_, threshold) in RULES.items():
        marks = [threshold, 1 - threshold, 1 + threshold, threshold**2, 2 * threshold, 0.0, 1.0]
        for mark in marks:
            columns = [mark - 0.01, mark, mark + 0.01]
            mean = torch.tensor([[-1.0], [1.0]], dtype=torch.float64) * torch.tensor(columns, dtype=torch.float64)
            variance = torch.tensor([columns, columns], dtype=torch.float64).abs()
            yield f"types, {rule} at {mark:g}", lambda m=mean, v=variance, r=rule: said(variable_types, m, v, rule=r)
    rising = torch.tensor([[0.5, 0.0], [0.2, 0.0], [0.01, 0.5], [0.3, 0.01], [0.01, 0.02], [0.0, 0.01]])
    kl, moved = torch.full((6, 2), 1.0), torch.tensor([[1.0, 0.0]]).expand(6, 2).contiguous()
    cases = {"all": slice(0, 6), "one": slice(5, 6), "two": slice(4, 6), "first": slice(0, 1), "none": slice(0, 2)}
    for name, rows in cases.items():
        n = rows.stop - rows.start
        exact = torch.stack([kl[:, 0], rising[:, 1]], 1)
        yield (
            f"share, {name}",
            lambda rows=rows, n=n, exact=exact: [
                said(regime_share, exact[rows], moved[rows], rising[rows], steps=steps, threshold=threshold)
                for steps in (None, [10 * k for k in range(n)], [0] * n, [1] * (n + 1))
                for threshold in (0.0, 0.03, 0.2, 1.1)
            ],
        )
    edge = torch.tensor([[0.25, 0.2500001, 0.2499999]])
    yield "share, spread", lambda: said(regime_share, torch.ones(1, 3), edge, torch.zeros(1, 3))
    yield "no rows", lambda: said(regime_share, kl[:0], moved[:0], rising[:0])
    mean = np.random.default_rng(19).normal(size=(8, 3)) * [1.0, 0.01, 0.5]
    variance = np.full((8, 3), [0.1, 1.0, 0.5])
    yield "regime", lambda: [said(regime, mean, variance, active=a) for a in (None, [1, 0, 1], [0, 0, 0], [1, 1])]
    yield "regime of a prior", lambda: said(regime, mean * 0, variance**0)
    kinds: list[list[Any]] = [["active", "passive", "mixed"], ["passive"] * 3, ["active"] * 3, ["active"]]
    yield "passive", lambda: [said(passive_correlation, mean, kind, threshold=t) for kind in kinds for t in (0.0, 0.5)]
    yield "passive, single", lambda: said(passive_correlation, mean[:, :1], ["passive"])
    yield "passive, snapshots", lambda: said(passive_correlation, np.stack([mean, mean**2, mean**3]), kinds[0])
    yield "by type", lambda: [said(by_type, mean, mean + 0.1, kind, n_bins=3) for kind in kinds]
    yield "rate", lambda: [said(rate_distortion, k, [2.0, 4.0]) for k in ([[1.0, 2.0], [0.0, 1.0]], [[0.0], [0.0]])]
    images = np.random.default_rng(20).uniform(size=(5, 4))
    yield (
        "reconstructions",
        lambda: [
            said(reconstruction_split, images, at, around_it)
            for at, around_it in ((images, images[None]), (images * 0.5, np.stack([images, images * 0.9])))
        ],
    )
    gram = torch.tensor([[[2.0, 0.5], [0.5, 1.0]], [[1.0, 0.0], [0.0, 0.0]], [[1.0, 1.0], [1.0, 1.0]]]).double()
    yield "noise", lambda: linear_stochastic_loss(gram, torch.tensor([[0.1, 0.2]] * 3).double())
    for active in (None, [True, True], [True, False], [False, False]):
        yield (
            f"directions, {active}",
            lambda active=active: (
                [said(f, gram, active=active) for f in (dto, ima_contrast)] + [said(restricted, gram, active)]
            ),
        )
    yield "singular", lambda: [part.abs() for part in right_singular(gram)]
    again = mean + 0.1
    yield "consistency", lambda: [said(self_consistency, mean, again, active=a) for a in (None, [1, 0, 1], [0, 0, 0])]
    angle = np.linspace(0, 2 * np.pi, 40, endpoint=False)
    plane = np.c_[np.cos(angle), np.sin(angle)]
    yield (
        "planes",
        lambda: [
            said(polar_or_cartesian, p, f, n_bins=4)
            for p in (plane, plane[:, :1], plane * 0, plane[:2])
            for f in (np.arange(len(p))[:, None] // 5, np.c_[np.arange(len(p)) % 2, np.arange(len(p)) // 20])
        ],
    )
    yield "pixels", lambda: [said(spi, images, images * f) for f in (0.0, 0.5, 1.0)]
    yield (
        "stable",
        lambda: [
            said(stable_range, [2, 4, 8, 16][: len(e)], e, tolerance=t)
            for e in ([1.0, 1.0, 1.0, 1.0], [1.0, 1.1, 1.3, 1.31], [3.0, 1.0, 0.5, 0.1], [1.0], [], [0.0, 0.0])
            for t in (0.0, 0.1)
        ],
    )


def of_verdicts() -> Cases:
    yield (
        "rules",
        lambda: [
            verdicts.compare_mean("x", [1.0, 2.0, 4.0], 1.0, tolerance=0.1, unit="u", spread=(1.0, 3)).rule,
            *(verdicts.compare_difference("x", {}, {}, sign, tolerance=0.1).rule for sign in (-1, 0, 1)),
            *(verdicts.compare_sign("x", 1.0, (0.5, 2.0), 3, sign, "h").rule for sign in (-1, 1)),
            verdicts.compare_share("x", 1, 2, 0.5).rule,
        ],
    )
    for name, case in _judged():
        yield name, lambda case=case: _without_rules(case())


def _without_rules(found: Any) -> Any:
    if isinstance(found, verdicts.Comparison):
        kept = (found.published, found.ours, found.interval, found.n, found.verdict, found.note, found.kind)
        return [*kept, *found.controls]
    return [_without_rules(one) for one in found] if isinstance(found, list) else found


def _judged() -> Cases:
    for low, high, tolerance in itertools.product((-0.2, -0.1, 0.0, 0.1), (-0.1, 0.0, 0.1, 0.2), (0.0, 0.1, 0.2)):
        if low <= high:
            yield (
                f"interval {low} {high} {tolerance}",
                lambda a=low, b=high, t=tolerance: [
                    verdicts.compare_interval("x", (a + b) / 2, (a, b), 0.0, 5, "h", tolerance=t).verdict,
                    verdicts.compare_sign("x", (a + b) / 2, (a, b), 5, 1, "h").verdict,
                    verdicts.compare_sign("x", (a + b) / 2, (a, b), 5, -1, "h").verdict,
                    verdicts.compare_between("x", (a + b) / 2, (a, b), (-0.1, 0.2), 5, "h").verdict,
                    verdicts.compare_between("x", (a + b) / 2, (a, b), (-0.2, 0.1), 5, "h").verdict,
                    verdicts.compare_between("x", (a + b) / 2, (a, b), (0.1, 0.3), 5, "h").verdict,
                ],
            )
    nothing = [(math.nan, (0.0, 1.0)), (1.0, None), (math.inf, (0.0, 1.0))]
    yield (
        "no interval",
        lambda: [
            [
                verdicts.compare_interval("x", ours, interval, 1.0, 0, "h"),
                verdicts.compare_sign("x", ours, interval, 0, 1, "h"),
                verdicts.compare_between("x", ours, interval, (0, 1), 0, "h"),
            ]
            for ours, interval in nothing
        ],
    )
    yield "signs", all_of(verdicts.compare_sign, *(("x", 1.0, (0.5, 2.0), 3, sign, "h") for sign in (-2, -1, 0, 1, 2)))
    values = [
        [],
        [1.0],
        [1.0, 1.1],
        [1.0, 1.1, 1.2],
        [1.0, 1.0, 1.0],
        [1.0, math.nan, 1.2, 1.1],
        {0: 1.0, 1: 1.1, 2: 1.3},
    ]
    for number, some in enumerate(values):
        yield (
            f"mean {number}",
            lambda some=some: [
                verdicts.compare_mean(
                    "x", some, published, tolerance=tolerance, unit="u", spread=at, assumed=at is not None
                )
                for published, tolerance in ((1.0, 0.0), (1.1, 0.1), (1.5, 0.1), (1.5, 1.0))
                for at in (None, (0.1, 3), (0.1, 1))
            ],
        )
    groups: list[Any] = [
        {0: 1.0, 1: 1.2, 2: 1.4}, {0: 0.9, 1: 1.0, 2: 1.1}, {0: 1.0, 1: 1.2}, {5: 1.0, 6: 2.0, 7: 3.0}, [1.0], [],
        [1.0, 2.0], {0: math.nan, 1: 1.0, 2: 2.0, 3: 2.5}, {k: 2.0 + k / 10 for k in range(6)},
        {k: 1.0 + k / 11 for k in range(6)},
    ]  # fmt: skip
    for (i, one), (j, other) in itertools.permutations(enumerate(groups), 2):
        yield (
            f"difference {i} {j}",
            lambda one=one, other=other: [
                verdicts.compare_difference("x", one, other, sign, tolerance=0.1) for sign in (-1, 0, 1)
            ],
        )
    y = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
    for n, sign in itertools.product((0, 1, 2, 3, 4, 6), (-1, 0, 1)):
        yield (
            f"trend of {n}, {sign}",
            lambda n=n, sign=sign: [
                verdicts.compare_trend("x", range(n), y[:n], sign, tolerance=0.9),
                verdicts.compare_trend("x", range(n), y[:n][::-1], sign),
                verdicts.compare_trend("x", [1.0] * n, y[:n], sign),
                verdicts.compare_trend("x", [k // 2 for k in range(n)], y[:n], sign, seeds=[k % 2 for k in range(n)]),
                verdicts.compare_trend("x", range(n), [math.nan, *y[1:n]][:n], sign, tolerance=1.0),
            ],
        )
    yield (
        "exact",
        lambda: [
            verdicts.compare_exact("x", ours, 1.0, tolerance)
            for ours in (1.0, 1.25, 0.75, math.nan)
            for tolerance in (0.0, 0.25)
        ],
    )
    yield "shares", lambda: [
        verdicts.compare_share("x", k, n, 0.5, tolerance=t) for k, n in ((0, 0), (0, 1), (1, 2), (50, 100), (99, 100))
        for t in (0.1, 0.5)
    ]  # fmt: skip
    claim = verdicts.compare_exact("x", 1.0, 1.0, 0.0)
    yield (
        "controls",
        lambda: [
            verdicts.with_controls(
                dataclasses.replace(claim, verdict=verdict), [verdicts.Checked("c", 1.0, None, a, n)]
            )
            for verdict in verdicts.VERDICTS
            for a, n in ((0, 0), (0, 1), (1, 1), (1, 2), (2, 3))
        ],
    )
    yield (
        "sizes",
        lambda: [
            verdicts.at_size(dataclasses.replace(claim, verdict=verdict, kind=kind), size)
            for verdict in verdicts.VERDICTS
            for kind in ("exact", "order", "number")
            for size in ("smoke", "small", "paper")
        ],
    )


def of_statistics() -> Cases:
    draw = np.random.default_rng(21)
    values = draw.normal(size=8).round(2)
    for n in range(9):
        yield (
            f"of {n}",
            lambda n=n: [
                said(intervals.mean_interval, values[:n]),
                said(intervals.welch_interval, values[:n], values[: max(0, n - 1)]),
                said(intervals.jackknife_interval, 0.5, values[:n]),
                said(intervals.bootstrap_interval, lambda rows: float(values[rows].mean()), n, n_draws=20),
                *(said(intervals.wilson_interval, k, n) for k in (-1, 0, 1, n / 2, n, n + 1)),
                *(said(intervals.correlation_interval, r, n) for r in (-1.0, -0.5, 0.0, 0.5, 1.0)),
            ],
        )
    for a, n, b, m in ((0.0, 2, 0.0, 2), (0.1, 1, 0.2, 1), (0.1, 2, 0.0, 9), (0.3, 5, 0.2, 3)):
        yield f"reach {a} {n} {b} {m}", lambda a=a, n=n, b=b, m=m: intervals.welch_reach(a, n, b, m)
    for n in (1, 2, 3, 13, 14, 15, 16):
        some = draw.normal(0.2, 1.0, n).round(2)
        yield f"signs of {n}", lambda some=some: [permutation.paired_test(some), permutation.paired_test(-some * 0)]
    for n, m in ((1, 1), (2, 3), (4, 4), (8, 8), (9, 9), (7, 12)):
        one, other = draw.normal(0.3, 1.0, n).round(1), draw.normal(size=m).round(1)
        yield f"groups of {n} and {m}", lambda one=one, other=other: permutation.unpaired_test(one, other)
    for n in (2, 3, 7, 8, 9):
        x, y = np.arange(n) * 1.0, draw.normal(size=n).round(1)
        yield f"trend of {n}", lambda n=n, x=x, y=y: [
            permutation.trend_test(x, y), permutation.trend_test(x, -x), permutation.trend_test(x, x * 0),
            permutation.trend_test(x // 2, y, np.arange(n) % 2), permutation.trend_test(x, y, np.zeros(n)),
        ]  # fmt: skip
    yield "least p of draws", lambda: [
        1 / permutation.paired_test(values.repeat(2)).least, 1 / permutation.trend_test(values, values,
        values // 1).least,
        1 / permutation.unpaired_test(np.arange(9.0), np.arange(12.0)).least,
    ]  # fmt: skip
    shared = {k: float(v) for k, v in enumerate(values)}
    for n in range(5):
        later = {k + 8 - n: float(v) for k, v in enumerate(values[:6])}
        yield f"{n} seeds shared", lambda later=later: pairwise({"a": shared, "b": later})
    yield "too few", lambda: pairwise({"a": {0: 1.0, 1: math.nan}, "b": {0: 2.0, 1: 1.0}, "c": {2: 1.0, 3: 2.0}})
    yield "holm of few", lambda: [holm(np.array(p)) for p in ([], [0.5], [0.6, 0.6], [0.01, 0.02, 0.03])]
    columns = [
        {"a": [1, 2, 3, 4], "b": [4, 3, 2, 1]}, {"a": [1, 1, 1], "b": [1, 2, 3]}, {"a": [1.0, 2.0], "b": [2.0, 2.5]},
        {"a": [1, 2, math.nan, 4], "b": [math.nan, 1, 2, 3]}, {"a": [math.nan, 1], "b": [1, math.nan]}, {"a": [1, 2]},
        {"a": [1, 2, 2, 3], "b": [1, 3, 2, 2], "c": [0, 0, 1, 1]},
    ]  # fmt: skip
    yield "correlations of few", lambda: [said(_correlated, one) for one in columns]
    yield "variance of few", all_of(
        variance_explained, ([1.0, 2.0], ["a", "b"]), ([1.0, 2.0, 3.0], ["a", "b", "b"]), ([1.0, 1.0, 1.0], [1, 1, 2]),
        ([1.0, 1.0, 2.0, 2.0], [1, 1, 2, 2]), ([1.0, 2.0, 3.0], [1, 1, 1]), ([], []),
        ([0.1, 0.2, 0.3, 0.4, math.nan], [1, 2, 1, 2, 3]), (values, [0, 1] * 4), (values, [0, 0, 0, 0, 0, 0, 0, 1]),
    )  # fmt: skip
    scores = draw.integers(0, 3, (2, 3, 3, 2)) * 1.0
    holes = np.where(draw.uniform(size=scores.shape) < 0.3, np.nan, scores)
    for name, some in {
        "ties": scores, "holes": holes, "one seed": scores[:, :, :1], "two seeds": scores[:, :, :2],
        "one world": scores[:1], "one metric": scores[..., :1], "one setting": scores[:, :1], "nothing": holes * np.nan,
        "two settings": scores[:, :2],
    }.items():  # fmt: skip
        yield f"transfer, {name}", lambda some=some: [said(transfer, some), said(share_beaten, some)]
    yield "searches", lambda: [
        said(line_search, *given)
        for given in (
            ([1, 1, 2, 2], [0.1, 0.3, 0.9, 0.8], [3, 3, 3, 2], 3), ([1, 2], [0.5, 0.5], [3, 3], 3), ([], [], [], 2),
            ([1, 1, 2], [0.1, 0.2, 0.9], [3, 3, 2], 3), ([1], [math.nan], [3], 3), ([1, 2], [0.1], [1, 2], 1),
            ([1, 1, 1], [0.1, 0.2, 0.9], [3, 2, 2], 3), ([3, 3], [-0.5, -0.4], [3, 3], 3),
        )
    ]  # fmt: skip
    notes = pl.DataFrame(
        {"cost.seconds": [3600.0, 1800.0, None, 36.0, 0.0], "cost.device": ["cpu", "cpu", "cpu", "cuda", "tpu"]}
    )
    yield (
        "costs",
        lambda: [
            [(one, cost.words_of(one)) for one in (cost.cost_of(table),)]
            for table in (notes, notes[:0], notes[[3]], notes[[4]], notes.drop("cost.device"), notes[:1])
        ],
    )
    values_of: list[list[Any]] = [
        ["inf", "x"], ["inf"], [1, "inf"], [0.5, "inf"], [0.5, "x"], [1, 0.5, "nan"], [1, 0.5], [None, "inf"],
        [True, 1.0],
        [[0.5, "inf"], None], ["-inf", 2.5, None], [{"a": 1}, 2],
    ]  # fmt: skip
    yield "columns of a store", lambda: [frame([{"x": one} for one in column])["x"].to_list() for column in values_of]
    yield "kinds of columns", lambda: [str(frame([{"x": one} for one in column])["x"].dtype) for column in values_of]
    yield "durations", lambda: [duration(float(s)) for s in (0, 0.9, 59.9, 60, 61, 3599, 3600, 3660, 7325, math.inf)]


def _correlated(columns: dict[str, Any]) -> Any:
    found = rank_correlations(columns, n_draws=20)
    return [found, found.rows()]


def of_scores() -> Cases:
    some = np.array([0.4, 0.5, 0.6])
    draws = {
        "none": np.array([]), "one": some[:1], "two": some[:2], "equal": np.full(3, 0.5), "three": some,
        "holes": np.array([0.4, np.nan, 0.6]), "infinite": np.array([0.1, np.inf, 0.2]), "models": np.c_[some, some**2],
    }  # fmt: skip
    for name, one in draws.items():
        yield (
            f"spread of {name}",
            lambda one=one: [spread(one), [said(around, v, one, (0.0, 1.0)) for v in (0, 0.5, 1)]],
        )
        values: list[Any] = [0.5, 1.0, 0.0, math.inf] if one.ndim == 1 else [np.array([0.5, 0.2])]
        yield (
            f"numbers of {name}",
            lambda one=one, values=values: [
                [number.interval, number.error, number.adjusted, written(number)]
                for value in values
                for chance in (None, 0.0, 0.5, 1.0)
                for better in (True, False, None)
                for limits in ((0.0, 1.0), (0.0, math.inf))
                for number in [Number(value, limits, better, one, chance)]
            ],
        )
        if one.ndim == 1:
            yield (
                f"difference, {name}",
                lambda one=one: [
                    [difference.clear, difference.better, differences_to_plain({"x": difference})]
                    for first, second in (
                        (0.5, 0.5),
                        (0.2, 0.9),
                        (0.9, 0.2),
                        (0.5, 0.6),
                        (0.5, 0.4),
                        (math.inf, math.inf),
                    )
                    for better in (True, False, None)
                    for difference in [Difference(first, second, one - 0.5, better)]
                ],
            )
    edge = np.array([0.0, 0.2])
    reach = 0.5 * (around(0.0, edge, (-9.0, 9.0)) or (0, 0))[1] * 2
    yield "exactly clear", lambda: [Difference(0.0, v, edge, True).clear for v in (reach, reach * 1.001, -reach)]


def of_findings() -> Cases:
    yield "words", lambda: [named([3]), named([1, 2]), counted(1, 2), counted(0, 2), counted(2, 2)]
    for moved, average, n in itertools.product((0.0, 0.2, 1.0, 2.0), (0.05, 0.5, 0.8, 1.0, 1.2), (20,)):
        sign = np.where(np.arange(n) % 2, 1.0, -1.0)
        mean = np.c_[sign * moved, np.sin(np.arange(n)), sign * moved * 0.5 + 0.5 * np.cos(np.arange(n) * 2)]
        variance = np.full((n, 3), [average, 0.02, average])
        found = partial(_found, mean, variance)
        yield f"codes {moved} {average} {n}", lambda found=found: found((None, 2, 3, 4))
    diagnosis = diagnose_codes(np.array([[-1.0, 0.5], [1.0, -0.2]]), np.full((2, 2), 0.01))
    for still, noise, rest in itertools.product((0.0, 0.2, 0.98), (0.0, 0.02, 0.8), (0.0, 0.05, 0.25, -0.3)):
        if still + noise > 0 or rest == 0:
            parts = ReconstructionSplit(still + noise + rest, still, noise, rest, *2 * [torch.ones(1).double()])
            yield f"decoder {still} {noise} {rest}", partial(_of_decoder, diagnosis, parts)


def _found(mean: np.ndarray, variance: np.ndarray, factors: tuple[int | None, ...]) -> Any:
    diagnosis = diagnose_codes(mean, variance)
    expected = [None if n is None else Expected(n, n) for n in factors]
    found = [findings_in_codes.findings_in_codes(diagnosis, one) for one in expected]
    return [[(one.name, *NUMBER.findall(one.text)) for one in some] for some in found]


def _of_decoder(diagnosis: Any, parts: Any) -> Any:
    told = []
    for (seen, chance), equal in itertools.product(((0.8, 1.0), (0.81, 1.0), (0.0, 0.0), (None, None)), (0.5, 0.6)):
        decoder = Decoder(seen, chance, equal, None, 1, 1.0, rate_distortion([[1.0]], [1.0]), parts)
        found = findings_in_runs.findings_in_decoder(diagnosis, decoder)
        told.append([(one.name, *NUMBER.findall(one.text)) for one in found])
    return told


def of_models() -> Cases:
    turn = np.linalg.qr(np.random.default_rng(22).normal(size=(4, 4)))[0]
    covariance_of = torch.from_numpy(turn @ np.diag([4.0, 2.0, 1.0, 0.5]) @ turn.T)
    for n, noise, beta in itertools.product((0, 1, 2, 4, 6), (None, 0.5, 1.0, 4.0, 0.0), (0.5, 1.0, 2.0)):
        yield f"optimum {n} {noise} {beta}", lambda n=n, noise=noise, beta=beta: _optimum(covariance_of, n, noise, beta)
    yield (
        "flat",
        lambda: [
            said(closed_form.learned_noise, torch.tensor(values), n, beta=beta)
            for values in ([1.0, 1.0, 1.0], [3.0, 1.0, 0.0], [2.0, 1.0, 1.0], [1.0, 0.0, 0.0])
            for n in (0, 1, 2, 3)
            for beta in (0.5, 1.0, 1.5, 3.0)
        ],
    )
    weight = torch.tensor([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]], dtype=torch.float64)
    slant = torch.tensor([[1.0, 0.5], [0.0, 2.0], [0.3, 0.0]], dtype=torch.float64)
    spread_of = torch.diag(torch.tensor([3.0, 1.0, 0.5], dtype=torch.float64))
    for diagonal, w in itertools.product((True, False), (weight, slant)):
        yield f"linear, {diagonal}, {float(w[0, 1])}", lambda d=diagonal, w=w: [
            [closed_form.posterior(w, 0.3, beta=beta, diagonal=d), closed_form.linear_loss(w, spread_of, 0.3,
            beta=beta, diagonal=d)]
            for beta in (0.5, 2.0)
        ]  # fmt: skip
        prior = torch.tensor([0.5, 2.0], dtype=torch.float64)
        yield (
            f"identifiable, {diagonal}, {float(w[0, 1])}",
            lambda d=diagonal, w=w, prior=prior: [
                closed_form_ivae.ivae_posterior(w, 0.3, prior, diagonal=d),
                closed_form_ivae.ivae_loss(w, spread_of, 0.3, prior, diagonal=d),
                said(closed_form_ivae.ivae_prior, w, spread_of, 0.3),
                said(closed_form_ivae.ivae_prior, w * torch.tensor([1.0, 0.0]), spread_of, 0.3),
                said(closed_form_ivae.ivae_prior, w, spread_of, 5.0),
                said(closed_form_ivae.ivae_posterior, w, 0.3, prior * 0, diagonal=d),
            ],
        )
    yield (
        "turns",
        all_of(impossibility.householder, *((n, a) for n in (1, 2, 3, 5) for a in (0.0, 0.1, 0.25, 0.49, 0.5))),
    )
    shares = torch.tensor([[0.1, 0.9], [0.5, 0.5], [0.0, 1.0]], dtype=torch.float64)
    for name, marginal in impossibility.MARGINALS.items():
        yield (
            f"entangled, {name}",
            lambda m=marginal: [
                said(impossibility.entangle, shares, (m,) * n, turn)
                for n, turn in ((2, None), (1, None), (2, torch.eye(2).double()), (2, torch.ones(2, 2).double()))
            ],
        )
    yield "budgets", lambda: [said(precision_budget, w, b) for w in (weight, slant, weight * 0) for b in (0.0, 1.0)]
    told = torch.tensor([[0.0, 1.0, 0.25], [2.0, 0.0, -1.0]])
    for sizes, encoding in itertools.product(((3, 2, 0), (3, 1, 0), (0, 0, 0)), ("one_hot", "values")):
        yield f"labels {sizes} {encoding}", lambda s=sizes, e=encoding: [
            labels.label_columns(s, e), labels.encode_labels(told, s, e), labels.scaled_labels(told, s)
        ]  # fmt: skip
    for name, posterior in POSTERIORS.items():
        for latents in (1, 2, 3):
            yield f"{name} of {latents}", partial(_code_of, posterior(), latents)


def _optimum(covariance_of: torch.Tensor, n: int, noise: float | None, beta: float) -> Any:
    found = said(closed_form.linear_optimum, covariance_of, n, noise=noise, beta=beta)
    if isinstance(found, str):
        return found
    signs = [found.weight.abs(), found.encoder.abs(), found.weight @ found.encoder]
    return [
        signs,
        found.variance,
        found.eigenvalues,
        found.n_active,
        found.noise,
        found.rate,
        found.distortion,
        found.loss,
    ]


def _code_of(posterior: Any, latents: int) -> Any:
    sizes = posterior.heads(latents)
    heads = {
        name: torch.sin(torch.arange(2 * size).reshape(2, size) + place)
        for place, (name, size) in enumerate(sizes.items())
    }
    code = posterior.code(heads, torch.cos(torch.arange(2 * latents)).reshape(2, latents))
    again = dataclasses.replace(code, prior_mean=code.mean + 0.5, prior_log_variance=code.mean * 0 + 0.3)
    steps = torch.tensor([-1.0, 0.0, 2.0])
    return [
        sizes,
        code,
        code.variance,
        again.standardised(),
        again.in_deviations(1, 0, steps),
        code.in_deviations(0, 0, steps),
    ]


def of_losses() -> Cases:
    pictures = torch.tensor([[0.0, 1.0, 0.5, 0.25], [1.0, 1.0, 0.0, 0.9]])
    outputs = torch.tensor([[-30.0, 30.0, 0.0, 0.3], [2.0, -2.0, 0.5, 1.0]])
    likelihoods: list[Any] = [Bernoulli(), Bernoulli("tanh"), Bernoulli("sigmoid", True), Bernoulli("tanh", True)]
    likelihoods += [Gaussian(0.3, how) for how in ("identity", "sigmoid", "tanh")] + [SquaredError("identity")]
    likelihoods += [SquaredError("tanh"), LearnedGaussian(), LearnedGaussian("tanh")]
    noise = torch.tensor(0.7)
    for likelihood in likelihoods:
        given = (noise,) if likelihood.learns_noise else ()
        yield (
            f"{likelihood}",
            lambda one=likelihood, given=given: [
                one.loss(pictures, outputs, *given),
                one.mean(outputs),
            ],
        )
    yield (
        "reflected",
        lambda: [fold(torch.tensor([[-0.4, 0.0, 0.3, 1.0, 1.4]])), altered(pictures, outputs.sign(), 0.3)],
    )
    yield "noise by row", lambda: UniformNoise(0.3, 2).apply(pictures.view(2, 1, 2, 2), torch.tensor([0, 5]))
    sprites_of = torch.tensor([[0.0, 1.0], [1.0, 0.0]]).expand(2, 1, 2, 2)
    draws = torch.tensor([[0.0, 0.3, 0.99, 0.5], [0.25, 0.9999999, 0.1, 0.7]])
    picture = (torch.arange(3 * 5 * 6) * 7 % 256).view(3, 5, 6).to(torch.uint8)
    yield "tint", lambda: nuisances.Tint().apply(sprites_of, draws[:, :3])
    yield "speckle", lambda: nuisances.Noise(4).apply(sprites_of, draws)
    yield "backdrop", lambda: nuisances.Backdrop(picture).apply(sprites_of, torch.cat([draws, draws[:, :1]], 1))
    for name, optimiser in OPTIMISERS.items():
        yield f"updates by {name}", partial(_updated, optimiser(learning_rate=0.1))
        yield f"stacked updates by {name}", partial(said, _updated_stack, optimiser(learning_rate=0.1))
    for scheme in ("glorot", "pytorch"):
        yield f"begun by {scheme}", partial(_begun, scheme)
    norm, x = BatchNorm(2), torch.sin(torch.arange(12.0)).view(3, 2, 2)
    yield "batch norm", lambda: [said(_normed, norm, part) for part in (x, x[:1, :, :1], x[:, :, 0])]
    weight = torch.cos(torch.arange(6.0)).view(2, 3)
    yield "spectral norm", lambda: [_normed(SpectralNorm(w), w) for w in (weight, weight.T.contiguous())]
    code = Diagonal().code({"mean": x[:, :, 0], "log_variance": -x[:, :, 1]}, torch.cos(x[:, :, 0]))
    told = under_prior(code, code.mean * 0.5, code.log_variance * 0 - 0.2)
    yield (
        "decomposed",
        lambda: [
            said(beta_tcvae.decompose, code, estimator, n)
            for estimator in ("batch", "weighted", "stratified")
            for n in (1, 9)
        ],
    )
    yield (
        "weights",
        lambda: [
            said(beta_tcvae.log_weights, n, estimator, 7)
            for estimator in ("batch", "weighted", "stratified")
            for n in (1, 2, 3)
        ],
    )
    yield "sampled KL", lambda: [sampled_kl(code), sampled_kl(told), told.kl, told.standardised()]
    heads = {"mean": torch.tensor([[0.0, 1.0, 0.3], [0.0, -1.0, 0.3]]), "log_variance": torch.zeros(2, 3)}
    same = {"mean": torch.ones(2, 3), "log_variance": torch.zeros(2, 3)}
    other = {"mean": torch.tensor([[0.0, 1.0], [1.0, 0.0]]), "log_variance": torch.tensor([[0.0, 1.0], [0.5, -1.0]])}
    for number, held in enumerate((heads, same, other)):
        yield (
            f"pair {number}",
            lambda held=held: [
                pair_vae.changed_latents(held),
                *(
                    pair_vae.shared_code(held, torch.ones_like(held["mean"]), pair_vae.changed_latents(held), average)
                    for average in ("gvae", "ml_vae")
                ),
            ],
        )
    steps = torch.tensor([0.0, 0.5, 2.0, 37.9, 38.0, 38.1, 100.0])
    yield (
        "slow steps",
        lambda: [
            slow_vae.laplace_cross_entropy(steps, torch.full_like(steps, d), rate)
            for d in (1.0, 0.1)
            for rate in (1.0, 6.0)
        ],
    )
    yield (
        "penalties",
        lambda: [
            covariance_penalty(x[:, :, 0], x[:, :, 1]),
            embedding_loss(
                x[:, :, 0], (x[:, :, 1] > 0).float(), [torch.tensor([0.0, 1.0])] * 2, torch.tensor([1.0, 3.0])
            ),
            log_density(x[:, :, 0], x[:, :, 1], x[:, :, 0].exp()),
            dip_covariance(x[:, :, 0]),
        ],
    )


def _updated(optimiser: Any) -> Any:
    held = {"a": torch.tensor([1.0, -2.0, 0.5]), "b": torch.tensor([[0.1, 0.0]])}
    state = optimiser.start(held)
    for step in range(3):
        optimiser.update(held, [torch.sin(value * (step + 1)) for value in held.values()], state)
    return [held, state, optimiser.kept(held, state)]


def _updated_stack(optimiser: Any) -> Any:
    held = torch.tensor([[1.0, -2.0, 0.5], [0.1, 0.0, 3.0]])
    state = optimiser.start_stack(held)
    for step, good in enumerate(([True, True], [True, False], [False, True])):
        rates, count = torch.tensor([0.1, 0.2]), torch.tensor(step + 1)
        given = StackedUpdate(torch.sin(held * (step + 1)), rates, count, torch.tensor(good))
        optimiser.update_stack(held, state, given)
    return [held, state, optimiser.kept_stack(held, state)]


def _begun(scheme: Any) -> Any:
    made = [uw.MLP((4,), (5,)).trunk((1, 2, 2))[0], uw.Conv((3, 4), (4, 4), 6).decoder(2, (1, 16, 16))]
    for number, module in enumerate(made):
        initialise(module, scheme, 7, 3 * number)
    return [[parameter.detach() for parameter in module.parameters()] for module in made]


def _normed(norm: Any, x: torch.Tensor) -> Any:
    trained = norm.train()(x)
    return [trained, norm.fresh, norm.eval()(x)]


def of_data() -> Cases:
    spaces = {
        "line": FactorSpace((Factor("a", 4), Factor("b", 3))),
        "ring": FactorSpace((Factor("a", 5, "cyclic"), Factor("b", 2, "categorical"))),
        "hidden": FactorSpace((Factor("a", 3), Factor("h", 4, hidden=True), Factor("b", 2, "categorical"))),
        "single": FactorSpace((Factor("a", 1), Factor("b", 3))),
        "still": FactorSpace((Factor("a", 1), Factor("b", 3, "categorical"))),
    }
    given: dict[str, pairings.Pairing] = {
        "transitions": pairings.Transitions(), "fast": pairings.Transitions(0.3),
        "flat": pairings.Transitions(cyclic=False),
        "categories": pairings.Transitions(categorical_change=True), "lazy": pairings.Transitions(20.0,
        always_change=False),
        "slow": pairings.Transitions(20.0), "changes": pairings.Changes(), "none": pairings.Changes(0),
        "one": pairings.Changes(1), "both": pairings.Changes(2), "three": pairings.Changes(3),
        "often": pairings.Changes(often_one=True), "differ": pairings.Changes(must_differ=True),
        "share": pairings.SharePairs(), "sharing": pairings.SharePairs((("a", "b"),)), "change": pairings.ChangePairs(),
        "changing": pairings.ChangePairs((("b",), ("a", "b"))), "rank": pairings.RankPairs(),
        "random": pairings.RandomPairs(),
        "ranked": pairings.RankPairs(("b",)), "empty": pairings.SharePairs(((),)),
        "wrong": pairings.ChangePairs((("c",),)),
    }  # fmt: skip
    for (kind, space), (name, pairing) in itertools.product(spaces.items(), given.items()):
        yield f"{name} pairs of {kind}", lambda space=space, pairing=pairing: [
            pairing.n_words(space), said(_pairs, pairing, space)
        ]  # fmt: skip
    for kind, space in spaces.items():
        yield f"space, {kind}", lambda space=space: [
            space.names, space.sizes, space.n_cells, space.strides, space.n_hidden, space.sample(4, 3),
            said(space.coordinates, torch.arange(space.n_cells)), said(space.values, torch.tensor([0,
            space.n_cells - 1])),
            said(space.coordinates, torch.tensor([space.n_cells])), said(space.coordinates, torch.tensor([-1])),
            said(space.find, torch.zeros(3, len(space.sizes), dtype=torch.int64), 2), said(space.position, "b"),
            said(space.find, torch.full((1, len(space.sizes)), 9), 2), said(space.position, "c"),
        ]  # fmt: skip
        yield (
            f"steps, {kind}",
            lambda space=space: [
                pairings.step_probabilities(factor, rate, cyclic=cyclic)
                for factor in space.factors
                for rate in (0.5, 1.0)
                for cyclic in (True, False)
            ],
        )
    yield (
        "greater",
        lambda: pairings.RankPairs().greater(spaces["line"], *torch.tensor([[[1, 2], [3, 0]], [[1, 1], [2, 1]]])),
    )
    yield "below", lambda: pairings.below(3, torch.tensor([0, 2**31, 2**32 - 1, 2**32 // 3, 2**32 // 3 + 1]))
    frames = [PurePath(p) for p in ("b/f10.png", "b/f2.png", "a/f1.png", "a/f01.png", "a/x.png")]
    yield "sequences", lambda: [
        sequences.by_folder(frames), said(sequences.by_folder, [*frames, PurePath("y.png")]),
        sequences.by_folder([PurePath("y.png"), PurePath("x2.png")]), {k: [*v] for k, v in sequences.by_axis(2,
        3).items()},
        *(said(sequences.sequence_pairs, {"a": range(n), "b": range(n, 5 + n)}, far) for n in (1, 2,
        4) for far in (1, 3)),
        *(said(sequences.segments_of, {"a": range(4), "b": range(4, 9)}, n) for n in (0, 1, 2, 3, 4, 5, 501)),
        said(sequences.segments_of, {"a": range(4)}, 1), said(sequences.segments_of, {"a": range(1001)}, 1001),
        said(sequences.segments_of, {"a": range(1001)}, 1000),
        *(sequences.frames_of(np.zeros(shape))[1].shape for shape in ((2, 3, 4, 4), (2, 4, 4, 3), (2, 4, 4, 1), (2,
        4, 4, 2),
          (2, 3, 4, 4, 3), (6, 4, 4))),
        *map(sequences.natural, ("a10b2", "10", "", "a", "01")),
    ]  # fmt: skip
    picture = (np.arange(3 * 6 * 9) * 37 % 256).reshape(3, 6, 9).astype(np.uint8)
    for fit, (wide, high) in itertools.product(("crop", "pad", "stretch"), ((4, 4), (9, 6), (2, 8), (16, 3), (1, 1))):
        yield f"{fit} to {wide} × {high}", lambda fit=fit, wide=wide, high=high: [
            pixels.fitted(picture, wide, high, fit), pixels.fitted((picture / 255).astype(np.float32), wide, high, fit)
        ]  # fmt: skip
    for colour in ("grey", "rgb"):
        yield (
            colour,
            lambda colour=colour: [
                said(pixels.coloured, images, colour)
                for images in (picture[None], picture[None, :1], (picture[None] / 255).astype(np.float32))
            ],
        )
    columns: list[Any] = [
        ["1", "2"], ["1.0", "2.5"], ["1", "a"], ["a", "b", "a"], [""], ["nan"], ["1,5", "x"], ["-inf"], ["+3", "-04"],
        [str(2**53)], [str(2**53 + 1)], [str(-(2**53) - 1)], ["9" * 19], ["0" * 30 + "7"], ["1e400"], [".5", "5."],
        ["12%"], ["1 000"], np.array([True, False]), np.array([1.0, 2.0]), np.array([1.5]), np.array([np.nan]), [],
        np.array([2**53 + 1]), np.array([2**53]), np.array([-(2**53) - 1]), np.array([b"x", b"y"]), np.array([1j]),
        np.array([1e300]), np.array([], dtype=np.float64), np.array([3], dtype=np.uint8), [" a ", "b"], [1, 2], [None],
    ]  # fmt: skip
    yield "columns", lambda: [said(cells.as_column, column, lambda row: f"row {row}") for column in columns]
    for n_channels in (1, 2, 3, 4):
        yield f"strip of {n_channels} channels", partial(_strip, n_channels)
    yield "ranks of words", lambda: cells.ranks(np.array(["b", "a", "b", "c"]))
    rows: list[Any] = [
        0, -1, 9, 10, -10, -11, slice(None), slice(2, 8, 3), slice(8, 2), [1, 2], [], [10], [-10], [-11], [0.5], "a",
        np.arange(10) > 7, np.arange(9) > 7, torch.tensor([3, 3]), torch.tensor(4), True, None, np.array([[1, 2]]),
    ]  # fmt: skip
    yield "rows", lambda: [said(chosen_rows, one, 10) for one in rows]
    yield "correlated", lambda: [
        said(correlations.row_weights, SPACE, asked)
        for asked in ((), ("x=y:0.2",), ("x=y:0.0001",), ("x=y:100",), ("x=size:0.4", "x=y:1"), ("x=x:0.2",), ("x:y",),
                      ("x=q:1",), ("x=y:-1",), ("x=y:0",), ("x=y:nan",))
    ]  # fmt: skip
    weights = torch.tensor([[0.0, 1.0, 3.0], [1.0, 0.0, 0.0]], dtype=torch.float64)
    words = torch.tensor([[[0, 0], [2**32 - 1, 2**32 - 1]], [[2**30, 5], [2**31, 0]]])[:, :, None, :]
    yield "drawn places", lambda: said(correlations.draw_places, correlations.row_thresholds(weights), words)
    yield "discs", lambda: [said(disc.render_discs, *g) for g in ((2, 2, 2), (1, 1, 1), (2, 3, 1, 0.5, 0.5))]
    shapes = [
        (s, 0.5, 0.5, scale, d, n)
        for s in ("square", "ellipse", "heart", "star")
        for scale in (0.5, 1.0)
        for d in (0.0, 30.0)
        for n in (8,)
    ]
    yield "sprites", all_of(sprites.render_sprite, *shapes)
    yield "sprites at an edge", all_of(sprites.render_sprite, *(("square", x, 0.0, 1.0, 45.0, 6) for x in (0.0, 1.0)))
    yield "dsprites", lambda: dsprites.render(np.array([[0, 0, 0, 0, 0], [1, 5, 39, 31, 31], [2, 3, 11, 7, 20]]))
    yield (
        "shapes3d",
        lambda: [
            shapes3d.render_view(s, k, o, n) for s, k, o, n in ((0, 0, 0, 1), (7, 3, 14, 1), (3, 2, 7, 2), (5, 1, 3, 1))
        ],
    )
    yield "palette", lambda: shapes3d.palette()
    yield (
        "rotations",
        lambda: [rotation(axis, a) for axis in ((1.0, 0.0, 0.0), (0.0, 3.0, 4.0)) for a in (0.0, 0.5, 3.0)],
    )
    for name in ("micro", "micro_segments", "synth_lin", "synth_nonlin", "ivae_toy", "noise"):
        yield f"examples of {name}", partial(_examples, WORLDS[name]())
    for whiten in (True, False):
        yield f"sources, {whiten}", partial(_examples, PCLToy(40, 2, 2, 0.5, whiten, 3))
    yield (
        "labels",
        lambda: [
            said(
                lambda data=data: [data.label_sizes, data.given_names, data.n_of_each, repr(data), data.comes_as_stored]
            )
            for data in map(
                _labelled, (None, [[0.0, 1.0], [2.0, 0.5]], [[999.0], [0.0]], [[1000.0], [0.0]], [[-1.0], [0.0]])
            )
        ],
    )


def _strip(n_channels: int) -> Any:
    images = torch.linspace(-0.1, 1.1, 2 * n_channels * 6).view(2, n_channels, 2, 3)
    found = strip_of(images)
    content = base64.b64decode(found.split("base64,")[1].split('"')[0])
    return [found.partition("src")[0], np.asarray(Image.open(io.BytesIO(content)))]


def _pairs(pairing: pairings.Pairing, space: FactorSpace) -> Any:
    found = pairs.drawn_pairs(pairing, space, 6, 3)
    return [found, found.changed]


def _labelled(values: Any) -> Data:
    told = None if values is None else torch.tensor(values)
    return Data(torch.zeros(2, 1, 2, 2, dtype=torch.uint8), (1, 2, 2), labels=told)


def _examples(world: Any) -> Any:
    data = world.load()
    rows = torch.linspace(0, len(data) - 1, 5).long()
    known = [data.given(rows), data.given_names] if data.label_sizes else []
    return [len(data), data.examples(rows, seed=2, step=3), known, data.pairs, world.told(data)]


def of_files() -> Cases:
    """Small files of other people's: what is read of them, or the sentence that refuses them."""
    three = ["a.png", "b/c.png", "d.png"]
    texts = [
        "file,age\na.png,1\nb/c.png,2\nd.png,3\n", "file,age,kind\na.png,1.5,x\nd.png,2,y\nb/c.png,3,x\n", "file,age\n",
        "file\na.png\n", "file;age\na.png;1\n", "a.png,1\n", "file,\na.png,1\n", "file,a,a\na.png,1,2\n", "", "\n\n",
        "file,age\na.png,1\na.png,2\n", "file,age\nx.png,1\n", "file,age\na.png,1,2\n", 'file,age\n"a.png,1\n',
        "file,a\n\0",
        "\ufefffile,age\n\na.png, 1\nb/c.png,x\nd.png,3\n", "file,age\na.png,1\n", "file,age\na.png,1\nd.png,2\n",
    ]  # fmt: skip
    yield "labels", lambda: [_read(read_labels_csv, "labels.csv", text.encode(), three) for text in texts]
    yield "labels of bytes", lambda: _read(read_labels_csv, "labels.csv", b"\xff\xfe\x00", three)
    texts_of_pairs = [
        "first,second\n0,1\n2,1\n", "first,second\na.png,d.png\n", "0,1\n", "first\n0\n", "first;second\n0;1\n",
        "x,y\n",
        "x,y\n0,0\n", "x,y\n0,3\n", "x,y\n0,-1\n", "x,y\n0,1,2\n", "x,y\n0,\n", "x,y\n0,q.png\n", "x,y\n0," + "9" * 19,
        "a.png,y\n", "x,y,z\n", "x,y\n2,a.png\n", "x,y\n0," + "0" * 17 + "1", "x,y\n0," + "0" * 18 + "1",
    ]  # fmt: skip
    yield "pairs", lambda: [_read(read_pairs_csv, "pairs.csv", text.encode(), 3, three) for text in texts_of_pairs]
    arrays_of_pairs: list[Any] = [[[0, 1]], [[0, 3]], [[-1, 0]], [[0.5, 1]], [0, 1], [[0, 1, 2]], np.zeros((0, 2), int)]
    yield "arrays of pairs", lambda: [said(checked_pairs, np.array(a), 3, "p") for a in arrays_of_pairs]
    tables_of = [
        "code_a,z1,latent,factor_x,y\n1,2,3,a,1\n4,5,6,b,2\n", "z,year\n1,2\n2,3\n", "a,b\n1,2\n", "z0,y\n1,\n2,1\n",
        "z0,y\n1,nan\n2,1\n", "z0,y\nx,1\n", "z0,z0\n1,2\n", "z_a,variance_a,label_b\n0.5,0.1,1\n1.5,0.2,0\n",
        "z0\n", "",
        "z0,y\n1,a\n2,1\n", "z0,y\n1,true\n2,false\n", "Z0,Y1\n1,1.5\n2,1.0\n",
        ",".join(f"c{k}" for k in range(9)) + "\n",
    ]  # fmt: skip
    yield "tables of text", lambda: [_read(lambda p: read_tables([p]), "t.csv", text.encode()) for text in tables_of]
    held: list[dict[str, Any]] = [
        {"codes": np.ones((2, 2))}, {"z": np.ones((2, 3, 2)), "y": np.array([[1], [2], [3]])},
        {"other": np.ones(2)}, {},
        {"codes": np.array([[1.0, np.nan]])}, {"codes": np.array([np.inf, 1.0])}, {"codes": np.ones((1, 2,
        2)) * np.nan},
        {"codes": np.ones((2, 1)), "factors": np.array(["a", "b"])}, {"latents": np.ones((2, 1)), "labels": [["1"],
        ["2"]]},
        {"codes": np.ones((2, 1)), "factors": np.array([["a", "1"], ["b", "2"]])}, {"codes": np.ones(2),
        "factors": [1, 2]},
        {"codes": np.ones((2, 2)), "latent_names": ["u", "v"], "factor_names": ["w"], "factors": [[1], [2]]},
        {"codes": np.ones((2, 2)), "latent_names": ["u"], "variance": np.ones((2, 2))}, {"codes": np.array([None])},
    ]  # fmt: skip
    yield "tables of arrays", lambda: [_read(lambda p: read_tables([p]), "t.npz", _npz(one)) for one in held]
    kinds: list[np.ndarray] = [
        np.zeros((2, 4, 4)), np.ones((2, 4, 4), bool), np.ones((2, 4, 4), np.uint8), np.full((2, 4, 4), 2, np.uint8),
        np.full((2, 4, 4), 255), np.full((2, 4, 4), 256), np.full((2, 4, 4), -1), np.full((2, 4, 4), 1.5),
        np.zeros((2, 4)),
        np.full((2, 3, 4, 4), 300.0), np.zeros((2, 4, 4, 3)), np.zeros((2, 3, 4, 4)), np.zeros((2, 4, 4, 2)),
        np.zeros((0, 4, 4)),
        np.zeros((2, 4, 4, 1)), np.zeros((2, 1, 4, 3)), np.full((1, 2, 2), np.nan), np.full((2, 4, 4), "a"),
        np.full((2, 4, 4), -0.1),
        np.arange(1001 * 4).reshape(1001, 2, 2) / 4003, np.zeros((2, 0, 4)), np.full((2, 3, 4, 4), 255.0),
    ]  # fmt: skip
    yield "pictures", lambda: [said(_picture, images) for images in kinds]
    names: list[tuple[Any, ...]] = [
        (["images", "x"], None), (["q"], None), (["q", "r"], None), (["q", "r"], "r"), (["q"], "r"), (["x",
        "data"], None)
    ]  # fmt: skip
    yield "keys", lambda: [said(image_sources._key, Path("f"), n, w, ("images", "x"), "images") for n, w in names]
    data = np.arange(4 * 6 * 5).reshape(4, 6, 5).astype(np.uint8)
    ways: list[dict[str, Any]] = [
        {}, {"size": 4}, {"size": 3, "height": 5}, {"size": 4, "fit": "pad"}, {"colour": "rgb"}, {"labels": "none"},
        {"size": 4, "fit": "stretch"}, {"key": "x"}, {"labels": "y"}, {"pairs": "p"}, {"sequences": True},
    ]  # fmt: skip
    content = _npz(
        {"images": data, "labels": np.array([1, 2, 1, 0]), "x": data[:2], "y": np.eye(4), "p": np.array([[0, 1]])}
    )
    yield "own images", lambda: [_read(_own, "own.npz", content, **way) for way in ways]
    film = {"images": np.arange(2 * 3 * 4 * 4).reshape(2, 3, 4, 4).astype(np.uint8)}
    moving: list[dict[str, Any]] = [{"segments": n, "furthest": f} for n in (None, 1, 2, 3, 4) for f in (1, 2)]
    told: list[dict[str, Any]] = [{}, {"labels": np.arange(6).reshape(2, 3)}, {"labels": np.array([3, 5])}]
    yield (
        "own films",
        lambda: [_read(_own, "own.npz", _npz(film | more), sequences=True, **way) for way in moving for more in told],
    )


def _read(reader: Callable[..., Any], name: str, content: bytes, *given: Any, **options: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        found = said(reader, path, *given, **options)
    return found.replace(folder, "…") if isinstance(found, str) else found


def _npz(arrays: dict[str, Any]) -> bytes:
    made = io.BytesIO()
    np.savez(made, **{name: np.asarray(array) for name, array in arrays.items()})
    return made.getvalue()


def _picture(images: np.ndarray) -> Any:
    found = image_sources.checked(images, Path("f"))
    return [found.shape, str(found.dtype), found]


def _own(path: Path, **options: Any) -> Any:
    world = Images(str(path), **options)
    data = world.load()
    known = [data.label_names, data.labels, data.pairs, data.segments]
    return [data.shape, data.packing, data.store, *known, world.told(data), world.resolve().found]


def of_training() -> Cases:
    small: dict[str, Any] = {"batch_size": 5, "steps": 20, "plan": uw.Plan("cpu", 1), "network": uw.MLP((6,), (6,))}
    for name, method in OBJECTIVES.items():
        if name != "perturbation":
            made = method(labelled=9) if name == "semi_vae" else method()
            yield f"draws of {name}", partial(_drawn, [made, made], Micro(), **small)
    ways: dict[str, dict[str, Any]] = {
        "epochs": {"order": "epochs"}, "held out": {"holdout": 0.25}, "nearly all held out": {"holdout": 0.9999},
        "both": {"order": "epochs", "holdout": 0.5}, "large": {"batch_size": 3000, "order": "epochs"},
    }  # fmt: skip
    for name, given in ways.items():
        yield f"draws, {name}", partial(_drawn, [uw.FactorVAE(), uw.FactorVAE()], Micro(), **small | given)
    yield "draws, weighted", partial(_drawn, [uw.BetaVAE()] * 2, Micro(correlated=("x=y:0.2",)), **small)
    yield (
        "draws, weighted in turn",
        partial(_drawn, [uw.BetaVAE()], Micro(correlated=("x=y:0.2",)), order="epochs", **small),
    )
    yield "draws, pairs held out", partial(_drawn, [OBJECTIVES["slow_vae"]()], Micro(), holdout=0.1, **small)
    for n in (1, 2, 63, 64, 65, 2**16, 2**22, 2**23):
        yield (
            f"block of {n}",
            lambda n=n: _source([uw.BetaVAE()], Micro(), **small | {"batch_size": n, "latents": 1}).block,
        )
    steps = uw.Experiment(Micro(), **small)
    yield (
        "updates",
        lambda: [
            said(lambda m=m, n=n: dataclasses.replace(steps, objective=m, steps=n).n_updates)
            for m in (uw.BetaVAE(), *(uw.FactorVAE(protocol=p) for p in ("paper", "study")))
            for n in (1, 2, 3, 20)
        ],
    )
    for given in (
        {"snapshots": (0, 20)},
        {"snapshots": (21,)},
        {"warmup": 5},
        {"plan": uw.Plan("tpu")},
        {"latents": 1},
    ):
        yield f"resolved {given}", lambda given=given: said(lambda: dataclasses.replace(steps, **given).resolve().id)
    several = {"vae": uw.BetaVAE(), "factor": uw.FactorVAE(), "full": uw.BetaVAEFull(), "told": OBJECTIVES["ivae"]()}
    for (name, method), device in itertools.product(several.items(), ("cpu", "cuda:0")):
        one = dataclasses.replace(steps, objective=method, plan=uw.Plan(device, 1, "fp32"))
        yield f"arranged {name} on {device}", partial(_arranged, one)
    for name, method in several.items():
        yield f"size of {name}", partial(_sized, dataclasses.replace(steps, objective=method))
    for precision in ("auto", "fp32", "bf16", "tf32", "fp8"):
        yield f"precision {precision}", lambda p=precision: said(uw.Plan("cpu", 3, p).resolve)


def _arranged(one: uw.Experiment) -> Any:
    wide = dataclasses.replace(one, latents=one.latents + 1)
    found = [
        (least, n, len(members.experiments), members.given[-3:], members.latents, str(members.groups))
        for least, n in itertools.product((1, 2, 16), (1, 2, 3, 16, 17))
        for members in [arrange([*[one] * n, wide], least=least)]
    ]
    return [found, choice.least_group(one), choice.side_by_side(one)]


def _sized(one: uw.Experiment) -> Any:
    form = form_of(one.objective, one.world.load())
    with torch.device("meta"):
        networks = one.objective.networks(one.architecture(form.shape, form.labels))
    return [choice._n_parameters(networks.values()), choice._n_activations(networks, one, form)]


def _source(methods: list[Any], world: Any, **given: Any) -> Source:
    latents = given.pop("latents", 3)
    some = [uw.Experiment(world, method, seed=k, latents=latents + k, **given) for k, method in enumerate(methods)]
    return source_of(some, world.load())


def _drawn(methods: list[Any], world: Any, **given: Any) -> Any:
    def drawn() -> Any:
        source = _source(methods, world, **given)
        found = draw(source, torch.tensor([0, 1, 70]))
        first = batch_of(source, {name: one[2] for name, one in found.items()})
        return [found, {name: one.double() for name, one in first.items()}]

    return said(drawn)


GROUPS: dict[str, Callable[[], Cases]] = {
    "edges of metrics": of_metrics,
    "edges of estimators": of_estimators,
    "edges of supervised metrics": of_supervised,
    "edges of codes": of_polarised,
    "edges of verdicts": of_verdicts,
    "edges of statistics": of_statistics,
    "edges of scores": of_scores,
    "edges of findings": of_findings,
    "edges of models": of_models,
    "edges of losses": of_losses,
    "edges of data": of_data,
    "edges of files": of_files,
    "edges of training": of_training,
}
