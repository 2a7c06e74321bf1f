"""z-table-4.4: FactorVAE on original, modified and noisy images (Zietlow, 2022, §4.3)."""

from unweave.pages.outcome import Outcome
from unweave.recipes.reproduction import Reproduction
from unweave.recipes.zietlow2022.bias import TABLE, bias_study
from unweave.recipes.zietlow2022.bias_table import controls_of, judge_table, same_instead
from unweave.recipes.zietlow2022.settings import SOURCE
from unweave.studies.results import Results
from unweave.studies.study import Study

TITLE = "The FactorVAE score falls on modified images for every VAE, and for no other method"

PUBLISHED = {
    "dSprites": {
        "β-VAE": ((0.47, 0.07), (0.38, 0.13), (0.5, 0.1)),
        "FactorVAE": ((0.67, 0.11), (0.62, 0.14), (0.6, 0.11)),
        "TC-VAE": ((0.68, 0.09), (0.53, 0.15), (0.6, 0.12)),
        "SlowVAE": ((0.77, 0.03), (0.77, 0.04), (0.76, 0.07)),
        "PCL": ((0.77, 0.09), (0.82, 0.05), (0.77, 0.08)),
    },
    "Shapes3D": {
        "β-VAE": ((0.8, 0.17), (0.54, 0.1), (0.71, 0.06)),
        "FactorVAE": ((0.63, 0.15), (0.48, 0.05), (0.71, 0.15)),
        "TC-VAE": ((0.76, 0.07), (0.57, 0.07), (0.71, 0.06)),
        "SlowVAE": ((0.87, 0.1), (0.62, 0.06), (0.85, 0.08)),
        "PCL": ((0.8, 0.06), (0.77, 0.07), (0.8, 0.06)),
    },
}
"""Z, Table 4.4: mean and standard deviation over ten seeds, on original, modified and noisy images."""


def study(size: str) -> Study:
    """Every method on every kind of images."""
    return bias_study("z-table-4.4", size, TITLE, TABLE)


def judge(results: Results, size: str) -> Outcome:
    """The drops, the controls, and at the published size every cell."""
    return judge_table("FactorVAE", PUBLISHED, results, size)


CONTROLS = controls_of(judge, same_instead(judge))

REPRODUCTION = Reproduction("z-table-4.4", TITLE, f"{SOURCE}, Table 4.4", study, judge, CONTROLS)
