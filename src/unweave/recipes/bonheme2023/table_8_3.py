"""b-table-8.3: the larger λ_od, the fewer latents.

Bonheme (2023), Table 8.3.
"""

from unweave.pages.outcome import Outcome
from unweave.recipes.bonheme2023 import published
from unweave.recipes.bonheme2023.claims import by_strength
from unweave.recipes.bonheme2023.results import SOURCE
from unweave.recipes.bonheme2023.tables import Table, controls_of, judge_of, study_of
from unweave.recipes.reproduction import Reproduction
from unweave.studies.results import Results
from unweave.studies.study import Study

TITLE = "FONDUE for DIP-VAE-II"

TABLE = Table(published.TABLE_8_3, by_strength)


def study(size: str) -> Study:
    """One search a seed for every row that a size covers."""
    return study_of("b-table-8.3", TABLE, size)


def judge(results: Results, size: str) -> Outcome:
    """Every row beside the published one, and what the table claims as a whole."""
    return judge_of(TABLE, results, size)


REPRODUCTION = Reproduction("b-table-8.3", TITLE, f"{SOURCE}, Table 8.3", study, judge, controls_of(judge))
