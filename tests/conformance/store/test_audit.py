"""The audit log."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from hivemem.domain.accounts import AuditEvent, AuditQuery
from hivemem.ports.store import Store
from tests.support.builders import audit_event, graph, minutes, user

FULL = audit_event(
    "member.role",
    at=minutes(3),
    user_id="user_one",
    credential="key:0123456789ab",
    graph_id="graph_one",
    organization_id="org_one",
    target="user_two",
    address="2001:db8::1",
    request_id="req_1",
    detail={"from": "member", "to": "owner", "count": 1, "list": [None, "é"]},
)


async def read(store: Store, **conditions: object) -> list[AuditEvent]:
    return list(await store.audit_events(AuditQuery(**conditions)))  # pyright: ignore[reportArgumentType]


async def test_an_empty_log(store: Store) -> None:
    assert await read(store) == []
    await store.add_audit_events([])
    assert await read(store) == []


async def test_lines_come_back_newest_first_as_they_were(store: Store) -> None:
    await store.add_audit_events([FULL, audit_event()])
    await store.add_audit_events([audit_event("key.revoke", at=minutes(-5))])
    found = await read(store)
    assert [replace(event, id=0) for event in found] == [
        audit_event("key.revoke", at=minutes(-5)),
        audit_event(),
        FULL,
    ]
    ids = [event.id for event in found]
    assert ids == sorted(ids, reverse=True)
    assert len(set(ids)) == 3
    assert min(ids) > 0


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ({}, "edcba"),
        ({"user_id": "u1"}, "dba"),
        ({"graph_id": "g1"}, "eca"),
        ({"organization_id": "o1"}, "ba"),
        ({"action": "x"}, "cb"),
        ({"organization_id": "o1", "graph_id": "g1"}, "a"),
        ({"organization_id": "o1", "user_id": "u1", "action": "x"}, "b"),
        ({"graph_id": "g1", "user_id": "u1"}, "a"),
        ({"graph_id": "g1", "action": "x"}, "c"),
        ({"user_id": "u1", "action": "none"}, ""),
        ({"since": minutes(4)}, "ed"),
        ({"since": minutes(3), "graph_id": "g1"}, "ec"),
        ({"since": minutes(2), "user_id": "u1"}, "db"),
        ({"since": minutes(1), "organization_id": "o1"}, "ba"),
        ({"since": minutes(6)}, ""),
        ({"limit": 2}, "ed"),
        ({"limit": 0}, ""),
        ({"user_id": "u1", "limit": 1}, "d"),
    ],
)
async def test_conditions_combine(store: Store, conditions: dict[str, object], expected: str) -> None:
    await store.add_audit_events(
        [
            audit_event(at=minutes(1), target="a", user_id="u1", graph_id="g1", organization_id="o1"),
            audit_event("x", at=minutes(2), target="b", user_id="u1", organization_id="o1"),
            audit_event("x", at=minutes(3), target="c", user_id="u2", graph_id="g1"),
            audit_event(at=minutes(4), target="d", user_id="u1", graph_id="g2"),
            audit_event(at=minutes(5), target="e", graph_id="g1"),
        ]
    )
    assert "".join(str(event.target) for event in await read(store, **conditions)) == expected


async def test_the_log_is_read_page_by_page(store: Store) -> None:
    await store.add_audit_events([audit_event(target=str(number), user_id="u1") for number in range(7)])
    seen: list[str | None] = []
    before: int | None = None
    while page := await read(store, user_id="u1", before_id=before, limit=3):
        seen += [event.target for event in page]
        before = page[-1].id
    assert seen == list("6543210")


async def test_lines_written_at_once_are_all_there(store: Store) -> None:
    groups = [[audit_event(target=f"{group}-{number}") for number in range(5)] for group in range(6)]
    await asyncio.gather(*(store.add_audit_events(group) for group in groups))
    targets = [event.target for event in reversed(await read(store))]
    assert len(targets) == 30
    for group in range(6):
        own = [target for target in targets if str(target).startswith(f"{group}-")]
        assert own == [f"{group}-{number}" for number in range(5)]


async def test_the_log_outlives_those_it_names(store: Store) -> None:
    await store.add_user(user(), graph())
    await store.add_audit_events([FULL])
    assert await store.remove_user("user_one", minutes(1))
    assert await store.purge_graph("graph_one") == 0
    assert [replace(event, id=0) for event in await read(store)] == [FULL]
    assert await store.leftovers() == {}
