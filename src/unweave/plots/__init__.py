"""Figures and pages from arrays and tables: one function per figure, never a run, never a model.

Nothing here imports matplotlib until a figure is drawn.
"""
