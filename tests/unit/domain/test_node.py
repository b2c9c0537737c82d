"""A node that exists is valid."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from hivemem.domain.node import EnrichmentStatus
from hivemem.errors import InvalidInput
from tests.support import builders as make


@pytest.mark.parametrize(
    "change",
    [
        {"key": " fact_one"},
        {"node_type": "recipe"},
        {"description": "  "},
        {"description": "nul\x00"},
        {"data": {"x": float("inf")}},
        {"search_text": "\ud800"},
        {"assets": ("nul\x00",)},
        {"write_version": 0},
        {"revision": -1},
        {"created_at": datetime(2026, 1, 1)},  # naive
    ],
)
def test_a_node_with_a_broken_field_cannot_exist(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        make.node(**change)


def test_exactly_placeholders_have_a_blank_description() -> None:
    assert make.placeholder("fact_x").placeholder
    assert not make.node("fact_x").placeholder
    with pytest.raises(InvalidInput, match="exactly placeholders"):
        make.node(enrichment_status=EnrichmentStatus.PLACEHOLDER)
