"""Metrics of codes against the factors that generated the data."""
