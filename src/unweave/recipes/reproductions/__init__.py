"""Every published result that can be reproduced here, by its id."""

from unweave.recipes.reproductions.k_1 import K_1
from unweave.recipes.reproductions.k_2 import K_2
from unweave.recipes.reproductions.k_3 import K_3
from unweave.recipes.reproductions.k_4 import K_4
from unweave.recipes.reproductions.k_5 import K_5
from unweave.recipes.reproductions.k_theorem_1 import K_THEOREM_1
from unweave.recipes.reproductions.reproduction import Outcome, Reproduction

REPRODUCTIONS: dict[str, Reproduction] = {
    "k-1": K_1,
    "k-2": K_2,
    "k-3": K_3,
    "k-4": K_4,
    "k-5": K_5,
    "k-theorem-1": K_THEOREM_1,
}
"""One line a reproduction; its file stands in this folder."""

__all__ = ["REPRODUCTIONS", "Outcome", "Reproduction"]
