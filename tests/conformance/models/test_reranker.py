"""What every reranker promises: `hivemem.ports.models.Reranker`."""

from __future__ import annotations

import numpy as np

from hivemem.ports.models import Reranker
from tests.conformance.models.texts import ALL, ORDINARY

QUESTION = "where are the spare keys?"


def test_logits_are_finite_one_for_each_text(reranker: Reranker) -> None:
    logits = reranker.score(QUESTION, ALL)

    assert logits.shape == (len(ALL),)
    assert logits.dtype == np.float32
    assert np.isfinite(logits).all()


def test_a_pair_has_the_same_logit_alone_and_in_company(reranker: Reranker) -> None:
    together = reranker.score(QUESTION, ALL)
    alone = np.array([reranker.score(QUESTION, [text])[0] for text in ALL])
    turned_around = reranker.score(QUESTION, ALL[::-1])[::-1]

    np.testing.assert_allclose(together, alone, atol=1e-2)
    np.testing.assert_allclose(together, turned_around, atol=1e-2)


def test_the_text_that_answers_has_the_largest_logit(reranker: Reranker) -> None:
    assert int(np.argmax(reranker.score(QUESTION, ORDINARY))) == 1


def test_no_texts_give_no_logits(reranker: Reranker) -> None:
    assert reranker.score(QUESTION, []).shape == (0,)


def test_odd_questions_are_taken(reranker: Reranker) -> None:
    for question in ALL:
        assert np.isfinite(reranker.score(question, ORDINARY[:2])).all()


def test_a_long_question_is_read_at_its_end(reranker: Reranker) -> None:
    background = "Background pasted by the user about an unrelated meeting. " * 250

    def lead_of_the_answer(question: str) -> float:
        logits = reranker.score(question, ORDINARY)
        return float(logits[1] - np.delete(logits, 1).max())

    # Not that it wins: beside so much else that is asked, all texts lie close together.
    assert lead_of_the_answer(background + QUESTION) > lead_of_the_answer(background) + 1e-3


def test_the_window_and_the_name_are_stated(reranker: Reranker) -> None:
    assert reranker.window_characters > 100
    assert reranker.model_id.strip() == reranker.model_id != ""
