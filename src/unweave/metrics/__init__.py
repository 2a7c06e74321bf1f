"""Metrics: pure functions of arrays, one row each."""

from unweave.metrics.row import Metric

METRICS: dict[str, Metric] = {}
