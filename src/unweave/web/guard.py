"""Who may ask: this machine's own pages, or whoever holds the token. Wrapped around the whole application.

A page of another site can make a browser send requests to a server on this machine. It cannot choose the Host header
once its own name was rebound to 127.0.0.1, nor hide the Origin of what it sends: both are checked on every request,
whatever its route and method, before any of our code sees it.
"""

import hmac
import ipaddress
import json
import re
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

LOOPBACK = ("127.0.0.1", "localhost", "::1")
COOKIE = "unweave_token"
METHODS = ("GET", "HEAD", "POST")
HOST = re.compile(r"(?P<name>[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?")
LARGEST_BODY = 16 * 2**20
"""Bytes of a request; an uploaded image has a smaller limit of its own."""

HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
    "cache-control": "no-store",
}


@dataclass(frozen=True)
class Door:
    """Which names this server answers to, and the token that it asks for where it can be reached from elsewhere."""

    hosts: tuple[str, ...] = LOOPBACK
    token: str | None = None
    any_address: bool = False
    """Whether a Host that is a plain IP address is ours, for a server bound to all of them."""

    def knows(self, host: str) -> bool:
        """Whether a Host header, with or without a port, names this server."""
        name = _name(host)
        return name in self.hosts or (self.any_address and _is_address(name))


class Refused(Exception):
    """A request that is not answered: status and one sentence."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status, self.words = status, words


class Body:
    """What a request sends, up to a limit, whatever length it announced."""

    def __init__(self, receive: Receive) -> None:
        self._receive, self._seen, self.too_large = receive, 0, False

    def check(self, headers: dict[str, list[str]]) -> None:
        """Refuse a length that is too large or no number, before anything is read."""
        announced = headers.get("content-length", ["0"])[0]
        if not announced.isdigit() or int(announced) > LARGEST_BODY:
            raise Refused(413, f"a request may have {LARGEST_BODY // 2**20} MB at most")

    async def receive(self) -> Message:
        """The next piece."""
        message = await self._receive()
        self._seen += len(message.get("body", b""))
        if self._seen > LARGEST_BODY:
            self.too_large = True
            raise Refused(413, f"a request may have {LARGEST_BODY // 2**20} MB at most")
        return message


class Guard:
    """The application behind a door: everything refused, limited and marked in one place."""

    def __init__(self, app: App, door: Door = Door()) -> None:
        self.app, self.door = app, door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # no websockets here
        body = Body(receive)
        marked = _marked(send, body)
        try:
            headers = _headers(scope)
            self._check(scope, headers)
            body.check(headers)
            if (moved := self._entering(scope)) is not None:
                await _redirect(marked, *moved)
                return
            self._check_token(scope, headers)
            await self.app(scope, body.receive, marked)
        except Refused as refused:
            await _answer(marked, refused.status, refused.words)

    def _check(self, scope: Scope, headers: dict[str, list[str]]) -> None:
        hosts = headers.get("host", [])
        if len(hosts) != 1 or not self.door.knows(hosts[0]):
            raise Refused(403, "this server answers to its own name only; open it as http://127.0.0.1")
        for origin in headers.get("origin", []):
            if urlsplit(origin).netloc.lower() != hosts[0].lower() or urlsplit(origin).scheme not in ("http", "https"):
                raise Refused(403, "requests from other sites are refused")
        site = headers.get("sec-fetch-site", ["none"])[0]
        if site not in ("same-origin", "none") and not _is_visit(scope, headers):
            raise Refused(403, "requests from other sites are refused")
        if scope["method"] not in METHODS:
            raise Refused(405, f"{scope['method']} is never answered here; there are {', '.join(METHODS)}")

    def _entering(self, scope: Scope) -> tuple[str, str] | None:
        """For an address that carries the right token: the address without it, and the cookie to keep."""
        if self.door.token is None or scope["method"] != "GET" or scope["path"].startswith("/api/"):
            return None
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = dict(query).get("token")
        if given is None or not _equal(given, self.door.token):
            return None
        rest = urlencode([(name, value) for name, value in query if name != "token"])
        # one slash only: "//evil" would be read as another host
        path = "/" + scope.get("raw_path", scope["path"].encode()).decode("latin-1").partition("?")[0].lstrip("/\\")
        cookie = f"{COOKIE}={self.door.token}; HttpOnly; SameSite=Strict; Path=/"
        return path + (f"?{rest}" if rest else ""), cookie

    def _check_token(self, scope: Scope, headers: dict[str, list[str]]) -> None:
        if self.door.token is None:
            return
        bearer = [value.removeprefix("Bearer ") for value in headers.get("authorization", [])]
        if not any(_equal(given, self.door.token) for given in [*bearer, *_cookies(headers)]):
            raise Refused(401, "this explorer asks for its token: open the address that `unweave explore` printed")


def _headers(scope: Scope) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        found.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    return found


def _name(host: str) -> str:
    """The host of ``name:port`` or ``[address]:port``; something unreadable is no name of ours."""
    found = HOST.fullmatch(host)
    return found["name"].strip("[]").lower() if found else ""


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _is_visit(scope: Scope, headers: dict[str, list[str]]) -> bool:
    """A link that someone followed to one of our pages: harmless, since it reads nothing back and cannot be framed."""
    return (
        scope["method"] == "GET"
        and not scope["path"].startswith(("/api/", "/openapi"))
        and headers.get("sec-fetch-mode") == ["navigate"]
        and headers.get("sec-fetch-dest") == ["document"]
    )


def _equal(given: str, token: str) -> bool:
    return hmac.compare_digest(given.encode(), token.encode())


def _cookies(headers: dict[str, list[str]]) -> list[str]:
    jar = SimpleCookie()
    for line in headers.get("cookie", []):
        try:
            jar.load(line)
        except Exception:  # an unreadable cookie is no token
            continue
    return [jar[COOKIE].value] if COOKIE in jar else []


def _marked(send: Send, body: Body) -> Send:
    async def send_marked(message: Message) -> None:
        if message["type"] == "http.response.start":
            # frameworks answer 400 for a body that could not be read to its end
            message = {**message, "status": 413} if body.too_large else message
            own = {name for name, _ in message.get("headers", [])}
            added = [(name.encode(), value.encode()) for name, value in HEADERS.items() if name.encode() not in own]
            message = {**message, "headers": [*message.get("headers", []), *added]}
        await send(message)

    return send_marked


async def _answer(send: Send, status: int, words: str) -> None:
    body = json.dumps({"detail": words}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _redirect(send: Send, address: str, cookie: str) -> None:
    headers = [(b"location", address.encode("latin-1")), (b"set-cookie", cookie.encode()), (b"content-length", b"0")]
    await send({"type": "http.response.start", "status": 303, "headers": headers})
    await send({"type": "http.response.body", "body": b""})
