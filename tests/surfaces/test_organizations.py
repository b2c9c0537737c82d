"""Organizations on the wire: what reads and writes say about them, the same over REST and MCP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from hivemem.errors import Unavailable
from hivemem.surfaces.cli.printing import print_answer
from hivemem.surfaces.operations import OPERATIONS, REST_PREFIX, Access
from hivemem.surfaces.wire_json import json_size
from tests.surfaces.company import WAYS, Company, company
from tests.surfaces.serving import bearer

BUDGET = 6_000
READS: dict[str, dict[str, Any]] = {
    "hm_recall": {"query": "leave"},
    "hm_get_overview": {},
    "hm_get_nodes": {"keys": ["policy_leave"]},
    "hm_find_related": {"start_node": "policy_leave"},
    "hm_list_orphans": {},
}


@pytest.fixture
async def firm(tmp_path: Path) -> AsyncIterator[Company]:
    async with company(tmp_path, max_answer_bytes=BUDGET) as running:
        await running.good(
            "acme",
            "hm_store",
            key="policy_leave",
            description="Acme gives 30 days of leave.",
            relationships=[{"to_key": "office_acme", "relationship": "is decided by"}],
        )
        await running.good("acme", "hm_store", key="policy_desk", description="Desks are chosen each day.")
        await running.good("erin", "hm_store", key="my_leave", description="My leave begins in May.")
        yield running


def listed(firm: Company, *names: str) -> list[dict[str, str]]:
    known = {"Acme": firm.acme, "Boats": firm.boats}
    return [{"organization_id": known[name].organization_id, "name": name} for name in names]


@pytest.mark.parametrize("way", WAYS)
async def test_each_status_of_recall_has_exactly_its_fields(firm: Company, way: str) -> None:
    acme = firm.acme.organization_id
    label = {"organization_id": acme, "name": "Acme", "graph_id": firm.acme.graph_id}
    assert "organization_memory" not in await firm.good("mallory", "hm_recall", way, query="leave")

    included = await firm.good("erin", "hm_recall", way, query="leave")
    assert [item["key"] for item in included["results"]] == ["my_leave"]
    part = included["organization_memory"]
    assert part["_search_meta"]["search_source"] == "hybrid"
    assert [item["key"] for item in part["results"]] == ["policy_leave"]
    assert set(part["results"][0]) == {*included["results"][0], "expansion_context"}
    assert {name: value for name, value in part.items() if name not in ("results", "_search_meta")} == {
        "status": "included",
        "organizations": listed(firm, "Acme"),
        "count": 1,
        **label,
    }
    named = await firm.good("bea", "hm_recall", way, query="leave", organization_id=acme)
    assert named["organization_memory"]["status"] == "included"
    assert named["results"] == []

    several = await firm.good("bea", "hm_recall", way, query="leave")
    assert several["organization_memory"] == {
        "status": "selection_required",
        "organizations": listed(firm, "Acme", "Boats"),
    }
    alone = await firm.good("erin", "hm_recall", way, query="leave", organization_id="none")
    assert alone["organization_memory"] == {"status": "excluded", "organizations": listed(firm, "Acme")}
    for sent in ({}, {"organization_id": acme}):
        bound = await firm.good("acme_reader", "hm_recall", way, query="leave", **sent)
        assert [item["key"] for item in bound["results"]] == ["policy_leave"]
        assert bound["organization_memory"] == {
            "status": "selected_graph",
            "organizations": listed(firm, "Acme"),
            **label,
        }


@pytest.mark.parametrize("way", WAYS)
async def test_a_failed_search_is_told_beside_ones_own_results(
    firm: Company, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    fresh = firm.api.services.hot.fresh

    async def breaks(graph_id: str) -> Any:
        if graph_id == firm.acme.graph_id:
            raise Unavailable("disk /dev/sda1 is gone")
        return await fresh(graph_id)

    monkeypatch.setattr(firm.api.services.hot, "fresh", breaks)
    answer = await firm.good("erin", "hm_recall", way, query="leave")
    assert answer["count"] == 1
    part = answer["organization_memory"]
    assert {"status": "failed", "organizations": listed(firm, "Acme"), "name": "Acme"} == {
        name: value for name, value in part.items() if name != "error"
    }
    assert part["error"].strip()
    assert "sda1" not in str(answer)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", READS)
async def test_foreign_and_unknown_organizations_are_refused_alike(
    firm: Company, name: str, way: str
) -> None:
    told: set[str] = set()
    ids = (firm.boats.organization_id, "org_nobody", firm.acme.graph_id, 'a" OR 1=1 --', "None")
    for who in ("erin", "mallory"):
        for organization_id in ids:
            refused = await firm.call(who, name, way, organization_id=organization_id, **READS[name])
            assert refused.error == "invalid_request"
            body = {key: value for key, value in refused.body.items() if key != "request_id"}
            body["detail"] = body["detail"].replace(repr(organization_id), "ID")
            told.add(str(body))
    assert len(told) == 1


async def test_the_status_of_a_refusal_is_400_and_headers_choose_nothing(firm: Company) -> None:
    for who, status in (("mallory", 400), ("erin", 200)):
        response = await firm.api.anonymous.post(
            f"{REST_PREFIX}/recall",
            json={"query": "leave", "organization_id": firm.acme.organization_id},
            headers=bearer(firm.keys[who]),
        )
        assert response.status_code == status
    headers = {"X-Organization-Id": firm.acme.organization_id, **bearer(firm.keys["mallory"])}
    response = await firm.api.anonymous.post(
        f"{REST_PREFIX}/recall", json={"query": "leave"}, headers=headers
    )
    assert (response.json()["count"], "organization_memory" in response.json()) == (0, False)


@pytest.mark.parametrize("way", WAYS)
async def test_other_reads_take_the_organizations_graph_instead(firm: Company, way: str) -> None:
    acme = {"organization_id": firm.acme.organization_id}
    for own in ({}, {"organization_id": "none"}):
        overview = await firm.good("erin", "hm_get_overview", way, **own)
        assert (overview["nodes"], overview["organizations"]) == (1, listed(firm, "Acme"))
        nodes = await firm.good("erin", "hm_get_nodes", way, keys=["policy_leave"], **own)
        assert nodes["missing"] == ["policy_leave"]
        refused = await firm.call("erin", "hm_find_related", way, start_node="policy_leave", **own)
        assert refused.error == "not_found"
        orphans = await firm.good("erin", "hm_list_orphans", way, **own)
        assert "my_leave" in [one["key"] for one in orphans["orphans"]]
    assert "organizations" not in await firm.good("mallory", "hm_get_overview", way)
    bound = await firm.good("acme_reader", "hm_get_overview", way)
    theirs = await firm.good("erin", "hm_get_overview", way, **acme)
    assert theirs == bound
    assert theirs["organizations"] == listed(firm, "Acme")
    assert theirs["nodes"] >= 2
    nodes = await firm.good("erin", "hm_get_nodes", way, keys=["policy_leave", "my_leave"], **acme)
    assert (list(nodes["nodes"]), nodes["missing"]) == (["policy_leave"], ["my_leave"])
    related = await firm.good(
        "erin", "hm_find_related", way, start_node="policy_leave", session_id="talk", **acme
    )
    assert [one["key"] for one in related["results"]] == ["office_acme"]
    await firm.api.services.touches.written()
    assert not await firm.api.services.store.touched(firm.acme.graph_id, "talk")
    orphans = await firm.good("erin", "hm_list_orphans", way, **acme)
    assert [one["key"] for one in orphans["orphans"]] == ["policy_desk"]


@pytest.mark.parametrize("way", WAYS)
async def test_write_mode_sends_every_write_to_the_organization_and_says_so(firm: Company, way: str) -> None:
    target = {
        "organization_id": firm.acme.organization_id,
        "name": "Acme",
        "graph_id": firm.acme.graph_id,
    }
    writes: dict[str, dict[str, Any]] = {
        "hm_store": {"key": "policy_mail", "description": "Mail is answered within a day."},
        "hm_update": {"key": "policy_mail", "description": "Mail is answered within two days."},
        "hm_add_relationships": {
            "relationships": [
                {"from_key": "policy_mail", "to_key": "policy_leave", "relationship": "is suspended during"}
            ]
        },
        "hm_ingest": {"text": "Ola met Kari in Bergen."},
        "hm_upload_file": {"filename": "plan.csv", "content_base64": "YSxiCjEsMgo=", "description": "Plan."},
        "hm_timeline_write": {"summary": "Desks were counted."},
        "restore_node": {"key": "policy_mail"},
        "hm_forget": {"key": "policy_mail"},
    }
    assert set(writes) == {one.name for one in OPERATIONS if one.access is Access.WRITE}
    await firm.write_mode("ada", firm.acme)
    store = firm.api.services.store
    ada = await firm.api.services.access.authenticate(firm.keys["ada"])
    own_before = await store.revision(ada.graph_id)
    for name, arguments in writes.items():
        before = await store.revision(firm.acme.graph_id)
        answer = await firm.good("ada", name, way, **arguments)
        assert answer["write_target"] == target, name
        assert await store.revision(firm.acme.graph_id) > before or name == "hm_timeline_write"
    assert await store.revision(ada.graph_id) == own_before
    entries = await firm.good("acme_reader", "hm_timeline", way, query="desks counted")
    assert entries["count"] == 1
    # Reads stay at one's own memory, with the organization's beside it.
    overview = await firm.good("ada", "hm_get_overview", way)
    assert overview["nodes"] == 0

    await firm.write_mode("ada", None)
    mine = await firm.good("ada", "hm_store", way, key="my_own", description="Mine alone.")
    assert "write_target" not in mine
    assert await store.revision(ada.graph_id) > own_before


@pytest.mark.parametrize("way", WAYS)
async def test_a_key_of_the_organization_names_the_target_and_a_members_key_is_refused(
    firm: Company, way: str
) -> None:
    answer = await firm.good("acme", "hm_store", way, key="policy_car", description="Cars are shared.")
    assert answer["write_target"]["name"] == "Acme"
    refused = await firm.call("acme_reader", "hm_store", way, key="policy_car", description="No.")
    assert refused.error == "forbidden"


async def test_both_lists_share_the_size_of_an_answer(firm: Company) -> None:
    long = "The leave of everybody is written down here, " * 40
    for number in range(6):
        await firm.good("acme", "hm_store", key=f"theirs_{number}", description=f"{long}{number}.")
        await firm.good("erin", "hm_store", key=f"mine_{number}", description=f"{long}{number}.")
    answer = await firm.good("erin", "hm_recall", query="leave of everybody")
    part = answer["organization_memory"]
    sizes = [json_size(answer["results"]), json_size(part["results"])]
    assert json_size(answer) <= BUDGET * 1.05
    assert min(answer["count"], part["count"]) >= 3
    assert max(sizes) < 2 * min(sizes)
    # What one list does not need is the other's.
    alone = await firm.good("bea", "hm_recall", query="leave", organization_id=firm.acme.organization_id)
    assert alone["results"] == []
    assert json_size(alone["organization_memory"]["results"]) > max(sizes)


async def test_people_read_whose_memory_it_is(firm: Company, capsys: pytest.CaptureFixture[str]) -> None:
    acme = firm.acme.organization_id

    async def printed(verb: str, who: str, name: str, **arguments: Any) -> str:
        print_answer(verb, await firm.good(who, name, **arguments), as_json=False)
        return capsys.readouterr().out

    found = await printed("recall", "erin", "hm_recall", query="leave")
    own, _, theirs = found.partition(f"organization Acme ({acme})")
    assert "my_leave" in own
    assert "policy_leave" in theirs
    assert "policy_leave" not in own
    several = await printed("recall", "bea", "hm_recall", query="leave")
    assert "choose one with --organization" in several
    assert firm.boats.organization_id in several
    assert "Acme" not in await printed("recall", "erin", "hm_recall", query="leave", organization_id="none")
    assert f"{acme}  Acme" in await printed("overview", "erin", "hm_get_overview")
    written = await printed("store", "acme", "hm_store", key="policy_car", description="Cars are shared.")
    assert f"in the memory of Acme ({acme})" in written
