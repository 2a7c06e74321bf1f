"""Metrics of representations: pure functions of arrays, and the one table that knows them all.

Every function takes numpy arrays or torch tensors and returns a frozen dataclass: its ``score``, and the matrices and
per-factor values behind it as tensors. Tensors stay on their device; only what a row names under ``on_cpu`` is fitted
on the CPU. ``METRICS`` says of each what it needs, its range and direction, what it is invariant to, what chance gets,
and which paper it is from.

Metrics that start from the same counts can share them::

    known = information(codes, factors)
    mig(known).score, modularity(known).score, dcimig(known).score
"""

import math
from functools import partial

from unweave.metrics.dimension.mle import mle
from unweave.metrics.dimension.two_nn import two_nn
from unweave.metrics.downstream.downstream_logistic import downstream_logistic
from unweave.metrics.downstream.downstream_trees import downstream_trees
from unweave.metrics.estimators.information import Information, information
from unweave.metrics.polarised.traces import traces
from unweave.metrics.row import Invariance, Metric
from unweave.metrics.supervised.beta_vae import beta_vae
from unweave.metrics.supervised.dci import dci
from unweave.metrics.supervised.dcimig import dcimig
from unweave.metrics.supervised.ds import ds
from unweave.metrics.supervised.explicitness import explicitness
from unweave.metrics.supervised.factor_vae import factor_vae
from unweave.metrics.supervised.infomec import infomec
from unweave.metrics.supervised.irs import irs
from unweave.metrics.supervised.jemmig import jemmig
from unweave.metrics.supervised.mcc import mcc
from unweave.metrics.supervised.mig import mig
from unweave.metrics.supervised.mig_sup import mig_sup
from unweave.metrics.supervised.modularity import modularity
from unweave.metrics.supervised.sap import sap
from unweave.metrics.unsupervised.averaged_mi import averaged_mi
from unweave.metrics.unsupervised.effective_rank import effective_rank
from unweave.metrics.unsupervised.total_correlation import total_correlation
from unweave.metrics.unsupervised.udr import udr
from unweave.metrics.unsupervised.wasserstein import wasserstein
from unweave.papers import PAPERS

_Same = tuple[Invariance, ...]
_ORDER: _Same = ("sample order", "latent order", "factor order")
_AFFINE: _Same = ("latent sign", "latent scale", "latent shift")
_NUMBERS: _Same = (*_ORDER, *_AFFINE)
_COUNTED: _Same = (*_NUMBERS, "factor relabelling")
"""Of what is counted in bins over the range of each latent."""
_FITTED: _Same = ("latent order", "factor order", *_AFFINE)
"""Of what is fitted to the first rows and tested on the others."""
_DRAWN: _Same = ("latent order", "latent sign", "latent shift")
"""Of what draws batches at random."""
_LATENTS: _Same = ("sample order", "latent order", *_AFFINE)

_supervised = partial(Metric, kind="supervised", range=(0.0, 1.0), higher_is_better=True)
_unlabelled = partial(Metric, kind="unsupervised")

_ROWS: tuple[Metric, ...] = (
    _supervised(
        mig,
        name="mig",
        needs="codes factors",
        invariant_to=_COUNTED,
        at_chance="0 for a constant code; random codes a little more, as counting is biased upwards",
        paper="chen2018isolating",
        batched=True,
        compact=True,
    ),
    _supervised(
        mig_sup,
        name="mig_sup",
        needs="codes factors",
        invariant_to=_COUNTED,
        at_chance="0 for a constant code; random codes a little more, as counting is biased upwards",
        paper="li2020progressive",
        batched=True,
    ),
    _supervised(
        modularity,
        name="modularity",
        needs="codes factors",
        invariant_to=_COUNTED,
        at_chance="0 for a constant code, but about 0.35 for random codes and more beside a factor of many values",
        paper="ridgeway2018learning",
        batched=True,
    ),
    _supervised(
        jemmig,
        name="jemmig",
        needs="codes factors",
        invariant_to=_COUNTED,
        at_chance="log(bins) / (H(v) + log(bins)), about a half, for a constant code; near 0 for random codes",
        paper="do2020theory",
        batched=True,
        compact=True,
    ),
    _supervised(
        dcimig,
        name="dcimig",
        needs="codes factors",
        invariant_to=_COUNTED,
        at_chance="0 for a constant code; random codes a little more, as counting is biased upwards",
        paper="sepliarskaia2019not",
        batched=True,
    ),
    _supervised(
        infomec,
        name="infomec",
        needs="codes factors seed",
        invariant_to=(*_ORDER, "latent sign", "latent shift", "global scale", "factor relabelling"),
        at_chance="0 for a constant code; random codes get small explicitness, but modularity and compactness from "
        "the noise of their small informations",
        paper="hsu2023disentanglement",
        scores=("modularity", "explicitness", "compactness"),
        on_cpu="linear classifiers",
    ),
    Metric(
        irs,
        name="irs",
        needs="codes factors",
        range=(-1.0, 1.0),
        higher_is_better=True,
        invariant_to=(*_ORDER, "latent sign", "latent shift", "global scale"),
        at_chance="0 for a constant code; about 0 to 0.2 for random codes; below 0 only in tiny samples",
        paper="suter2019robustly",
        kind="supervised",
        batched=True,
    ),
    _supervised(
        mcc,
        name="mcc",
        needs="codes factors",
        invariant_to=_NUMBERS,
        at_chance="0 for a constant code; about 1/√samples for random codes, more with many latents to choose from",
        paper="hyvarinen2016unsupervised",
        on_cpu="the one-to-one match",
    ),
    _supervised(
        beta_vae,
        name="beta_vae_sklearn",
        needs="codes factors pairs seed",
        invariant_to=_DRAWN,
        at_chance="one over the number of factors that vary",
        paper="higgins2017beta",
        on_cpu="a linear classifier",
    ),
    _supervised(
        factor_vae,
        name="factor_vae_score",
        needs="codes factors pairs seed",
        invariant_to=_DRAWN,
        at_chance="0 for a constant code; about one over the number of factors, and more with many latents, for noise",
        paper="kim2018disentangling",
    ),
    _supervised(
        dci,
        name="dci",
        needs="codes factors split",
        invariant_to=("latent shift", "factor order"),
        at_chance="0 for a constant code, near 0 for noise; informativeness is then the share of the commonest value",
        paper="eastwood2018framework",
        scores=("disentanglement", "completeness", "informativeness"),
        on_cpu="boosted trees",
    ),
    _supervised(
        sap,
        name="sap_score",
        needs="codes factors split",
        invariant_to=("latent order", "latent sign", "factor order", "factor relabelling"),
        at_chance="0 for a constant code, near 0 for noise; a single latent keeps its accuracy",
        paper="kumar2018variational",
        compact=True,
        on_cpu="support vector machines",
    ),
    _supervised(
        explicitness,
        name="explicitness",
        needs="codes factors split",
        invariant_to=_FITTED,
        at_chance="0.5",
        paper="ridgeway2018learning",
        on_cpu="linear classifiers",
    ),
    _supervised(
        ds,
        name="ds",
        needs="codes factors split",
        invariant_to=_FITTED,
        at_chance="0 for a constant code, near 0 for noise",
        paper="rolinek2019variational",
        compact=True,
        on_cpu="nearest neighbours",
    ),
    _unlabelled(
        total_correlation,
        name="gaussian_total_correlation",
        needs="codes",
        range=(0.0, math.inf),
        higher_is_better=False,
        invariant_to=_LATENTS,
        at_chance="0 for independent or constant codes; infinite for linearly dependent ones",
        paper="locatello2019challenging",
        batched=True,
    ),
    _unlabelled(
        wasserstein,
        name="gaussian_wasserstein_correlation",
        needs="codes",
        range=(0.0, math.inf),
        higher_is_better=False,
        invariant_to=("sample order", "latent order", "latent sign", "latent shift"),
        at_chance="0 for independent or constant codes",
        paper="locatello2019challenging",
        scores=("score", "normalised"),
        batched=True,
    ),
    _unlabelled(
        averaged_mi,
        name="mutual_info_score",
        needs="codes",
        range=(0.0, math.inf),
        higher_is_better=False,
        invariant_to=_LATENTS,
        at_chance="0 for constant codes; about 180/samples nats for independent ones (20 bins)",
        paper="locatello2019challenging",
        batched=True,
    ),
    _unlabelled(
        effective_rank,
        name="effective_rank",
        needs="codes",
        range=(0.0, math.inf),
        higher_is_better=True,
        invariant_to=("sample order", "latent order", "latent sign", "rotation", "global scale"),
        at_chance="1 for a constant code, 0 for one of zeros; the number of latents for white noise",
        paper="roy2007effective",
        batched=True,
    ),
    _unlabelled(
        mle,
        name="mle",
        needs="codes",
        range=(0.0, math.inf),
        higher_is_better=True,
        invariant_to=("sample order", "latent order", "latent sign", "latent shift", "rotation", "global scale"),
        at_chance="0 for a constant code; about the number of latents for white noise",
        paper="levina2004maximum",
    ),
    _unlabelled(
        two_nn,
        name="two_nn",
        needs="codes",
        range=(0.0, math.inf),
        higher_is_better=True,
        invariant_to=("sample order", "latent order", "latent sign", "latent shift", "rotation", "global scale"),
        at_chance="0 for a constant code; about the number of latents for white noise; infinite on a grid",
        paper="facco2017estimating",
    ),
    _unlabelled(
        traces,
        name="traces",
        needs="codes variance",
        range=(0.0, math.inf),
        higher_is_better=False,
        invariant_to=("sample order", "latent order", "latent sign", "latent shift"),
        at_chance="the number of latents for a collapsed model; 0 for a deterministic one",
        paper="bonheme2023polarised",
    ),
    _unlabelled(
        udr,
        name="udr",
        needs="models kl",
        range=(0.0, 1.0),
        higher_is_better=True,
        invariant_to=("sample order", "latent order", *_AFFINE, "model order"),
        at_chance="0 for constant codes, and by Lasso for unrelated models; small by Spearman for these",
        paper="duan2020unsupervised",
    ),
    *(
        Metric(
            function,
            name=name,
            needs="codes factors split seed",
            range=(0.0, 1.0),
            higher_is_better=True,
            invariant_to=("latent order", "factor order"),
            at_chance="the share of the commonest value; the efficiency of a code without information is about 1",
            paper="locatello2019challenging",
            kind="downstream",
            scores=("score", "efficiency"),
            on_cpu="the learners",
        )
        for name, function in (
            ("downstream_task_logistic_regression", downstream_logistic),
            ("downstream_task_boosted_trees", downstream_trees),
        )
    ),
)

METRICS: dict[str, Metric] = {row.name: row for row in _ROWS}
"""Every metric, by the name it has in disentanglement_lib where it has one."""

__all__ = [
    "METRICS",
    "PAPERS",
    "Information",
    "Metric",
    "averaged_mi",
    "beta_vae",
    "dci",
    "dcimig",
    "downstream_logistic",
    "downstream_trees",
    "ds",
    "effective_rank",
    "explicitness",
    "factor_vae",
    "infomec",
    "information",
    "irs",
    "jemmig",
    "mcc",
    "mig",
    "mig_sup",
    "mle",
    "modularity",
    "sap",
    "total_correlation",
    "traces",
    "two_nn",
    "udr",
    "wasserstein",
]
