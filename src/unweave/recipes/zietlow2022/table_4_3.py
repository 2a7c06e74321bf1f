"""z-table-4.3: DCI on original, modified and noisy images (Zietlow, 2022, §4.3)."""

from unweave.pages.outcome import Outcome
from unweave.recipes.reproduction import Reproduction
from unweave.recipes.zietlow2022.bias import TABLE, bias_study
from unweave.recipes.zietlow2022.bias_table import controls_of, judge_table, same_instead
from unweave.recipes.zietlow2022.settings import SOURCE
from unweave.studies.results import Results
from unweave.studies.study import Study

TITLE = "DCI falls on modified images for every VAE, and for no other method"

PUBLISHED = {
    "dSprites": {
        "β-VAE": ((0.11, 0.03), (0.08, 0.11), (0.14, 0.07)),
        "FactorVAE": ((0.37, 0.1), (0.27, 0.11), (0.24, 0.09)),
        "TC-VAE": ((0.34, 0.06), (0.19, 0.1), (0.27, 0.03)),
        "SlowVAE": ((0.47, 0.07), (0.4, 0.07), (0.47, 0.08)),
        "PCL": ((0.28, 0.03), (0.3, 0.03), (0.29, 0.06)),
    },
    "Shapes3D": {
        "β-VAE": ((0.73, 0.14), (0.43, 0.06), (0.56, 0.06)),
        "FactorVAE": ((0.39, 0.18), (0.25, 0.08), (0.57, 0.2)),
        "TC-VAE": ((0.67, 0.08), (0.41, 0.05), (0.59, 0.09)),
        "SlowVAE": ((0.65, 0.1), (0.33, 0.08), (0.73, 0.09)),
        "PCL": ((0.7, 0.06), (0.67, 0.09), (0.71, 0.07)),
    },
}
"""Z, Table 4.3: mean and standard deviation over ten seeds, on original, modified and noisy images."""


def study(size: str) -> Study:
    """Every method on every kind of images."""
    return bias_study("z-table-4.3", size, TITLE, TABLE)


def judge(results: Results, size: str) -> Outcome:
    """The drops, the controls, and at the published size every cell."""
    return judge_table("DCI", PUBLISHED, results, size)


CONTROLS = controls_of(judge, same_instead(judge))

REPRODUCTION = Reproduction("z-table-4.3", TITLE, f"{SOURCE}, Table 4.3", study, judge, CONTROLS)
