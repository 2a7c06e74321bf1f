"""How long a client is waited for: one that sends half a request, or never reads its answer, is cut off.

A client has ten seconds to say what it wants, a minute to send what belongs to it, and half a minute to take more of
the answer. Whoever comes when very many wait is served at once: the one that has been silent longest goes.
"""

import asyncio
from dataclasses import dataclass
from typing import ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol


@dataclass(frozen=True)
class Patience:
    """Seconds, and connections."""

    head: float = 10.0
    """Until a request is known by its headers."""
    body: float = 60.0
    """Until what belongs to it has come."""
    reading: float = 30.0
    """Without a byte of the answer taken."""
    idle: int = 5
    """Between two requests."""
    most: int = 256
    """Connections at a time."""
    look: float = 1.0
    """Between two looks at a connection."""


class PatientProtocol(H11Protocol):
    """Uvicorn's own protocol, which waits for ever, with an end to it."""

    patience: ClassVar[Patience] = Patience()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.asking: float | None = self.loop.time()
        self.unread, self.taken = 0, self.loop.time()
        self._looking = self.loop.call_later(self.patience.look, self._look)
        self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        self._looking.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        waiting = self.conn.their_state in (h11.IDLE, h11.SEND_BODY)
        self.asking = (self.asking or self.loop.time()) if waiting else None

    def _make_room(self) -> None:
        here = [one for one in self.connections if isinstance(one, PatientProtocol) and not one.transport.is_closing()]
        silent = [one for one in here if one.asking is not None]
        if len(here) > self.patience.most and silent:
            min(silent, key=lambda one: one.asking or 0.0).transport.abort()

    def _look(self) -> None:
        now, limit = self.loop.time(), self.patience
        unread = self.transport.get_write_buffer_size()
        if not unread or unread != self.unread:
            self.unread, self.taken = unread, now  # something was taken, or there is nothing to take
        allowed = limit.body if self.conn.their_state is h11.SEND_BODY else limit.head
        late = self.asking is not None and now - self.asking > allowed
        if late or now - self.taken > limit.reading:
            self.transport.abort()
            return
        self._looking = self.loop.call_later(limit.look, self._look)
