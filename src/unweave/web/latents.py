"""What the page of a run shows of its codes: latents with their histograms, examples, the diagnosis."""

from typing import Any

import numpy as np
import torch

from unweave.evaluation.decoder import Decoder, look_at_decoder
from unweave.evaluation.describe import Description, describe
from unweave.evaluation.diagnosis import Diagnosis
from unweave.evaluation.encode import factor_names, known_factors
from unweave.evaluation.findings import diagnose_described, expected_of, findings, sentences
from unweave.shapes import Float, Int, Tensor
from unweave.web.numbers import matrix, number
from unweave.web.open_runs import NotReady, OpenRun
from unweave.web.schema import (
    DiagnosisAnswer,
    EvidenceAnswer,
    ExamplesAnswer,
    FindingAnswer,
    LatentAnswer,
    LatentsAnswer,
    RowsAnswer,
)

N_EXAMPLES, N_JACOBIANS, N_BINS = 2048, 48, 40
REACH, SHARE = 4.0, 0.995
"""Histograms go from −REACH to REACH, or as far as this share of every latent's mean codes; the rest is counted in the
outermost bins."""


def described(opened: OpenRun) -> Description:
    """The codes of some examples and what they say of every latent."""
    return opened.once("description", lambda: describe(opened.with_data(), n=N_EXAMPLES))


def latents_answer(opened: OpenRun) -> LatentsAnswer:
    """Every latent, the most informative first, and an example to start from.

    Histograms are of codes in deviations of the prior, where a model learned one.
    """
    found, run = described(opened), opened.with_data()
    code = found.code
    furthest = float(code.standardised().mean.abs().double().quantile(SHARE, 0).nan_to_num(0.0).max())
    reach = max(REACH, float(np.ceil(furthest)))
    edges = np.linspace(-reach, reach, N_BINS + 1)
    start = int(code.mean.square().sum(1).argmin())
    return LatentsAnswer(
        n_examples=found.n_examples,
        reconstruction=found.reconstruction,
        stochastic=bool((code.variance > 0).any()),
        edges=edges.tolist(),
        latents=[_latent(found, int(row["latent"]), edges) for row in found.rows()],
        start_row=int(run.rows(N_EXAMPLES)[start]),
        start=code.mean[start].tolist(),
        findings=sentences(found, expected_of(run.experiment.world.card().space)),
    )


def examples_answer(opened: OpenRun, rows: Int[Tensor, " sample"]) -> ExamplesAnswer:
    """Some rows of the data with their factors and codes."""
    run = opened.with_data()
    factors = known_factors(run.data, rows)
    return ExamplesAnswer(
        rows=rows.tolist(),
        names=list(factor_names(run.data)) if factors is not None else [],
        factors=[] if factors is None else factors.double().tolist(),
        codes=run.encode(images_of(opened, rows), run.labels(rows=rows)).mean.tolist(),
        n_data=len(run.data),
    )


def rows_answer(opened: OpenRun, examples: Float[Tensor, "sample ..."]) -> RowsAnswer:
    """What the model sees or makes, in the units of its table's columns."""
    columns = opened.run.experiment.world.known_columns()
    if columns is None:
        raise NotReady("the examples of this run are not rows of a table")
    return RowsAnswer(rows=columns.in_units(examples).nan_to_num(0.0).tolist())


def images_of(opened: OpenRun, rows: Int[Tensor, " sample"]) -> Float[Tensor, "sample ..."]:
    """Examples by row."""
    return opened.with_data().data.examples(rows)


def chosen_rows(opened: OpenRun, rows: list[int], n: int, seed: int) -> Int[Tensor, " sample"]:
    """The rows that were asked for, or a draw of them."""
    run = opened.with_data()
    if not rows:
        return run.rows(n, seed)
    last = len(run.data) - 1
    if outside := [row for row in rows if not 0 <= row <= last]:
        raise ValueError(f"the data have the rows 0…{last}, not {outside[0]}")
    return torch.tensor(rows)


def diagnosis_answer(opened: OpenRun) -> DiagnosisAnswer:
    """What stands out, in plain words, with its evidence."""
    run, code = opened.with_data(), described(opened).code
    found = diagnose_described(described(opened))
    used = torch.tensor([kind != "passive" for kind in found.types])
    examples, labels = run.images(N_EXAMPLES), run.labels(N_EXAMPLES)
    looked: dict[str, Any] = {"labels": labels, "n_jacobians": N_JACOBIANS}
    decoder = look_at_decoder(run, examples, code, used, **looked) if run.decodes else None
    expected, seen = expected_of(run.experiment.world.card().space), described(opened)
    told = findings(found, expected, decoder, no_decoder=seen.no_decoder, without_kl=seen.without_kl)
    numbers = {name: number(value) for name, value in _numbers(found, decoder).items()}
    return DiagnosisAnswer(
        n_examples=found.n_examples,
        findings=[FindingAnswer(**vars(one)) for one in told],
        latents=[_evidence(one) for one in found.latents],
        numbers={name: value for name, value in numbers.items() if value is not None},
        correlation=matrix(found.correlations.correlation),
    )


def _latent(found: Description, latent: int, edges: np.ndarray) -> LatentAnswer:
    plain = found.code.standardised()
    mean, sampled = plain.mean[:, latent], plain.sampled[:, latent]
    low, high = found.code.mean[:, latent].double().quantile(torch.tensor([0.01, 0.99], dtype=torch.float64)).tolist()
    return LatentAnswer(
        latent=latent,
        type=found.types[latent],
        kl=found.kl[latent].item(),
        mean_variance=found.mean_variance[latent].item(),
        variance_of_mean=found.variance_of_mean[latent].item(),
        low=low,
        high=high,
        mean_histogram=_histogram(mean, edges),
        sampled_histogram=_histogram(sampled, edges),
    )


def _histogram(values: Float[Tensor, " sample"], edges: np.ndarray) -> list[float]:
    inside = np.clip(values.numpy(), edges[0], edges[-1])
    return [round(float(height), 5) for height in np.histogram(inside, edges, density=True)[0]]


def _evidence(one: Any) -> EvidenceAnswer:
    return EvidenceAnswer(
        latent=one.latent,
        type=one.type,
        evidence=one.evidence,
        kl=one.kl,
        mean_variance=one.mean_variance,
        correlation=one.correlation,
        partner=one.partner,
    )


def _numbers(found: Diagnosis, decoder: Decoder | None) -> dict[str, float | None]:
    """The numbers that belong to no single latent, by the names that the page explains."""
    of_codes = {
        "rate": found.rate,
        "trace_difference": found.traces.score,
        "delta_kl": None if found.regime is None else found.regime.delta,
    }
    if decoder is None:
        return of_codes
    return of_codes | {
        "distortion": decoder.rate_distortion.distortion,
        "dto": decoder.dto,
        "dto_of_random_directions": decoder.dto_chance,
        "self_consistency": decoder.consistency,
    }
