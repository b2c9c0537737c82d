"""Small thresholds, so that short tests pass through compaction too."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hivemem.projection import adjacency, inverted_index, vectors


@pytest.fixture(scope="module", autouse=True)
def early_compaction() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for module in (adjacency, inverted_index, vectors):
            patch.setattr(module, "_COMPACT_MINIMUM", 3)
        yield
