"""Remote models: what is sent, and what every kind of bad answer becomes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from hivemem.errors import Corruption, InvalidInput, Unavailable
from hivemem.models.http import HttpEmbedder, HttpReranker, RerankShape
from tests.models.server import Answer, Asked, TestServer, embeddings_server, rerank_server, serving

KEY = "sk-very-secret"


@pytest.fixture
def server() -> Iterator[TestServer]:
    with serving(embeddings_server) as running:
        yield running


def embedder(server: TestServer, **options: Any) -> HttpEmbedder:
    options = {"dimension": 64, "api_key": KEY, "wait": lambda seconds: None, **options}
    return HttpEmbedder(server.url + "/v1", "some-model", **options)


def vectors(rows: list[tuple[int, list[Any]]]) -> Callable[[Asked], Answer]:
    data = [{"index": index, "embedding": vector} for index, vector in rows]
    return lambda asked: Answer({"data": data})


def test_the_request_is_what_openai_clients_send(server: TestServer) -> None:
    embedder(server, passage_prefix="passage: ").embed_passages(["one", "two"])

    asked = server.asked[0]
    assert asked.path == "/v1/embeddings"
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.body == {
        "model": "some-model",
        "input": ["passage: one", "passage: two"],
        "encoding_format": "float",
    }


def test_a_question_is_cut_to_its_tail_and_has_its_prefix(server: TestServer) -> None:
    embedder(server, query_prefix="query: ", query_characters=5).embed_query("0123456789")

    assert server.asked[0].body["input"] == ["query: 56789"]


def test_texts_are_sent_in_batches(server: TestServer) -> None:
    embedder(server, batch_texts=2).embed_passages(["a", "b", "c", "d", "e"])

    assert [asked.body["input"] for asked in server.asked] == [["a", "b"], ["c", "d"], ["e"]]


def test_the_dimension_is_learnt_when_it_is_not_given(server: TestServer) -> None:
    assert embedder(server, dimension=None).dimension == 64


def test_rows_are_put_in_the_order_of_their_index_and_normalised(server: TestServer) -> None:
    server.answer = vectors([(1, [0.0, 2.0]), (0, [3.0, 0.0])])

    np.testing.assert_allclose(embedder(server, dimension=2).embed_passages(["a", "b"]), [[1, 0], [0, 1]])


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (vectors([(0, [1.0, 0.0, 0.0]), (1, [1.0, 0.0, 0.0])]), r"shape \(2, 3\), expected \(2, 2\)"),
        (vectors([(0, [1.0, 0.0])]), "1 rows with indexes .0. for 2 texts"),
        (vectors([(0, [1.0, 0.0]), (2, [1.0, 0.0])]), "for 2 texts"),
        (vectors([(0, [1.0, 0.0]), (0, [1.0, 0.0])]), "for 2 texts"),
        (vectors([(0, [1.0, 0.0]), (1, [float("nan"), 0.0])]), "not finite"),
        (vectors([(0, [1.0, 0.0]), (1, [0.0, 0.0])]), "zeros"),
        (vectors([(0, [1.0, 0.0]), (1, [1.0])]), "not numbers"),
        (vectors([(0, [1.0, 0.0]), (1, ["x", "y"])]), "not numbers"),
        (lambda asked: Answer({"error": "none"}), "list 'data'"),
        (lambda asked: Answer({"data": None}), "list 'data'"),
        (lambda asked: Answer([]), "list 'data'"),
        (lambda asked: Answer(b"<html>"), "not JSON"),
    ],
)
def test_a_wrong_answer_is_corruption(
    server: TestServer, answer: Callable[[Asked], Answer], message: str
) -> None:
    server.answer = answer

    with pytest.raises(Corruption, match=message):
        embedder(server, dimension=2).embed_passages(["a", "b"])


@pytest.mark.parametrize(
    ("status", "message"),
    [(500, "answered 500"), (502, "answered 502"), (401, "check the API key"), (404, "check the address"),
     (302, "answered 302")],
)  # fmt: skip
def test_a_refusal_is_unavailable_and_not_repeated(server: TestServer, status: int, message: str) -> None:
    server.answer = lambda asked: Answer(f"key {KEY} is bad".encode(), status=status)

    with pytest.raises(Unavailable, match=message) as caught:
        embedder(server).embed_query("x")

    assert len(server.asked) == 1
    assert KEY not in caught.value.message
    assert "key *** is bad" in caught.value.message


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_server_is_asked_once_more_after_the_time_it_names(server: TestServer, status: int) -> None:
    def busy_once(asked: Asked) -> Answer:
        if len(server.asked) == 1:
            return Answer(status=status, headers={"Retry-After": "3"})
        return embeddings_server(asked)

    server.answer = busy_once
    waited: list[float] = []

    vector = embedder(server, wait=waited.append).embed_query("x")

    assert waited == [3.0]
    assert vector.shape == (64,)


def test_a_server_that_stays_busy_is_unavailable(server: TestServer) -> None:
    server.answer = lambda asked: Answer(status=503)
    waited: list[float] = []

    with pytest.raises(Unavailable, match="answered 503"):
        embedder(server, wait=waited.append).embed_query("x")

    assert waited == [1.0]
    assert len(server.asked) == 2


def test_a_long_wait_is_left_to_the_caller(server: TestServer) -> None:
    server.answer = lambda asked: Answer(status=429, headers={"Retry-After": "120"})

    with pytest.raises(Unavailable) as caught:
        embedder(server).embed_query("x")

    assert caught.value.retry_after_seconds == 120
    assert len(server.asked) == 1


def test_a_server_that_never_answers_is_unavailable() -> None:
    asked, over = threading.Event(), threading.Event()

    def never(request: Asked) -> Answer:
        asked.set()
        over.wait(timeout=30)
        return Answer()

    with serving(never) as server:
        with pytest.raises(Unavailable, match="did not answer in time"):
            embedder(server, timeout_seconds=0.1).embed_query("x")
        over.set()
    assert asked.is_set()


def test_no_server_at_all_is_unavailable() -> None:
    with serving(embeddings_server) as gone:
        pass

    with pytest.raises(Unavailable, match="cannot be reached"):
        embedder(gone).embed_query("x")


@pytest.mark.parametrize("url", ["", "localhost:80", "ftp://host/v1", "file:///etc/passwd", "http://"])
def test_an_address_that_is_no_web_address_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput, match=r"is not an http or https URL|is not a URL"):
        HttpEmbedder(url, "some-model", dimension=2)


def test_secrets_in_the_address_are_not_in_messages() -> None:
    with serving(embeddings_server) as gone:
        pass
    address = gone.url.replace("http://", "http://user:hidden@") + "/v1/embeddings?token=hidden"

    with pytest.raises(Unavailable) as caught:
        HttpEmbedder(address, "some-model", dimension=2).embed_query("x")

    assert "hidden" not in caught.value.message


def reranker(server: TestServer, shape: RerankShape, **options: Any) -> HttpReranker:
    return HttpReranker(server.url, "some-model", shape=shape, wait=lambda seconds: None, **options)


@pytest.mark.parametrize(
    ("shape", "path", "body"),
    [
        (RerankShape.TEI, "/rerank", {"query": "q", "texts": ["a", "b"], "raw_scores": False}),
        (
            RerankShape.COHERE,
            "/v2/rerank",
            {"model": "some-model", "query": "q", "documents": ["a", "b"], "top_n": 2},
        ),
        (
            RerankShape.JINA,
            "/v1/rerank",
            {"model": "some-model", "query": "q", "documents": ["a", "b"], "top_n": 2},
        ),
    ],
)
def test_each_shape_is_asked_as_its_server_expects(
    shape: RerankShape, path: str, body: dict[str, Any]
) -> None:
    with serving(rerank_server) as server:
        reranker(server, shape).score("q", ["a", "b"])

    assert server.asked[0].path == path
    assert server.asked[0].body == body


def scores(values: list[tuple[int, Any]]) -> Callable[[Asked], Answer]:
    return lambda asked: Answer([{"index": index, "score": value} for index, value in values])


def test_probabilities_become_logits_and_certainty_stays_finite() -> None:
    with serving(scores([(2, 1.0), (0, 0.5), (1, 0.0)])) as server:
        logits = reranker(server, RerankShape.TEI).score("q", ["a", "b", "c"])

    np.testing.assert_allclose(logits, [0.0, -16.118, 16.118], atol=1e-3)


def test_logits_stay_logits_when_configured() -> None:
    with serving(scores([(0, -7.5), (1, 3.25)])) as server:
        logits = reranker(server, RerankShape.TEI, scores_are_logits=True).score("q", ["a", "b"])

    assert logits.tolist() == [-7.5, 3.25]
    assert server.asked[0].body["raw_scores"] is True


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (scores([(0, 0.1), (1, 7.0)]), "configure the reranker's scores as logits"),
        (scores([(0, 0.1), (1, float("nan"))]), "not a finite number"),
        (scores([(0, 0.1), (1, "high")]), "not a number"),
        (scores([(0, 0.1), (1, None)]), "not a finite number|not a number"),
        (scores([(0, 0.1)]), "1 rows"),
        (scores([(0, 0.1), (5, 0.1)]), "for 2 texts"),
        (lambda asked: Answer({"results": []}), "not a list of objects"),
        (lambda asked: Answer(status=500), "answered 500"),
    ],
)
def test_a_wrong_rerank_answer_is_refused(answer: Callable[[Asked], Answer], message: str) -> None:
    with serving(answer) as server, pytest.raises((Corruption, Unavailable), match=message):
        reranker(server, RerankShape.TEI).score("q", ["a", "b"])
