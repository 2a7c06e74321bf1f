"""Diagnoses of constructed codes: what is planted is found, and a healthy model is left in peace."""

import inspect
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from unweave.data.factors import Factor, FactorSpace
from unweave.evaluation.decoder import Decoder, random_dto
from unweave.evaluation.diagnosis import diagnose_codes
from unweave.evaluation.finding import Expected
from unweave.evaluation.findings import expected_of, findings, sentences
from unweave.evaluation.over_training import OverTraining
from unweave.evaluation.posterior_file import read_posteriors
from unweave.metrics.polarised.passive import passive_correlation
from unweave.metrics.polarised.rate_distortion import rate_distortion
from unweave.metrics.polarised.reconstruction import ReconstructionSplit, reconstruction_split

N = 2000


def codes(
    n_active: int, n_passive: int = 0, n_mixed: int = 0, *, follow: float = 0.0, seed: int = 0, n: int = N
) -> dict[str, np.ndarray]:
    """Active latents, then passive ones (whose tiny means ``follow`` the first active one), then mixed ones."""
    draw = np.random.default_rng(seed)
    active = draw.normal(0, 0.99**0.5, (n, n_active))
    noise = draw.normal(size=(n, n_passive))
    passive = 0.02 * (follow * active[:, :1] + (1 - follow) * noise if n_active else noise)
    on = draw.random((n, n_mixed)) < 0.5
    mixed = np.where(on, draw.normal(0, 1.4, (n, n_mixed)), 0.0)
    variance = [
        0.01 * np.exp(0.2 * draw.normal(size=(n, n_active))),
        1 + 0.01 * draw.normal(size=(n, n_passive)),
        np.where(on, 0.01, 1.0),
    ]
    return {"mean": np.concatenate([active, passive, mixed], 1), "variance": np.concatenate(variance, 1)}


def names(given: dict[str, Any], expected: Expected | None = None, **options: Any) -> list[str]:
    return [finding.name for finding in findings(diagnose_codes(**given, **options), expected)]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("n_active", [1, 3, 10])
def test_a_healthy_model_is_left_in_peace(seed: int, n_active: int) -> None:
    assert names(codes(n_active, seed=seed), Expected(n_active, n_active)) == []
    assert names(codes(n_active, seed=seed)) == []


def test_planted_collapse() -> None:
    found = findings(diagnose_codes(**codes(0, 5)), Expected(3, 3))
    assert [(one.name, one.weight) for one in found] == [("collapse", "problem")]
    assert "all 5 latents are passive" in found[0].text


def test_planted_passive_latents() -> None:
    found = findings(diagnose_codes(**codes(4, 3)))
    assert [one.name for one in found] == ["passive"]
    assert "3 of 7 latents are passive: latents 4, 5, 6" in found[0].text
    assert "keep 0, 1, 2, 3" in found[0].advice


def test_planted_passive_latents_that_follow_active_ones() -> None:
    given = codes(4, 3, follow=0.5)
    diagnosis = diagnose_codes(**given)
    found = findings(diagnosis)
    assert [(one.name, one.weight) for one in found] == [("correlated_passive", "advice")]
    largest = np.abs(np.corrcoef(given["mean"].T)[4:, :4]).max()
    assert f"correlate up to {largest:.2f}" in found[0].text
    # the total correlation that the passive ones add, from determinants
    whole, used = (-0.5 * np.linalg.slogdet(np.corrcoef(given["mean"][:, :k].T))[1] for k in (7, 4))
    assert f"add {whole - used:.2g} nats" in found[0].text
    sampled = diagnosis.dependent("sampled", "all").total_correlation
    assert sampled is not None
    assert sampled < 0.05 < whole - used


def test_planted_over_pruning() -> None:
    found = findings(diagnose_codes(**codes(2, 3)), Expected(5, 7))
    assert [one.name for one in found] == ["over_pruned", "passive"]
    assert "(2, with E[σ²] < 0.8)" in found[0].text
    assert names(codes(2, 3), Expected(2, 2)) == ["passive"]


def test_too_few_and_too_many_latents() -> None:
    assert names(codes(2), Expected(5, 7)) == ["too_few_latents"]
    assert names(codes(9), Expected(3, 4)) == ["not_pruned"]
    assert names(codes(4), Expected(3, 4)) == []


def test_planted_mixed_latents() -> None:
    diagnosis = diagnose_codes(**codes(3, 0, 2))
    assert diagnosis.types == ["active"] * 3 + ["mixed"] * 2
    assert diagnosis.latents[4].evidence == "σ² differs"
    assert "mixed" in [one.name for one in findings(diagnosis)]


def test_below_the_polarised_regime() -> None:
    given = codes(3)
    given["variance"][:] = 0.4
    found = {one.name: one for one in findings(diagnose_codes(**given))}
    # KL≈ leaves out ½ σ² of every latent
    kl = 0.5 * (given["mean"] ** 2 + 0.4 - np.log(0.4) - 1).mean(0).sum()
    assert f"Δ_KL is {100 * 0.6 / kl:.1f} %" in found["not_polarised"].text
    assert diagnose_codes(**given).latents[0].evidence == "σ² between"


@pytest.mark.parametrize(("delta", "said"), [(0.0299, False), (0.03, True)])
def test_polarised_is_what_lies_below_the_mark(delta: float, said: bool) -> None:
    found = diagnose_codes(**codes(3))
    assert found.regime is not None
    at_the_mark = replace(found, regime=replace(found.regime, delta=delta))
    assert ("not_polarised" in [one.name for one in findings(at_the_mark)]) == said


def test_codes_that_do_not_fill_the_prior() -> None:
    given = codes(3)
    given["mean"][:, 1] *= 3
    found = findings(diagnose_codes(**given))
    assert [one.name for one in found] == ["prior_mismatch"]
    assert "of latent 1 have" in found[0].text


def test_latents_that_say_the_same() -> None:
    given = codes(3)
    given["mean"][:, 2] = 0.8 * given["mean"][:, 0] + 0.6 * given["mean"][:, 2]
    assert names(given) == ["correlated"]
    given["mean"][:, 2] = given["mean"][:, 0]
    assert names(given) == ["singular", "correlated"]
    assert diagnose_codes(**given).dependent("mean", "all").total_correlation == float("inf")


def test_a_deterministic_autoencoder() -> None:
    given = {"mean": codes(3)["mean"]}
    given["mean"][:, 1] = 0.5
    diagnosis = diagnose_codes(**given)
    assert (diagnosis.stochastic, diagnosis.regime, diagnosis.rate, diagnosis.traces.score) == (False, None, 0.0, 0.0)
    assert torch.equal(diagnosis.sampled, diagnosis.mean)
    found = findings(diagnosis, Expected(2, 2))
    assert [one.name for one in found] == ["deterministic"]
    assert "Latent 1 never changes." in found[0].text
    given["mean"][:, 1] = 1.2e-4 * np.sign(given["mean"][:, 0])  # a variance of 1.4e-8
    said = {one.name: one.text for one in findings(diagnose_codes(**given))}
    assert "never change" not in said["deterministic"]
    zeros = diagnose_codes(given["mean"], np.zeros((N, 3)))
    assert not zeros.stochastic


def test_one_latent() -> None:
    diagnosis = diagnose_codes(**codes(1))
    assert diagnosis.latents[0].partner is None
    assert diagnosis.dependent("mean", "all").total_correlation == 0.0


def test_few_examples() -> None:
    assert names(codes(3, n=100)) == ["few_examples"]
    found = findings(diagnose_codes(**codes(6, n=4)))
    assert {"few_examples", "singular"} <= {one.name for one in found}


def test_every_number_by_another_route() -> None:
    given = codes(3, 2, 1, follow=0.3)
    mean, variance = given["mean"], given["variance"]
    diagnosis = diagnose_codes(**given, seed=3)
    posterior = torch.distributions.Normal(torch.from_numpy(mean), torch.from_numpy(variance).sqrt())
    kl = torch.distributions.kl_divergence(posterior, torch.distributions.Normal(0.0, 1.0)).mean(0)
    np.testing.assert_allclose([one.kl for one in diagnosis.latents], kl, rtol=1e-12)
    assert diagnosis.rate == pytest.approx(float(kl.sum()), rel=1e-12)
    np.testing.assert_allclose([one.mean_variance for one in diagnosis.latents], variance.mean(0))
    np.testing.assert_allclose([one.variance_of_variance for one in diagnosis.latents], variance.var(0), atol=1e-15)
    np.testing.assert_allclose([one.variance_of_mean for one in diagnosis.latents], mean.var(0))
    np.testing.assert_allclose(diagnosis.aggregate, mean.var(0) + variance.mean(0))
    matrix = np.corrcoef(mean.T) - np.eye(6)
    assert [one.partner for one in diagnosis.latents] == np.abs(matrix).argmax(0).tolist()
    np.testing.assert_allclose(
        [one.correlation for one in diagnosis.latents], matrix[np.abs(matrix).argmax(0), range(6)], atol=1e-12
    )
    noise = (diagnosis.sampled.numpy() - mean) / variance**0.5
    assert abs(noise.mean()) < 0.02
    assert noise.std() == pytest.approx(1.0, abs=0.02)
    assert diagnosis.traces.counts == round(variance.mean(0).sum())


def test_given_samples_and_kl_are_kept() -> None:
    given = codes(3)
    sampled = given["mean"] + 0.1
    diagnosis = diagnose_codes(**given, sampled=sampled, kl=np.ones((N, 3)))
    np.testing.assert_array_equal(diagnosis.sampled, sampled)
    assert diagnosis.rate == pytest.approx(3.0)


@pytest.mark.parametrize(("rule", "word"), [("spread", "std of μ"), ("mean_variance", "mean σ²"), ("kl", "KL")])
def test_other_rules_say_what_decided(rule: Any, word: str) -> None:
    diagnosis = diagnose_codes(**codes(2, 2), rule=rule)
    assert diagnosis.types == ["active", "active", "passive", "passive"]
    assert all(word in one.evidence for one in diagnosis.latents)


def test_a_variance_that_underflowed() -> None:
    given = codes(2)
    given["variance"][:5, 0] = 0.0
    assert np.isfinite(diagnose_codes(**given).rate)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"variance": np.ones((N, 2))}, "equal tables"),
        ({"variance": -np.ones((N, 3))}, "not their logarithms"),
        ({"mean": np.zeros((1, 3)), "variance": np.ones((1, 3))}, "at least two examples"),
        ({"mean": np.full((N, 3), np.nan)}, "finite"),
        ({"sampled": np.zeros((N, 2))}, "mean and sampled"),
        ({"kl": np.zeros((N, 2))}, "mean and kl"),
    ],
)
def test_bad_arrays(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        diagnose_codes(**(codes(3) | change))


def test_what_factors_need() -> None:
    axes = (Factor("x", 5), Factor("angle", 8, "cyclic"), Factor("shape", 3, "categorical"))
    assert expected_of(FactorSpace(axes)) == Expected(3, 1 + 2 + 2)
    assert expected_of(None) is None
    assert expected_of(FactorSpace(axes), 4) == Expected(4, 8)
    with pytest.raises(ValueError, match="at least 1"):
        expected_of(None, 0)


def test_random_directions_in_the_plane() -> None:
    # for a rotation by θ in [0, π/4], DtO = 2√2 sin(θ/2)
    exact = 16 * 2**0.5 / np.pi * (1 - np.cos(np.pi / 8))
    assert random_dto(2, n=5000) == pytest.approx(exact, abs=0.01)
    assert random_dto(1) == 0.0


@pytest.mark.parametrize(("dto", "expected"), [(0.1, []), (1.3, ["not_orthogonal"])])
def test_directions_of_the_decoder(dto: float, expected: list[str]) -> None:
    images = torch.zeros(2, 3)
    split = reconstruction_split(images, images, images[None])
    decoder = Decoder(dto, 1.4, 0.0, 0.2, 2, 1.0, rate_distortion(images, torch.zeros(2)), split)
    assert [one.name for one in findings(diagnose_codes(**codes(3)), None, decoder)] == expected


def decoder_with(deterministic: float, stochastic: float, rest: float = 0.0) -> Decoder:
    """A decoder whose directions are in order, with these parts of its squared error."""
    none = torch.zeros(2)
    total = deterministic + stochastic + rest
    split = ReconstructionSplit(total, deterministic, stochastic, rest, none, none)
    return Decoder(0.1, 1.4, 0.0, 0.2, 2, 1.0, rate_distortion(torch.zeros(2, 3), none), split)


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ((10.0, 5.0, 0.1), []),
        ((10.0, 0.1), ["faint_noise"]),
        ((1.0, 10.0), ["loud_noise"]),
        ((10.0, 5.0, 9.0), ["curved_decoder"]),
        ((10.0, 5.0, -9.0), ["curved_decoder"]),
        ((0.0, 0.0), []),
    ],
)
def test_what_the_noise_adds_to_the_loss(parts: tuple[float, ...], expected: list[str]) -> None:
    decoder = decoder_with(*parts)
    assert [one.name for one in findings(diagnose_codes(**codes(3)), None, decoder)] == expected
    # without noise, or with nothing but noise, there is nothing to say
    silent = [one.name for one in findings(diagnose_codes(codes(3)["mean"]), None, decoder)]
    assert silent == ["deterministic"]
    assert [one.name for one in findings(diagnose_codes(**codes(0, 3)), None, decoder)] == ["collapse"]


def test_the_shares_of_a_linear_decoder_are_found_by_another_route() -> None:
    """x̂ = Wz + b: deterministic ‖Wμ + b − x‖², stochastic Σ σ²‖W_j‖², and no curvature."""
    draw = np.random.default_rng(0)
    mean, weight = draw.normal(size=(400, 3)), draw.normal(size=(3, 12))
    noise = 0.05 * draw.normal(size=(64, 400, 3))
    images = mean @ weight + 0.2 * draw.normal(size=(400, 12))
    split = reconstruction_split(images, mean @ weight, (mean + noise) @ weight)
    assert split.stochastic == pytest.approx(0.05**2 * (weight**2).sum(), rel=0.05)
    assert split.deterministic == pytest.approx(12 * 0.2**2, rel=0.05)
    assert abs(split.rest) < 0.02 * split.total


@pytest.mark.parametrize(("n_snapshots", "follow", "expected"), [(5, 0.9, True), (5, 0.0, False), (2, 0.9, False)])
def test_passive_latents_over_snapshots(n_snapshots: int, follow: float, expected: bool) -> None:
    at = [codes(3, 2, follow=follow, seed=seed)["mean"] for seed in range(n_snapshots)]
    one = diagnose_codes(**codes(3, 2, seed=99))
    way = OverTraining(None, tuple(range(n_snapshots)), passive_correlation(np.stack(at), one.types))
    found = [finding for finding in findings(one, None, None, way) if finding.name == "passive_over_training"]
    assert bool(found) == expected
    if expected:
        assert "latents 3, 4" in found[0].text
        assert "all 5 snapshots" in found[0].text


@pytest.mark.parametrize("each", [False, True])
def test_a_learned_prior_is_divided_out(each: bool) -> None:
    """The same model in other units: types, KL and findings stay."""
    given = codes(2, 2, seed=4)
    draw = np.random.default_rng(1)
    shape = given["mean"].shape if each else (4,)
    shift, scale = draw.normal(size=shape), np.exp(draw.normal(size=shape))
    moved = {"mean": given["mean"] * scale + shift, "variance": given["variance"] * scale**2}
    one, other = diagnose_codes(**given), diagnose_codes(**moved, prior_mean=shift, prior_variance=scale**2)
    assert other.types == one.types == ["active"] * 2 + ["passive"] * 2
    assert [latent.kl for latent in other.latents] == pytest.approx([latent.kl for latent in one.latents])
    # KL(N(m, s) ‖ N(μ†, Σ†)) by torch.distributions
    normal = torch.distributions.Normal
    as_tensor = lambda array: torch.as_tensor(np.broadcast_to(array, given["mean"].shape).copy())  # noqa: E731
    posterior = normal(as_tensor(moved["mean"]), as_tensor(moved["variance"]).sqrt())
    slow = torch.distributions.kl_divergence(posterior, normal(as_tensor(shift), as_tensor(scale))).mean(0)
    assert [latent.kl for latent in other.latents] == pytest.approx(slow.tolist())
    assert diagnose_codes(**moved).types != one.types


def test_bad_priors() -> None:
    given = codes(2)
    with pytest.raises(ValueError, match="one number for each of the 2 latents"):
        diagnose_codes(**given, prior_variance=np.ones(3))
    with pytest.raises(ValueError, match="must be positive"):
        diagnose_codes(**given, prior_variance=np.zeros(2))
    with pytest.raises(ValueError, match="prior_mean must be finite"):
        diagnose_codes(**given, prior_mean=np.full(2, np.nan))


def test_posteriors_from_any_framework(tmp_path: Path) -> None:
    given = codes(2)
    np.savez(tmp_path / "a.npz", mu=given["mean"], logvar=np.log(given["variance"]))
    np.savez(tmp_path / "b.npz", mean=given["mean"], std=np.sqrt(given["variance"]), z=given["mean"])
    first, second = (read_posteriors(tmp_path / f"{name}.npz") for name in "ab")
    np.testing.assert_allclose(first.variance, given["variance"])
    np.testing.assert_allclose(second.variance, given["variance"])
    assert second.sampled is not None
    np.savez(tmp_path / "c.npz", mean=given["mean"])
    assert read_posteriors(tmp_path / "c.npz").variance is None
    for name, values, words in (("logvar", -np.inf, ""), ("logvar", np.inf, "infinity"), ("var", -np.inf, "infinity")):
        np.savez(tmp_path / "d.npz", mean=np.zeros((3, 2)), **{name: np.full((3, 2), values)})
        if words:
            with pytest.raises(ValueError, match=words):
                read_posteriors(tmp_path / "d.npz")
        else:
            assert (read_posteriors(tmp_path / "d.npz").variance == 0.0).all()


def test_bad_files(tmp_path: Path) -> None:
    np.savez(tmp_path / "none.npz", weights=np.zeros((3, 2)))
    with pytest.raises(ValueError, match=r"no array `mean`.*it holds weights"):
        read_posteriors(tmp_path / "none.npz")
    np.savez(tmp_path / "both.npz", mean=np.zeros((3, 2)), variance=np.ones((3, 2)), std=np.ones((3, 2)))
    with pytest.raises(ValueError, match="variance and deviation"):
        read_posteriors(tmp_path / "both.npz")
    with pytest.raises(FileNotFoundError, match="does not exist"):
        read_posteriors(tmp_path / "nowhere.npz")
    (tmp_path / "text.txt").write_text("a")
    with pytest.raises(ValueError, match="neither a run's folder nor an npz"):
        read_posteriors(tmp_path / "text.txt")
    (tmp_path / "text.csv").write_text("a\n1\n")
    with pytest.raises(ValueError, match="has no column of codes"):
        read_posteriors(tmp_path / "text.csv")


@pytest.mark.parametrize(("n_factors", "said"), [(2, True), (3, False), (None, False)])
def test_as_many_active_latents_as_factors_is_said(
    n_factors: int | None, said: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unweave.evaluation.findings.diagnose_described", lambda _: diagnose_codes(**codes(2, 1)))
    described = SimpleNamespace(no_decoder="", without_kl="")
    words = inspect.unwrap(sentences)(described, expected_of(None, n_factors))
    assert words[0] == "2 of 3 latents are active, 0 mixed, 1 passive."
    assert ("That is exactly as many as the world has factors: 2." in words) == said
