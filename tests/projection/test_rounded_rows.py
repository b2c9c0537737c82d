"""Rows with one byte a number: near enough to choose by, and never the source of a score."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hivemem.domain.graph import Passage
from hivemem.projection.rows import RoundedRows
from hivemem.projection.vectors import Vectors

DIMENSION = 64


def unit_vectors(count: int, seed: int) -> NDArray[np.float32]:
    drawn = np.random.default_rng(seed).standard_normal((count, DIMENSION))
    return (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(np.float32)


def test_products_are_off_by_no_more_than_is_told() -> None:
    rows, query = unit_vectors(3_000, seed=1), unit_vectors(1, seed=2)[0]
    rounded = RoundedRows(DIMENSION)
    rounded.append(rows[:1_000])
    rounded.append(rows[1_000:])
    asked = np.arange(0, 3_000, 3)
    found, off = rounded.dots(query, asked)
    wrong = np.abs(found - rows[asked] @ query)
    assert len(rounded) == 3_000
    assert 0 < wrong.max() <= off < 0.02


def test_an_exchanged_row_counts_at_once() -> None:
    rows, query = unit_vectors(50, seed=3), unit_vectors(1, seed=4)[0]
    rounded = RoundedRows(DIMENSION)
    rounded.append(rows)
    rounded.replace(np.array([7, 20]), np.stack([query, -query]))
    found, off = rounded.dots(query, np.array([7, 20, 21]))
    assert np.allclose(found, [1.0, -1.0, rows[21] @ query], atol=off)


def test_a_vector_of_zeros_is_rounded_to_zeros() -> None:
    rounded = RoundedRows(DIMENSION)
    rounded.append(np.zeros((2, DIMENSION), dtype=np.float32))
    found, _ = rounded.dots(unit_vectors(1, seed=5)[0], np.array([0, 1]))
    assert found.tolist() == [0.0, 0.0]


def test_what_is_chosen_by_rounded_rows_has_the_scores_and_order_of_an_exact_search() -> None:
    rows = unit_vectors(2_010, seed=6)
    sifted, exact = Vectors(DIMENSION, exact_rows=1_000), Vectors(DIMENSION, exact_rows=10_000)
    for number, vector in enumerate(rows):
        passage = Passage(source="description", start=0, end=1, vector=vector.tobytes())
        sifted.put(f"n{number}", [passage])
        exact.put(f"n{number}", [passage])
    for query in unit_vectors(20, seed=7):
        # All but ten rows pass the sieve of signs, so that what is left out is left out by rounded rows.
        assert sifted.search(query, 30) == exact.search(query, 30)
