"""measure() is its metrics, called one by one."""

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import t

from unweave.evaluation.measure import Measurer, measure
from unweave.evaluation.rows import find_rows
from unweave.evaluation.sampling import half, stretch, whole
from unweave.evaluation.scores import Number
from unweave.metrics import METRICS, dci, information, irs, mig, sap, two_nn, udr
from unweave.metrics.supervised import mig as mig_metric

QUICK: dict[str, dict[str, Any]] = {
    "beta_vae": {"n_train": 300, "n_test": 150, "batch_size": 8},
    "factor_vae": {"n_train": 300, "n_test": 150, "batch_size": 8},
    "downstream_logistic": {"sizes": [10]},
    "downstream_trees": {"sizes": [10]},
}


def table(n_samples: int = 240, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    factors = np.stack([rng.integers(0, size, n_samples) for size in (3, 4)], axis=-1)
    turn = np.array([[1.0, 0.4, 0.0], [-0.3, 1.0, 0.2]])
    return (factors - factors.mean(0)) @ turn + 0.3 * rng.normal(size=(n_samples, 3)), factors


def test_every_row_is_measured_or_says_why_not() -> None:
    codes, factors = table()
    found = measure(codes, factors, metrics="all", seeds=0, options=QUICK)
    assert set(found.parts) | set(found.left_out) == set(METRICS)
    assert set(found.left_out) == {"traces", "udr"}
    assert "several models" in found.left_out["udr"]
    assert found["mig"].value == mig(codes, factors).score
    assert found["irs"].value == irs(codes, factors).score
    assert found["dci.completeness"].value == dci(codes, factors, seed=0).completeness
    assert found["infomec.modularity"].interval is None
    assert json.dumps(found.to_plain(), allow_nan=False)
    assert "mig" in str(found)


def test_rows_of_the_table_all_take_part() -> None:
    assert find_rows() == [row for row in METRICS.values() if row.kind != "downstream"]
    assert find_rows("all") == find_rows(["all"]) == list(METRICS.values())
    assert find_rows(["SAP", "beta-vae"]) == [METRICS["sap_score"], METRICS["beta_vae_sklearn"]]
    with pytest.raises(ValueError, match=r"unknown metric 'miig'. Did you mean mig"):
        find_rows("miig")


def test_without_factors_only_what_needs_none() -> None:
    found = measure(table()[0], seeds=2)
    assert {METRICS[name.partition(".")[0]].kind for name in found.numbers} == {"unsupervised"}
    assert "none are given" in found.left_out["mig"]


def test_a_split_is_taken_in_order() -> None:
    codes, factors = table()
    found = measure(codes, factors, metrics=["sap", "mig"], split=(150, 60), seeds=0)
    assert found["sap_score"].value == sap(codes[:150], factors[:150], codes[150:210], factors[150:210]).score
    assert found["mig"].value == mig(codes[:150], factors[:150]).score
    # without a split rows are shuffled, so that a sorted table does no harm
    order = np.argsort(factors[:, 0])
    assert measure(codes[order], factors[order], metrics="sap", seeds=0)["sap_score"].value > 0


def test_draws_of_what_uses_some_rows_are_stretched() -> None:
    codes = np.random.default_rng(0).normal(size=(12_000, 2))
    number = measure(codes, metrics="two_nn", seeds=2)["two_nn"]
    plain = [two_nn(codes[half(whole(12_000), seed).rows]).score for seed in (1, 2)]
    wanted = number.value + stretch(12_000, 10_000) * (np.array(plain) - number.value)
    np.testing.assert_allclose(number.draws, wanted, rtol=1e-12)
    told = measure(codes, metrics="two_nn", seeds=2, options={"two_nn": {"n_asked": 12_000}})["two_nn"]
    np.testing.assert_allclose(told.draws, plain, rtol=1e-12)


def test_intervals_are_students_t_over_halves() -> None:
    codes, factors = table()
    number = measure(codes, factors, metrics="mig", seeds=4)["mig"]
    reach = t.ppf(0.975, 3) * number.draws.std(ddof=1)
    assert number.interval == pytest.approx((max(0.0, number.value - reach), min(1.0, number.value + reach)))
    again = measure(codes, factors, metrics="mig", seeds=4)["mig"]
    np.testing.assert_array_equal(number.draws, again.draws)


def test_the_error_of_a_correlation_is_the_textbook_one() -> None:
    rng = np.random.default_rng(0)
    truth = rng.normal(size=2000)
    codes = 0.6 * truth + 0.8 * rng.normal(size=2000)
    number = measure(codes, truth, metrics="mcc", seeds=200)["mcc"]
    # sd of Pearson's r is about (1 − ρ²) / √n
    assert number.error == pytest.approx((1 - 0.6**2) / np.sqrt(2000), rel=0.15)


def test_chance_is_the_score_of_shuffled_codes() -> None:
    rng = np.random.default_rng(1)
    factors = rng.integers(0, 4, (1500, 3))
    noise = rng.normal(size=(1500, 6))
    found = measure(noise, factors, metrics=["modularity", "effective_rank"], seeds=3, adjust="chance")
    number = found["modularity"]
    assert number.chance is not None
    assert number.chance > 0.15
    assert abs(number.adjusted) < 0.2
    assert found["effective_rank"].chance is None
    ideal = measure(factors.astype(float), factors, metrics="modularity", seeds=2, adjust="chance")["modularity"]
    assert ideal.adjusted == pytest.approx(1.0, abs=0.01)


def test_adjusting_is_the_way_from_chance_to_the_top() -> None:
    number = Number(0.8, (0.0, 1.0), True, np.zeros(0), 0.6)
    assert number.adjusted == pytest.approx(0.5)
    assert Number(0.8, (0.0, np.inf), True, np.zeros(0), 0.6).adjusted is None


def test_a_fleet_is_its_members() -> None:
    codes, factors = table()
    models = np.stack([codes, codes[:, ::-1] ** 3, codes + 0.1])
    found = measure(models, factors, metrics=["mig", "sap", "mcc", "udr", "effective_rank"], seeds=2)
    assert found.n_models == 3
    for name in ("mig", "sap_score", "mcc", "effective_rank"):
        alone = [measure(model, factors, metrics=[name], seeds=2)[name] for model in models]
        np.testing.assert_allclose(found[name].value, [one.value for one in alone], rtol=1e-12)
        np.testing.assert_allclose(found[name].draws, np.stack([one.draws for one in alone], -1), rtol=1e-12)
    np.testing.assert_allclose(found["udr"].value, udr(models).score)
    assert json.dumps(found.to_plain(), allow_nan=False)


@pytest.mark.parametrize("names", [None, pytest.param("all", marks=pytest.mark.slow)])
def test_a_fleet_is_measured_by_every_row_in_one_call(names: str | None) -> None:
    codes, factors = table(120)
    models = torch.tensor(np.stack([codes, codes[:, ::-1] ** 3, codes + 0.1]))
    variance = torch.full_like(models, 0.1)
    rows = find_rows(names)
    options = {row.name: QUICK.get(row.function.__name__, {}) for row in rows} | {"dci": {"n_rounds": 5}}
    found = measure(models, factors, variance=variance, metrics=names, seeds=0, options=options)
    assert found.left_out == {}
    assert set(found.parts) == {row.name for row in rows}
    assert all(number.value.shape == (3,) for number in found.numbers.values())
    alone = measure(models[1], factors, variance=variance[1], metrics=names, seeds=0, options=options)
    for name, number in alone.numbers.items():
        assert found[name].value[1] == pytest.approx(number.value, abs=1e-12)


def test_variance_makes_the_informative_latents_of_udr() -> None:
    codes, factors = table()
    models, variance = np.stack([codes, codes]), np.full((2, *codes.shape), 0.01)
    models[..., 2], variance[..., 2] = 0.0, 1.0
    found = measure(models, factors, variance=variance, metrics="udr", seeds=0)
    assert found.parts["udr"].informative.tolist() == [[True, True, False]] * 2
    with pytest.raises(ValueError, match="negative entries"):
        measure(codes, factors, variance=np.log(np.full(codes.shape, 0.1)))
    with pytest.raises(ValueError, match="shape of codes"):
        measure(codes, factors, variance=np.ones((240, 2)))


def test_counts_are_made_once_for_all_that_start_from_them(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def counting(*arguments: Any) -> Any:
        calls.append(arguments)
        return information(*arguments)

    monkeypatch.setattr("unweave.evaluation.inputs.information", counting)
    codes, factors = table()
    found = measure(codes, factors, metrics=["mig", "mig_sup", "modularity", "jemmig", "dcimig"], seeds=0)
    assert len(found.parts) == 5
    assert len(calls) == 1


def test_a_second_representation_costs_no_set_up(monkeypatch: pytest.MonkeyPatch) -> None:
    from unweave.evaluation import measure as module
    from unweave.evaluation.truth import as_truth

    calls = []

    def counted(*arguments: Any) -> Any:
        calls.append(arguments)
        return as_truth(*arguments)

    monkeypatch.setattr(module, "as_truth", counted)
    codes, factors = table()
    measurer = Measurer(factors, "mig", seeds=2)
    first, second = measurer.measure(codes), measurer.measure(codes[:, :2])
    assert len(calls) == 1
    assert first["mig"].value != second["mig"].value
    assert second["mig"].value == measure(codes[:, :2], factors, metrics="mig", seeds=0)["mig"].value


@pytest.mark.parametrize("n_models", [None, 3])
def test_at_chance_a_pools_codes_come_in_random_order_too(n_models: int | None) -> None:
    factors = np.random.default_rng(0).integers(0, 4, (400, 3))
    codes = factors.astype(float) if n_models is None else np.stack([factors.astype(float)] * n_models)
    quick = {"n_train": 200, "n_test": 100, "n_variance": 200, "batch_size": 16}
    options = {"metrics": ["factor_vae_score"], "seeds": 0, "adjust": "chance", "options": {"factor_vae_score": quick}}
    found = Measurer(factors, **options).measure(codes, pool=(codes, factors))["factor_vae_score"]
    assert np.min(found.value) > 0.95
    assert np.max(found.chance) < 0.6


def test_a_pool_serves_the_interventions_only() -> None:
    codes, factors = table()
    pool = factors.astype(float), factors
    measurer = Measurer(factors, ["factor_vae", "mig"], seeds=0, options={"factor_vae": QUICK["factor_vae"]})
    noise = np.random.default_rng(0).normal(size=codes.shape)
    assert measurer.measure(noise, pool=pool)["factor_vae_score"].value > 0.95
    assert measurer.measure(noise)["factor_vae_score"].value < 0.8
    assert measurer.measure(noise, pool=pool)["mig"].value < 0.05


def test_one_factor_alone_is_warned_of() -> None:
    codes, factors = table()
    with pytest.warns(UserWarning, match=r"With one factor alone, .* any code that varies: modularity\.$"):
        found = measure(codes, factors[:, :1], metrics=["modularity", "mig"], seeds=0)
    assert found["modularity"].value == 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        measure(codes, factors[:, :1], metrics="mig", seeds=0)
        measure(codes, factors, metrics="modularity", seeds=0)
        measure(codes, metrics="effective_rank", seeds=0)


def test_words_fractions_and_bins() -> None:
    codes, factors = table()
    words = np.array([["a", "b", "c", "d"][value] for value in factors[:, 1]])[:, None]
    by_words, by_numbers = (measure(codes, f, metrics="mig", seeds=0) for f in (words, factors[:, 1:]))
    assert by_words["mig"].value == by_numbers["mig"].value
    with pytest.raises(ValueError, match=r"mcc: .*words have no order"):
        measure(codes, words, metrics="mcc")
    fractions = codes[:, :1] + 0.5
    found = measure(codes, fractions, metrics=["mcc", "irs"], seeds=0)
    assert found["mcc"].value == pytest.approx(1.0)
    with pytest.raises(ValueError, match="mig: factors must be categories: column 0 holds fractions"):
        measure(codes, fractions, metrics="mig")
    loose = measure(codes, fractions, seeds=0, options={})
    assert "fractions" in loose.left_out["mig"]
    assert "mcc" in loose.numbers
    binned = measure(codes, fractions, metrics="mig", seeds=0, factor_bins=5)
    assert binned["mig"].value > 0.5


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda c, f: (np.where(c == c[3, 1], np.nan, c), f), "codes must be finite: column 1"),
        (lambda c, f: (c, np.where(f == 2, np.nan, f.astype(float))), "factors must be finite: column 0"),
        (lambda c, f: (c, f[:-1]), "given 240 and 239 rows"),
        (lambda c, f: (c[:0], f[:0]), "at least one sample"),
        (lambda c, f: (c[:, :0], f), "at least one sample and one latent"),
        (lambda c, f: (c.astype(str), f), "codes must hold numbers"),
    ],
)
def test_bad_arrays_name_the_array_and_the_column(change: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        measure(*change(*table()))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"seeds": -1}, "seeds must be a whole number"),
        ({"adjust": "luck"}, "adjust must be 'chance'"),
        ({"options": {"mig": {"bins": 3}}}, "unknown option of mig 'bins'. Did you mean n_bins"),
        ({"metrics": "irs", "options": {"mig": {"n_bins": 3}}}, "not among the metrics"),
        ({"metrics": []}, "names none"),
    ],
)
def test_bad_settings_say_so(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        measure(*table(), **settings)


def test_degenerate_tables_have_answers() -> None:
    codes, factors = table()
    constant = measure(np.full((240, 3), 0.5), factors, metrics="all", seeds=2, options=QUICK)
    assert all(np.isfinite(number.value) for number in constant.numbers.values())
    still = measure(codes, np.zeros((240, 2), int), metrics=["mig", "irs", "mcc", "dci"], seeds=2)
    assert still["mig"].value == 0.0
    few = measure(np.random.default_rng(0).normal(size=(8, 20)), factors[:8], metrics="gaussian_total_correlation")
    assert few["gaussian_total_correlation"].value == np.inf
    assert few["gaussian_total_correlation"].interval is None
    assert few.to_plain()["scores"]["gaussian_total_correlation"]["value"] == "inf"


def test_tensors_and_arrays_agree_and_stay_untouched() -> None:
    codes, factors = table()
    before = codes.copy()
    names = ["mig", "sap", "mcc"]
    by_tensor = measure(torch.tensor(codes), torch.tensor(factors), metrics=names, seeds=2)
    by_array = measure(codes, factors, metrics=names, seeds=2)
    assert [n.value for n in by_tensor.numbers.values()] == [n.value for n in by_array.numbers.values()]
    np.testing.assert_array_equal(codes, before)


@pytest.mark.parametrize("name", ["identity", "rotated"])
def test_the_reference_tables_are_met(name: str, reference: Path) -> None:
    expected = json.loads((reference / f"metrics_{name}.sklearn19.json").read_text())
    with np.load(reference / f"metrics_{name}.npz") as arrays:
        codes, factors = arrays["codes"], arrays["factors"]
    options = {"sap": {"backend": "sklearn"}, "beta_vae": {"n_train": 1000, "n_test": 500}}
    names = ["mig", "modularity", "irs", "sap", "explicitness", "mutual_info_score", "wasserstein", "beta_vae"]
    found = measure(codes, factors, metrics=names, split=(600, 300), seeds=0, options=options)
    fixed = expected["fixed"]
    for ours, theirs in {
        "mig": fixed["mig"]["discrete_mig"],
        "modularity": fixed["modularity_only"]["modularity_score"],
        "irs": fixed["irs"]["IRS"],
        "sap_score": fixed["sap_discrete"]["SAP_score"],
        "explicitness": fixed["modularity_explicitness"]["explicitness_score_test"],
        "mutual_info_score": fixed["unsupervised"]["mutual_info_score"],
        "gaussian_wasserstein_correlation": fixed["unsupervised"]["gaussian_wasserstein_correlation"],
    }.items():
        assert found[ours].value == pytest.approx(theirs, abs=1e-6), ours
    wanted = expected["interventional"]["beta_vae"]["eval_accuracy"]
    assert found["beta_vae_sklearn"].value == pytest.approx(wanted, abs=0.03)


@pytest.mark.gpu
def test_a_device_gives_the_same(gpu: torch.device) -> None:
    codes, factors = table()
    names = ["mig", "modularity", "irs", "mcc", "sap", "effective_rank", "infomec"]
    there = measure(torch.tensor(codes, device=gpu), torch.tensor(factors, device=gpu), metrics=names, seeds=2)
    here = measure(codes, factors, metrics=names, seeds=2)
    for name, number in here.numbers.items():
        assert there[name].value == pytest.approx(number.value, rel=1e-6, abs=1e-9), name


def test_a_curve_over_all_samples_is_written_as_a_few_of_its_points() -> None:
    """TwoNN's two lists made a run's scores.json three times as long as all the rest."""
    codes = np.random.default_rng(0).normal(size=(600, 3))
    found = measure(codes, metrics=["two_nn"], seeds=0)
    whole, written = found.parts["two_nn"], found.to_plain()["parts"]["two_nn"]
    assert len(whole.log_ratio) == 540
    for name in ("log_ratio", "log_survival"):
        curve = getattr(whole, name).tolist()
        assert len(written[name]) == 200
        assert written[name][0] == curve[0]
        assert written[name][-1] == curve[-1]
        assert written[name] == sorted(set(written[name]) & set(curve))


def test_a_function_stands_for_the_row_in_its_file_and_any_other_for_itself() -> None:
    for named in (mig_metric.mig, mig_metric.ROW.function):
        assert find_rows([named]) == [mig_metric.ROW]

    def of_my_own(codes: np.ndarray) -> float:
        return 0.5

    of_my_own.__module__ = mig_metric.__name__  # in a file that has a row, of another function
    (row,) = find_rows([of_my_own])
    assert (row.name, row is mig_metric.ROW) == ("of_my_own", False)
