"""The hashing embedder gives the same numbers on every machine and in every release."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from hivemem.errors import InvalidInput
from hivemem.models.hashing import HashingEmbedder

SHOW = (
    "from hivemem.models.hashing import HashingEmbedder as E;"
    "v = E(16).embed_query('Spare keys hang behind the pantry door.');"
    "print([round(float(x), 4) for x in v])"
)


def test_numbers_stay_what_they_are_across_releases() -> None:
    vector = HashingEmbedder(8).embed_query("Spare keys")

    # A change here needs another version in `model_id`.
    expected = [-0.1224, 0.2447, 0.0, -0.1224, 0.9382, 0.0, 0.1224, 0.1224]
    np.testing.assert_allclose(vector, expected, atol=1e-4)


def test_another_process_gives_the_same_vector() -> None:
    shown = {
        subprocess.run(
            [sys.executable, "-c", SHOW],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }

    assert len(shown) == 1


def test_case_and_width_do_not_matter_and_parts_of_words_do() -> None:
    embedder = HashingEmbedder()
    base = embedder.embed_query("lighthouse keeper")

    np.testing.assert_array_equal(base, embedder.embed_query("LIGHTHOUSE, ｋeeper!"))
    assert base @ embedder.embed_query("lighthouses") > base @ embedder.embed_query("quarterly budget") + 0.2


def test_the_id_names_the_dimension() -> None:
    assert HashingEmbedder(64).model_id == "hashing:64:v1"
    assert HashingEmbedder(64).dimension == 64


def test_a_dimension_too_small_is_refused() -> None:
    with pytest.raises(InvalidInput, match="dimension=4"):
        HashingEmbedder(4)
