"""Similarity of representations: of layers, models, seeds and snapshots."""
