"""A connection of the web server that nobody can hold open by sending next to nothing.

uvicorn limits neither how large the head of a request grows nor how long it takes. What comes after the head
is the application's to limit; once that has answered, the rest of a body that it did not want is waited for
no longer than a head.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

if TYPE_CHECKING:
    from uvicorn.config import Config
    from uvicorn.server import ServerState

HEAD_SECONDS = 15.0

_REFUSALS = {
    408: b"HTTP/1.1 408 Request Timeout\r\n",
    431: b"HTTP/1.1 431 Request Header Fields Too Large\r\n",
}


class BoundedConnection(HttpToolsProtocol):
    """uvicorn's connection, with a limit on the size and the time of each head.

    Attributes:
        max_head_bytes: Set on a subclass, since uvicorn makes the connections.
        head_seconds: Time for a head, and for the rest of a body after the answer.
    """

    max_head_bytes = 32 * 1024
    head_seconds = HEAD_SECONDS

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._in_head = False
        self._in_body = False
        self._head_bytes = 0
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Expect a head."""
        super().connection_made(transport)
        self._expect()

    def connection_lost(self, exc: Exception | None) -> None:
        """Expect nothing any more."""
        self._expect_no_more()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take bytes; a head that is too large ends the connection."""
        if self._in_head:
            self._head_bytes += len(data)
        super().data_received(data)
        if self._in_head and self._head_bytes > self.max_head_bytes:
            self._refuse(431)
        elif self._deadline is None and not (self._in_head or self._in_body or self._busy()):
            # Line breaks before a head: no request begins with them, but uvicorn waits no more.
            self._expect()

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self._in_head, self._in_body, self._head_bytes = True, False, 0
        if self._deadline is None:
            self._expect()

    def on_headers_complete(self) -> None:
        """The head is there; from here on the application has its own limits."""
        self._in_head, self._in_body = False, True
        self._expect_no_more()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The body is there too."""
        self._in_body = False
        self._expect_no_more()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """The answer is out; whoever still sends a body that was not read has a short time left."""
        super().on_response_complete()
        if self._in_body and not self.transport.is_closing():
            self._expect()

    def _expect(self) -> None:
        self._expect_no_more()
        self._deadline = self.loop.call_later(self.head_seconds, self._too_late)

    def _expect_no_more(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _too_late(self) -> None:
        self._deadline = None
        if self._busy():
            # A head behind a request that we still work on: we are late, not they.
            self._expect()
        elif self._in_head:
            self._refuse(408)
        elif not self.transport.is_closing():
            self.transport.close()

    def _busy(self) -> bool:
        """Whether an answer is on its way."""
        return bool(self.cycle) and not self.cycle.response_complete

    def _refuse(self, status: int) -> None:
        if self.transport.is_closing():
            return
        if not self._busy():
            self.transport.write(_REFUSALS[status] + b"content-length: 0\r\nconnection: close\r\n\r\n")
        self.transport.close()


def bounded_connection(max_head_bytes: int) -> type[BoundedConnection]:
    """The class of connections with this limit."""
    return type("Connection", (BoundedConnection,), {"max_head_bytes": max_head_bytes})
