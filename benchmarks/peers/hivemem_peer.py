"""hivemem as a peer of the side-by-side harness: a real `hivemem serve`, called over HTTP as a client would.

Copy this file beside the harness's other adapters; README.md has the lines that register it.

`HiveMem` has no cross-encoder and no relevance floor, so that its ranking compares with other engines'
rankings and the harness can put the shared cross-encoder behind it. `HiveMemRecall` is recall as it comes,
with its own re-ranking. Documents are stored without relationships: the harness has none to give.
"""

import json
import os
import subprocess
import sys
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

from .base import Peer
from .embedding_server import EmbeddingServer

MOST_RESULTS = 50  # what one recall may return


class HiveMem(Peer):
    what = "BM25 and dense vectors, RRF, calibrated sum; REST recall of `hivemem serve`, no cross-encoder"
    durability = "SQLite WAL, fsync before an insert returns; the next search sees it"
    settings: dict[str, str] = {"reranker": "none", "relevance_floor": "0"}  # noqa: RUF012

    def __init__(self, directory, dim, models) -> None:
        self._embedder = EmbeddingServer(models)
        self._directory = Path(directory)
        self._directory.mkdir(parents=True, exist_ok=True)
        settings = {
            "embedder": f"openai:{self._embedder.base}#shared",
            "log_level": "error",
            "max_answer_bytes": str(4 * 1024 * 1024),
            **self.settings,
        }
        kept = {name: value for name, value in os.environ.items() if not name.startswith("HIVEMEM_")}
        self._environment = kept | {f"HIVEMEM_{name.upper()}": value for name, value in settings.items()}
        self._server = None

    def add(self, ids, texts, vectors) -> None:
        self._know(texts, vectors)
        path = self._directory / "import.jsonl"
        with path.open("w", encoding="utf-8") as lines:
            for id, text in zip(ids, texts, strict=True):
                lines.write(json.dumps({"key": key_of(id), "description": text}) + "\n")
        summary = json.loads(self._command("import", str(path)).stdout)
        path.unlink()
        if summary["failed"]:
            raise RuntimeError(f"{summary['failed']} documents were not stored: {summary['errors'][:3]}")

    def ready(self) -> None:
        """Start the server; its first recall builds the index."""
        self._know(["warm up"], [[1.0, *[0.0] * 383]])
        self._post("recall", {"query": "warm up"})

    def insert(self, id, text, vector) -> None:
        self._know([text], [vector])
        self._post("store", {"key": key_of(id), "description": text})

    def search(self, text, vector, k) -> list[str]:
        self._know([text], [vector])
        answer = self._post("recall", {"query": text, "max_results": min(k, MOST_RESULTS)})
        return [id_of(hit["key"]) for hit in answer["results"]]

    def pids(self) -> list[int]:
        return [self._server.pid] if self._server else []

    def close(self) -> None:
        if self._server:
            self._connection.close()
            self._server.terminate()
            self._server.wait(30)
        self._embedder.close()

    def _know(self, texts, vectors) -> None:
        for text, vector in zip(texts, vectors, strict=True):
            self._embedder.known[text] = [float(value) for value in vector]

    def _arguments(self, *words: str) -> list[str]:
        return [
            sys.executable,
            "-m",
            "hivemem.surfaces.cli.main",
            *words,
            "--json",
            "--data-dir",
            str(self._directory),
        ]

    def _command(self, *words: str):
        return subprocess.run(
            self._arguments(*words), env=self._environment, stdout=subprocess.PIPE, check=True
        )

    def _post(self, operation: str, body: dict) -> dict:
        if self._server is None:
            self._start()
        self._connection.request("POST", f"/api/v1/memory/{operation}", json.dumps(body), self._headers)
        response = self._connection.getresponse()
        content = response.read()
        if response.status != 200:
            raise RuntimeError(f"{operation}: {response.status} {content[:400]!r}")
        return json.loads(content)

    def _start(self) -> None:
        key = json.loads(self._command("key", "create").stdout)["key"]
        self._headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        self._server = subprocess.Popen(
            self._arguments("serve", "--port", "0"), env=self._environment, stdout=subprocess.PIPE
        )
        place = urlsplit(json.loads(self._server.stdout.readline())["url"]).netloc
        self._connection = HTTPConnection(place, timeout=120)
        while True:  # until the models are there
            self._connection.request("GET", "/api/v1/memory/ready")
            response = self._connection.getresponse()
            response.read()
            if response.status == 200:
                return


class HiveMemRecall(HiveMem):
    what = "recall of `hivemem serve` as it comes: BM25, vectors, cross-encoder, relevance floor"
    settings: dict[str, str] = {"rerank_budget_seconds": "60"}  # noqa: RUF012


def key_of(id: str) -> str:
    """Keys have a form of their own; hex keeps any id as it is, and is a word of no text."""
    return "x" + id.encode().hex()


def id_of(key: str) -> str:
    return bytes.fromhex(key[1:]).decode()
