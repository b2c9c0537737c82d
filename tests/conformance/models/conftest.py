"""The adapters under test. A new adapter is one more line in one of the two lists."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hivemem.models.hashing import HashingEmbedder
from hivemem.models.http import HttpEmbedder, HttpReranker, RerankShape
from hivemem.ports.models import Embedder, Reranker
from tests.models.real import onnx_embedder, onnx_reranker
from tests.models.server import embeddings_server, rerank_server, serving

EMBEDDERS = ["hashing", "http", pytest.param("onnx", marks=pytest.mark.models)]
RERANKERS = ["tei", "cohere", "jina", pytest.param("onnx", marks=pytest.mark.models)]


@pytest.fixture(scope="module", params=EMBEDDERS)
def embedder(request: pytest.FixtureRequest) -> Iterator[Embedder]:
    match request.param:
        case "hashing":
            yield HashingEmbedder()
        case "onnx":
            yield onnx_embedder()
        case _:
            with serving(embeddings_server) as server:
                remote = HttpEmbedder(server.url + "/v1", "test-model", batch_texts=3)
                yield remote
                remote.close()


@pytest.fixture(scope="module", params=RERANKERS)
def reranker(request: pytest.FixtureRequest) -> Iterator[Reranker]:
    if request.param == "onnx":
        yield onnx_reranker()
        return
    with serving(rerank_server) as server:
        remote = HttpReranker(server.url, "test-model", shape=RerankShape(request.param), batch_texts=3)
        yield remote
        remote.close()
