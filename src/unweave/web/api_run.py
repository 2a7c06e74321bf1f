"""Routes of one run and of two: what its model is asked. Nothing here writes."""

import asyncio
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import torch
from fastapi import APIRouter, Body, Query
from fastapi.responses import Response
from pydantic import Field

from unweave.web.comparing import compare_answer
from unweave.web.decoding import Decoding, Pixels, pixels
from unweave.web.downloads import MOST, as_npz, as_parquet
from unweave.web.histories import history_answer
from unweave.web.latents import (
    chosen_rows,
    diagnosis_answer,
    examples_answer,
    images_of,
    latents_answer,
    rows_answer,
)
from unweave.web.manipulations import Manipulations
from unweave.web.open_runs import NotReady, OpenRun, OpenRuns
from unweave.web.overview import run_answer
from unweave.web.schema import (
    CodesToDecode,
    CompareAnswer,
    DiagnosisAnswer,
    EncodedAnswer,
    ExamplesAnswer,
    HistoryAnswer,
    LatentsAnswer,
    ManipulationAnswer,
    Problem,
    RowsAnswer,
    RunAnswer,
    ScoresAnswer,
)
from unweave.web.scoring import scores_answer
from unweave.web.store import ReadOnlyStore
from unweave.web.uploads import encoded_answer

FARTHEST = 1000.0
"""Codes are cut off here: beyond it every decoder is saturated."""

PROBLEMS: dict[int | str, dict[str, Any]] = {status: {"model": Problem} for status in (404, 409, 410, 413, 422)}
BINARY: dict[int | str, dict[str, Any]] = PROBLEMS | {
    200: {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}
}

Rows = Annotated[list[int], Query(max_length=64)]
Count = Annotated[int, Query(ge=1, le=64)]
Seed = Annotated[int, Query(ge=0, le=2**31)]
Values = Annotated[list[Annotated[int, Field(ge=-(2**31), le=2**31)]], Query(max_length=64)]
Strength = Annotated[float | None, Query(ge=0, le=0.5)]
Some = Annotated[int, Query(ge=1, le=MOST)]

Found = TypeVar("Found")


def run_routes(store: ReadOnlyStore, open_runs: OpenRuns, decoding: Decoding) -> APIRouter:
    """Everything that is asked of runs by their id."""
    api = APIRouter(prefix="/api", tags=["run"], responses=PROBLEMS)
    manipulations = Manipulations(store, open_runs)

    def kept(run_id: str, key: str, make: Callable[[OpenRun], Found]) -> Found:
        opened = open_runs.open(run_id)

        def made() -> Found:
            with open_runs.busy:
                return make(opened)

        return opened.once(key, made)

    @api.get("/runs/{run_id}")
    def get_run(run_id: str) -> RunAnswer:
        """What a run is and how far it came."""
        return run_answer(store.run(run_id), run_id)

    @api.get("/runs/{run_id}/history")
    def get_history(run_id: str) -> HistoryAnswer:
        """Losses and KL over training, also of a run that still trains."""
        return history_answer(store.run(run_id))

    @api.get("/runs/{run_id}/latents")
    def get_latents(run_id: str) -> LatentsAnswer:
        """Every latent: type, KL, histograms of mean and sampled codes."""
        return kept(run_id, "latents", latents_answer)

    @api.get("/runs/{run_id}/diagnosis")
    def get_diagnosis(run_id: str) -> DiagnosisAnswer:
        """What stands out, in plain words."""
        return kept(run_id, "diagnosis", diagnosis_answer)

    @api.get("/runs/{run_id}/scores")
    def get_scores(run_id: str) -> ScoresAnswer:
        """Every metric, and the matrices behind them."""
        key = f"scores {open_runs.open(run_id).signature}"
        return kept(run_id, key, scores_answer)

    @api.get("/runs/{run_id}/examples")
    def get_examples(run_id: str, rows: Rows = [], n: Count = 12, seed: Seed = 0) -> ExamplesAnswer:  # noqa: B006
        """Examples of the world: their factors and their codes."""
        opened = open_runs.open(run_id)
        return examples_answer(opened, chosen_rows(opened, rows, n, seed))

    @api.get("/runs/{run_id}/examples/pixels", response_class=Response, responses=BINARY)
    def get_pixels(run_id: str, rows: Rows = [], n: Count = 12, seed: Seed = 0) -> Response:  # noqa: B006
        """The pictures of the same examples: bytes [example, height, width, channel]."""
        opened = _pictured(open_runs.open(run_id))
        return _bytes(pixels(images_of(opened, chosen_rows(opened, rows, n, seed))))

    @api.post("/runs/{run_id}/decode", response_class=Response, responses=BINARY)
    async def post_decode(run_id: str, body: CodesToDecode) -> Response:
        """Pictures for codes: bytes [code, height, width, channel]."""
        known = open_runs.peek(run_id)
        opened = await asyncio.to_thread(open_runs.open, run_id) if known is None else known
        opened.run.require_decoder()
        return _bytes(await asyncio.wrap_future(decoding.ask(_pictured(opened), _codes(opened, body))))

    @api.post("/runs/{run_id}/decode/rows")
    def post_decode_rows(run_id: str, body: CodesToDecode) -> RowsAnswer:
        """Rows of the table for codes, in the units of its columns."""
        opened = open_runs.open(run_id)
        opened.run.require_decoder()
        return rows_answer(opened, opened.decode(_codes(opened, body)))

    @api.get("/runs/{run_id}/examples/rows")
    def get_rows(run_id: str, rows: Rows = [], n: Count = 12, seed: Seed = 0) -> RowsAnswer:  # noqa: B006
        """The same examples as rows of their table, in the units of its columns."""
        opened = open_runs.open(run_id)
        return rows_answer(opened, images_of(opened, chosen_rows(opened, rows, n, seed)))

    @api.post("/runs/{run_id}/encode")
    def post_encode(run_id: str, image: Annotated[bytes, Body(media_type="application/octet-stream")]) -> EncodedAnswer:
        """The code of an image of one's own: a PNG, JPEG, WebP, GIF or BMP file as the body."""
        return encoded_answer(_pictured(open_runs.open(run_id)), image)

    @api.get("/runs/{run_id}/manipulation")
    def get_manipulation(run_id: str, values: Values = [], epsilon: Strength = None) -> ManipulationAnswer:  # noqa: B006
        """An example of a manipulation by its factors, and both sides' codes of it before and after."""
        return manipulations.answer(run_id, values, epsilon)

    @api.get("/runs/{run_id}/manipulation/pixels", response_class=Response, responses=BINARY)
    def get_manipulated(run_id: str, values: Values = [], epsilon: Strength = None) -> Response:  # noqa: B006
        """Three pictures of the same example: the original, the change from black to white, the altered one."""
        return _bytes(pixels(manipulations.pixels(run_id, values, epsilon)))

    @api.get("/runs/{run_id}/codes.npz", response_class=Response, responses=BINARY)
    def get_npz(run_id: str, n: Some = 2048) -> Response:
        """Codes and factors of some examples, for numpy."""
        return _file(as_npz(open_runs.open(run_id), n), f"{run_id}-codes.npz")

    @api.get("/runs/{run_id}/codes.parquet", response_class=Response, responses=BINARY)
    def get_parquet(run_id: str, n: Some = 2048) -> Response:
        """Codes and factors of some examples, as a table."""
        return _file(as_parquet(open_runs.open(run_id), n), f"{run_id}-codes.parquet")

    @api.get("/compare")
    def get_compare(left: str, right: str) -> CompareAnswer:
        """Two runs layer by layer, and their matched latents."""
        first, second = open_runs.open(left), open_runs.open(right)
        return open_runs.pair(first, second, lambda: compare_answer(first, second))

    return api


def _pictured(opened: OpenRun) -> OpenRun:
    if not opened.is_image:
        raise NotReady(f"the examples of this run are not pictures (their shape is {opened.shape})")
    return opened


def _codes(opened: OpenRun, body: CodesToDecode) -> torch.Tensor:
    if any(len(code) != opened.latents for code in body.codes):
        raise ValueError(f"every code must have {opened.latents} numbers, one for each latent")
    return torch.tensor(body.codes, dtype=torch.float64).clamp(-FARTHEST, FARTHEST).to(torch.float32)


def _bytes(pictures: Pixels) -> Response:
    shape = ",".join(map(str, pictures.shape))
    return Response(pictures.tobytes(), media_type="application/octet-stream", headers={"x-shape": shape})


def _file(content: bytes, name: str) -> Response:
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "-_.~") else "_" for c in name)
    headers = {"content-disposition": f'attachment; filename="{plain}"'}
    return Response(content, media_type="application/octet-stream", headers=headers)
