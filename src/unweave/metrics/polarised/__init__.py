"""The polarised regime: which latents a model uses, and how."""
