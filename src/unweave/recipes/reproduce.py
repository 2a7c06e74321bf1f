"""Reproduce a published result: run its study, judge it, and write the page that sets it beside the publication."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

from unweave.config import unknown
from unweave.pages.outcome import Outcome
from unweave.pages.result_folder import comparison_row, write_result_page
from unweave.recipes.controls import judged
from unweave.recipes.part import Part, part_of
from unweave.recipes.reproductions import find_reproduction
from unweave.studies.measure_only import missing
from unweave.studies.results import Results
from unweave.studies.store import Store
from unweave.studies.study import SIZES, Study
from unweave.studies.verdicts import VERDICTS

Bring = Callable[[Study], Results]
"""Brings a study to its end: by training and measuring, or by taking over runs that were trained elsewhere."""


ABSENT = "models that are missing"
"""What a page calls their number."""


class AllFailed(ValueError):
    """Every model of a study was tried, and none came to its end."""


@dataclass(frozen=True)
class Reproduced:
    """What a reproduction has come to, and where its page is."""

    id: str
    size: str
    page: Path
    outcome: Outcome

    def count(self, verdict: str) -> int:
        """How many comparisons have this verdict."""
        return sum(one.verdict == verdict for one in self.outcome.comparisons)

    def to_plain(self) -> dict[str, Any]:
        """As JSON takes it."""
        counts = {verdict: self.count(verdict) for verdict in VERDICTS}
        rows = [comparison_row(one) for one in self.outcome.comparisons]
        return {"id": self.id, "size": self.size, "page": str(self.page), "verdicts": counts, "comparisons": rows}


def reproduce(
    name: str,
    size: str,
    store: Path | str,
    bring: Bring,
    *,
    command: str = "",
    output: Path | str | None = None,
    part: Part = Part(),
) -> Reproduced:
    """Bring a reproduction's study to its end, judge it, and write its folder.

    The folder is ``output``, or ``.unweave/reports/ID-SIZE`` in the store. A ``part`` is judged as far as it goes.
    """
    chosen = find_reproduction(name)
    if size not in SIZES:
        raise unknown("size", size, SIZES)
    study = part_of(chosen.study(size), part)
    results = bring(study) if study.experiments else Results(study, Store(store), ())
    if study.experiments and not results.table.height:
        _refuse(results, f"no model of {study.name} is finished in {store}, so there is nothing to judge")
    counts = _counts(results)
    outcome = judged(chosen, results, size)
    if part != Part() or ABSENT in counts:
        outcome = _as_far_as_it_goes(outcome)
    folder = Path(output) if output else Store(store).home / "reports" / f"{name}-{size}"
    meta = {"published in": chosen.source, "size": size} | part.words() | counts
    page = write_result_page(
        folder,
        chosen.title,
        outcome,
        results,
        command=command or f"unweave reproduce {name} --size {size} --store {store}",
        meta=meta,
        lead=lead_of(outcome, size),
        kicker=f"unweave reproduce {name}",
    )
    return Reproduced(name, size, page, outcome)


def _as_far_as_it_goes(outcome: Outcome) -> Outcome:
    """Of a part: claims about models that are not there are counted in a note, not listed."""
    kept = tuple(one for one in outcome.comparisons if one.n)
    n_open = len(outcome.comparisons) - len(kept)
    if not kept or not n_open:
        return outcome
    words = f"{n_open} more claim{'s are' if n_open > 1 else ' is'} about models that are not there: not judged."
    return replace(outcome, comparisons=kept, notes=(*outcome.notes, words))


def _refuse(results: Results, words: str) -> NoReturn:
    failed = results.failed
    if not failed.height:
        raise ValueError(words)
    raise AllFailed(f"{words}: {failed.height} failed, the first one because {failed['failure'][0]}")


def _counts(results: Results) -> dict[str, Any]:
    if not results.experiments:
        return {}
    table = results.table
    counts = {"models": table.height, "seeds": table["seed"].n_unique() if "seed" in table.columns else None}
    absent = missing(results.study, results)
    return counts | ({ABSENT: absent} if absent else {})


def lead_of(outcome: Outcome, size: str) -> str:
    """The counts in a sentence."""
    n = len(outcome.comparisons)
    if size == "smoke":
        return f"{n} claim{'s' * (n != 1)} went through. This size shows that everything runs; it says nothing of them."
    counts = {kind: sum(one.verdict == kind for one in outcome.comparisons) for kind in VERDICTS}
    told = (
        f"Of {n} claim{'s' * (n != 1)}, {counts['agrees']} {_be(counts['agrees'])} found again, {counts['differs']}"
        f" {_be(counts['differs'])} contradicted, and of {counts['cannot tell']} this size cannot tell."
    )
    n_void = counts["not evidence"]
    return told + (f" {n_void} {_be(n_void)} not evidence: a control says the same." if n_void else "")


def _be(count: int) -> str:
    return "is" if count == 1 else "are"
