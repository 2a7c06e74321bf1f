"""Evaluation at its limits: who watches is told how far it is, blocks change nothing, the smallest inputs are taken."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

import unweave as uw
from unweave import rng
from unweave.data.micro import Micro
from unweave.data.world import Data
from unweave.evaluation import encode as encoding
from unweave.evaluation import evaluation, over_training, points
from unweave.evaluation.activations import activations
from unweave.evaluation.encode import encode, factor_names
from unweave.evaluation.evaluation import evaluate, protocol_of_scores
from unweave.evaluation.learnt_same import AXES, SAME, learnt_same
from unweave.evaluation.measure import measure
from unweave.evaluation.points import points_of_data, points_of_frame, points_of_run
from unweave.evaluation.score_differences import _unpaired
from unweave.evaluation.scores import scores_from_plain
from unweave.evaluation.similarity import Matched, Similarity, _title, compare_runs
from unweave.evaluation.tables import Roles, as_variance, read_tables
from unweave.evaluation.traversal import plane, strips
from unweave.metrics.similarity.matching import matching
from unweave.models.objectives import AE

TOLD = list[tuple[int, int, str]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> uw.Run:
    given = {"network": uw.MLP((6,), (6,)), "latents": 3, "steps": 4, "batch_size": 16, "snapshots": (0, 2)}
    return uw.train("micro", tmp_path_factory.mktemp("runs") / "one", quiet=True, plan=uw.Plan("cpu", 1), **given)


@pytest.fixture(scope="module")
def certain(tmp_path_factory: pytest.TempPathFactory) -> uw.Run:
    """A run without variances."""
    given = {"network": uw.MLP((6,), (6,)), "latents": 2, "steps": 2, "batch_size": 8, "objective": AE()}
    return uw.train("micro", tmp_path_factory.mktemp("runs") / "two", quiet=True, plan=uw.Plan("cpu", 1), **given)


@pytest.mark.parametrize(
    ("adjust", "seeds", "rounds"), [(None, 0, 1), (None, 2, 3), ("chance", 0, 2), ("chance", 2, 5)]
)
def test_whoever_watches_a_measurement_is_told(adjust: str | None, seeds: int, rounds: int) -> None:
    factors = np.random.default_rng(0).integers(0, 3, (60, 2))
    told: TOLD = []
    measure(
        factors + 0.5,
        factors,
        metrics=["mig", "modularity"],
        seeds=seeds,
        adjust=adjust,
        watch=lambda *said: told.append(said),
    )
    names = ["mig", "modularity"] * rounds + ["done"]
    assert told == [(done, 2 * rounds, name) for done, name in enumerate(names)]


def test_codes_come_in_blocks_of_their_own_noise(run: uw.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[int, int]] = []
    rows = torch.arange(20)
    monkeypatch.setattr(encoding, "BATCH_SIZE", 8)
    found = encode(run, rows, seed=3, device="cpu", watch=lambda *said: told.append(said))
    assert told == [(0, 20), (8, 20), (16, 20), (20, 20)]
    for step, some in enumerate(rows.split(8)):
        noise = rng.normal(3, rng.Purpose.EVALUATE, step, len(some), 3)
        code = run.encode(run.data.examples(some))
        expected = code.mean + code.variance.sqrt() * noise
        torch.testing.assert_close(found.sampled[8 * step : 8 * step + 8], expected)
    assert found.factors.tolist() == run.data.factors(rows).tolist()


def test_layers_of_many_examples_are_those_of_each_batch(run: uw.Run) -> None:
    images = run.images(21)
    whole = activations(run.model, images, seed=1)
    parts = activations(run.model, images, seed=1, batch_size=8)
    assert parts.names == whole.names
    assert parts.n_encoder == whole.n_encoder == 2 + 3  # input, one layer, mean, variance, sample
    for name, one, other in zip(whole.names, whole.layers, parts.layers):
        if not name.startswith(("sampled", "decoder", "output")):
            torch.testing.assert_close(one, other)
    # the same noise; means may differ in their last bit with the size of a batch
    torch.testing.assert_close(whole["sampled"][:8], parts["sampled"][:8])
    assert not torch.allclose(whole["sampled"][8:], parts["sampled"][8:])


def test_who_compares_is_told_and_four_examples_are_enough(run: uw.Run) -> None:
    told: TOLD = []
    found = compare_runs([run], n=4, n_permutations=1, watch=lambda *said: told.append(said))
    assert found.n_examples == 4
    name = f"1: {run.path.name}"
    assert [said[:2] for said in told] == [(0, 3), (1, 3), (2, 3), (0, 3), (1, 3), (2, 3)]
    assert [said[2] for said in told[:3]] == [f"{name} @ 0", f"{name} @ 2", name]
    assert found.members == (f"{name} @ 0", f"{name} @ 2", name)


def test_groups_are_lettered_and_then_numbered(run: uw.Run) -> None:
    assert [_title(run, place).partition(": ")[0] for place in (0, 1, 25, 26, 27)] == [
        "A",
        "B",
        "Z",
        "group 27",
        "group 28",
    ]


def test_snapshots_are_spread_evenly_with_both_ends() -> None:
    assert over_training._spread([]) == []
    assert over_training._spread([7]) == [7]
    assert over_training._spread(list(range(20))) == list(range(20))
    assert over_training._spread(list(range(39))) == list(range(0, 39, 2))
    chosen = over_training._spread(list(range(21)))
    assert (len(chosen), chosen[0], chosen[-1]) == (20, 0, 20)


def test_points_of_a_run_have_samples_where_it_draws_some(run: uw.Run, certain: uw.Run) -> None:
    assert [table.name for table in points_of_run(run, 5)] == ["data", "mean codes", "sampled codes"]
    assert [table.name for table in points_of_run(certain, 5)] == ["data", "mean codes"]
    assert [len(table.table) for table in points_of_run(certain, 5)] == [5, 5]


def test_too_many_points_are_drawn_from(monkeypatch: pytest.MonkeyPatch) -> None:
    data = Data(torch.arange(10_000.0).view(5000, 2), (2,), "floats")
    assert points_of_data(data).table.tolist() == data.store.tolist()
    monkeypatch.setattr(points, "MOST_NUMBERS", 9999)
    drawn = points_of_data(data).table
    assert drawn.shape == (4999, 2)
    assert len({tuple(row) for row in drawn.tolist()}) == 4999
    assert drawn.tolist() != data.store[:4999].tolist()
    monkeypatch.setattr(points, "MOST_NUMBERS", 1)
    assert points_of_data(data).table.shape == (1, 2)


def test_columns_of_a_frame_are_standardised() -> None:
    table = points_of_frame(pl.DataFrame({"a": [1.0, 3.0], "still": [5.0, 5.0]})).table
    assert table.tolist() == [[-1.0, 0.0], [1.0, 0.0]]
    with pytest.raises(ValueError, match="row 2 of the column 'b' is nan"):
        points_of_frame(pl.DataFrame({"a": [1.0, 3.0], "b": [5.0, math.nan]}))
    with pytest.raises(ValueError, match="the column 'w' of the frame holds words"):
        points_of_frame(pl.DataFrame({"a": [1.0, 3.0], "w": ["x", "y"]}))


def test_latents_are_numbered_from_none_to_the_last(run: uw.Run) -> None:
    assert strips(run, latents=[0, 2], n=3).latents == (0, 2)
    for latents in ([-1], [3]):
        with pytest.raises(ValueError, match=rf"are numbered 0…2, given {latents[0]}"):
            strips(run, latents=latents)
    with pytest.raises(ValueError, match="two different latents, given 1 twice"):
        plane(run, 1, 1)


def test_names_of_factors() -> None:
    data = Micro().load()
    assert factor_names(data) == data.space.names
    bare = Data(torch.zeros(4, 2), (2,), "floats")
    assert factor_names(bare) == ()
    assert factor_names(replace(bare, labels=torch.zeros(4, 2))) == ("0", "1")
    assert factor_names(replace(bare, labels=torch.zeros(4, 1), label_names=("kind",))) == ("kind",)


def test_scores_survive_being_written() -> None:
    factors = np.random.default_rng(0).integers(0, 3, (60, 2))
    found = measure(factors + 0.5, factors, metrics=["mig"], seeds=3)
    found.seconds["mig"] = 0.123456
    plain = found.to_plain()
    assert plain["seconds"] == {"mig": 0.1235}
    again = scores_from_plain(plain)
    assert again["mig"].value == found["mig"].value
    assert again["mig"].interval == found["mig"].interval
    assert (again.n_samples, again.n_models) == (60, None)


def test_variances_in_other_words(tmp_path: Path) -> None:
    none = dict.fromkeys(("variance", "log_variance", "deviation"))
    path = tmp_path / "x.npz"
    assert as_variance(none, path) is None
    assert as_variance(none | {"log_variance": np.array([0.0, math.log(4.0), -math.inf])}, path) == pytest.approx(
        [1, 4, 0]
    )
    assert as_variance(none | {"log_variance": np.array([301.0])}, path) == pytest.approx([math.exp(300.0)])
    assert as_variance(none | {"deviation": np.array([3.0])}, path) == [9.0]
    with pytest.raises(ValueError, match="holds variance and deviation; one of them says it all"):
        as_variance(none | {"variance": np.ones(1), "deviation": np.ones(1)}, path)


@pytest.mark.parametrize(("n", "shown"), [(8, "x0, x1, x2, x3, x4, x5, x6, x7$"), (9, "x6, x7, …$")])
def test_long_lists_of_columns_are_cut(n: int, shown: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(",".join(f"x{place}" for place in range(n)) + "\n" + ",".join("1" * n) + "\n")
    with pytest.raises(ValueError, match=f"it has x0, .*{shown}|it has {shown}"):
        read_tables([tmp_path / "t.csv"])


@pytest.mark.parametrize(("n", "shown"), [(12, "z11$"), (13, "z11, …$")])
def test_long_lists_of_names_are_cut(n: int, shown: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(",".join(f"z{place}" for place in range(n)) + "\n" + ",".join("1" * n) + "\n")
    with pytest.raises(ValueError, match=f"has no 'q' for its codes; it has z0, .*{shown}"):
        read_tables([tmp_path / "t.csv"], Roles(codes=("q",)))


@pytest.mark.parametrize(
    ("codes", "where"),
    [
        (np.array([1.0, math.nan]), "column 0 holds NaN or infinity, first in row 2;"),
        (np.array([[1.0, 2.0], [1.0, math.inf]]), "column 1 holds NaN or infinity, first in row 2;"),
        (np.array([[[1.0]], [[math.nan]]]), "column 0 holds NaN or infinity, first in row 1 of model 1;"),
    ],
)
def test_gaps_in_arrays_are_placed(codes: np.ndarray, where: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "t.npz", codes=codes)
    with pytest.raises(ValueError, match=where):
        read_tables([tmp_path / "t.npz"])


def test_arrays_side_by_side_need_equal_rows(tmp_path: Path) -> None:
    np.savez(tmp_path / "t.npz", a=np.arange(3.0), b=np.ones((3, 2)), c=np.ones(4))
    (table,) = read_tables([tmp_path / "t.npz"], Roles(codes=("a", "b")))
    assert table.codes.tolist() == [[0.0, 1.0, 1.0], [1.0, 1.0, 1.0], [2.0, 1.0, 1.0]]
    assert table.latent_names == ("0", "1", "2")
    with pytest.raises(ValueError, match="a and c differ in their number of rows"):
        read_tables([tmp_path / "t.npz"], Roles(codes=("a", "c")))


def test_an_evaluation_tells_how_far_it_is(run: uw.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    told: TOLD = []
    found = evaluate(run, metrics=["mig"], n_samples=50, seeds=0, watch=lambda *said: told.append(said))
    assert told == [
        *((done, 50, "encoding the sample") for done in (0, 50)),
        *(
            (done, 1, f"{name} codes: {what}")
            for name in ("mean", "sampled")
            for done, what in enumerate(("mig", "done"))
        ),
    ]
    assert found.n_world is None
    assert found.scores["mean"].settings["split"] is None
    monkeypatch.setattr(evaluation, "N_TRAIN", 30)
    monkeypatch.setattr(evaluation, "N_TEST", 20)
    found = evaluate(run, metrics=["mig"], n_samples=50, seeds=0, representations=["mean"])
    assert found.scores["mean"].settings["split"] == (30, 20)


def test_interventions_come_from_a_world_that_is_larger_than_the_sample(run: uw.Run) -> None:
    few = {"factor_vae": {"n_train": 20, "n_test": 10, "n_variance": 20, "batch_size": 4}}
    given = {"metrics": ["factor_vae"], "options": few, "seeds": 0, "representations": ["mean"]}
    assert evaluate(run, n_samples=50, **given).n_world == 2048
    assert evaluate(run, n_samples=50, interventions="table", **given).n_world is None
    assert evaluate(run, n_samples=2048, **given).n_world is None
    assert evaluate(run, n_samples=2047, **given).n_world == 2048


def test_what_scores_were_measured_on_in_words() -> None:
    settings = {"seed": 3, "split": [10_000, 5000], "seeds": 5}
    plain = {"n_samples": 15_000, "n_world": 70_000, "mean": {"settings": settings}}
    assert protocol_of_scores(plain) == (
        "15,000 examples, drawn by seed 3, 10,000 to fit on and 5,000 to test on, interventions from all 70,000,"
        " intervals from 5 random halves"
    )
    assert protocol_of_scores({"n_samples": 9, "n_world": None, "sampled": {"settings": {}}}) == (
        "9 examples, drawn by seed 0, interventions among them"
    )


def test_draws_that_go_together_by_chance_still_spread() -> None:
    draws = np.array([1.0, 2.0, 4.0, math.nan, 3.0])
    found = _unpaired(draws, draws + 7.0)
    wanted = math.sqrt(2 * np.nanvar(draws, ddof=1))
    assert found[[0, 1, 2, 4]].tolist() == pytest.approx([-wanted, wanted, -wanted, -wanted])
    assert math.isnan(found[3])
    assert np.isnan(_unpaired(draws[2:4], draws[2:4])).all(), "one draw has no spread"
    apart = _unpaired(draws[:3], np.array([2.0, 1.0, 1.0]))
    assert np.var(apart, ddof=1) == pytest.approx(np.var(draws[:3], ddof=1) + 1 / 3)


def test_variances_belong_to_the_mean_codes(run: uw.Run) -> None:
    given = {"metrics": ["traces"], "n_samples": 60, "seeds": 0}
    assert "traces" in evaluate(run, representations=["mean"], **given).scores["mean"].numbers
    with pytest.raises(ValueError, match="traces: needs the codes' posterior variances"):
        evaluate(run, representations=["sampled"], **given)


def matched(alike: float, n_used: tuple[int, int] = (2, 2), axes: float = 1.0, **given: bool) -> Matched:
    codes = torch.tensor([[0.0, 1.0], [1.0, 0.0], [2.0, 5.0]])
    found = replace(matching(codes, codes), score=axes)
    return Matched("a", "b", found, **{"identical": False} | given, n_used=n_used, alike=alike)


@pytest.mark.parametrize(
    ("one", "same", "words"),
    [
        (matched(0.0, identical=True), True, "their weights are equal to the last bit."),
        (matched(0.0, (0, 0)), True, "and that is nothing: neither uses a latent."),
        (matched(1.0, (0, 1)), False, "They differ: a uses no latents, b uses 1 latent."),
        (matched(1.0, (2, 0)), False, "They differ: a uses 2 latents, b uses no latents."),
        (matched(SAME), True, "and latent by latent (1.00)."),
        (matched(SAME - 1e-6), False, "They differ: their mean codes are alike to"),
        (matched(1.0, axes=AXES), True, f"and latent by latent ({AXES:.2f})."),
        (matched(1.0, axes=AXES - 1e-6), True, "so their axes lie otherwise."),
    ],
)
def test_two_models_learnt_the_same(one: Matched, same: bool, words: str) -> None:
    found = learnt_same(Similarity(("a", "b"), (), (one,), 5))
    assert found.same is same
    assert words in found.sentence


def test_several_models_learnt_the_same() -> None:
    assert repr(Similarity(("a",), (), (), 5)) == "one run, 0 comparisons"
    found = learnt_same(Similarity(("a", "b", "c"), (), (matched(1.0), matched(0.99), matched(1.0)), 5))
    assert found.same
    assert found.sentence.startswith("They learnt the same: all 3 pairs do, the least alike to 0.99")
    found = learnt_same(Similarity(("a", "b", "c"), (), (matched(1.0), matched(0.3), matched(0.2)), 5))
    assert not found.same
    assert found.sentence.startswith(
        "They differ: 2 of 3 pairs, most of all a and b, whose mean codes are alike to 0.20"
    )
