"""Files from other machines: by https alone, of a length that is known beforehand, and whole or not at all."""

import http.client
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from unweave.files import Progress

BLOCK = 1 << 20
PATIENCE = 60.0
"""Seconds without a byte after which a connection is given up."""

LOOPBACK = ("127.0.0.1", "localhost", "::1")

OpenAddress = Callable[[str], Any]
"""From an address to an answer with ``headers`` and ``read``, as urllib gives it."""


def open_https(address: str, context: ssl.SSLContext | None = None, patience: float = PATIENCE) -> Any:
    """The answer of a server; http is refused, also where a server leads on to it."""
    _check_https(address)
    opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=context), _OnlyHttps())
    return opener.open(address, timeout=patience)


def open_https_or_here(address: str) -> Any:
    """The answer of a server by https, or of one on this very machine, where nobody is on the way, by http."""
    parts = urllib.parse.urlsplit(address)
    if parts.scheme != "http" or parts.hostname not in LOOPBACK:
        return open_https(address)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _OnlyHttps())
    return opener.open(address, timeout=PATIENCE)


def download(
    address: str,
    path: Path,
    n_bytes: int | None = None,
    progress: Progress | None = None,
    open_address: OpenAddress = open_https,
) -> None:
    """Write what an address holds to a file; an error unless exactly as many bytes come as are known or promised."""
    with _asking(address, lambda: open_address(address)) as answer, path.open("wb") as file:
        length = _length(address, answer, n_bytes)
        # one byte more than there should be is enough to know
        while block := _asking(address, lambda: answer.read(min(BLOCK, length + 1 - file.tell()))):
            file.write(block)
            if progress:
                progress(f"fetching {address.rpartition('/')[2]}", file.tell(), length)
            if file.tell() > length:
                raise ValueError(f"{address} sends more than the {length:,} bytes of the file: it is another one")
        _check_whole(address, file, length)


class _OnlyHttps(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        _check_https(newurl, f"{req.full_url} leads on to ")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _check_https(address: str, where: str = "") -> None:
    if not address.lower().startswith("https://"):
        which = ", which" if where else ""
        raise ValueError(f"{where}{address}{which} is no https address: anybody on the way could change the file")


def _asking(address: str, ask: Callable[[], Any]) -> Any:
    try:
        return ask()
    except (OSError, http.client.HTTPException) as error:
        reason = "no answer in time" if isinstance(error, TimeoutError) else str(error) or type(error).__name__
        raise OSError(f"could not fetch {address}: {reason}. Try again, or fetch it by other means.") from error


def _length(address: str, answer: Any, n_bytes: int | None) -> int:
    text = answer.headers.get("Content-Length")
    promised = int(text) if text is not None and text.isascii() and text.isdigit() else None
    if n_bytes is not None and promised not in (None, n_bytes):
        raise ValueError(f"{address} offers {promised:,} bytes, the published file has {n_bytes:,}: it is another file")
    if n_bytes is not None:
        return n_bytes
    if promised is None:
        raise ValueError(
            f"{address} does not say how long the file is, and a cut one could not be told: fetch by hand."
        )
    return promised


def _check_whole(address: str, file: IO[bytes], length: int) -> None:
    if file.tell() != length:
        raise OSError(f"{address} was cut short: {file.tell():,} of {length:,} bytes came. Try again.")
