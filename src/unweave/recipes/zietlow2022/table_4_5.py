"""z-table-4.5: SAP on original, modified and noisy images (Zietlow, 2022, §4.3)."""

from unweave.pages.outcome import Outcome
from unweave.recipes.reproduction import Reproduction
from unweave.recipes.zietlow2022.bias import TABLE, bias_study
from unweave.recipes.zietlow2022.bias_table import controls_of, judge_table, same_instead
from unweave.recipes.zietlow2022.settings import SOURCE
from unweave.studies.results import Results
from unweave.studies.study import Study

TITLE = "SAP falls on modified images for every VAE, and for no other method"

PUBLISHED = {
    "dSprites": {
        "β-VAE": ((0.04, 0.01), (0.02, 0.02), (0.03, 0.03)),
        "FactorVAE": ((0.07, 0.03), (0.06, 0.03), (0.08, 0.01)),
        "TC-VAE": ((0.08, 0.01), (0.06, 0.03), (0.05, 0.02)),
        "SlowVAE": ((0.08, 0.01), (0.07, 0.01), (0.07, 0.01)),
        "PCL": ((0.07, 0.03), (0.1, 0.03), (0.1, 0.03)),
    },
    "Shapes3D": {
        "β-VAE": ((0.16, 0.08), (0.03, 0.03), (0.09, 0.02)),
        "FactorVAE": ((0.07, 0.04), (0.04, 0.01), (0.08, 0.03)),
        "TC-VAE": ((0.08, 0.02), (0.04, 0.02), (0.06, 0.03)),
        "SlowVAE": ((0.09, 0.04), (0.04, 0.01), (0.09, 0.05)),
        "PCL": ((0.07, 0.01), (0.07, 0.01), (0.07, 0.01)),
    },
}
"""Z, Table 4.5: mean and standard deviation over ten seeds, on original, modified and noisy images."""


def study(size: str) -> Study:
    """Every method on every kind of images."""
    return bias_study("z-table-4.5", size, TITLE, TABLE)


def judge(results: Results, size: str) -> Outcome:
    """The drops, the controls, and at the published size every cell."""
    return judge_table("SAP", PUBLISHED, results, size)


CONTROLS = controls_of(judge, same_instead(judge))

REPRODUCTION = Reproduction("z-table-4.5", TITLE, f"{SOURCE}, Table 4.5", study, judge, CONTROLS)
