"""BM25: equal to the formula written down naively, exact in its order, and independent of history."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hivemem.projection import postings as postings_module
from hivemem.projection.postings import LEAST_DOCUMENTS, Postings
from hivemem.retrieval.analyse import (
    AnalysedQuery,
    DocumentTerms,
    QueryWord,
    WeightedTerm,
    analyse_query,
    document_terms,
)

TERMS = [f"w{number}" for number in range(8)]
documents = st.dictionaries(st.sampled_from(TERMS), st.integers(1, 4), max_size=5).map(
    lambda frequencies: DocumentTerms(frequencies=frequencies, length=sum(frequencies.values()))
)
keys = st.sampled_from([f"key_{number:02d}" for number in range(12)])
weighted = st.builds(
    WeightedTerm, text=st.sampled_from([*TERMS, "unknown"]), weight=st.sampled_from([1.0, 0.5])
)
words = st.builds(
    QueryWord,
    surface=st.just("word"),
    terms=st.lists(weighted, min_size=1, max_size=3, unique_by=lambda term: term.text).map(tuple),
    informative=st.booleans(),
    identifier=st.just(False),
)
queries = st.lists(words, max_size=5).map(lambda found: AnalysedQuery(words=tuple(found), shortened=False))
changes = st.lists(st.tuples(keys, st.none() | documents), max_size=60)


def naive_scores(
    corpus: Mapping[str, DocumentTerms], query: AnalysedQuery, k1: float = 0.9, b: float = 0.4
) -> dict[str, float]:
    weights: dict[str, float] = {}
    for word in query.words:
        for term in word.terms if word.informative else ():
            weights[term.text] = max(term.weight, weights.get(term.text, 0.0))
    mean = sum(d.length for d in corpus.values()) / len(corpus) if corpus else 1.0
    scores = dict.fromkeys(corpus, 0.0)
    for term, weight in weights.items():
        df = sum(term in d.frequencies for d in corpus.values())
        idf = math.log(1 + (max(len(corpus), LEAST_DOCUMENTS) - df + 0.5) / (df + 0.5))
        for key, d in corpus.items():
            tf = d.frequencies.get(term, 0)
            norm = k1 * (1 - b + b * d.length / mean) if mean else k1
            scores[key] += weight * idf * tf * (k1 + 1) / (tf + norm)
    return scores


def build(corpus: Mapping[str, DocumentTerms]) -> Postings:
    index = Postings()
    for key, terms in corpus.items():
        index.put(key, terms)
    return index


def clear_up(index: Postings) -> None:
    """What `GraphIndex` does after each page."""
    if index.compacts:
        index.adopt(index.compacted())


@settings(max_examples=80, deadline=None)
@given(changes=changes, query=queries, k=st.integers(1, 15))
def test_any_history_gives_the_scores_of_the_formula_and_of_a_rebuild(
    changes: list[tuple[str, DocumentTerms | None]], query: AnalysedQuery, k: int
) -> None:
    index, corpus = Postings(), dict[str, DocumentTerms]()
    for key, terms in changes:
        if terms is None:
            assert index.remove(key) == (corpus.pop(key, None) is not None)
        else:
            assert index.put(key, terms) == (corpus.get(key) != terms)
            corpus[key] = terms
        clear_up(index)
    naive = naive_scores(corpus, query)
    scored = index.scores(query, [*corpus, "absent"])
    assert {key: score.bm25 for key, score in scored.items() if key != "absent"} == pytest.approx(naive)
    hits = [(hit.key, hit.score) for hit in index.search(query, k)]
    positive = {key: scored[key].bm25 for key, score in naive.items() if score > 0}
    assert hits == sorted(positive.items(), key=lambda pair: (-pair[1], pair[0]))[:k]
    rebuilt = build(dict(sorted(corpus.items())))
    assert [(hit.key, hit.score) for hit in rebuilt.search(query, k)] == hits
    assert rebuilt.scores(query, corpus) == index.scores(query, corpus)
    assert len(index) == len(corpus)
    assert {key: index.terms_of(key) for key in corpus} == corpus


@settings(max_examples=50, deadline=None)
@given(corpus=st.dictionaries(keys, documents, min_size=1), query=queries)
def test_no_document_reaches_the_ideal_score(corpus: dict[str, DocumentTerms], query: AnalysedQuery) -> None:
    for score in build(corpus).scores(query, corpus).values():
        assert score.bm25 < score.ideal or score.bm25 == score.ideal == 0.0


@settings(max_examples=50, deadline=None)
@given(corpus=st.dictionaries(keys, documents, min_size=1), query=queries)
def test_a_word_is_held_by_the_documents_with_one_of_its_terms(
    corpus: dict[str, DocumentTerms], query: AnalysedQuery
) -> None:
    scores = build(corpus).scores(query, corpus)
    for key, terms in corpus.items():
        assert scores[key].held == tuple(
            any(term.text in terms.frequencies for term in word.terms) for word in query.words
        )


def test_the_index_holds_nothing_of_removed_documents() -> None:
    index = Postings()
    empty = index.size_bytes
    for round_ in range(5):
        for number in range(40):
            index.put(f"key_{number}", document_terms(f"text number {number} of round {round_}"))
            clear_up(index)
    for number in range(40):
        index.remove(f"key_{number}")
        clear_up(index)
    index.put("last", DocumentTerms(frequencies={}, length=0))
    clear_up(index)
    assert len(index) == 1
    assert index.size_bytes < empty + 5000
    assert index.search(analyse_query("text number round"), 5) == []


def test_equal_scores_are_ordered_by_key_also_where_the_list_is_cut() -> None:
    index = Postings()
    names = [f"key_{number:03d}" for number in range(50)]
    for key in reversed(names):
        index.put(key, document_terms("the padlock code"))
    assert [hit.key for hit in index.search(analyse_query("padlock"), 7)] == names[:7]


def test_a_word_nobody_knows_raises_the_ideal_score() -> None:
    index = build({"a": document_terms("garden pump"), "b": document_terms("garden gate")})
    known = index.scores(analyse_query("garden pump"), ["a"])["a"]
    partly = index.scores(analyse_query("garden pump zeppelin"), ["a"])["a"]
    assert partly.bm25 == known.bm25
    assert partly.ideal > known.ideal
    assert partly.held == (True, True, False)


def test_a_replaced_text_is_found_by_its_new_words_only() -> None:
    index = build({"note": document_terms("office dog biscuit")})
    index.put("note", document_terms("quarterly tax filing"))
    assert index.search(analyse_query("biscuit"), 5) == []
    assert [hit.key for hit in index.search(analyse_query("tax"), 5)] == ["note"]


def test_stop_words_give_no_score_beside_informative_words() -> None:
    index = build({"a": document_terms("when is the fair"), "b": document_terms("the tax deadline")})
    assert [hit.key for hit in index.search(analyse_query("when is the tax due"), 5)] == ["b"]


def test_a_query_without_known_words_finds_nothing() -> None:
    index = build({"a": document_terms("garden pump")})
    assert index.search(analyse_query("zeppelin"), 5) == []
    assert index.search(analyse_query(""), 5) == []
    assert index.search(analyse_query("garden"), 0) == []
    assert Postings().search(analyse_query("garden"), 5) == []
    assert Postings().scores(analyse_query("garden"), ["a"])["a"].bm25 == 0.0


def test_documents_without_words_are_no_obstacle() -> None:
    empty = DocumentTerms(frequencies={}, length=0)
    index = build({"a": empty, "b": empty})
    assert index.search(analyse_query("garden"), 5) == []
    assert index.scores(analyse_query("garden"), ["a"])["a"].held == (False,)


@pytest.mark.parametrize("seed", range(4))
def test_leaving_out_frequent_words_changes_no_hit(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = random.Random(seed)
    vocabulary = [f"w{number}" for number in range(60)]
    weights = [1 / (rank + 1) for rank in range(60)]
    index, plain = Postings(), Postings()
    for number in range(1500):
        text = generator.choices(vocabulary, weights, k=generator.randint(1, 12))
        terms = DocumentTerms(frequencies=Counter(text), length=len(text))
        for each in (index, plain):
            each.put(f"key_{number:04d}", terms)
    for number in range(0, 1500, 7):
        for each in (index, plain):
            each.remove(f"key_{number:04d}")
    looked_up: list[int] = []
    whole = Postings._look_up  # type: ignore[attr-defined]
    monkeypatch.setattr(Postings, "_look_up", lambda self, *given: looked_up.append(1) or whole(self, *given))
    for _ in range(40):
        asked = generator.sample(vocabulary, 2) + generator.sample(vocabulary[:8], 3)
        query = AnalysedQuery(
            words=tuple(
                QueryWord(
                    surface=word,
                    terms=(WeightedTerm(text=word, weight=1.0),),
                    informative=True,
                    identifier=False,
                )
                for word in asked
            ),
            shortened=False,
        )
        for k in (1, 10):
            with monkeypatch.context() as patch:
                patch.setattr(postings_module, "_PRUNE_MINIMUM", 1)
                pruned = index.search(query, k)
            assert pruned == plain.search(query, k)
    assert looked_up
