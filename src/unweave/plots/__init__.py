"""Figures from arrays and tables: one function a figure, never a run, never a model.

Nothing here imports matplotlib until a figure is drawn.
"""

FIGURES = {
    "bands": "bands:bands",
    "bars": "matrices:bars",
    "code_planes": "code_planes:code_planes",
    "column_reconstructions": "columns:column_reconstructions",
    "column_traversals": "columns:column_traversals",
    "criterion": "dimension:criterion",
    "elbow_curves": "dimension:elbow_curves",
    "forest": "forest:forest",
    "grid": "images:grid",
    "heat_map": "matrices:heat_map",
    "histogram": "histogram:histogram",
    "histograms": "latents:histograms",
    "kl_bars": "latents:kl_bars",
    "latent_history": "latents:latent_history",
    "line_bands": "curves:line_bands",
    "loss_curves": "training:loss_curves",
    "named_rows": "images:named_rows",
    "plane": "images:plane",
    "reconstructions": "images:reconstructions",
    "scatter": "scatter:scatter",
    "search_path": "dimension:search_path",
    "stacked_types": "curves:stacked_types",
    "traversals": "images:traversals",
    "variance_scatter": "latents:variance_scatter",
    "violins": "violins:violins",
}
"""Every figure, and where its function is: ``module:function`` in this folder."""
