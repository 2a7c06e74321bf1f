"""Metrics of codes alone."""
