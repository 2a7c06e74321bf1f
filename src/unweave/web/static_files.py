"""The page: one document for every address, and the few files it is made of, all from this package."""

from functools import cache
from importlib.resources import files

from fastapi import APIRouter, HTTPException
from fastapi.responses import HTMLResponse, Response

KINDS = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
VIEWS = ("/", "/run/{name:path}", "/compare", "/study/{name:path}", "/search/{name:path}")
"""Addresses that can be shared and reloaded; what they show is the page's own affair."""


def page_routes() -> APIRouter:
    """The document and its parts."""
    pages = APIRouter(include_in_schema=False)

    def document() -> HTMLResponse:
        return HTMLResponse(parts()["index.html"])

    for view in VIEWS:
        pages.add_api_route(view, document, methods=["GET"])

    def lost(name: str) -> HTMLResponse:
        """The same document, which says that there is no such page; questions to the API get their answer as JSON."""
        if name.startswith("api/"):
            raise HTTPException(404, "there is no such question")
        return HTMLResponse(parts()["index.html"], status_code=404)

    @pages.get("/static/{name:path}")
    def get_part(name: str) -> Response:
        # a table of names, never a path: there is nothing to walk out of
        kind = KINDS.get("." + name.rpartition(".")[2])
        if kind is None or name not in parts():
            raise HTTPException(404, "there is no such file")
        return Response(parts()[name], media_type=kind, headers={"cache-control": "no-cache"})

    pages.add_api_route("/{name:path}", lost, methods=["GET"])  # after all others
    return pages


@cache
def parts() -> dict[str, bytes]:
    """Every file of the page by its name, read once."""
    folder = files("unweave.web") / "static"
    found = {}
    for one in folder.iterdir():
        if one.is_file():
            found[one.name] = one.read_bytes()
        elif one.is_dir():
            found |= {f"{one.name}/{inner.name}": inner.read_bytes() for inner in one.iterdir() if inner.is_file()}
    return found
