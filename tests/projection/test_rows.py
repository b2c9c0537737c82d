"""A matrix in blocks answers as one in a single piece."""

from __future__ import annotations

import numpy as np
import pytest

from hivemem.projection import rows as module
from hivemem.projection.rows import VectorRows


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BLOCK_ROWS", 8)


def test_rows_come_back_from_whichever_block_they_are_in() -> None:
    plain = np.random.default_rng(1).standard_normal((53, 5)).astype(np.float32)
    matrix = VectorRows(5)
    starts = [matrix.append(part) for part in np.split(plain, [1, 4, 21, 22, 40])]
    assert starts == [0, 1, 4, 21, 22, 40]
    assert (len(matrix), matrix.nbytes >= plain.nbytes) == (53, True)
    assert np.array_equal(matrix.between(6, 30), plain[6:30])
    assert np.array_equal(matrix.between(8, 16), plain[8:16])
    assert matrix.between(3, 3).shape == (0, 5)
    some = np.array([0, 7, 8, 23, 24, 52])
    assert np.array_equal(matrix.take(some), plain[some])
    query = plain[17]
    assert np.allclose(matrix.dots(query), plain @ query, atol=1e-6)
    assert np.allclose(matrix.dots(query, some), plain[some] @ query, atol=1e-6)
    matrix.replace(6, -plain[6:10])
    assert np.array_equal(matrix.between(6, 10), -plain[6:10])
    matrix.keep(some)
    assert np.array_equal(matrix.between(0, 6), np.concatenate((plain[[0]], -plain[[7, 8]], plain[some[3:]])))


def test_an_empty_matrix_has_no_products() -> None:
    matrix = VectorRows(3)
    nothing = np.zeros(0, dtype=np.intp)
    query = np.ones(3, dtype=np.float32)
    assert (len(matrix.dots(query)), matrix.take(nothing).shape) == (0, (0, 3))
