"""Algorithms that train models to answer a question; training enters as a callable."""
