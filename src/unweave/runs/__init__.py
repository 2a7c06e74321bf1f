"""Run folders: the one place that reads and writes them."""
