"""The diagnosis of a run, or of posteriors from anywhere: numbers, findings, and one self-contained page."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from unweave.data.world import called
from unweave.evaluation.accuracy_by_type import TypeAccuracy, accuracy_by_type
from unweave.evaluation.decoder import Decoder, look_at_decoder
from unweave.evaluation.describe import without_kl
from unweave.evaluation.diagnosis import Diagnosis, diagnose_codes
from unweave.evaluation.encode import known_factors
from unweave.evaluation.finding import Expected, Finding
from unweave.evaluation.findings import diagnose_code, expected_of, findings
from unweave.evaluation.over_training import OverTraining, over_training
from unweave.evaluation.posterior_file import Posteriors, read_posteriors
from unweave.evaluation.scores import plain
from unweave.metrics.polarised.rate_distortion import rate_distortion
from unweave.models.method import NoDecoder
from unweave.models.posteriors import Code
from unweave.shapes import Int, Tensor
from unweave.training.run import Run


@dataclass(frozen=True)
class Diagnosed:
    """Everything that was found. ``training`` is known for runs only, ``decoder`` for runs that have one."""

    title: str
    diagnosis: Diagnosis
    findings: tuple[Finding, ...]
    expected: Expected | None = None
    decoder: Decoder | None = None
    training: OverTraining | None = None
    distortion: float | None = None
    accuracy: tuple[TypeAccuracy, ...] = ()

    def __repr__(self) -> str:
        counts = Counter(self.diagnosis.types)
        told = ", ".join(f"{counts[kind]} {kind}" for kind in ("active", "mixed", "passive"))
        return "\n".join([f"{self.title}: {told}", *(f"{one.text} {one.advice}" for one in self.findings)])

    def summary(self) -> dict[str, Any]:
        """The numbers that belong to no single latent, by name; what is unknown is None."""
        one, decoder = self.diagnosis, self.decoder
        traces, share = one.traces, None if self.training is None else self.training.regime
        return {
            "rate": one.rate,
            "distortion": self.distortion,
            "elbo": None if self.distortion is None else -(one.rate + self.distortion),
            "trace_of_sampled": traces.sampled,
            "trace_of_mean": traces.mean,
            "trace_difference": traces.score,
            "passive_by_traces": traces.counts,
            "delta_kl": None if one.regime is None else one.regime.delta,
            "polarised_share_of_training": None if share is None else share.share,
            "dto": None if decoder is None else decoder.dto,
            "dto_of_random_directions": None if decoder is None else decoder.dto_chance,
            "share_of_equal_singular_values": None if decoder is None else decoder.degenerate,
            "ima_contrast": None if decoder is None else decoder.ima,
            "self_consistency": None if decoder is None else decoder.consistency,
            "deterministic_squared_error": None if decoder is None else decoder.split.deterministic,
            "stochastic_squared_error": None if decoder is None else decoder.split.stochastic,
        }

    def to_plain(self) -> dict[str, Any]:
        """As JSON takes it; infinity becomes text."""
        one = self.diagnosis
        snapshots = None if self.training is None else self.training.correlations
        return {
            "title": self.title,
            "n_examples": one.n_examples,
            "rule": one.rule,
            "stochastic": one.stochastic,
            "expected": plain(self.expected),
            "latents": plain(one.latents),
            "summary": plain(self.summary()),
            "dependence": plain(one.dependence),
            "correlation": plain(one.correlations.correlation),
            "snapshots": [] if self.training is None else list(self.training.snapshots),
            "often_correlated": None if snapshots is None else plain(snapshots.often),
            "accuracy_by_type": plain(self.accuracy),
            "findings": plain(self.findings),
        }

    def page(self) -> str:
        """One self-contained page."""
        from unweave.pages.diagnosis import diagnosis_page

        shown = {name.replace("_", " "): value for name, value in self.summary().items()}
        return diagnosis_page(self.title, self.diagnosis, self.findings, shown, self.decoder, self.training)


def diagnose_run(
    run: Run,
    *,
    n: int = 2048,
    seed: int = 0,
    rule: str = "variance",
    n_factors: int | None = None,
    n_jacobians: int = 256,
    accuracy: bool = False,
) -> Diagnosed:
    """Encode up to ``n`` examples of a run's data, held-out ones where it kept some, and look at everything.

    ``accuracy`` also fits linear models to every combination of variable types, which takes the data's factors.
    """
    run = run.bare
    images, labels = run.images(n, seed), run.labels(n, seed)
    code = run.encode(images, labels, seed=seed)
    found = diagnose_code(code, rule=rule, seed=seed)
    used = torch.tensor([kind != "passive" for kind in found.types])
    looked: dict[str, Any] = {"labels": labels, "n_jacobians": n_jacobians, "seed": seed}
    decoder = look_at_decoder(run, images, code, used, **looked) if run.decodes else None
    training = over_training(run, images, found.types, labels=labels, stochastic=found.stochastic)
    expected = expected_of(run.experiment.world.card().space, n_factors)
    experiment = run.experiment
    no_decoder = "" if run.decodes else str(NoDecoder(experiment.objective.name))
    return Diagnosed(
        f"{experiment.objective.name} on {called(experiment.world)}, seed {experiment.seed}",
        found,
        findings(found, expected, decoder, training, no_decoder, without_kl(experiment.objective)),
        expected,
        decoder,
        training,
        None if decoder is None else decoder.rate_distortion.distortion,
        _accuracy(run, code, found, run.rows(n, seed), seed) if accuracy else (),
    )


def diagnose_file(
    path: str | Path, *, rule: str = "variance", seed: int = 0, n_factors: int | None = None
) -> Diagnosed:
    """The same for a file with ``mean`` and ``variance``, as far as codes alone can tell."""
    given = read_posteriors(path)
    known = n_factors or len(given.roles.get("factors", ())) or None
    return diagnose_posteriors(given, rule=rule, seed=seed, n_factors=known)


def diagnose_posteriors(
    given: Posteriors, *, rule: str = "variance", seed: int = 0, n_factors: int | None = None
) -> Diagnosed:
    """The same for what was read from one."""
    found = diagnose_codes(
        given.mean,
        given.variance,
        sampled=given.sampled,
        prior_mean=given.prior_mean,
        prior_variance=given.prior_variance,
        rule=rule,
        seed=seed,
    )
    expected = expected_of(None, n_factors)
    distortion = None
    if given.reconstruction is not None:
        losses = np.asarray(given.reconstruction, dtype=np.float64)
        distortion = rate_distortion(torch.zeros(len(found.mean), 1), losses).distortion
    return Diagnosed(given.name, found, findings(found, expected), expected, distortion=distortion)


def _accuracy(
    run: Run, code: Code, found: Diagnosis, rows: Int[Tensor, " sample"], seed: int
) -> tuple[TypeAccuracy, ...]:
    factors = known_factors(run.data, rows)
    if factors is None:
        raise ValueError(f"{run.path} learned from data without factors or labels: there is nothing to predict")
    # the codes as they are: one that is divided by its prior would tell what it was told
    mean, sampled = (found.mean, found.sampled) if code.prior_mean is None else (code.mean, code.sampled)
    return accuracy_by_type(mean, sampled, factors, found.types, seed=seed)


def write_diagnosis(run: Run, diagnosed: Diagnosed) -> Path:
    """Write ``diagnosis.html`` and ``diagnosis.json`` into the run's folder; the page's path is returned."""
    run.files.write_json("diagnosis.json", diagnosed.to_plain())
    return run.files.write("diagnosis.html", diagnosed.page())
