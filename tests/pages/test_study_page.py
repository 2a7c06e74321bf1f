"""The page of a study: worlds apart, columns in words."""

from typing import Any

import numpy as np
import polars as pl

from unweave.pages.result import Making, result_page
from unweave.pages.study import by_world, study_outcome
from unweave.studies.results import Results
from unweave.studies.statistics.settings import with_settings
from unweave.studies.store import Store
from unweave.studies.study import Study


def runs() -> pl.DataFrame:
    """Two worlds of one name: within each, MIG falls with SAP; over both together it rises."""
    draw = np.random.default_rng(0)
    rows: list[dict[str, Any]] = []
    for width in (None, 0.4):
        for beta in (1.0, 4.0):
            for seed in range(6):
                score = float(draw.uniform()) + 10 * (width is not None)
                rows.append(
                    {
                        "id": f"{width}-{beta}-{seed}",
                        "world.name": "micro",
                        "world.width": width,
                        "objective.name": "beta_vae",
                        "objective.beta": beta,
                        "seed": seed,
                        "scores.mean.mig": score,
                        "scores.mean.sap_score": 21.0 * (width is not None) - score,
                    }
                )
    return pl.DataFrame(rows)


def results() -> Results:
    found = Results(Study("worlds", ()), Store("nowhere"), ())
    found.__dict__["table"] = runs()
    return found


def test_worlds_of_one_name_are_told_apart_by_their_options() -> None:
    parts = by_world(with_settings(runs()))
    assert list(parts) == ["micro", "micro, width 0.4"]
    assert [part.height for part in parts.values()] == [12, 12]


def test_every_world_is_correlated_for_itself() -> None:
    outcome = study_outcome(results())
    rows = outcome.tables["Rank correlations"]
    assert {row["world"]: row["correlation"] for row in rows} == {"micro": -1.0, "micro, width 0.4": -1.0}
    heads = [name for name in outcome.figures if name.startswith("Rank correlation")]
    assert heads == [f"Rank correlation of the measured numbers, {world}" for world in ("micro", "micro, width 0.4")]
    by_setting = outcome.tables["By setting: mean over seeds with its 95 % interval"]
    assert [(row["world"], row["runs"]) for row in by_setting] == [
        (world, 6) for world in ("micro", "micro, width 0.4") for _ in (1.0, 4.0)
    ]


def test_columns_are_words_on_the_page_and_themselves_in_tables() -> None:
    outcome = study_outcome(results())
    page = result_page("Two worlds", outcome, Making("a command", "nothing"), {})
    assert "scores.mean" not in page
    assert "sap_score" not in page
    for words in ("MIG by setting, micro", ">SAP<", "MIG ±"):
        assert words in page
    assert {"scores.mean.mig", "scores.mean.mig ±"} <= set(
        outcome.tables["By setting: mean over seeds with its 95 % interval"][0]
    )
