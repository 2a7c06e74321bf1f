"""b-table-8.7: as in Table 8.1, with dense networks.

Bonheme (2023), Table 8.7.
"""

from unweave.pages.outcome import Outcome
from unweave.recipes.bonheme2023 import published
from unweave.recipes.bonheme2023.results import SOURCE
from unweave.recipes.bonheme2023.table_8_1 import CLAIMS
from unweave.recipes.bonheme2023.tables import Table, controls_of, judge_of, study_of
from unweave.recipes.reproduction import Reproduction
from unweave.studies.results import Results
from unweave.studies.study import Study

TITLE = "FONDUE and FONDUE_IB, fully connected"

TABLE = Table(
    published.TABLE_8_7,
    CLAIMS,
    notes=("The decoder is 256–1200–1200 with tanh, as in Table D.3.",),
)


def study(size: str) -> Study:
    """One search a seed for every row that a size covers."""
    return study_of("b-table-8.7", TABLE, size)


def judge(results: Results, size: str) -> Outcome:
    """Every row beside the published one, and what the table claims as a whole."""
    return judge_of(TABLE, results, size)


REPRODUCTION = Reproduction("b-table-8.7", TITLE, f"{SOURCE}, Table 8.7", study, judge, controls_of(judge))
