"""b-table-8.1: FONDUE finds fewer latents than FONDUE_IB on SymSol and dSprites, more on CelebA.

Bonheme (2023), Table 8.1.
"""

from unweave.pages.outcome import Outcome
from unweave.recipes.bonheme2023 import published
from unweave.recipes.bonheme2023.claims import two_methods
from unweave.recipes.bonheme2023.results import SOURCE
from unweave.recipes.bonheme2023.tables import Table, controls_of, judge_of, study_of
from unweave.recipes.reproduction import Reproduction
from unweave.studies.results import Results
from unweave.studies.study import Study

TITLE = "FONDUE and FONDUE_IB"

CLAIMS = two_methods("fondue_ib", "fondue", {"symsol": 1, "dsprites": 1, "celeba": -1})

TABLE = Table(published.TABLE_8_1, CLAIMS)


def study(size: str) -> Study:
    """One search a seed for every row that a size covers."""
    return study_of("b-table-8.1", TABLE, size)


def judge(results: Results, size: str) -> Outcome:
    """Every row beside the published one, and what the table claims as a whole."""
    return judge_of(TABLE, results, size)


REPRODUCTION = Reproduction("b-table-8.1", TITLE, f"{SOURCE}, Table 8.1", study, judge, controls_of(judge))
