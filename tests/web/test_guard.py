"""Who may ask: every route with every method refuses strangers, before any of our code sees them."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from starlette.routing import Route

from unweave.web.app import create_app
from unweave.web.guard import HEADERS, LARGEST_BODY, Door

HERE = "http://127.0.0.1:8750"
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PROPFIND")
ROUTES = 20


@pytest.fixture(scope="module")
def client(made: Path) -> Iterator[TestClient]:
    with TestClient(create_app(made), base_url=HERE, raise_server_exceptions=False) as found:
        yield found


def addresses(client: TestClient) -> list[str]:
    """Every route of the application as an address, its parameters filled in, and one that is no route."""
    paths = {route.path for route in _routes(client.app.routes)}  # type: ignore[attr-defined]
    assert len(paths) >= ROUTES
    filled = {path.replace("{run_id}", "one").replace("{name:path}", "main.js") for path in paths}
    return sorted({path.replace("{name}", "all") for path in filled} | {"/nowhere", "/api/nowhere"})


def _routes(routes: list) -> Iterator[Route]:
    for route in routes:
        if isinstance(route, Route):
            yield route
        else:
            inner = getattr(route, "original_router", None) or getattr(route, "app", None) or route
            yield from _routes(list(getattr(inner, "routes", [])))


REFUSED = {
    "another host": {"host": "evil.example"},
    "a rebound name": {"host": "127.0.0.1.evil.example:8750"},
    "a host with our name inside": {"host": "evil.example:127.0.0.1"},
    "no host": {"host": ""},
    "another origin": {"origin": "http://evil.example"},
    "an origin with our name inside": {"origin": "http://127.0.0.1:8750.evil.example"},
    "another port": {"origin": "http://127.0.0.1:9999"},
    "no origin of its own": {"origin": "null"},
    "another scheme": {"origin": "file://127.0.0.1:8750"},
    "another site, says the browser": {"sec-fetch-site": "cross-site"},
    "a sister site": {"sec-fetch-site": "same-site", "sec-fetch-mode": "cors"},
    "a form sent from elsewhere": {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"},
    "a frame elsewhere": {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe"},
}


@pytest.mark.parametrize("stranger", REFUSED)
def test_strangers_are_refused_on_every_route_and_method(client: TestClient, stranger: str) -> None:
    for address in addresses(client):
        for method in METHODS:
            answer = client.request(method, address, headers=REFUSED[stranger])
            assert answer.status_code == 403, (method, address)


def test_only_some_methods_are_answered_at_all(client: TestClient) -> None:
    for address in addresses(client):
        for method in METHODS[3:]:
            assert client.request(method, address).status_code == 405, (method, address)


def test_every_answer_carries_the_headers(client: TestClient) -> None:
    for address in addresses(client):
        for headers in ({}, {"host": "evil.example"}):
            answer = client.get(address, headers=headers)
            for name in set(HEADERS) - {"cache-control"}:
                assert answer.headers[name] == HEADERS[name]
            assert "cache-control" in answer.headers
    policy = client.get("/").headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy


def test_our_own_page_and_a_followed_link_are_let_in(client: TestClient) -> None:
    own = {"origin": HERE, "sec-fetch-site": "same-origin"}
    assert client.get("/api/runs/one", headers=own).status_code == 200
    assert client.post("/api/runs/one/decode", headers=own, json={"codes": [[0.0] * 4]}).status_code == 200
    link = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    assert client.get("/run/one", headers=link).status_code == 200
    assert client.get("/api/runs/one", headers=link).status_code == 403
    assert client.post("/run/one", headers=link).status_code == 403
    for host in ("localhost:8750", "127.0.0.1", "[::1]:8750"):
        assert client.get("/", headers={"host": host}).status_code == 200


def test_nothing_is_changed_by_any_get(made: Path, client: TestClient) -> None:
    before = snapshot(made)
    for address in addresses(client):
        assert client.get(address).status_code < 500, address
    client.get("/api/compare?left=one&right=two")
    client.post("/api/runs/one/decode", json={"codes": [[0.0] * 4]})
    assert snapshot(made) == before


def snapshot(root: Path) -> dict[str, tuple[str, int]]:
    """Content and time of change of every file."""
    files = [path for path in root.rglob("*") if path.is_file()]
    return {str(path): (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns) for path in files}


def test_a_large_request_is_turned_away(client: TestClient) -> None:
    assert client.post("/api/runs/one/encode", content=b"x" * (LARGEST_BODY + 1)).status_code == 413

    def drop_by_drop() -> Iterator[bytes]:
        for _ in range(LARGEST_BODY // 2**20 + 1):
            yield b"x" * 2**20

    assert client.post("/api/runs/one/encode", content=drop_by_drop()).status_code == 413
    assert client.post("/api/runs/one/encode", headers={"content-length": "-1"}).status_code in (400, 413)


def test_elsewhere_a_token_is_asked_for_on_every_route_and_method(made: Path) -> None:
    door = Door(("192.0.2.7",), "secret-token")
    with TestClient(create_app(made, door), base_url="http://192.0.2.7:8750", follow_redirects=False) as client:
        for address in addresses(client):
            for method in ("GET", "HEAD", "POST"):
                assert client.request(method, address).status_code == 401, (method, address)
                wrong = client.request(method, address, params={"token": "secret-tokem"})
                assert wrong.status_code == 401
        entered = client.get("/run/one?token=secret-token&pad=0,1")
        assert entered.status_code == 303
        assert entered.headers["location"] == "/run/one?pad=0%2C1"
        cookie = entered.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        assert client.get(entered.headers["location"]).status_code == 200
        assert client.get("/api/runs/one").status_code == 200
        client.cookies.clear()
        assert client.get("/api/runs/one?token=secret-token").status_code == 401
        assert client.get("/api/runs/one", headers={"authorization": "Bearer secret-token"}).status_code == 200
        assert client.get("//evil.example/?token=secret-token").headers.get("location", "/")[:2] != "//"
        elsewhere = {"host": "evil.example", "authorization": "Bearer secret-token"}
        assert client.get("/", headers=elsewhere).status_code == 403


def test_the_page_asks_for_nothing_from_elsewhere(client: TestClient) -> None:
    from unweave.web.static_files import parts

    for name, content in parts().items():
        text = content.decode().replace("http://www.w3.org/2000/svg", "")
        assert "http://" not in text.replace("http://127.0.0.1", ""), name
        assert "https://" not in text, name
        assert client.get(f"/static/{name}").status_code == (404 if name == "index.html" else 200)
    lost = client.get("/no/such/page")
    assert (lost.status_code, lost.text) == (404, client.get("/").text)
    assert client.get("/api/nothing").json() == {"detail": "there is no such question"}
    for name in ("../app.py", "..%2fapp.py", "%2e%2e/app.py", "/etc/passwd", "lib", "index.html"):
        assert client.get(f"/static/{name}").status_code == 404
