"""Settings: what differs but for the seed, and scores as an array."""

import numpy as np
import polars as pl

from unweave.studies.statistics.settings import column, cube, numeric_columns, with_settings


def table() -> pl.DataFrame:
    rows = [
        {"id": f"{world}{name}{strength}{seed}", "world.name": world, "objective.name": name, "seed": seed,
         "objective.beta": strength if name == "beta_vae" else None,
         "objective.gamma": strength if name == "factor_vae" else None,
         "objective.width": 8 if name == "factor_vae" else None,
         "scores.mean.mig": strength + seed / 10 + (5 if world == "b" else 0)}
        for world in "ab" for name in ("beta_vae", "factor_vae", "ae") for strength in (1.0, 4.0) for seed in (3, 1)
        if name != "ae" or strength == 1.0
    ]  # fmt: skip
    return pl.from_dicts(rows, infer_schema_length=None)


def test_a_setting_is_the_objective_and_its_strength() -> None:
    found = with_settings(table())
    assert found["id"].to_list() == table()["id"].to_list()
    assert set(found["setting"]) == {
        "beta_vae beta 1",
        "beta_vae beta 4",
        "factor_vae gamma 1",
        "factor_vae gamma 4",
        "ae",
    }
    assert found.filter(pl.col("objective") == "ae")["strength"].null_count() == 4


def test_the_cube_holds_every_run_in_its_place() -> None:
    found = with_settings(table()).filter(pl.col("id") != "abeta_vae1.03")
    whole = cube(found, ["scores.mean.mig", "absent"])
    assert whole.scores.shape == (2, 5, 2, 2)
    assert whole.seeds == (1, 3)
    place = whole.settings.index("factor_vae gamma 4")
    assert np.allclose(whole.scores[:, place, :, 0], [[4.1, 4.3], [9.1, 9.3]])
    hole = whole.scores[whole.worlds.index("a"), whole.settings.index("beta_vae beta 1"), 1, 0]
    assert np.isnan(hole)
    assert np.isnan(whole.scores[..., 1]).all()


def test_columns_of_numbers() -> None:
    assert numeric_columns(table(), ["scores."]) == ["scores.mean.mig"]
    assert "objective.width" not in numeric_columns(table())
    assert np.isnan(column(table(), "nothing")).all()
