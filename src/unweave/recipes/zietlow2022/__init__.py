"""Zietlow (2022), An Analysis of the Inner Workings of Variational Autoencoders, chapter 3."""
