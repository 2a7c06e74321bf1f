"""Downstream accuracy and sample efficiency (Locatello et al., 2019), under the name it has in this layer."""

from unweave.metrics.downstream.learning import SIZES, Downstream, downstream

__all__ = ["SIZES", "Downstream", "downstream"]
