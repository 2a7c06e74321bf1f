"""z-table-4.2: MIG on original, modified and noisy images (Zietlow, 2022, §4.3)."""

from unweave.pages.outcome import Outcome
from unweave.recipes.reproduction import Reproduction
from unweave.recipes.zietlow2022.bias import TABLE, bias_study
from unweave.recipes.zietlow2022.bias_table import controls_of, judge_table, same_instead
from unweave.recipes.zietlow2022.settings import SOURCE
from unweave.studies.results import Results
from unweave.studies.study import Study

TITLE = "MIG falls on modified images for every VAE, and for no other method"

PUBLISHED = {
    "dSprites": {
        "AE": ((0.09, 0.06), (0.05, 0.02), (0.06, 0.03)),
        "β-VAE": ((0.23, 0.08), (0.07, 0.09), (0.14, 0.07)),
        "FactorVAE": ((0.27, 0.11), (0.2, 0.12), (0.16, 0.08)),
        "TC-VAE": ((0.25, 0.08), (0.14, 0.1), (0.2, 0.04)),
        "SlowVAE": ((0.39, 0.08), (0.27, 0.08), (0.37, 0.09)),
        "PCL": ((0.21, 0.03), (0.24, 0.07), (0.24, 0.07)),
        "WS-GAN": ((0.45, 0.05), (0.36, 0.02), (0.36, 0.01)),
    },
    "Shapes3D": {
        "AE": ((0.06, 0.03), (0.05, 0.03), (0.07, 0.03)),
        "β-VAE": ((0.6, 0.31), (0.09, 0.14), (0.66, 0.05)),
        "FactorVAE": ((0.27, 0.18), (0.07, 0.05), (0.33, 0.2)),
        "TC-VAE": ((0.58, 0.2), (0.24, 0.16), (0.6, 0.11)),
        "SlowVAE": ((0.53, 0.19), (0.13, 0.08), (0.6, 0.1)),
        "PCL": ((0.44, 0.06), (0.47, 0.08), (0.4, 0.07)),
        "WS-GAN": ((0.69, 0.12), (0.66, 0.12), (0.77, 0.13)),
    },
}
"""Z, Table 4.2: mean and standard deviation over ten seeds, on original, modified and noisy images."""


def study(size: str) -> Study:
    """Every method on every kind of images."""
    return bias_study("z-table-4.2", size, TITLE, TABLE)


def judge(results: Results, size: str) -> Outcome:
    """The drops, the controls, and at the published size every cell."""
    return judge_table("MIG", PUBLISHED, results, size)


CONTROLS = controls_of(judge, same_instead(judge))

REPRODUCTION = Reproduction("z-table-4.2", TITLE, f"{SOURCE}, Table 4.2", study, judge, CONTROLS)
