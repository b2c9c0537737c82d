"""Conversations: what they touched, and the hyperedge that groups it."""

from __future__ import annotations

import asyncio

import pytest

from hivemem.domain.graph import Kind
from hivemem.errors import InvalidInput
from hivemem.service.change import Change
from hivemem.service.chat_context import ChatContext
from hivemem.service.limits import Limits
from hivemem.service.remember import Remember, StoreRequest
from hivemem.service.session_groups import SessionGroups, session_hyperedge_id
from hivemem.service.session_touches import SessionTouches
from tests.service.conftest import GRAPH, OWNER, World


class Talk:
    """A graph with everything that follows conversations."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.groups = SessionGroups(store=world.store, clock=world.clock, delay_seconds=0.01)
        self.touches = SessionTouches(store=world.store, clock=world.clock, on_call=self.groups.called)
        self.context = ChatContext(store=world.store, touches=self.touches, groups=self.groups)
        self.remember = Remember(
            store=world.store,
            executor=world.executor,
            clock=world.clock,
            limits=Limits(),
            on_call=self.groups.called,
        )

    async def put(self, key: str, session_id: str = "talk") -> None:
        request = StoreRequest(key=key, description=f"About {key}.", session_id=session_id)
        await self.remember.store(OWNER, request)

    async def group(self, session_id: str = "talk"):
        await self.touches.written()
        await self.groups.written()
        id = session_hyperedge_id(session_id)
        return (await self.world.store.hyperedges(GRAPH, [id])).get(id)


@pytest.fixture
def talk(world: World) -> Talk:
    return Talk(world)


async def test_the_fifth_call_groups_what_was_touched(talk: Talk) -> None:
    for number in range(4):
        await talk.put(f"fact_{number}")
        assert await talk.group() is None
    talk.touches.record(GRAPH, "talk", ["fact_1", "fact_0"])
    group = await talk.group()
    assert group.relationship == "chat_talk"
    assert group.keys == ("fact_0", "fact_1", "fact_2", "fact_3")
    counts = await talk.world.store.counts(GRAPH)
    assert counts.hyperedges == 0, "it is no relationship that anybody stated"


async def test_it_grows_and_is_left_alone_when_nothing_new_is_touched(talk: Talk) -> None:
    for number in range(5):
        await talk.put(f"fact_{number % 2}")
    first = await talk.group()
    assert (first.keys, first.write_version) == (("fact_0", "fact_1"), 1)
    talk.touches.record(GRAPH, "talk", ["fact_0"])
    assert await talk.group() == first
    await talk.put("fact_9")
    grown = await talk.group()
    assert (grown.keys, grown.write_version, grown.created_at) == (
        ("fact_0", "fact_1", "fact_9"),
        2,
        first.created_at,
    )


async def test_one_node_is_no_group_and_losing_one_ends_it(talk: Talk) -> None:
    for _ in range(6):
        await talk.put("fact_0")
    assert await talk.group() is None
    await talk.put("fact_1")
    assert (await talk.group()).keys == ("fact_0", "fact_1")
    change = Change(store=talk.world.store, clock=talk.world.clock, limits=Limits())
    await change.forget_node(OWNER, "fact_0")
    assert await talk.group() is None
    versions = await talk.world.store.versions(GRAPH, Kind.HYPEREDGE, session_hyperedge_id("talk"))
    assert versions[0].state is None


async def test_calls_without_a_session_of_their_own_are_no_conversation(talk: Talk) -> None:
    for number in range(6):
        await talk.put(f"fact_{number}", session_id="default")
    assert await talk.group("default") is None


async def test_many_calls_at_once_make_one_group(talk: Talk) -> None:
    await asyncio.gather(*(talk.put(f"fact_{number:02d}") for number in range(20)))
    assert len((await talk.group()).keys) == 20


async def test_the_context_tells_what_was_touched_last_first(talk: Talk) -> None:
    for number in range(5):
        await talk.put(f"fact_{number}")
    talk.touches.record(GRAPH, "talk", ["fact_2"])
    context = await talk.context.context(OWNER, " talk ")
    assert [node.key for node, _ in context.nodes] == ["fact_2", "fact_4", "fact_3", "fact_1", "fact_0"]
    assert [touch.touch_count for _, touch in context.nodes] == [2, 1, 1, 1, 1]
    assert context.tool_calls == 6
    assert context.hyperedge is not None and context.hyperedge.relationship == "chat_talk"


async def test_an_unknown_conversation_is_empty(talk: Talk) -> None:
    context = await talk.context.context(OWNER, "never")
    assert (context.nodes, context.tool_calls, context.hyperedge) == ((), 0, None)
    with pytest.raises(InvalidInput, match="/session_id is blank"):
        await talk.context.context(OWNER, " ")
