"""Metrics of representations: pure functions of arrays, and the one table that knows them all.

Every function takes numpy arrays or torch tensors and returns a frozen dataclass: its ``score``, and the matrices and
per-factor values behind it as tensors. Tensors stay on their device; only what a row names under ``on_cpu`` is fitted
on the CPU. The row at the end of each metric's file says what it needs, its range and direction, what it is invariant
to, what chance gets, and which paper it is from; ``METRICS`` is all of them.

Metrics that start from the same counts can share them::

    known = information(codes, factors)
    mig(known).score, modularity(known).score, dcimig(known).score
"""

from unweave.metrics.dimension.mle import mle as mle
from unweave.metrics.dimension.two_nn import two_nn as two_nn
from unweave.metrics.downstream.downstream_logistic import downstream_logistic as downstream_logistic
from unweave.metrics.downstream.downstream_trees import downstream_trees as downstream_trees
from unweave.metrics.estimators.information import Information as Information
from unweave.metrics.estimators.information import information as information
from unweave.metrics.polarised.traces import traces as traces
from unweave.metrics.row import Metric as Metric
from unweave.metrics.row import row_of
from unweave.metrics.supervised.beta_vae import beta_vae as beta_vae
from unweave.metrics.supervised.dci import dci as dci
from unweave.metrics.supervised.dcimig import dcimig as dcimig
from unweave.metrics.supervised.ds import ds as ds
from unweave.metrics.supervised.explicitness import explicitness as explicitness
from unweave.metrics.supervised.factor_vae import factor_vae as factor_vae
from unweave.metrics.supervised.infomec import infomec as infomec
from unweave.metrics.supervised.irs import irs as irs
from unweave.metrics.supervised.jemmig import jemmig as jemmig
from unweave.metrics.supervised.mcc import mcc as mcc
from unweave.metrics.supervised.mig import mig as mig
from unweave.metrics.supervised.mig_sup import mig_sup as mig_sup
from unweave.metrics.supervised.modularity import modularity as modularity
from unweave.metrics.supervised.sap import sap as sap
from unweave.metrics.unsupervised.averaged_mi import averaged_mi as averaged_mi
from unweave.metrics.unsupervised.effective_rank import effective_rank as effective_rank
from unweave.metrics.unsupervised.total_correlation import total_correlation as total_correlation
from unweave.metrics.unsupervised.udr import udr as udr
from unweave.metrics.unsupervised.wasserstein import wasserstein as wasserstein
from unweave.papers import PAPERS as PAPERS

METRICS: dict[str, Metric] = {
    "mig": row_of(mig),
    "mig_sup": row_of(mig_sup),
    "modularity": row_of(modularity),
    "jemmig": row_of(jemmig),
    "dcimig": row_of(dcimig),
    "infomec": row_of(infomec),
    "irs": row_of(irs),
    "mcc": row_of(mcc),
    "beta_vae_sklearn": row_of(beta_vae),
    "factor_vae_score": row_of(factor_vae),
    "dci": row_of(dci),
    "sap_score": row_of(sap),
    "explicitness": row_of(explicitness),
    "ds": row_of(ds),
    "gaussian_total_correlation": row_of(total_correlation),
    "gaussian_wasserstein_correlation": row_of(wasserstein),
    "mutual_info_score": row_of(averaged_mi),
    "effective_rank": row_of(effective_rank),
    "mle": row_of(mle),
    "two_nn": row_of(two_nn),
    "traces": row_of(traces),
    "udr": row_of(udr),
    "downstream_task_logistic_regression": row_of(downstream_logistic),
    "downstream_task_boosted_trees": row_of(downstream_trees),
}
"""Every metric, by the name it has in disentanglement_lib where it has one, in the order of reports."""
