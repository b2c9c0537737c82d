"""The diary, searched by words and written to by hand; conversations; reports of tokens."""

from __future__ import annotations

from hivemem.domain.graph import Session
from hivemem.domain.tokens import TokenReport
from hivemem.ports.store import Store
from hivemem.retrieval.analyse import analyse_query
from tests.conformance.store.observe import GRAPH, OTHER_GRAPH
from tests.support.builders import batch, delete, entry, minutes, node


def words(query: str) -> list[list[str]]:
    return [[term.text for term in word.terms] for word in analyse_query(query).words if word.informative]


async def found(store: Store, query: str, **filters) -> list[str]:
    events = await store.timeline(GRAPH, words=words(query), **filters)
    return [event.entry.summary for event in events]


async def test_a_line_is_found_by_all_words_of_a_query_in_any_form(store: Store) -> None:
    lines = (
        entry("Rotated the signing keys of café Zoë.", at=minutes(1), node_key="a_1"),
        entry("Rotated the tyres.", at=minutes(2)),
        entry("铁柜的钥匙。", at=minutes(3)),
    )
    await store.apply(GRAPH, batch(node("a_1"), *lines))
    assert await found(store, "rotate keys") == [lines[0].summary]
    assert await found(store, "ROTATING") == [lines[1].summary, lines[0].summary]
    assert await found(store, "cafe zoe") == [lines[0].summary]
    assert await found(store, "钥匙") == [lines[2].summary]
    assert await found(store, "rotated nothing") == []
    assert await found(store, "rotated", node_key="a_1") == [lines[0].summary]
    assert await found(store, "rotated", start=minutes(2)) == [lines[1].summary]
    assert await found(store, "rotated", end=minutes(2)) == [lines[0].summary]
    assert await found(store, "rotated", limit=1) == [lines[1].summary]


async def test_what_is_forgotten_is_not_found_by_its_words(store: Store) -> None:
    await store.apply(GRAPH, batch(node("a_1"), entry("Rotated keys.", node_key="a_1"), entry("Rotated.")))
    await store.apply(GRAPH, batch(delete(node("a_1"))))
    assert await found(store, "rotated") == ["Rotated."]


async def test_graphs_are_apart(store: Store) -> None:
    await store.add_event(GRAPH, entry("Rotated."))
    assert await store.timeline(OTHER_GRAPH, words=words("rotated")) == []


async def test_a_line_by_hand_gets_the_next_number_and_leaves_the_revision(store: Store) -> None:
    revision = await store.apply(GRAPH, batch(node("a_1"), entry("First.")))
    line = entry("By hand.", at=minutes(4), source="manual", meta={"mood": ["good", 1]})
    event = await store.add_event(GRAPH, line)
    assert (event.id, event.entry) == (2, line)
    assert (await store.add_event(GRAPH, line)).id == 3
    assert [one.id for one in await store.timeline(GRAPH)] == [3, 2, 1]
    assert (await store.timeline(GRAPH))[0].entry == line
    assert await store.revision(GRAPH) == revision


async def test_a_conversation_counts_its_calls(store: Store) -> None:
    await store.apply(GRAPH, batch(node("a_1")))
    assert await store.session(GRAPH, "s") is None
    for at in (5, 3, 4):
        await store.touch(GRAPH, "s", ["a_1"], minutes(at))
    assert await store.session(GRAPH, "s") == Session(
        session_id="s", tool_calls=3, first_call_at=minutes(3), last_call_at=minutes(5)
    )
    assert await store.session(OTHER_GRAPH, "s") is None


async def test_the_first_report_of_a_turn_stays(store: Store) -> None:
    def report(event_id: str, turn: int = 1, user: str = "user_one", session: str = "s") -> TokenReport:
        return TokenReport(
            event_id=event_id,
            user_id=user,
            session_id=session,
            turn_sequence=turn,
            report={"model": event_id, "weights": [1, 2.5]},
            recorded_at=minutes(turn),
        )

    first = await store.record_tokens(GRAPH, report("tok_1"))
    assert first == report("tok_1")
    assert await store.record_tokens(GRAPH, report("tok_2")) == first
    for other in (report("tok_3", turn=2), report("tok_4", user="user_two"), report("tok_5", session="t")):
        assert await store.record_tokens(GRAPH, other) == other
    assert await store.record_tokens(OTHER_GRAPH, report("tok_6")) == report("tok_6")
