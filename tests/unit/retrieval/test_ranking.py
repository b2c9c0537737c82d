"""From evidence to relevance: order, bounds and the decision of the floor."""

from __future__ import annotations

import doctest
import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hivemem.retrieval import ranking
from hivemem.retrieval.analyse import analyse_query
from hivemem.retrieval.language import readable_share
from hivemem.retrieval.ranking import (
    FOREIGN_TRUST,
    REFERENCE_NODES,
    Calibration,
    Evidence,
    apply_floor,
    combined_logit,
    evidence_points,
    floor_points,
    manner_points,
    pair_share,
    ranking_points,
    reading_trust,
    relevance,
    relying_on_words,
    support_points,
)

C = Calibration(
    bm25=4.0,
    cosine=6.0,
    cosine_zero=0.4,
    support=0.5,
    context=0.25,
    read_slope=2.0,
    read_offset=-8.0,
    scale=0.5,
    offset=-1.0,
    asks=1.5,
    answers=0.5,
    floor=0.3,
    floor_growth=2.0,
    least_floor=-7.0,
    tail=1.0,
)

ordinary = st.floats(-60.0, 60.0)
finite = st.floats(allow_nan=False, allow_infinity=False)
shares = st.floats(0.0, 1.0)


def test_the_examples_in_the_docstrings() -> None:
    outcome = doctest.testmod(ranking)
    assert (outcome.failed, outcome.attempted > 0) == (0, True)


@pytest.mark.parametrize(
    ("evidence", "points"),
    [
        (Evidence(cosine=None, bm25=0.0, ideal=0.0), 0.0),
        (Evidence(cosine=None, bm25=0.0, ideal=7.0), 0.0),
        (Evidence(cosine=None, bm25=3.0, ideal=6.0), 2.0),
        (Evidence(cosine=0.9, bm25=0.0, ideal=6.0), 3.0),
        (Evidence(cosine=0.9, bm25=3.0, ideal=6.0), 5.0),
        (Evidence(cosine=0.4, bm25=0.0, ideal=6.0), 0.0),
        (Evidence(cosine=-0.8, bm25=3.0, ideal=6.0), 2.0),
    ],
)
def test_evidence_is_words_and_nearness(evidence: Evidence, points: float) -> None:
    assert evidence_points(evidence, C) == pytest.approx(points)


@given(st.floats(-1.0, 1.0), st.floats(-1.0, 1.0), shares, shares)
@settings(max_examples=60)
def test_more_evidence_never_gives_fewer_points(a: float, b: float, c: float, d: float) -> None:
    low = evidence_points(Evidence(cosine=min(a, b), bm25=min(c, d), ideal=1.0), C)
    high = evidence_points(Evidence(cosine=max(a, b), bm25=max(c, d), ideal=1.0), C)
    assert 0.0 <= low <= high


def test_support_is_a_share_of_the_best_two() -> None:
    assert support_points([], C) == 0.0
    assert support_points([3.0], C) == pytest.approx(1.5)
    assert support_points([1.0, 3.0, 2.0, 0.5], C) == pytest.approx(2.5)


@given(st.lists(st.floats(0.0, 20.0), max_size=8), st.floats(0.0, 20.0))
@settings(max_examples=60)
def test_one_more_neighbour_never_takes_support_away(neighbours: list[float], more: float) -> None:
    assert support_points([*neighbours, more], C) >= support_points(neighbours, C)
    assert support_points(reversed(neighbours), C) == support_points(neighbours, C)


def test_two_opinions_are_mixed_and_one_stands_alone() -> None:
    assert combined_logit(None, None, C) is None
    assert combined_logit(2.0, None, C) == 2.0
    assert combined_logit(None, -3.0, C) == -3.0
    assert combined_logit(2.0, 6.0, C) == pytest.approx(0.75 * 2.0 + 0.25 * 6.0)


def points(
    logit: float | None = None, trust: float = 1.0, evidence: float = 0.0, support: float = 0.0
) -> float:
    return ranking_points(
        logit=logit, trust=trust, evidence=evidence, support=support, respelled=0.0, calibration=C
    )


@pytest.mark.parametrize(
    ("asks", "follows_question", "expected"),
    [(False, False, 0.0), (True, False, -1.5), (False, True, 0.5), (True, True, -1.0)],
)
def test_a_reply_gains_and_a_question_loses(asks: bool, follows_question: bool, expected: float) -> None:
    manner = manner_points(asks=asks, follows_question=follows_question, calibration=C)
    assert manner == expected
    plain, moved = (
        ranking_points(
            logit=2.0, trust=0.5, evidence=1.0, support=0.0, respelled=0.0, manner=one, calibration=C
        )
        for one in (0.0, manner)
    )
    assert moved - plain == pytest.approx(expected)


@pytest.mark.parametrize(
    ("query", "share"),
    [
        ("who services the boiler?", 0.0),
        ("备用钥匙", 1.0),
        ("サーバー", 1.0),
        ("ประชุม", 0.0),
        ("钥匙 boiler", 0.5),
        ("", 0.0),
    ],
)
def test_pairs_of_characters_are_counted_among_the_words(query: str, share: float) -> None:
    assert pair_share(analyse_query(query)) == share


def test_a_question_in_pairs_weighs_words_twice() -> None:
    unread = relying_on_words(C, 0.0)
    pairs = relying_on_words(C, 0.0, pairs=1.0)
    assert (pairs.bm25, pairs.cosine) == (2.0 * unread.bm25, 0.0)


def test_a_text_that_nobody_read_counts_by_its_evidence() -> None:
    assert points(None, evidence=3.0, support=1.0) == pytest.approx(2.0 * 4.0 - 8.0 + 4.0)
    assert points(5.0, trust=0.0, evidence=3.0, support=1.0) == points(None, evidence=3.0, support=1.0)


def test_trust_moves_from_the_evidence_to_the_reader() -> None:
    unread, read = points(None, evidence=3.0), points(7.0, evidence=3.0)
    assert read == pytest.approx(7.0 + 3.0)
    assert points(7.0, trust=0.5, evidence=3.0) == pytest.approx((unread + read) / 2)


@given(ordinary, ordinary, shares, st.floats(0.0, 12.0), st.floats(0.0, 6.0))
@settings(max_examples=60)
def test_a_better_opinion_never_lowers_the_points(
    a: float, b: float, trust: float, evidence: float, support: float
) -> None:
    low, high = sorted((a, b))
    assert points(low, trust, evidence, support) <= points(high, trust, evidence, support) + 1e-9


@given(ordinary, ordinary)
@settings(max_examples=60)
def test_relevance_rises_with_the_points(a: float, b: float) -> None:
    low, high = sorted((a, b))
    assert 0.0 < relevance(low, C) <= relevance(high, C) < 1.0
    if high - low > 0.01:
        assert relevance(low, C) < relevance(high, C)


@given(finite)
@settings(max_examples=60)
def test_relevance_of_any_finite_points_is_a_probability(value: float) -> None:
    found = relevance(value, C)
    assert math.isfinite(found)
    assert 0.0 <= found <= 1.0


@pytest.mark.parametrize(("value", "expected"), [(1e308, 1.0), (-1e308, 0.0), (2.0, 0.5)])
def test_relevance_at_the_ends_and_in_the_middle(value: float, expected: float) -> None:
    assert relevance(value, C) == expected


def test_the_floor_is_meant_for_a_graph_of_the_reference_size() -> None:
    assert relevance(floor_points(C, REFERENCE_NODES), C) == pytest.approx(C.floor)
    larger = floor_points(C, round(REFERENCE_NODES * math.e))
    assert larger - floor_points(C, REFERENCE_NODES) == pytest.approx(C.floor_growth, abs=1e-3)


def test_the_floor_of_a_small_graph_does_not_fall_for_ever() -> None:
    assert floor_points(C, 1) == floor_points(C, 0) == C.least_floor
    assert floor_points(replace(C, floor_growth=0.0), 1) == floor_points(C, REFERENCE_NODES)


@pytest.mark.parametrize("nodes", [0, 1, 1000, 10**6])
def test_a_floor_of_zero_keeps_everything_and_one_of_one_nothing(nodes: int) -> None:
    lax, strict = floor_points(replace(C, floor=0.0), nodes), floor_points(replace(C, floor=1.0), nodes)
    assert apply_floor([-1e9, 0.0], [False, False], floor=lax, tail=C.tail).kept == (0, 1)
    assert apply_floor([1e9, 0.0], [False, False], floor=strict, tail=C.tail).kept == ()
    assert (relevance(lax, C), relevance(strict, C)) == (0.0, 1.0)


@given(shares, shares, st.integers(0, 10**7), st.integers(0, 10**7))
@settings(max_examples=60)
def test_the_floor_rises_with_the_setting_and_with_the_graph(a: float, b: float, m: int, n: int) -> None:
    low, high = (replace(C, floor=floor) for floor in sorted((a, b)))
    few, many = sorted((m, n))
    assert floor_points(low, many) <= floor_points(high, many)
    assert floor_points(low, few) <= floor_points(low, many)


@pytest.mark.parametrize(
    ("points", "exact", "kept"),
    [
        ([], [], ()),
        ([1.9, -5.0], [False, False], ()),
        ([2.0], [False], (0,)),
        ([9.0, 1.5, 0.9], [False, False, False], (0, 1)),
        ([1.0, 2.1, 0.5], [False, False, False], (0, 1)),
        ([-9.0, 1.9], [True, False], (0,)),
        ([-9.0, -8.0], [True, True], (0, 1)),
        ([-9.0, 9.0, 0.0], [True, False, False], (0, 1)),
    ],
)
def test_the_best_hit_opens_the_list_and_exact_hits_always_stay(
    points: list[float], exact: list[bool], kept: tuple[int, ...]
) -> None:
    decision = apply_floor(points, exact, floor=2.0, tail=1.0)
    assert decision.kept == kept
    assert decision.below_floor == len(points) - len(kept)


@given(st.lists(st.tuples(ordinary, st.booleans()), max_size=12), ordinary, st.floats(0.0, 10.0))
@settings(max_examples=60)
def test_the_floor_never_drops_a_better_hit_and_keeps_a_worse_one(
    hits: list[tuple[float, bool]], floor: float, tail: float
) -> None:
    decision = apply_floor([hit[0] for hit in hits], [hit[1] for hit in hits], floor=floor, tail=tail)
    assert decision.below_floor + len(decision.kept) == len(hits)
    assert decision.kept == tuple(sorted(decision.kept))
    dropped = [hit for position, hit in enumerate(hits) if position not in decision.kept]
    kept = [hit for position, hit in enumerate(hits) if position in decision.kept]
    assert not any(exact for _, exact in dropped)
    weakest = min((value for value, exact in kept if not exact), default=math.inf)
    assert all(value < weakest for value, _ in dropped)


@pytest.mark.parametrize(
    ("query", "text", "expected"),
    [
        ("where is the key?", "The key hangs behind the door.", 1.0),
        ("1234 !?", "5678", 1.0),
        ("钥匙在哪里", "The key hangs behind the door.", 0.0),
        ("where is the key?", "备用钥匙放在前台抽屉里。", 0.0),
        ("أين المفتاح", "المفتاح خلف الباب", 0.0),
        ("กุญแจอยู่ที่ไหน", "กุญแจอยู่หลังประตู", 0.0),
        ("где ключ", "ключ за дверью", 0.0),
    ],
)
def test_the_reader_is_trusted_in_latin_script(query: str, text: str, expected: float) -> None:
    assert (
        reading_trust(query, text, query_words=3, seen_characters=len(text), all_characters=len(text))
        == expected
    )


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("où est la clé?", "La clé est derrière la porte."),
        ("năm 2025", "Năm 2025 đội chuyển văn phòng."),
        ("wo ist der Schlüssel für die Tür?", "Der Schlüssel hängt hinter der Tür."),
    ],
)
def test_accents_do_not_end_the_trust(query: str, text: str) -> None:
    assert min(readable_share(query), readable_share(text)) >= 0.5
    assert reading_trust(query, text, query_words=3, seen_characters=9, all_characters=9) >= FOREIGN_TRUST


@given(st.text(max_size=60))
@settings(max_examples=60)
def test_a_text_is_read_for_the_most_part_or_not_at_all(text: str) -> None:
    share = readable_share(text)
    assert share == 0.0 or 0.5 <= share <= 1.0


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("", 1.0),
        ("7731 !?", 1.0),
        ("EBADLEASE_7731", 1.0),
        ("ключ", 0.0),
        ("钥匙 key", 0.6),
        ("备用钥匙 key", 0.0),
    ],
)
def test_the_share_counts_letters_alone(text: str, share: float) -> None:
    assert readable_share(text) == pytest.approx(share)


@given(shares)
@settings(max_examples=60)
def test_what_meaning_cannot_tell_words_must(share: float) -> None:
    changed = relying_on_words(C, share)
    assert changed.bm25 + changed.cosine == pytest.approx(C.bm25 + C.cosine)
    assert 0.0 <= changed.cosine <= C.cosine
    assert replace(changed, bm25=C.bm25, cosine=C.cosine) == C


def test_words_alone_or_the_formula_as_it_is() -> None:
    assert relying_on_words(C, 1.0) == C
    near = Evidence(cosine=0.9, bm25=0.0, ideal=5.0)
    assert evidence_points(near, relying_on_words(C, 0.0)) == 0.0


def test_trust_falls_with_the_part_that_was_not_seen() -> None:
    assert reading_trust(
        "key", "a key", query_words=3, seen_characters=50, all_characters=200
    ) == pytest.approx(0.5)
    assert reading_trust("key", "", query_words=3, seen_characters=0, all_characters=0) == 1.0


@given(st.text(max_size=40), st.text(max_size=80), st.integers(0, 500), st.integers(0, 500))
@settings(max_examples=60)
def test_trust_is_a_share_and_seeing_more_never_lowers_it(query: str, text: str, a: int, b: int) -> None:
    low, high = sorted((a, b))
    less = reading_trust(query, text, query_words=3, seen_characters=low, all_characters=500)
    more = reading_trust(query, text, query_words=3, seen_characters=high, all_characters=500)
    assert 0.0 <= less <= more <= 1.0
