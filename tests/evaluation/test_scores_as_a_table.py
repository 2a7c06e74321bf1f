"""Scores as people use them: a mapping, numbers that are floats, tables."""

import numpy as np
import polars
import pytest

import unweave as uw

FACTORS = np.random.default_rng(0).integers(0, 4, (400, 2))
SCORES = uw.measure(FACTORS + 0.1, FACTORS, metrics=["mig", "mcc"], seeds=3)


def test_scores_are_a_mapping():
    assert list(SCORES) == list(dict(SCORES)) == list(SCORES.numbers)
    assert len(SCORES) == len(SCORES.numbers)
    assert "mig" in SCORES
    assert float(SCORES["mig"]) == SCORES["mig"].value
    with pytest.raises(KeyError, match="there is no score 'migg'; there are mig"):
        SCORES["migg"]


def test_scores_become_tables():
    table = SCORES.to_polars()
    assert table["score"].to_list() == list(SCORES)
    assert table["value"][0] == pytest.approx(float(SCORES["mig"]))
    assert (table["low"] <= table["value"] + 1e-9).all()
    pandas = pytest.importorskip("pandas")
    assert isinstance(SCORES.to_pandas(), pandas.DataFrame)
    assert SCORES.to_pandas().loc["mig", "value"] == pytest.approx(float(SCORES["mig"]))
    assert "<td>mig</td>" in SCORES._repr_html_()
    plain = pandas.DataFrame(SCORES)
    assert list(plain.columns) == ["score", "value", "low", "high", "chance"]
    pandas.testing.assert_frame_equal(plain.set_index("score"), SCORES.to_pandas())
    assert polars.DataFrame([SCORES])["mcc"].to_list() == [float(SCORES["mcc"])]
    assert np.asarray(SCORES)[0].score == "mig"


def test_polars_takes_a_column_a_score_and_a_row_a_model():
    one = polars.DataFrame(SCORES)
    assert one.rows(named=True) == [{name: float(SCORES[name]) for name in SCORES}]
    noisy = FACTORS + np.random.default_rng(1).normal(size=FACTORS.shape)
    both = uw.measure(np.stack([FACTORS + 0.1, noisy]), FACTORS, metrics=["mig", "mcc"], seeds=0)
    table = polars.DataFrame(both)
    assert table.columns == list(both)
    assert table["mig"].to_list() == list(both["mig"]) == both["mig"].value.tolist()
    assert table["mig"][0] > table["mig"][1]
    assert np.asarray(both["mig"]).shape == (2,)
    assert both["mig"][1:] == both["mig"].value[1:].tolist()


def test_a_fleet_has_no_single_number():
    both = uw.measure(np.stack([FACTORS, FACTORS]) + 0.1, FACTORS, metrics=["mig"], seeds=0)
    with pytest.raises(TypeError, match="a value for each of 2 models"):
        float(both["mig"])
    pandas = pytest.importorskip("pandas")
    assert pandas.DataFrame(both)["value"][0] == both["mig"].value.tolist()


def test_a_history_becomes_a_table(tmp_path):
    run = uw.train(
        "micro", tmp_path / "tiny", network=uw.MLP((8,), (8,)), latents=2, steps=5, history_every=1, quiet=True
    )
    table = run.history.to_polars()
    assert table["step"].to_list() == [0, 1, 2, 3, 4]
    assert table["loss"][0] == pytest.approx(float(run.history.column("loss")[0]))
    assert repr(run.history).startswith("History: 5 rows of ")
    assert polars.DataFrame(run.history).equals(table)
    assert list(run.history)[2] == table.to_dicts()[2]
    pandas = pytest.importorskip("pandas")
    pandas.testing.assert_frame_equal(pandas.DataFrame(run.history).set_index("step"), run.history.to_pandas())
    assert list(run.history.to_pandas().index) == [0, 1, 2, 3, 4]
    assert run.config["latents"] == 2


def test_a_score_cannot_be_changed():
    before = float(SCORES["mig"])
    with pytest.raises(AttributeError, match="value stays what was measured"):
        SCORES["mig"].value = 0.9
    assert float(SCORES["mig"]) == before
