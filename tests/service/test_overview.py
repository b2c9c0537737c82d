"""Sizes of a graph and its best connected nodes."""

from __future__ import annotations

from hivemem.projection.hot_graphs import HotGraphs
from hivemem.service.overview import Overview, OverviewResult
from tests.service.conftest import READER, World


async def look(world: World) -> OverviewResult:
    hot = HotGraphs(world.store, world.embedder.model_id, world.embedder.dimension, 1 << 24)
    return await Overview(store=world.store, hot=hot).overview(READER)


async def test_an_empty_graph_has_nothing(world: World) -> None:
    result = await look(world)
    assert (result.counts.nodes, result.counts.edges, result.counts.hyperedges) == (0, 0, 0)
    assert result.top_nodes == ()


async def test_sizes_leave_out_the_blank_profile(world: World) -> None:
    await world.put("person_maria", "Maria.")
    await world.put("fact_a", "A.", {"to_key": "person_maria", "relationship": "mentions"})
    counts = (await look(world)).counts
    assert (counts.nodes, counts.edges) == (2, 1)
    assert counts.types == {"person": 1, "fact": 1}


async def test_the_best_connected_nodes_come_first_with_whole_descriptions(world: World) -> None:
    await world.put("person_maria", "Maria leads operations. " * 100)
    for number in range(12):
        await world.put(f"fact_{number:02d}", "A.", {"to_key": "person_maria", "relationship": "mentions"})
    await world.put("fact_alone", "Alone.")
    top = (await look(world)).top_nodes
    assert len(top) == 10
    assert (top[0].key, top[0].connections, top[0].node_type) == ("person_maria", 12, "person")
    assert top[0].description == "Maria leads operations. " * 100
    assert {one.connections for one in top[1:]} == {1}
    assert "fact_alone" not in {one.key for one in top}
