"""Every published result that can be reproduced here, by its id."""

from unweave.recipes.reproductions import (
    b_appendix,
    b_correlations,
    b_dependence,
    b_dimensions,
    b_elbows,
    b_examples,
    b_similarity,
    b_tables,
    b_types,
)
from unweave.recipes.reproductions.k_1 import K_1
from unweave.recipes.reproductions.k_2 import K_2
from unweave.recipes.reproductions.k_3 import K_3
from unweave.recipes.reproductions.k_4 import K_4
from unweave.recipes.reproductions.k_5 import K_5
from unweave.recipes.reproductions.k_theorem_1 import K_THEOREM_1
from unweave.recipes.reproductions.reproduction import Outcome, Reproduction
from unweave.recipes.reproductions.z_fig_3_4 import Z_FIG_3_4
from unweave.recipes.reproductions.z_fig_3_6 import Z_FIG_3_6
from unweave.recipes.reproductions.z_fig_3_7 import Z_FIG_3_7
from unweave.recipes.reproductions.z_table_3_2 import Z_TABLE_3_2
from unweave.recipes.reproductions.z_table_3_3 import Z_TABLE_3_3
from unweave.recipes.reproductions.z_table_3_4 import Z_TABLE_3_4
from unweave.recipes.reproductions.z_theorem_2 import Z_THEOREM_2

REPRODUCTIONS: dict[str, Reproduction] = {
    "b-fig-6.2": b_types.REPRODUCED["b-fig-6.2"],
    "b-fig-6.3": b_types.REPRODUCED["b-fig-6.3"],
    "b-fig-6.4": b_types.REPRODUCED["b-fig-6.4"],
    "b-fig-6.5": b_types.REPRODUCED["b-fig-6.5"],
    "b-fig-6.6": b_dependence.REPRODUCED["b-fig-6.6"],
    "b-fig-6.7": b_dependence.REPRODUCED["b-fig-6.7"],
    "b-fig-6.8": b_dependence.REPRODUCED["b-fig-6.8"],
    "b-fig-6.9": b_correlations.REPRODUCED["b-fig-6.9"],
    "b-fig-6.10": b_correlations.REPRODUCED["b-fig-6.10"],
    "b-fig-6.11": b_correlations.REPRODUCED["b-fig-6.11"],
    "b-fig-B": b_dependence.REPRODUCED["b-fig-B"],
    "b-fig-7.1": b_examples.REPRODUCED["b-fig-7.1"],
    "b-fig-7.2": b_similarity.REPRODUCED["b-fig-7.2"],
    "b-fig-7.3": b_similarity.REPRODUCED["b-fig-7.3"],
    "b-fig-7.4": b_similarity.REPRODUCED["b-fig-7.4"],
    "b-fig-7.5": b_similarity.REPRODUCED["b-fig-7.5"],
    "b-fig-7.6": b_similarity.REPRODUCED["b-fig-7.6"],
    "b-fig-7.7": b_similarity.REPRODUCED["b-fig-7.7"],
    "b-fig-7.8": b_similarity.REPRODUCED["b-fig-7.8"],
    "b-fig-7.9": b_similarity.REPRODUCED["b-fig-7.9"],
    "b-fig-7.10": b_similarity.REPRODUCED["b-fig-7.10"],
    "b-fig-C": b_appendix.REPRODUCED["b-fig-C"],
    "b-fig-8.4": b_dimensions.REPRODUCED["b-fig-8.4"],
    "b-fig-8.5": b_elbows.REPRODUCED["b-fig-8.5"],
    "b-fig-8.6": b_elbows.REPRODUCED["b-fig-8.6"],
    "b-fig-8.7": b_elbows.REPRODUCED["b-fig-8.7"],
    "b-fig-8.8": b_elbows.REPRODUCED["b-fig-8.8"],
    "b-fig-8.9": b_dimensions.REPRODUCED["b-fig-8.9"],
    "b-fig-8.10": b_dimensions.REPRODUCED["b-fig-8.10"],
    "b-fig-8.11": b_dimensions.REPRODUCED["b-fig-8.11"],
    "b-fig-8.12": b_elbows.REPRODUCED["b-fig-8.12"],
    "b-table-8.1": b_tables.REPRODUCED["b-table-8.1"],
    "b-table-8.2": b_tables.REPRODUCED["b-table-8.2"],
    "b-table-8.3": b_tables.REPRODUCED["b-table-8.3"],
    "b-table-8.4": b_tables.REPRODUCED["b-table-8.4"],
    "b-table-8.5": b_tables.REPRODUCED["b-table-8.5"],
    "b-table-8.6": b_tables.REPRODUCED["b-table-8.6"],
    "b-table-8.7": b_tables.REPRODUCED["b-table-8.7"],
    "b-table-8.8": b_tables.REPRODUCED["b-table-8.8"],
    "b-table-D.5": b_tables.REPRODUCED["b-table-D.5"],
    "k-1": K_1,
    "k-2": K_2,
    "k-3": K_3,
    "k-4": K_4,
    "k-5": K_5,
    "k-theorem-1": K_THEOREM_1,
    "z-table-3.2": Z_TABLE_3_2,
    "z-table-3.3": Z_TABLE_3_3,
    "z-fig-3.4": Z_FIG_3_4,
    "z-table-3.4": Z_TABLE_3_4,
    "z-fig-3.6": Z_FIG_3_6,
    "z-fig-3.7": Z_FIG_3_7,
    "z-theorem-2": Z_THEOREM_2,
}
"""One line a reproduction; its file stands in this folder."""

__all__ = ["REPRODUCTIONS", "Outcome", "Reproduction"]
