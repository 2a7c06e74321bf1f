"""b-table-8.8: by intrinsic dimensions FONDUE finds fewer latents on SymSol and about as many elsewhere.

Bonheme (2023), Table 8.8.
"""

from unweave.pages.outcome import Outcome
from unweave.recipes.bonheme2023 import published
from unweave.recipes.bonheme2023.claims import both, two_methods
from unweave.recipes.bonheme2023.results import SOURCE
from unweave.recipes.bonheme2023.tables import Table, controls_of, judge_of, study_of
from unweave.recipes.reproduction import Reproduction
from unweave.studies.results import Results
from unweave.studies.study import Study

TITLE = "FONDUE and FONDUE_IDE"

CLAIMS = both(
    two_methods("fondue_ide", "fondue", {"symsol": -1}),
    two_methods("fondue_ide", "fondue", {"dsprites": 0, "celeba": 0}, tolerance=2.5),
)

TABLE = Table(
    published.TABLE_8_8,
    CLAIMS,
    notes=("'Very close' on dSprites and CelebA is read as within 2.5 latents: printed are −0.8 and +2.1.",),
)


def study(size: str) -> Study:
    """One search a seed for every row that a size covers."""
    return study_of("b-table-8.8", TABLE, size)


def judge(results: Results, size: str) -> Outcome:
    """Every row beside the published one, and what the table claims as a whole."""
    return judge_of(TABLE, results, size)


REPRODUCTION = Reproduction("b-table-8.8", TITLE, f"{SOURCE}, Table 8.8", study, judge, controls_of(judge))
