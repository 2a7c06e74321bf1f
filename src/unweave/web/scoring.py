"""Every metric of a run with the matrices behind it: as ``unweave evaluate`` kept them, or a quick look."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from unweave.evaluation.encode import factor_names, known_factors
from unweave.evaluation.evaluation import protocol_of_scores
from unweave.evaluation.matrices import matrices
from unweave.evaluation.measure import Measurer
from unweave.evaluation.rows import find_rows
from unweave.evaluation.scores import TRIVIAL
from unweave.metrics import METRICS
from unweave.papers import PAPERS
from unweave.runs.row import read_object, reading_scores
from unweave.web.latents import N_EXAMPLES, described
from unweave.web.numbers import matrix, number
from unweave.web.open_runs import OpenRun
from unweave.web.schema import MatrixAnswer, ScoreAnswer, ScoresAnswer
from unweave.words import number_of

QUICK = tuple(row.name for row in METRICS.values() if row.counted)
"""What counting alone can tell, in a fraction of a second."""

REPRESENTATIONS: tuple[Literal["mean", "sampled"], ...] = ("mean", "sampled")
WORDS = {
    "mutual": "mutual information (nats)",
    "share": "share of information",
    "importance": "importance",
    "votes": "votes",
    "correlation": "correlation",
    "covariance": "correlation of latents",
    "matrix": "matrix",
}


def scores_answer(opened: OpenRun) -> ScoresAnswer:
    """Scores and matrices of a run."""
    names = list(factor_names(opened.with_data().data))
    files = opened.run.files
    if not files.has("scores.json"):
        return _quick(opened, names)
    found, more = read_object(files, "scores.json", files.sums()), _of_codes(opened, names)
    with reading_scores(files):
        return _kept(found, more)


def _kept(found: Mapping[str, Any], more: list[MatrixAnswer]) -> ScoresAnswer:
    names = [str(name) for name in found.get("factor_names", [])]
    per = {name: found[name] for name in REPRESENTATIONS if name in found}
    return ScoresAnswer(
        kept=True,
        n_samples=int(found["n_samples"]),
        protocol=protocol_of_scores(found),
        scores=[one for name, part in per.items() for one in _scores(name, part["scores"])],
        matrices=[*more, *(one for name, part in per.items() for one in _matrices(name, part["parts"], names))],
        left_out={metric: str(why) for part in per.values() for metric, why in part.get("left_out", {}).items()},
        trivial=list(TRIVIAL) if len(names) == 1 else [],
    )


def _quick(opened: OpenRun, names: list[str]) -> ScoresAnswer:
    """Counting metrics of the examples that the page has looked at anyway, without intervals."""
    run, code = opened.with_data(), described(opened).code
    factors = known_factors(run.data, run.rows(N_EXAMPLES))
    found = {}
    if factors is not None and not factors.is_floating_point():
        measurer = Measurer(factors, QUICK, seeds=0)
        for name in REPRESENTATIONS:
            found[name] = measurer.measure(getattr(code, name).double()).to_plain()
    return ScoresAnswer(
        kept=False,
        n_samples=len(code.mean),
        protocol=f"{number_of(len(code.mean), 'example')}, drawn by seed 0",
        scores=[one for name, part in found.items() for one in _scores(name, part["scores"])],
        matrices=_of_codes(opened, names),
        left_out={},
        trivial=list(TRIVIAL) if len(names) == 1 else [],
    )


def _scores(representation: Any, scores: Mapping[str, Mapping[str, Any]]) -> Iterator[ScoreAnswer]:
    for metric, found in scores.items():
        yield ScoreAnswer(
            metric=metric,
            representation=representation,
            value=number(found["value"]),
            low=number(found.get("low")),
            high=number(found.get("high")),
            higher_is_better=found["higher_is_better"],
            paper=_paper(metric),
        )


def _matrices(representation: Any, parts: Mapping[str, Any], names: list[str]) -> Iterator[MatrixAnswer]:
    """Every part of a metric that has a number for each latent and factor, or for each two latents."""
    for metric, part in parts.items():
        for field, values in part.items() if isinstance(part, Mapping) else ():
            if not _is_matrix(values):
                continue
            width = len(values[0])
            by_factor = width == len(names)
            columns = names if by_factor else [f"latent {place}" for place in range(width)]
            if by_factor or width == len(values):
                yield MatrixAnswer(
                    metric=metric,
                    title=WORDS.get(field, field.replace("_", " ")),
                    representation=representation,
                    rows=[f"latent {place}" for place in range(len(values))],
                    columns=columns,
                    values=matrix(values),
                    diverging=any(value < 0 for row in values for value in row),
                )


def _of_codes(opened: OpenRun, names: list[str]) -> list[MatrixAnswer]:
    """The matrices that need no metric: what latents tell of factors, and how they go together."""
    run, code = opened.with_data(), described(opened).code
    factors = known_factors(run.data, run.rows(N_EXAMPLES))
    rows = [f"latent {place}" for place in range(opened.latents)]
    made = []
    for name in REPRESENTATIONS:
        found = matrices(getattr(code, name), factors)
        shown = (
            ("share of each factor's information", found.information, names, False),
            ("correlation with factors", found.correlation, names, True),
            ("correlation of latents", found.code_correlation, rows, True),
        )
        for title, values, columns, diverging in shown:
            if values is not None:
                made.append(
                    MatrixAnswer(
                        metric="",
                        title=title,
                        representation=name,
                        rows=rows,
                        columns=columns,
                        values=matrix(values),
                        diverging=diverging,
                    )
                )
    return made


def _is_matrix(values: Any) -> bool:
    return (
        isinstance(values, list)
        and len(values) > 0
        and all(isinstance(row, list) and row and len(row) == len(values[0]) for row in values)
        and all(isinstance(value, int | float) for row in values for value in row)
    )


def _paper(metric: str) -> str:
    try:
        return PAPERS.get(find_rows([metric.partition(".")[0]])[0].paper, "")
    except ValueError:
        return ""
