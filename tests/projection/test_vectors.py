"""Vector search: best passage per node, exact scores, both with and without the sieve of signs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from hivemem.domain.graph import Passage
from hivemem.errors import Corruption, InvalidInput
from hivemem.projection import vectors as module
from hivemem.projection.hits import PassageHit
from hivemem.projection.vectors import Vectors

DIMENSION = 70  # not a multiple of 64: the last word of the signs is padded


def unit(rows: NDArray[np.floating]) -> NDArray[np.float32]:
    return (rows / np.linalg.norm(rows, axis=-1, keepdims=True)).astype(np.float32)


def passages(rows: NDArray[np.float32], source: str = "description") -> list[Passage]:
    return [
        Passage(source=source, start=10 * at, end=10 * at + 9, vector=row.astype("<f4").tobytes())
        for at, row in enumerate(rows)
    ]


def clustered(count: int, seed: int, dimension: int = DIMENSION) -> NDArray[np.float32]:
    """Unit vectors around common centres, as embeddings of texts about some topics lie."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((40, dimension))
    return unit(centres[rng.integers(40, size=count)] + 0.7 * rng.standard_normal((count, dimension)))


def naive(
    rows: dict[str, NDArray[np.float32]], query: NDArray[np.float32], k: int
) -> list[tuple[str, float, int]]:
    """Key, best cosine and start of the first best passage."""
    found: list[tuple[str, float, int]] = []
    for key, vectors in rows.items():
        scores = [float(np.vecdot(v.astype(np.float64), query.astype(np.float64))) for v in vectors]
        found.append((key, max(scores), 10 * scores.index(max(scores))))
    return sorted(found, key=lambda hit: (-hit[1], hit[0]))[:k]


def plain(hits: list[PassageHit]) -> list[tuple[str, float, int]]:
    return [(hit.key, hit.score, hit.start) for hit in hits]


keys = st.sampled_from([f"key_{number:02d}" for number in range(9)])
# Few distinct vectors, so that ties are common.
choices = st.lists(st.integers(0, 5), max_size=4)
POOL = clustered(6, seed=3)


@settings(max_examples=80, deadline=None)
@given(changes=st.lists(st.tuples(keys, choices), max_size=40), k=st.integers(1, 10), which=st.integers(0, 5))
def test_any_history_gives_the_hits_of_a_plain_loop(
    changes: list[tuple[str, list[int]]], k: int, which: int
) -> None:
    index, rows = Vectors(DIMENSION), dict[str, NDArray[np.float32]]()
    for key, chosen in changes:
        index.put(key, passages(POOL[chosen]))
        rows.pop(key, None)
        if chosen:
            rows[key] = POOL[chosen]
    expected = naive(rows, POOL[which], k)
    assert plain(index.search(POOL[which], k)) == expected
    exact = index.cosine(POOL[which], [*rows, "absent"])
    assert sorted(exact) == sorted(rows)
    assert all(exact[key].score == score for key, score, _ in expected)
    assert len(index) == sum(map(len, rows.values()))


@pytest.fixture
def small_sieve(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SIFTED", 400)
    monkeypatch.setattr(module, "_SIFTED_PER_HIT", 10)


@pytest.mark.usefixtures("small_sieve")
def test_the_sieve_keeps_the_best_and_their_exact_scores() -> None:
    data = clustered(6060, seed=1, dimension=384)
    data, queries = data[:6000], data[6000:]
    sifting, exact = Vectors(384, exact_rows=100), Vectors(384)
    for number, row in enumerate(data):
        for index in (sifting, exact):
            index.put(f"key_{number}", passages(row[None, :]))
    found = kept = 0
    for query in queries:
        best = exact.search(query, 10)
        sifted = sifting.search(query, 10)
        scores = exact.cosine(query, [hit.key for hit in sifted])
        assert all(scores[hit.key] == hit for hit in sifted)
        found += len(best)
        kept += len({hit.key for hit in best} & {hit.key for hit in sifted})
    assert kept / found >= 0.99


@pytest.mark.usefixtures("small_sieve")
def test_a_change_is_seen_at_once_behind_the_sieve() -> None:
    data = clustered(3000, seed=4)
    index = Vectors(DIMENSION, exact_rows=100)
    for number, row in enumerate(data):
        index.put(f"key_{number}", passages(row[None, :]))
    query = unit(np.random.default_rng(5).standard_normal(DIMENSION))
    index.put("key_7", passages(query[None, :]))
    assert index.search(query, 1)[0].key == "key_7"
    index.put("added", passages(np.stack((-query, query)), source="search_text"))
    hits = index.search(query, 2)
    assert [hit.key for hit in hits] == ["added", "key_7"]
    assert (hits[0].source, hits[0].start) == ("search_text", 10)
    index.remove("added")
    index.put("key_7", passages(-query[None, :]))
    assert not {"added", "key_7"} & {hit.key for hit in index.search(query, 50)}
    for number in range(2000):
        index.remove(f"key_{number}")
    rest = {f"key_{number}": data[number : number + 1] for number in range(2000, 3000)}
    assert plain(index.search(query, 5)) == naive(rest, query, 5)


def test_many_passages_of_one_node_do_not_crowd_out_others() -> None:
    index = Vectors(DIMENSION)
    query = POOL[0]
    index.put("book", passages(np.repeat(query[None, :], 500, axis=0)))
    index.put("card", passages(-query[None, :]))
    assert [hit.key for hit in index.search(query, 2)] == ["book", "card"]


def test_no_passages_removes_a_node() -> None:
    index = Vectors(DIMENSION)
    index.put("note", passages(POOL[:2]))
    index.put("note", [])
    assert len(index) == 0
    assert index.search(POOL[0], 5) == []
    assert index.cosine(POOL[0], ["note"]) == {}


def test_equal_vectors_with_moved_passages_are_replaced() -> None:
    index = Vectors(DIMENSION)
    index.put("note", passages(POOL[:1]))
    index.put("note", [Passage(source="search_text", start=3, end=4, vector=POOL[0].tobytes())])
    hit = index.search(POOL[0], 1)[0]
    assert (hit.source, hit.start, hit.end) == ("search_text", 3, 4)


def test_a_vector_of_another_model_is_refused_by_name() -> None:
    index = Vectors(DIMENSION)
    with pytest.raises(Corruption, match="'note' has 8 bytes, not 280"):
        index.put("note", [Passage(source="description", start=0, end=1, vector=bytes(8))])
    broken = np.full((1, DIMENSION), np.nan, dtype=np.float32)
    with pytest.raises(Corruption, match="not finite"):
        index.put("note", passages(broken))
    with pytest.raises(InvalidInput, match=r"shape \(3,\)"):
        index.search(np.zeros(3, dtype=np.float32), 5)
