"""b-table-8.6: the start does not matter on dSprites.

Bonheme (2023), Table 8.6.
"""

from unweave.pages.outcome import Outcome
from unweave.recipes.bonheme2023 import published
from unweave.recipes.bonheme2023.claims import same_from_everywhere
from unweave.recipes.bonheme2023.results import SOURCE
from unweave.recipes.bonheme2023.tables import Table, controls_of, judge_of, study_of, usual
from unweave.recipes.reproduction import Reproduction
from unweave.studies.results import Results
from unweave.studies.study import Study

TITLE = "FONDUE from any start, dSprites"

TABLE = Table(published.TABLE_8_6, same_from_everywhere, usual("dsprites"))


def study(size: str) -> Study:
    """One search a seed for every row that a size covers."""
    return study_of("b-table-8.6", TABLE, size)


def judge(results: Results, size: str) -> Outcome:
    """Every row beside the published one, and what the table claims as a whole."""
    return judge_of(TABLE, results, size)


REPRODUCTION = Reproduction("b-table-8.6", TITLE, f"{SOURCE}, Table 8.6", study, judge, controls_of(judge))
