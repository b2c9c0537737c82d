"""What every embedder promises: `hivemem.ports.models.Embedder`."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hivemem.ports.models import Embedder
from tests.conformance.models.texts import ALL, ODD, ORDINARY

LONG = (
    "Routine weekly status: builds green, no incidents, backlog groomed, holidays noted. " * 110
    + "The hint for recovering the vault is the phrase copper lighthouse."
)


def test_vectors_are_unit_finite_and_as_long_as_declared(embedder: Embedder) -> None:
    vectors = embedder.embed_passages(ALL)

    assert vectors.shape == (len(ALL), embedder.dimension)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)


@pytest.mark.parametrize("text", ALL, ids=range(len(ALL)))
def test_a_question_has_a_unit_vector(embedder: Embedder, text: str) -> None:
    vector = embedder.embed_query(text)

    assert vector.shape == (embedder.dimension,)
    assert vector.dtype == np.float32
    assert abs(float(np.linalg.norm(vector)) - 1.0) < 1e-5


def test_a_text_has_the_same_vector_alone_and_in_company(embedder: Embedder) -> None:
    together = embedder.embed_passages(ALL)
    alone = np.concatenate([embedder.embed_passages([text]) for text in ALL])
    turned_around = embedder.embed_passages(ALL[::-1])[::-1]

    np.testing.assert_allclose(together, alone, atol=1e-3)
    np.testing.assert_allclose(together, turned_around, atol=1e-3)


def test_no_texts_give_no_vectors(embedder: Embedder) -> None:
    assert embedder.embed_passages([]).shape == (0, embedder.dimension)


def test_the_model_has_a_name(embedder: Embedder) -> None:
    assert embedder.model_id.strip() == embedder.model_id != ""


def test_a_question_is_nearest_to_the_text_that_answers_it(embedder: Embedder) -> None:
    cosines = embedder.embed_passages(ORDINARY) @ embedder.embed_query("where are the spare keys?")

    assert int(np.argmax(cosines)) == 1


def test_a_question_longer_than_the_window_is_read_at_its_end(embedder: Embedder) -> None:
    background = "Background pasted by the user about an unrelated meeting. " * 250
    other = "Minutes of a conference about cattle feed. " * 400
    question = "What is the hint for recovering the vault?"

    vectors = [embedder.embed_query(background + question), embedder.embed_query(other + question)]
    without = embedder.embed_query(background)

    if embedder.model_id.startswith("hashing"):  # no window: it sees the whole question
        pytest.skip("this embedder has no window")
    assert not np.allclose(vectors[0], without, atol=1e-3)
    # The same tail after another beginning that lies outside the window gives the same vector.
    same_tail = embedder.embed_query(other + background + question)
    np.testing.assert_allclose(vectors[0], same_tail, atol=1e-3)


def covers(text: str, embedder: Embedder) -> None:
    spans = embedder.passages(text)
    covered = bytearray(len(text))
    for span in spans:
        assert 0 <= span.start < span.end <= len(text)
        covered[span.start : span.end] = b"\x01" * (span.end - span.start)
    assert all(covered[i] for i in range(len(text)) if not text[i].isspace())
    assert [(s.start, s.end) for s in spans] == sorted({(s.start, s.end) for s in spans})


@pytest.mark.parametrize("text", [*ALL, LONG, "." * 20_000, "a.\n" * 5_000, "会議。" * 3_000])
def test_passages_cover_the_text_in_order(embedder: Embedder, text: str) -> None:
    covers(text, embedder)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    parts=st.lists(st.sampled_from([*ODD, "One two three. ", "no end ", "\n", "。", "é", "🎉"]), max_size=40)
)
def test_passages_cover_any_text(embedder: Embedder, parts: list[str]) -> None:
    covers("".join(parts), embedder)


def test_a_short_text_is_one_passage_and_a_blank_one_none(embedder: Embedder) -> None:
    spans = embedder.passages("  Spare keys. Behind the door.\n")

    assert [(s.start, s.end) for s in spans] == [(2, 30)]
    assert embedder.passages("") == []
    assert embedder.passages(" \n\t\u3000") == []


def test_the_end_of_a_long_text_is_found_through_its_passages(embedder: Embedder) -> None:
    spans = embedder.passages(LONG)
    vectors = embedder.embed_passages([LONG[span.start : span.end] for span in spans])
    cosines = vectors @ embedder.embed_query("copper lighthouse")

    assert len(spans) > 5
    assert "copper lighthouse" in LONG[spans[-1].start : spans[-1].end]
    assert int(np.argmax(cosines)) == len(spans) - 1
