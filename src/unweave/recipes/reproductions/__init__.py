"""Every published result that can be reproduced here, by its id."""

from unweave.recipes.reproductions.reproduction import Outcome, Reproduction

REPRODUCTIONS: dict[str, Reproduction] = {}
"""One line a reproduction; its file stands in this folder."""

__all__ = ["REPRODUCTIONS", "Outcome", "Reproduction"]
