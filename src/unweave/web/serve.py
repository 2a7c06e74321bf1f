"""Serve the explorer: on this machine alone, unless another address is asked for."""

import secrets
import socket
import threading
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from unweave.web.guard import LOOPBACK, Door

if TYPE_CHECKING:
    import uvicorn

EVERYWHERE = ("0.0.0.0", "::")


def serve(
    store: Path | str,
    *,
    host: str = "127.0.0.1",
    port: int = 8750,
    path: str = "/",
    names: tuple[str, ...] = (),
    open_browser: bool = True,
    say: Callable[[str], None] = print,
) -> None:
    """Serve until interrupted. Bound to anything but loopback, the address carries a token that is asked for."""
    import torch
    import uvicorn

    # two threads of one product are slower than two products of one thread each
    torch.set_num_threads(1)
    door = door_for(host, names)
    listening = listen(host, port)
    address = address_of(host, listening.getsockname()[1], path, door.token)
    config = configured(store, door)
    say(f"The explorer of {Path(store).resolve()} is at\n\n    {address}\n\nCtrl-C ends it.")
    if open_browser:
        threading.Timer(0.6, webbrowser.open, (address,)).start()
    uvicorn.Server(config).run(sockets=[listening])


def configured(store: Path | str, door: Door, **options: Any) -> "uvicorn.Config":
    """The explorer of a store as uvicorn serves it: clients that stall are cut off, also at its end."""
    import uvicorn

    from unweave.web.app import create_app
    from unweave.web.patience import PatientProtocol

    given: dict[str, Any] = {"log_level": "warning", "access_log": False, "server_header": False, "ws": "none"}
    given |= {"http": PatientProtocol, "timeout_keep_alive": PatientProtocol.patience.idle, "backlog": 1024}
    return uvicorn.Config(create_app(store, door), **(given | {"timeout_graceful_shutdown": 3} | options))


def door_for(host: str, names: tuple[str, ...] = ()) -> Door:
    """Loopback needs no token; every other address gets a fresh one."""
    if host in LOOPBACK:
        return Door((*LOOPBACK, *names))
    own = (host, socket.gethostname().lower(), *names)
    return Door((*LOOPBACK, *own), secrets.token_urlsafe(24), any_address=host in EVERYWHERE)


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; the next free port is taken where this one is in use, for 20 ports."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for candidate in range(port, port + 20) if port else (0,):
        # with the protocol named, asyncio turns off Nagle's algorithm: without, every picture waits 40 ms for an ACK
        found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            found.bind((host, candidate))
        except OSError as error:
            found.close()
            if candidate == port + 19 or not port or error.errno not in (98, 48):
                raise OSError(f"cannot listen on {host}, port {port}: {error.strerror}. Try another --port.") from error
            continue
        found.listen(1024)
        return found
    raise AssertionError


def address_of(host: str, port: int, path: str, token: str | None) -> str:
    """Where to point a browser."""
    shown = socket.gethostname() if host in EVERYWHERE else f"[{host}]" if ":" in host else host
    return f"http://{shown}:{port}{quote(path)}" + (f"?token={token}" if token else "")
