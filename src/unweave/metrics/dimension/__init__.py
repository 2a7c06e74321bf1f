"""Intrinsic dimension of data and of codes."""
