"""A node that everything is related to neither floods answers nor hides what is particular about it."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from hivemem.service.remember import StoreRequest
from tests.cases.memory import Memory, keys_of
from tests.cases.reports import Report, play

pytestmark = pytest.mark.models


@pytest.mark.shared
async def test_reported_hub(memory: Memory, report: Callable[[str], Report]) -> None:
    case = report("C24")
    await play(memory, case.setup)
    blocked, maria, maria_again, got = await play(memory, case.sequence)
    assert keys_of(blocked)[0] == "project_x"
    links = {(link.direction, link.key, link.relationship) for link in blocked.hits[0].expansion}
    assert ("outgoing", "vendor_contract", "blocked by") in links
    assert not any(key.startswith("log_") for key in keys_of(blocked))

    assert keys_of(maria)[0] == "person_maria"
    hub = maria.hits[0]
    assert len(hub.expansion) <= 10
    assert "owned by" in [link.relationship for link in hub.expansion]
    assert len(hub.expansion) + hub.expansion_omitted == 3_001
    assert maria_again.hits == maria.hits

    relationships = got.found["person_maria"].relationships
    assert len(relationships.edges) <= 100
    assert relationships.edge_total == 3_001
    for query in ("what blocks project x?", "Maria"):
        answer = await memory.answer("hm_recall", query=query, max_results=5)
        assert len(json.dumps(answer, ensure_ascii=False).encode()) < 30_000
    answer = await memory.answer("hm_get_nodes", keys=["person_maria"])
    assert len(json.dumps(answer, ensure_ascii=False).encode()) < 30_000


async def test_a_question_beside_a_hub_is_answered_by_its_own_words(memory: Memory) -> None:
    hub = {"to_key": "place_depot", "relationship": "happened at"}
    requests = [
        StoreRequest(key="place_depot", description="The depot in the harbour."),
        StoreRequest(
            key="incident_flood",
            description="Water stood in the cellar after the storm in May.",
            relationships=(hub, {"to_key": "decision_pump", "relationship": "led to the decision to"}),
        ),
        StoreRequest(key="decision_pump", description="We buy a second pump before the autumn."),
        *(
            StoreRequest(
                key=f"shift_{number}",
                description=f"Shift {number}: doors checked, lights off.",
                relationships=(hub,),
            )
            for number in range(300)
        ),
    ]
    await memory.store_all(requests)
    result = await memory.recall("why did we buy a second pump?", max_results=5)
    assert keys_of(result)[0] in ("decision_pump", "incident_flood")
    assert not any(key.startswith("shift_") for key in keys_of(result))
    flood = await memory.recall("flood in the cellar", max_results=5)
    assert keys_of(flood)[0] == "incident_flood"
    assert "decision_pump" in [link.key for link in flood.hits[0].expansion]
    depot = (await memory.recall("harbour depot", max_results=5)).hits[0]
    assert depot.node.key == "place_depot"
    assert len(depot.expansion) + depot.expansion_omitted == 301
