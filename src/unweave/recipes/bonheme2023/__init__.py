"""Bonheme (2023), The Polarised Regime of Variational Autoencoders, chapters 6 to 8."""
