"""b-table-D.5: bisection finds what doubling finds.

Bonheme (2023), Table D.5.
"""

from unweave.pages.outcome import Outcome
from unweave.recipes.bonheme2023 import published
from unweave.recipes.bonheme2023.claims import both, two_methods
from unweave.recipes.bonheme2023.results import SOURCE
from unweave.recipes.bonheme2023.tables import Table, controls_of, judge_of, study_of
from unweave.recipes.reproduction import Reproduction
from unweave.studies.results import Results
from unweave.studies.study import Study

TITLE = "BS_FONDUE and IB"

CLAIMS = both(
    two_methods("bs_fondue", "fondue", dict.fromkeys(("symsol", "dsprites", "celeba"), 0), tolerance=1.0),
    two_methods("ib", "fondue_ib", dict.fromkeys(("symsol", "dsprites", "celeba"), 0), tolerance=1.0),
)

TABLE = Table(published.TABLE_D_5, CLAIMS, published.TABLE_8_1, ("Bisection between 1 and 200, as published.",))


def study(size: str) -> Study:
    """One search a seed for every row that a size covers."""
    return study_of("b-table-D.5", TABLE, size)


def judge(results: Results, size: str) -> Outcome:
    """Every row beside the published one, and what the table claims as a whole."""
    return judge_of(TABLE, results, size)


REPRODUCTION = Reproduction("b-table-D.5", TITLE, f"{SOURCE}, Table D.5", study, judge, controls_of(judge))
