"""Locatello et al. (2019): the large study of disentanglement without supervision."""
