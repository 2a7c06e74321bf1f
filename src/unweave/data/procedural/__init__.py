"""Worlds drawn from formulas: pure functions from factors to pixels."""
