"""Routes over the whole store: the table of runs, sparklines, studies, dimension searches."""

from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import Response

import unweave
from unweave.web.catalogue import Catalogue
from unweave.web.columns import to_json
from unweave.web.histories import sparkline
from unweave.web.schema import Problem, SearchAnswer, Sparklines, StoreAnswer, StudyAnswer, Table
from unweave.web.searches import search_answer, search_names
from unweave.web.store import NotHere, ReadOnlyStore
from unweave.web.studying import study_answer, study_names

MOST_SPARKLINES = 60
MISSING: dict[int | str, dict[str, Any]] = {404: {"model": Problem}, 422: {"model": Problem}}


def store_routes(store: ReadOnlyStore, catalogue: Catalogue) -> APIRouter:
    """Everything that needs no model."""
    api = APIRouter(prefix="/api", tags=["store"])
    sparks: dict[str, tuple[Any, list[float]]] = {}

    @api.get("/store")
    def get_store() -> StoreAnswer:
        """What there is to look at."""
        return StoreAnswer(
            name=store.root.name or str(store.root),
            version=unweave.__version__,
            n_runs=len(catalogue.rows()),
            studies=study_names(store),
            searches=search_names(store),
            note=store.problem(),
        )

    @api.get("/runs", response_model=Table, responses={422: {"model": Problem}})
    def get_runs(since: Annotated[int, Query(ge=0, le=2**53)] = 0) -> Response:
        """The table of runs, or what changed in it since a version."""
        return Response(catalogue.content(since, to_json), media_type="application/json")

    @api.get("/sparklines", responses={422: {"model": Problem}})
    def get_sparklines(ids: Annotated[list[str], Query(max_length=MOST_SPARKLINES)]) -> Sparklines:
        """The loss of some runs over training; a run that is not there has none."""
        rows, found = catalogue.rows(), {}
        for run_id in ids:
            mark = rows.get(run_id, {}).get("modified")
            if run_id not in sparks or sparks[run_id][0] != mark:
                sparks[run_id] = (mark, _sparkline(store, run_id))
            found[run_id] = sparks[run_id][1]
        return Sparklines(losses=found)

    @api.get("/studies/{name}", responses=MISSING)
    def get_study(name: str) -> StudyAnswer:
        """A study: its runs and what was published."""
        return study_answer(store, name)

    @api.get("/searches/{name}", responses=MISSING)
    def get_search(name: str) -> SearchAnswer:
        """A dimension search, as far as it has come."""
        return search_answer(store, catalogue, name)

    return api


def _sparkline(store: ReadOnlyStore, run_id: str) -> list[float]:
    try:
        return sparkline(store.run(run_id))
    except NotHere:
        return []
