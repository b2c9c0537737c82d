"""The same random operations on the reference and on each real store end in the same place.

Writes of a batch are planned on the machine's own copy of the graph, and some of them are wrong on
purpose; both stores must then accept or refuse alike, and tell the same story afterwards.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from hivemem.domain.edge import Edge, Hyperedge
from hivemem.domain.graph import Deletion, Kind, NodeVectors, SessionCall
from hivemem.domain.node import EnrichmentStatus, Node
from hivemem.errors import HivememError
from hivemem.ports.store import Store
from hivemem.storage.memory import MemoryStore
from tests.conformance.store.backends import BACKENDS, Backend
from tests.conformance.store.observe import GRAPH, Replica, everything
from tests.support.builders import (
    MODEL,
    Write,
    batch,
    create,
    delete,
    edge,
    entry,
    hyperedge,
    minutes,
    node,
    passage,
    placeholder,
    update,
    vectors,
)

T = TypeVar("T")

KEYS = ("a_1", "b_1", "c_1", "d_1", "日_1", "👍_1")
LABELS = ("needs", "grew out of", "chat_1")
MODELS = (MODEL, "a-model", "z-model")

keys = st.sampled_from(KEYS)
labels = st.sampled_from(LABELS)
moments = st.integers(0, 5).map(minutes)
scalars = st.sampled_from([None, True, 1, 1.0, -0.0, 2**70, "", "текст"])
objects = st.dictionaries(
    st.sampled_from(["a", "b", ""]), scalars | st.lists(scalars, max_size=2), max_size=2
)
node_vectors = st.builds(
    lambda model_id, numbers: vectors(*(passage(number) for number in numbers), model_id=model_id),
    st.sampled_from(MODELS),
    st.lists(st.floats(width=32, allow_nan=False), max_size=3),
)
described = st.builds(
    node,
    keys,
    st.sampled_from(["Text.", "Other text."]),
    node_type=st.sampled_from(["fact", "person"]),
    data=objects,
    search_text=st.none() | st.just("words"),
    created_at=moments,
)
nodes = described | st.builds(placeholder, keys)
edges = st.builds(
    lambda ends, label, id, data, at: edge(
        *ends, label, **({"edge_id": id} if id else {}), data=data, created_at=at
    ),
    st.lists(keys, min_size=2, max_size=2, unique=True),
    labels,
    st.sampled_from([None, None, None, "id_1", "id_2"]),
    objects,
    moments,
)
hyperedges = st.builds(
    lambda members, label, id, at: hyperedge(
        *members, relationship=label, **({"hyperedge_id": id} if id else {}), created_at=at
    ),
    st.lists(keys, min_size=3, max_size=5, unique=True),
    labels,
    st.sampled_from([None, None, None, "id_1", "id_3"]),
    moments,
)
entries = st.builds(
    entry, st.sampled_from(["One.", "Two."]), at=moments, node_key=st.none() | keys, meta=objects
)


class TwoStores(RuleBasedStateMachine):
    """Plays each operation on both stores."""

    backend: Backend

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.folder = tempfile.TemporaryDirectory()
        self.reference: Store = MemoryStore()
        self.followers = (Replica(), Replica())

    @initialize()
    def open(self) -> None:
        self.real = self.runner.run(self.backend.open(Path(self.folder.name)))

    def teardown(self) -> None:
        if hasattr(self, "real"):
            self.runner.run(self.real.close())
        self.runner.close()
        self.folder.cleanup()

    def both(self, operation: Callable[[Store], Awaitable[T]]) -> T | type[HivememError]:
        """The result of `operation`, or the class of its error, which must be the same on both."""

        async def outcome(store: Store) -> T | type[HivememError]:
            try:
                return await operation(store)
            except HivememError as error:
                return type(error)

        expected = self.runner.run(outcome(self.reference))
        assert self.runner.run(outcome(self.real)) == expected
        return expected

    def stored(self) -> Replica:
        graph = Replica()
        self.runner.run(graph.catch_up(self.reference))
        return graph

    def planned(self, thing: Node | Edge | Hyperedge, of_node: NodeVectors | None = None) -> Write:
        """A write of `thing` that suits what is stored: a creation, or the next version."""
        graph = self.stored()
        match thing:
            case Node():
                changed = graph.nodes.get(thing.key)
                before = None if changed is None else changed.node
            case Edge():
                before = graph.edges.get(thing.edge_id)
            case Hyperedge():
                before = graph.hyperedges.get(thing.hyperedge_id)
        if before is None:
            return create(thing, of_node)
        return update(replace(thing, write_version=before.write_version), of_node)

    @rule(
        some_nodes=st.lists(
            st.tuples(nodes, st.none() | node_vectors), max_size=4, unique_by=lambda pair: pair[0].key
        ),
        some_edges=st.lists(edges, max_size=3),
        some_hyperedges=st.lists(hyperedges, max_size=2),
        lines=st.lists(entries, max_size=2),
        at=moments,
        with_ends=st.sampled_from([True, True, True, False]),
    )
    def put(self, some_nodes, some_edges, some_hyperedges, lines, at, with_ends) -> None:
        ends = {key for one in some_edges for key in one.identity[:2]}
        ends |= {key for one in some_hyperedges for key in one.keys}
        missing = ends - self.stored().nodes.keys() - {one.key for one, _ in some_nodes}
        things = [*some_nodes, *((one, None) for one in (*some_edges, *some_hyperedges))]
        writes = [self.planned(thing, of_node) for thing, of_node in things]
        if with_ends:
            writes += [create(placeholder(key)) for key in sorted(missing)]
        self.both(lambda store: store.apply(GRAPH, batch(*writes, *lines, at=at)))

    @rule(at=moments, line=entries)
    def put_all_nodes(self, at, line) -> None:
        """So that relationships have ends often enough."""
        writes = [self.planned(node(key)) for key in KEYS]
        assert isinstance(self.both(lambda store: store.apply(GRAPH, batch(*writes, line, at=at))), int)

    @rule(thing=nodes | edges | hyperedges, wrong=st.integers(0, 3))
    def put_as_it_comes(self, thing, wrong) -> None:
        write = replace(create(thing), expected=wrong)
        self.both(lambda store: store.apply(GRAPH, batch(write, entry("Not always kept."))))

    @precondition(lambda self: self.stored().nodes)
    @rule(data=st.data(), at=moments, lines=st.lists(entries, max_size=1))
    def delete(self, data, at, lines) -> None:
        graph = self.stored()
        things = [
            *(changed.node for changed in graph.nodes.values()),
            *graph.edges.values(),
            *graph.hyperedges.values(),
        ]
        chosen = data.draw(st.lists(st.sampled_from(things), min_size=1, max_size=3, unique_by=id))
        removals = [delete(thing) for thing in chosen]
        self.both(lambda store: store.apply(GRAPH, batch(*removals, *lines, at=at)))

    @rule(kind=st.sampled_from(Kind), id=keys | st.just("id_1"), expected=st.integers(0, 2))
    def delete_as_it_comes(self, kind, id, expected) -> None:
        removal = Deletion(kind=kind, id=id, expected=expected)
        self.both(lambda store: store.apply(GRAPH, batch(removal)))

    @rule(
        key=keys,
        version=st.integers(1, 3),
        of_node=node_vectors,
        status=st.sampled_from(EnrichmentStatus),
    )
    def put_vectors(self, key, version, of_node, status) -> None:
        self.both(lambda store: store.put_vectors(GRAPH, key, version, of_node, status))

    @rule(session=st.sampled_from(["s", "t"]), touched=st.lists(keys, max_size=3), at=moments)
    def touch(self, session, touched, at) -> None:
        self.both(lambda store: store.touch(GRAPH, session, touched, at))

    @rule(session=st.sampled_from(["s", "t"]), touched=st.sets(keys, max_size=3), at=moments)
    def touch_with_a_batch(self, session, touched, at) -> None:
        call = SessionCall(session_id=session, keys=tuple(sorted(touched)))
        self.both(lambda store: store.apply(GRAPH, batch(call, entry(at=at), at=at)))

    @rule(start=st.none() | moments, end=st.none() | moments, key=st.none() | keys, limit=st.integers(0, 3))
    def read_timeline(self, start, end, key, limit) -> None:
        self.both(lambda store: store.timeline(GRAPH, start=start, end=end, node_key=key, limit=limit))

    @rule(asked=st.lists(keys, unique=True), limit=st.integers(0, 3), after=st.none() | keys)
    def read_nodes(self, asked, limit, after) -> None:
        self.both(lambda store: store.nodes(GRAPH, asked))
        self.both(lambda store: store.relationships(GRAPH, asked, edge_limit=limit, hyperedge_limit=limit))
        self.both(lambda store: store.scan(GRAPH, after=after, limit=limit))
        self.both(lambda store: store.without_vectors(GRAPH, MODEL, limit=limit))

    @rule(some_edges=st.lists(edges, max_size=3), some_hyperedges=st.lists(hyperedges, max_size=3))
    def read_snapshot(self, some_edges, some_hyperedges) -> None:
        named = [one.identity for one in some_edges], [one.identity for one in some_hyperedges]
        self.both(lambda store: store.snapshot(GRAPH, KEYS, *named))

    @rule(since=st.integers(0, 12), limit=st.integers(1, 6), model_id=st.sampled_from(MODELS))
    def read_one_page(self, since, limit, model_id) -> None:
        self.both(lambda store: store.changes(GRAPH, since, model_id=model_id, limit=limit))

    @rule(limit=st.integers(1, 6))
    def followers_catch_up(self, limit) -> None:
        """A consumer that was left behind replays pages, and then knows the graph."""
        for follower, store in zip(self.followers, (self.reference, self.real), strict=True):
            self.runner.run(follower.catch_up(store, limit=limit))
            assert follower == self.stored()

    @rule()
    def read_histories(self) -> None:
        for kind, ids in ((Kind.NODE, KEYS), (Kind.EDGE, ("id_1", "id_2")), (Kind.HYPEREDGE, ("id_1",))):
            for id in ids:
                self.both(lambda store, kind=kind, id=id: store.versions(GRAPH, kind, id))

    @invariant()
    def stores_tell_the_same(self) -> None:
        if hasattr(self, "real"):
            self.both(everything)


@pytest.mark.parametrize(
    "backend", [one for one in BACKENDS if one.name != "memory"], ids=lambda one: one.name
)
@pytest.mark.parametrize(
    ("examples", "steps"),
    [(30, 20), pytest.param(500, 50, marks=[pytest.mark.soak, pytest.mark.timeout(3600)])],
    ids=["short", "long"],
)
def test_a_store_behaves_like_the_reference(backend: Backend, examples: int, steps: int) -> None:
    machine = type("Machine", (TwoStores,), {"backend": backend})
    machine.TestCase.settings = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    machine.TestCase().runTest()
