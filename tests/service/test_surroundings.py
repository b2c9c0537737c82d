"""What lies around a node, what lies alone, and the list of a node's relationships."""

from __future__ import annotations

import itertools

import pytest

from hivemem.errors import InvalidInput, NotFound
from hivemem.projection.hot_graphs import HotGraphs
from hivemem.service.find_related import FindRelated, FindRelatedRequest, FindRelatedResult
from hivemem.service.limits import Limits
from hivemem.service.orphans import Orphans
from hivemem.service.relationships import RelationshipLists
from hivemem.service.session_touches import SessionTouches
from tests.service.conftest import GRAPH, LONG, OWNER, World


@pytest.fixture
def hot(world: World) -> HotGraphs:
    embedder = world.embedder
    return HotGraphs(world.store, model_id=embedder.model_id, dimension=embedder.dimension, max_bytes=1 << 30)


class Around:
    """Short for finding related nodes."""

    def __init__(self, world: World, hot: HotGraphs) -> None:
        self.touches = SessionTouches(store=world.store, clock=world.clock)
        self._find = FindRelated(
            store=world.store, hot=hot, executor=world.executor, limits=Limits(), touches=self.touches
        )

    async def __call__(self, start: str, **fields: object) -> FindRelatedResult:
        return await self._find.find_related(OWNER, FindRelatedRequest(start_node=start, **fields))  # type: ignore[arg-type]


@pytest.fixture
def around(world: World, hot: HotGraphs) -> Around:
    return Around(world, hot)


def _to(key: str, label: str = "leads to") -> dict[str, object]:
    return {"to_key": key, "relationship": label}


async def _chain(world: World, *keys: str) -> None:
    for key, following in itertools.pairwise(keys):
        await world.put(key, f"The node {key}.", _to(following, f"from {key}"))
    await world.put(keys[-1], f"The node {keys[-1]}.")


async def test_neighbours_come_with_their_distance_and_how_they_were_reached(
    world: World, around: Around
) -> None:
    await _chain(world, "fact_a", "fact_b", "fact_c", "fact_d")
    result = await around("fact_b", max_depth=2)
    assert {one.node.key: (one.hop, one.direction, one.relationship) for one in result.found} == {
        "fact_a": (1, "incoming", "from fact_a"),
        "fact_c": (1, "outgoing", "from fact_b"),
        "fact_d": (2, "outgoing", "from fact_c"),
    }
    assert [one.hop for one in result.found] == [1, 1, 2]
    assert (result.strategy, result.truncated) == ("decay", False)
    assert all(0 < one.score <= 1 and one.write_version == 1 for one in result.found)
    far = await around("fact_a", max_depth=9)
    assert "taken as 5" in far.warnings[0]


async def test_a_hyperedge_leads_to_its_other_participants(world: World, around: Around) -> None:
    item = {"participant_keys": ["fact_a", "fact_b", "fact_c"], "relationship": "met", "description": LONG}
    await world.put("fact_a", "One.", item)
    result = await around("fact_c")
    assert {(one.node.key, one.edge_kind) for one in result.found} == {
        ("fact_a", "hyperedge"),
        ("fact_b", "hyperedge"),
    }


async def test_a_cycle_ends_and_names_each_node_once(world: World, around: Around) -> None:
    keys = [f"fact_{number:02d}" for number in range(50)]
    await _chain(world, *keys)
    await world.put(keys[-1], "The last.", _to(keys[0], "closes the ring"))
    result = await around(keys[0], max_depth=5, max_nodes=500)
    found = [one.node.key for one in result.found]
    assert sorted(found) == sorted(keys[1:6] + keys[-5:])
    assert result.truncated is False


async def test_a_pattern_keeps_matching_relationships_only(world: World, around: Around) -> None:
    await world.put("fact_a", "One.", _to("fact_b", "Decided by C++ (old)"), _to("fact_c", "paid by"))
    assert [one.node.key for one in (await around("fact_a", relationship_pattern="^paid")).found] == [
        "fact_c"
    ]
    literal = await around("fact_a", relationship_pattern="c++ (OLD")
    assert [one.node.key for one in literal.found] == ["fact_b"]
    assert literal.strategy == "chain"
    assert (await around("fact_a", relationship_pattern="nothing like it")).found == ()


async def test_a_question_and_a_lens_change_the_order_and_drop_nothing(world: World, around: Around) -> None:
    await world.put("fact_a", "One.", *(_to(f"fact_{name}", "holds") for name in "bcde"))
    await world.put("fact_c", "Rotating signing keys needs a second person.")
    await world.put("fact_e", "A person of note.", node_type="person")
    plain = await around("fact_a")
    asked = await around("fact_a", query="who rotates the signing keys?")
    assert asked.found[0].node.key == "fact_c"
    lensed = await around("fact_a", lens="person")
    assert (lensed.found[0].node.key, lensed.strategy) == ("fact_e", "type_boosted")
    keys = {one.node.key for one in plain.found}
    assert keys == {one.node.key for one in asked.found} == {one.node.key for one in lensed.found}
    unknown = await around("fact_a", lens="nonsense")
    assert (unknown.strategy, "names no node type" in unknown.warnings[0]) == ("decay", True)


async def test_limits_cut_and_say_so(world: World, around: Around) -> None:
    await world.put("fact_hub", "A hub.", *(_to(f"fact_{number:03d}") for number in range(30)))
    result = await around("fact_hub", max_nodes=7, max_depth=1)
    assert (len(result.found), result.truncated) == (7, True)
    assert (await around("fact_hub", max_nodes=30, max_depth=1)).truncated is False


async def test_the_walk_is_part_of_its_conversation(world: World, around: Around) -> None:
    await _chain(world, "fact_a", "fact_b")
    await around("fact_a", session_id="talk")
    await around.touches.written()
    assert {touch.key for touch in await world.store.touched(GRAPH, "talk")} == {"fact_a", "fact_b"}


async def test_a_bad_walk_says_what_is_wrong(world: World, around: Around) -> None:
    await world.put("fact_a")
    with pytest.raises(NotFound, match="/start_node 'fact_none' does not exist"):
        await around("fact_none")
    for fields in ({"max_nodes": 0}, {"max_nodes": 501}, {"max_depth": 0}, {"session_id": " "}):
        with pytest.raises(InvalidInput, match=f"/{next(iter(fields))}"):
            await around("fact_a", **fields)
    with pytest.raises(InvalidInput, match="/relationship_pattern has 2000 characters"):
        await around("fact_a", relationship_pattern="x" * 2000)


async def test_orphans_page_by_page(world: World, hot: HotGraphs) -> None:
    orphans = Orphans(store=world.store, hot=hot)
    assert (await orphans.orphans(OWNER)).orphans == ()
    await world.put("fact_a", "One.", _to("fact_b"))
    for number in range(5):
        await world.put(f"fact_alone_{number}", "Alone.")
    pages: list[list[str]] = []
    cursor = None
    while True:
        page = await orphans.orphans(OWNER, limit=2, cursor=cursor)
        pages.append([node.key for node in page.orphans])
        cursor = page.next_cursor
        if cursor is None:
            break
    assert [len(page) for page in pages] == [2, 2, 1]
    assert [key for page in pages for key in page] == [f"fact_alone_{number}" for number in range(5)]
    await world.put("fact_alone_0", "Not any more.", _to("fact_a"))
    assert len((await orphans.orphans(OWNER)).orphans) == 4
    for bad in ("%%%", "a", "/w=="):
        with pytest.raises(InvalidInput, match="/cursor"):
            await orphans.orphans(OWNER, cursor=bad)
    with pytest.raises(InvalidInput, match="/limit is 201"):
        await orphans.orphans(OWNER, limit=201)


async def test_the_relationships_of_a_node_newest_first_and_by_pattern(world: World) -> None:
    lists = RelationshipLists(store=world.store)
    await world.put("fact/with space", "One.", _to("fact_b", "first"), _to("fact_c", "second"))
    await world.put("fact_b", "Two.", _to("fact/with space", "answers"))
    result = await lists.of(OWNER, "fact/with space")
    assert result.edges[0].relationship == "answers"
    assert (len(result.edges), result.truncated) == (3, False)
    matched = await lists.of(OWNER, "fact/with space", "^(first|answers)$")
    assert {edge.relationship for edge in matched.edges} == {"first", "answers"}
    with pytest.raises(NotFound, match="'fact_none' does not exist"):
        await lists.of(OWNER, "fact_none")
