"""The application: the API over one store, the page, and the guard around both."""

import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse

import unweave
from unweave.runs.folder import DamagedFile
from unweave.studies.record import DamagedRecord
from unweave.trusted import Untrusted
from unweave.web.api_run import run_routes
from unweave.web.api_store import store_routes
from unweave.web.catalogue import Catalogue
from unweave.web.columns import to_json
from unweave.web.decoding import Decoding
from unweave.web.guard import Door, Guard
from unweave.web.open_runs import NotReady, OpenRuns
from unweave.web.overview import untrusted_words
from unweave.web.static_files import page_routes
from unweave.web.store import NotHere, ReadOnlyStore


def create_app(store: Path | str, door: Door = Door()) -> FastAPI:
    """The explorer of a store, as an ASGI application."""
    seen = ReadOnlyStore(store)
    catalogue, open_runs, decoding = Catalogue(seen), OpenRuns(seen), Decoding()

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        catalogue.start(to_json)
        yield
        catalogue.stop()
        decoding.end()

    app = FastAPI(
        title="unweave explorer",
        version=unweave.__version__,
        description="Runs of a store: their latents, histories, scores, and pictures decoded from any code.",
        lifespan=lifespan,
        # the usual documentation pages load scripts from elsewhere
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
    )
    app.state.catalogue, app.state.open_runs = catalogue, open_runs
    app.include_router(store_routes(seen, catalogue))
    app.include_router(run_routes(seen, open_runs, decoding))
    app.include_router(page_routes())
    app.add_exception_handler(RequestValidationError, _misread)
    for kind, status in PROBLEMS.items():
        app.add_exception_handler(kind, _sentence(status))
    app.add_middleware(Guard, door=door)
    return app


PROBLEMS: dict[type[Exception], int] = {
    NotHere: 404,
    FileNotFoundError: 410,
    DamagedFile: 410,
    DamagedRecord: 410,
    NotReady: 409,
    Untrusted: 409,
    ValueError: 422,
    OSError: 410,
    KeyError: 410,
    RecursionError: 410,
    Exception: 500,
}
"""What can go wrong and the status it is answered with; a folder that vanished or was damaged is 410, gone."""


async def _misread(request: Request, error: Exception) -> JSONResponse:
    """A question that does not fit the schema: what does not fit, and why."""
    assert isinstance(error, RequestValidationError)
    told = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()[:3]]
    return JSONResponse({"detail": "; ".join(told)}, status_code=422)


def _sentence(status: int) -> Callable[[Request, Exception], Any]:
    async def answer(request: Request, error: Exception) -> JSONResponse:
        if status == 410 and not isinstance(error, DamagedFile | DamagedRecord):
            why = error.strerror if isinstance(error, OSError) and error.strerror else error
            words = f"this run's folder has changed or is damaged: {why}"
        elif status == 500:
            words = f"something went wrong here: {type(error).__name__}. The terminal says more."
        else:
            words = untrusted_words(error) if isinstance(error, Untrusted) else str(error)
        return JSONResponse({"detail": words}, status_code=status)

    return answer
