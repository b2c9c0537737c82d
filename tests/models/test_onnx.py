"""The real models: known numbers, and exactness whatever else is computed at the same time."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from hivemem.errors import InvalidInput
from hivemem.models.onnx import BGE_QUERY_PREFIX, OnnxEmbedder, OnnxReranker, usable_cores
from hivemem.models.passages import PassageLimits
from hivemem.models.weights import EMBEDDER, RERANKER, packaged_files
from tests.conformance.models.texts import ALL, ORDINARY
from tests.models.real import onnx_embedder, onnx_reranker

pytestmark = pytest.mark.models


GOLDEN_TOLERANCE = 1e-3
"""The same on every processor, with or without instructions for products of bytes (VNNI)."""


def test_canonical_entries_of_a_stored_text() -> None:
    vectors = onnx_embedder().embed_passages(ORDINARY[:2])

    expected = [
        [0.01172, -0.01254, 0.00152, 0.03773, 0.03120, -0.03612],
        [-0.05794, -0.02760, 0.02881, -0.04583, -0.02088, -0.04654],
    ]
    np.testing.assert_allclose(vectors[:, :6], expected, atol=GOLDEN_TOLERANCE)


def test_canonical_entries_of_a_question() -> None:
    vector = onnx_embedder().embed_query("who repairs the heating?")

    expected = [0.02217, -0.00778, 0.05006, 0.01989, 0.06462, -0.09509]
    np.testing.assert_allclose(vector[:6], expected, atol=GOLDEN_TOLERANCE)


def test_canonical_logits() -> None:
    logits = onnx_reranker().score("who repairs the heating?", ORDINARY[:2])

    np.testing.assert_allclose(logits, [-7.8227, -10.9208], atol=GOLDEN_TOLERANCE)


def test_a_question_carries_the_prefix_and_a_stored_text_does_not() -> None:
    question = "who repairs the heating?"
    as_text = onnx_embedder().embed_passages([BGE_QUERY_PREFIX + question, question])

    np.testing.assert_allclose(onnx_embedder().embed_query(question), as_text[0], atol=1e-6)
    assert as_text[0] @ as_text[1] < 0.99


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_results_are_bit_equal_for_every_number_of_threads(threads: int) -> None:
    embedder = OnnxEmbedder(packaged_files(EMBEDDER), threads=threads)
    reranker = OnnxReranker(packaged_files(RERANKER), threads=threads)

    np.testing.assert_array_equal(embedder.embed_passages(ALL), onnx_embedder().embed_passages(ALL))
    np.testing.assert_array_equal(reranker.score("keys?", ALL), onnx_reranker().score("keys?", ALL))


def test_results_are_bit_equal_under_concurrent_callers() -> None:
    embedder, reranker = onnx_embedder(), onnx_reranker()
    vectors, logits = embedder.embed_passages(ALL), reranker.score("keys?", ALL)
    calls: list[Callable[[], object]] = [
        lambda: np.testing.assert_array_equal(embedder.embed_passages(ALL), vectors),
        lambda: np.testing.assert_array_equal(reranker.score("keys?", ALL), logits),
    ] * 3

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(call) for call in calls]:
            done.result()


def test_passages_fit_the_window() -> None:
    text = "The quick brown fox jumps over the lazy dog near the river; again and again it does so. " * 600
    long_ones = OnnxEmbedder(
        packaged_files(EMBEDDER), passages=PassageLimits(target=128, window=510, preferred_count=4)
    )

    for embedder, most in ((onnx_embedder(), 160), (long_ones, 510)):
        spans = embedder.passages(text)
        tokens = [len(starts) for starts in embedder._token_starts([text[s.start : s.end] for s in spans])]
        assert max(tokens) <= most
        assert sum(tokens) / len(tokens) > 0.6 * most
        assert spans[-1].end == len(text.rstrip())


def test_limits_that_do_not_fit_the_model_are_refused() -> None:
    files = packaged_files(EMBEDDER)

    with pytest.raises(InvalidInput, match="do not fit the model's 510"):
        OnnxEmbedder(files, passages=PassageLimits(window=511))
    with pytest.raises(InvalidInput, match="threads=-1"):
        OnnxEmbedder(files, threads=-1)
    with pytest.raises(InvalidInput, match="leave no room"):
        OnnxReranker(packaged_files(RERANKER), pair_tokens=64, query_tokens=64)


def test_a_text_longer_than_the_pair_is_cut_and_a_shorter_one_is_not() -> None:
    narrow = OnnxReranker(packaged_files(RERANKER), threads=1, pair_tokens=64, query_tokens=32)
    text = "Spare keys hang behind the pantry door. " + "Nothing else is known about them at all. " * 20

    assert narrow.score("spare keys?", [text])[0] == narrow.score("spare keys?", [text + "More of it."])[0]
    assert narrow.score("spare keys?", [text[:80]])[0] != narrow.score("spare keys?", [text])[0]


def test_cores_are_those_this_process_may_use() -> None:
    assert usable_cores() >= 1
