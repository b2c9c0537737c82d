"""How a text is cut: at sentences, up to a target, in bounded time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hivemem.errors import InvalidInput
from hivemem.models.passages import PassageLimits, estimated_token_starts, split_passages


def words(texts: Sequence[str]) -> list[list[int]]:
    return [[match.start() for match in re.finditer(r"\w+", text)] for text in texts]


def cut(text: str, **limits: int) -> list[str]:
    return [text[span.start : span.end] for span in split_passages(text, words, PassageLimits(**limits))]


def sentence(number: int, length: int = 5) -> str:
    return " ".join(f"w{number}x{i}" for i in range(length)) + "."


def test_sentences_are_packed_up_to_the_target_and_never_torn() -> None:
    text = " ".join(sentence(i) for i in range(12))

    passages = cut(text, target=12)

    assert passages == [f"{sentence(i)} {sentence(i + 1)}" for i in range(0, 12, 2)]


@pytest.mark.parametrize(
    "passages",
    [
        ["a b c d e f g h!", "i j k l m n o p?", "q r s t u v w x"],
        ["a b c d e f g h", "i j k l m n o p", "q r s t u v w x"],
        ['"a b c d e f g h."', "i j k l m n o p.)", "q r s t u v w x"],
        ["a b c d e 3.7.12.", "i j k l m n o p.", "q r s t u v w x"],
    ],
    ids=["sentences", "lines", "quotes", "numbers"],
)
def test_boundaries_are_ends_of_sentences_and_lines(passages: list[str]) -> None:
    assert cut("\n".join(passages), target=8) == passages


@pytest.mark.parametrize("mark", [". ", "! ", "? ", "… ", "。", "！", "？", "\n"])
def test_every_mark_ends_a_sentence(mark: str) -> None:
    text = mark.join(["a b c d e f g h", "i j k l m n o p"])

    assert cut(text, target=8) == ["a b c d e f g h" + mark.strip(), "i j k l m n o p"]


def test_a_point_inside_a_name_or_number_ends_nothing() -> None:
    text = "a b c d e f svc.kumo7 i 3.7.12 k l m"

    assert cut(text, target=8) == ["a b c d e f svc.kumo7", "i 3.7.12 k l m"]


def test_a_text_a_little_over_the_target_stays_whole() -> None:
    text = " ".join(sentence(i) for i in range(5))

    assert cut(text, target=20) == [text]
    assert len(cut(text + " " + sentence(5), target=20)) == 2


def test_a_run_without_boundaries_is_cut_between_words() -> None:
    text = " ".join(f"w{i}" for i in range(100))

    passages = cut(text, target=10)

    assert " ".join(passages) == text
    assert max(len(passage.split()) for passage in passages) <= 10


def test_a_run_without_blanks_is_cut_all_the_same() -> None:
    text = "abcdefgh" * 2_000

    passages = cut(text, target=64)

    assert "".join(passages) == text
    assert max(len(passage) for passage in passages) <= 2_000


def test_very_long_texts_get_longer_passages_and_then_more_of_them() -> None:
    def shape(sentences: int) -> tuple[int, int]:
        passages = cut(
            " ".join(sentence(i) for i in range(sentences)), target=10, window=50, preferred_count=20
        )
        return len(passages), max(len(passage.split()) for passage in passages)

    assert shape(20) == (10, 10)
    count, longest = shape(100)
    assert count <= 20
    assert 25 <= longest <= 50
    count, longest = shape(1_000)
    assert count == 100
    assert longest == 50


def test_overlap_repeats_the_last_sentence_when_it_is_short() -> None:
    text = " ".join(sentence(i) for i in range(6))

    assert cut(text, target=11, overlap=5) == [f"{sentence(i)} {sentence(i + 1)}" for i in range(5)]
    assert cut(text, target=11, overlap=4) == cut(text, target=11)


@pytest.mark.parametrize(
    "limits",
    [{"target": 7}, {"target": 20, "window": 19}, {"preferred_count": 0}, {"overlap": 128}, {"overlap": -1}],
)
def test_limits_that_cannot_work_are_refused(limits: dict[str, int]) -> None:
    with pytest.raises(InvalidInput):
        PassageLimits(**limits)


@settings(max_examples=100, deadline=None)
@given(
    parts=st.lists(
        st.sampled_from(["word", " ", ".", ". ", "\n", "。", "!", "\t\n", "🎉", "x" * 50, "é"]), max_size=200
    ),
    target=st.integers(8, 30),
    overlap=st.integers(0, 7),
)
def test_every_non_blank_character_is_in_a_passage_that_fits(
    parts: list[str], target: int, overlap: int
) -> None:
    text = "".join(parts)
    limits = PassageLimits(target=target, window=60, preferred_count=5, overlap=overlap)

    spans = split_passages(text, estimated_token_starts, limits)

    covered = {i for span in spans for i in range(span.start, span.end)}
    assert covered >= {i for i, character in enumerate(text) if not character.isspace()}
    assert all(not text[span.start].isspace() and not text[span.end - 1].isspace() for span in spans)
    assert all(a.start < b.start and a.end < b.end for a, b in pairwise(spans))
    if not overlap:
        assert all(a.end <= b.start for a, b in pairwise(spans))
    longest = max((len(estimated_token_starts([text[s.start : s.end]])[0]) for s in spans), default=0)
    assert longest <= 60


@pytest.mark.parametrize(
    "text", ["." * 300_000, "a" * 300_000, "\n" * 300_000, "a. " * 100_000, " " * 300_000]
)
def test_work_grows_with_the_length_of_the_text_and_not_its_square(text: str) -> None:
    seen: list[int] = []

    def counting(texts: Sequence[str]) -> list[list[int]]:
        seen.extend(len(t) for t in texts)
        return words(texts)

    split_passages(text, counting, PassageLimits())

    assert sum(seen) <= len(text)
    assert max(seen, default=0) <= 2_000
