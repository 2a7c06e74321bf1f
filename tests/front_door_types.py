"""What a type checker sees of `import unweave as uw`. Never run: `make check` hands it to mypy."""

from pathlib import Path
from typing import Literal, assert_type

import numpy as np

import unweave as uw
from unweave.data.altered import Perturbed
from unweave.data.micro import Micro
from unweave.data.world import Data
from unweave.evaluation.evaluation import Evaluation
from unweave.evaluation.finding import Finding
from unweave.evaluation.scores import Scores
from unweave.evaluation.similarity import Similarity
from unweave.metrics import Metric
from unweave.metrics.dimension.intrinsic import Intrinsic
from unweave.models import Likelihood, Method, Model, Network, Objective, Optimiser
from unweave.models.posteriors import Code
from unweave.recipes.diagnose import Diagnosed
from unweave.recipes.dimension import Dimension
from unweave.recipes.perturb import Made
from unweave.shapes import Tensor
from unweave.studies.results import Results


def worlds_and_runs() -> None:
    assert_type(uw.worlds(), list[str])
    uw.trust("mylib")
    assert_type(uw.world("images", path="faces/"), Data)
    run = uw.train("micro", "runs/one", objective=uw.BetaVAE(6), network="mlp", plan={"device": "cpu"}, latents=3)
    assert_type(run, uw.Run)
    assert_type(uw.load("runs/one"), uw.Run)
    assert_type(uw.resume("runs/one"), Path)
    assert_type(run.experiment, uw.Experiment)
    assert_type(run.encode(run.images(8)), Code)
    assert_type(uw.report(run), Path)
    assert_type(uw.traverse("runs/one", latents=[0]), Tensor)
    assert_type(uw.train("faces/", size=64, called="faces"), uw.Run)
    assert_type(uw.world(np.zeros((3, 2)), labels=np.zeros(3)), Data)
    assert_type(uw.export(run, "model"), Path)
    assert_type(uw.from_pretrained("model"), Model)
    uw.train("micro", latentss=3)  # type: ignore[call-arg]
    uw.train("micro", latents="3")  # type: ignore[arg-type]
    uw.trian  # type: ignore[attr-defined]  # noqa: B018


def scores(run: uw.Run, codes: np.ndarray, code: Code) -> None:
    assert_type(uw.evaluate(run, metrics="mig"), Evaluation)
    assert_type(uw.measure(codes, codes), Scores)
    assert_type(uw.Measurer(codes).measure(codes), Scores)
    assert_type(uw.Yardstick(codes).measure(codes), Scores)
    assert_type(uw.Scorer("mig")(object(), codes), float)
    assert_type(uw.variable_types(code.mean, code.variance), list[Literal["active", "mixed", "passive"]])


def looking_inside(run: uw.Run, codes: np.ndarray, table: Tensor) -> None:
    assert_type(uw.diagnose(run, n_jacobians=4), Diagnosed)
    assert_type(uw.diagnose(codes, codes, n_bins=5).findings, tuple[Finding, ...])
    assert_type(uw.compare(run, "runs/two", n=20), Similarity)
    assert_type(uw.dimension("micro", start=3.0, objective=uw.VAE(), seed=1), Dimension)
    uw.dimension("micro", networkk="mlp")  # type: ignore[call-arg]
    assert_type(uw.perturb("micro", models=4, by="udr", objective=uw.VAE()), Made)
    assert_type(uw.perturb(foster=[run], diminish=["runs/b"]).world, Perturbed)
    uw.perturb("micro", epsilonn=0.1)  # type: ignore[call-arg]
    assert_type(uw.intrinsic(run), dict[str, Intrinsic])
    assert_type(uw.intrinsic(codes), Intrinsic)
    assert_type(uw.intrinsic(table), Intrinsic)
    assert_type(uw.intrinsic("micro"), Intrinsic | dict[str, Intrinsic])


def studies() -> None:
    study = uw.Study("one", (uw.Experiment(Micro(), plan=uw.Plan("cpu", 1)),))
    assert_type(uw.run_study(study), Results)


OBJECTIVES: list[type[Objective]] = [
    uw.AE, uw.VAE, uw.AnnealedVAE, uw.BetaTCVAE, uw.BetaVAE, uw.BetaVAEFull, uw.DIPVAEI, uw.DIPVAEII, uw.FactorVAE,
    uw.KnownFactors,
]  # fmt: skip
METHODS: list[type[Method]] = [
    uw.AdaGVAE,
    uw.AdaMLVAE,
    uw.GVAE,
    uw.MLVAE,
    uw.SlowVAE,
    uw.IVAE,
    uw.SemiVAE,
    uw.PCL,
    uw.QLAE,
    uw.WSGAN,
    uw.LabelGAN,
]
NETWORKS: list[type[Network]] = [uw.Conv, uw.ConvStudy, uw.Linear, uw.MLP, uw.Maxout]
LIKELIHOODS: list[type[Likelihood]] = [uw.Bernoulli, uw.Gaussian, uw.LearnedGaussian, uw.SquaredError]
OPTIMISERS: list[type[Optimiser]] = [uw.AdaGrad, uw.Adam, uw.AdamW, uw.SGD]
assert_type(uw.BetaVAE(6), uw.BetaVAE)
assert_type(uw.zoo(), uw.Zoo)
assert_type(uw.zoo().load("demo-0"), uw.Run)
assert_type(uw.own_metric(abs), Metric)
