"""A real HTTP server on this machine that answers as the test tells it to."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast

import numpy as np

from hivemem.models.hashing import HashingEmbedder


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as it arrived."""

    path: str
    headers: Mapping[str, str]
    body: Any


@dataclass(frozen=True, slots=True)
class Answer:
    """What to send: `body` is sent as it is when it is bytes, else as JSON."""

    body: Any = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class TestServer:
    """The running server: its address, and every request so far."""

    __test__ = False

    url: str
    answer: Callable[[Asked], Answer]
    asked: list[Asked] = field(default_factory=list)


@contextmanager
def serving(answer: Callable[[Asked], Answer]) -> Iterator[TestServer]:
    """Run a server until the block ends; `server.answer` may be replaced at any time."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._reply(None)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            self._reply(json.loads(body))

        def _reply(self, body: Any) -> None:
            asked = Asked(self.path, {k.lower(): v for k, v in self.headers.items()}, body)
            server.asked.append(asked)
            reply = server.answer(asked)
            content = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
            self.send_response(reply.status)
            for name, value in {"Content-Length": str(len(content)), **reply.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            with suppress(ConnectionError):  # the client may have given up: some tests are about that
                self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            """Quiet: a test's own output says enough."""

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True

    with Quiet(("127.0.0.1", 0), Handler) as http:
        host, port = cast("tuple[str, int]", http.server_address)
        server = TestServer(f"http://{host}:{port}", answer)
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            http.shutdown()
            thread.join()


def embeddings_server(asked: Asked) -> Answer:
    """An OpenAI-compatible endpoint over the hashing embedder, in reverse order and not normalised."""
    vectors = HashingEmbedder(64).embed_passages(asked.body["input"]) * np.float32(3.0)
    rows = [
        {"index": i, "embedding": [float(x) for x in v], "object": "embedding"} for i, v in enumerate(vectors)
    ]
    return Answer({"object": "list", "model": asked.body["model"], "data": rows[::-1]})


def rerank_server(asked: Asked) -> Answer:
    """All three shapes of `/rerank`, by the path: a text's share of the query's long words, best first."""
    words = long_words(asked.body["query"])
    texts = asked.body["texts"] if asked.path == "/rerank" else asked.body["documents"]
    shares = [len(words & long_words(text)) / max(len(words), 1) for text in texts]
    order = sorted(range(len(texts)), key=lambda i: -shares[i])
    if asked.path == "/rerank":
        return Answer([{"index": i, "score": shares[i]} for i in order])
    return Answer({"results": [{"index": i, "relevance_score": shares[i]} for i in order]})


def long_words(text: str) -> set[str]:
    return set(re.findall(r"\w{4,}", text.casefold()))
