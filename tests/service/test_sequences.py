"""Any sequence of writes leaves a whole graph, a whole history, and an index that shows just this graph.

The machine stores, updates, forgets, relates, rewords, restores and converses on few keys, so that the
writes meet each other. After each step the graph is read whole, and an index that followed the changes page
by page is compared with one that was built from nothing.
"""

from __future__ import annotations

import asyncio
import itertools
import tempfile
from collections.abc import Awaitable
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from hivemem.domain.edge import MIN_PARTICIPANTS, MIN_SESSION_PARTICIPANTS, Edge, Hyperedge
from hivemem.domain.graph import Kind, Version
from hivemem.domain.keys import USER_PROFILE_KEY
from hivemem.domain.node import Node
from hivemem.errors import Conflict, HivememError, InvalidInput, NotFound
from hivemem.models.executor import ModelExecutor
from hivemem.projection.graph_index import GraphIndex
from hivemem.retrieval.analyse import analyse_query
from hivemem.service.change import Change
from hivemem.service.history import History
from hivemem.service.limits import Limits
from hivemem.service.reembed import Reembed
from hivemem.service.relate import Relate
from hivemem.service.remember import IfExists, Remember, StoreRequest, UpdateRequest
from hivemem.service.session_groups import SessionGroups
from tests.conformance.store.backends import BACKENDS, Backend
from tests.service.conftest import GRAPH, LONG, OWNER, CountingEmbedder
from tests.support.builders import FixedClock

T = TypeVar("T")
Ids = dict[Kind, set[str]]

KEYS = ("fact_a", "person_b", "c", "Nóż", "fact_e", USER_PROFILE_KEY)
TEXTS = ("The ferry leaves at nine.", "Ola repairs motors.", "High tide is at noon.")
LABELS = ("explains why", "was told by", "came before the flood")
QUERIES = ("ferry", "who repairs motors?", "tide flood", "fact_a explains", "nóż")
DIMENSION = 16

keys = st.sampled_from(KEYS)
texts = st.sampled_from(TEXTS)
labels = st.sampled_from(LABELS)
edge_items = st.fixed_dictionaries({"from_key": keys, "to_key": keys, "relationship": labels})
hyperedge_items = st.fixed_dictionaries(
    {
        "participant_keys": st.lists(keys, min_size=2, max_size=6),
        "relationship": labels,
        "description": st.sampled_from([LONG, LONG + " Indeed."]),
    }
)
relationship_lists = st.lists(edge_items | hyperedge_items, max_size=4)
requests = st.builds(
    StoreRequest,
    key=keys,
    description=texts,
    if_exists=st.sampled_from(IfExists),
    data=st.sampled_from([None, {}, {"boat": "Heron"}]),
    search_text=st.none() | texts,
    relationships=relationship_lists,
    session_id=st.sampled_from(["default", "talk"]),
)


class Sequences(RuleBasedStateMachine):
    """Plays writes on one store."""

    backend: Backend

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.folder = tempfile.TemporaryDirectory()
        self.embedder = CountingEmbedder(DIMENSION)
        self.executor = ModelExecutor(self.embedder, None)
        self.index = GraphIndex(DIMENSION)
        self.revision = 0
        self.described: dict[str, str] = {}
        self.ever: Ids = {kind: set() for kind in Kind}

    @initialize()
    def open(self) -> None:
        store = self.store = self.runner.run(self.backend.open(Path(self.folder.name)))
        clock, limits = FixedClock(step=timedelta(milliseconds=1)), Limits()
        self.remember = Remember(store=store, executor=self.executor, clock=clock, limits=limits)
        self.change = Change(store=store, clock=clock, limits=limits)
        self.relates = Relate(store=store, clock=clock, limits=limits)
        self.history = History(store=store, executor=self.executor, clock=clock)
        self.groups = SessionGroups(store=store, clock=clock, delay_seconds=0)
        self.reembed = Reembed(store=store, executor=self.executor)

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.runner.run(self.store.close())
        self.executor.close()
        self.runner.close()
        self.folder.cleanup()

    def outcome(self, work: Awaitable[T]) -> T | HivememError:
        """The result, or a refusal, which must not have written anything."""

        async def wait() -> T | HivememError:
            before = await self.store.revision(GRAPH)
            try:
                return await work
            except (Conflict, InvalidInput, NotFound) as error:
                assert await self.store.revision(GRAPH) == before, "refused, and written all the same"
                return error

        return self.runner.run(wait())

    def any_relationship(self, data: st.DataObject) -> str:
        ids = sorted(self.ever[Kind.EDGE] | self.ever[Kind.HYPEREDGE])
        return data.draw(st.sampled_from(ids))

    @rule(request=requests)
    def store_one(self, request: StoreRequest) -> None:
        result = self.outcome(self.remember.store(OWNER, request))
        if isinstance(result, HivememError):
            assert result.code == "already_exists"
        elif result.status != "kept":
            self.described[result.node.key] = request.description

    @rule(some=st.lists(requests, min_size=1, max_size=4))
    def store_many(self, some: list[StoreRequest]) -> None:
        results = self.outcome(self.remember.store_many(OWNER, some))
        assert isinstance(results, list)
        for request, result in zip(some, results, strict=True):
            if isinstance(result, HivememError):
                assert result.code == "already_exists"
            elif result.status != "kept":
                self.described[result.node.key] = request.description

    @rule(key=keys, description=texts, data=st.sampled_from([None, {"boat": "Osprey"}]))
    def update(self, key: str, description: str, data: dict[str, Any] | None) -> None:
        request = UpdateRequest(key=key, description=description, data=data)
        result = self.outcome(self.remember.update(OWNER, request))
        if isinstance(result, HivememError):
            assert key not in self.described
        else:
            self.described[result.node.key] = description

    @rule(key=keys)
    def forget(self, key: str) -> None:
        result = self.outcome(self.change.forget_node(OWNER, key))
        if isinstance(result, HivememError):
            assert key == USER_PROFILE_KEY or key not in self.described
        else:
            self.described.pop(result.id, None)

    @rule(key=keys, version=st.none() | st.integers(1, 4))
    def restore(self, key: str, version: int | None) -> None:
        result = self.outcome(self.history.restore(OWNER, key, version))
        if not isinstance(result, HivememError):
            assert version in (None, result.restored_version)
            self.described[result.node.key] = result.node.description

    @precondition(lambda self: len(self.described) > 0)
    @rule()
    def forget_and_restore(self) -> None:
        """A node that is forgotten and restored at once is again what it was, with all that it had."""
        key = min(self.described)
        if key == USER_PROFILE_KEY:
            return
        before = self.of_node(key)
        gone = self.outcome(self.change.forget_node(OWNER, key))
        assert not isinstance(gone, HivememError)
        back = self.outcome(self.history.restore(OWNER, key))
        assert not isinstance(back, HivememError)
        assert self.of_node(key) == before
        assert back.relationships == len(before[1])

    def of_node(self, key: str) -> tuple[object, set[object]]:
        """What a node says, and its relationships."""
        node = self.runner.run(self.store.nodes(GRAPH, [key]))[key]
        related = self.runner.run(
            self.store.relationships(GRAPH, [key], edge_limit=1000, hyperedge_limit=1000)
        )[key]
        said = (node.description, node.node_type, node.data, node.search_text, node.created_at)
        edges = {(edge.edge_id, edge.identity, edge.description) for edge in related.edges}
        # Not by id: of two that became the same by losing participants, one can come back.
        hyperedges = {one.identity for one in related.hyperedges}
        return said, {*edges, *hyperedges}

    @rule(items=st.lists(edge_items | hyperedge_items, min_size=1, max_size=5))
    def relate(self, items: list[dict[str, Any]]) -> None:
        result = self.outcome(self.relates.relate(OWNER, items))
        assert not isinstance(result, HivememError)
        told = [one.index for one in (*result.created, *result.replayed, *result.errors)]
        assert sorted(told) == list(range(len(items)))

    @precondition(lambda self: self.ever[Kind.EDGE])
    @rule(data=st.data(), label=st.none() | labels, description=texts, expected=st.sampled_from([None, 1, 2]))
    def update_edge(self, data: st.DataObject, label: str | None, description: str, expected: Any) -> None:
        changed = None if label is None else {"semantic_relationship": label}
        self.outcome(
            self.change.update_edge(
                OWNER, self.any_relationship(data), expected=expected, description=description, data=changed
            )
        )

    @precondition(lambda self: self.ever[Kind.EDGE] or self.ever[Kind.HYPEREDGE])
    @rule(data=st.data(), expected=st.sampled_from([None, None, 1]))
    def forget_relationship(self, data: st.DataObject, expected: int | None) -> None:
        self.outcome(self.change.forget_relationship(OWNER, self.any_relationship(data), expected=expected))

    @rule()
    def group_the_conversation(self) -> None:
        self.runner.run(self.groups.group(GRAPH, "talk"))

    @rule(fails=st.booleans())
    def break_or_mend_the_model(self, fails: bool) -> None:
        self.embedder.fails = fails

    @precondition(lambda self: not self.embedder.fails)
    @rule()
    def embed_what_waits(self) -> None:
        self.runner.run(self.reembed.run(GRAPH))
        assert not self.runner.run(self.store.without_vectors(GRAPH, self.embedder.model_id))

    @rule(rows=st.integers(1, 5))
    def index_follows(self, rows: int) -> None:
        self.runner.run(self._follow(self.index, rows))

    async def _follow(self, index: GraphIndex, rows: int) -> None:
        more = True
        while more:
            page = await self.store.changes(
                GRAPH, index.revision, model_id=self.embedder.model_id, limit=rows
            )
            if not index.apply_at_once(page):
                index.apply(page)
            more = page.more

    @invariant()
    def all_is_whole(self) -> None:
        if hasattr(self, "store"):
            self.runner.run(self._check())

    async def _check(self) -> None:
        page = await self.store.changes(GRAPH, 0, model_id="none", limit=1_000_000)
        nodes = {changed.node.key: changed.node for changed in page.nodes}
        edges = {edge.edge_id: edge for edge in page.edges}
        hyperedges = {one.hyperedge_id: one for one in page.hyperedges}

        assert page.revision >= self.revision
        self.revision = page.revision
        for changed in (*nodes.values(), *edges.values(), *hyperedges.values()):
            assert 0 < changed.revision <= page.revision
        described = {key: node.description for key, node in nodes.items() if not node.placeholder}
        assert described == self.described

        for edge in edges.values():
            assert {edge.from_key, edge.to_key} <= nodes.keys(), "a dangling edge"
        for one in hyperedges.values():
            assert set(one.keys) <= nodes.keys(), "a dangling participant"
            minimum = MIN_SESSION_PARTICIPANTS if one.is_session else MIN_PARTICIPANTS
            assert len(set(one.keys)) == len(one.keys) >= minimum
        assert len({edge.identity for edge in edges.values()}) == len(edges)
        assert not edges.keys() & hyperedges.keys()

        present: dict[Kind, dict[str, Any]] = {
            Kind.NODE: nodes,
            Kind.EDGE: edges,
            Kind.HYPEREDGE: hyperedges,
        }
        for kind, things in present.items():
            self.ever[kind] |= things.keys()
            for id in self.ever[kind]:
                _check_history(await self.store.versions(GRAPH, kind, id), things.get(id))

        fresh = GraphIndex(DIMENSION)
        await self._follow(fresh, 1_000_000)
        follower = self.index
        await self._follow(follower, 3)
        assert self._answers(follower) == self._answers(fresh)

    def _answers(self, index: GraphIndex) -> dict[str, object]:
        """All that an index tells of this graph; the embedder is not asked, since it may be broken."""
        answers: dict[str, object] = {
            "revision": index.revision,
            "sizes": (index.node_count, index.embedded_count),
            "top": index.top_degree(10),
            "degrees": {key: index.degree(key) for key in KEYS},
            "neighbours": {key: index.neighbours(key, 100) for key in KEYS},
        }
        for text in QUERIES:
            query = analyse_query(text)
            vector = CountingEmbedder(DIMENSION).embed_query(text)
            answers[text] = (
                index.search_terms(query, 10),
                index.score_terms(query, KEYS),
                index.known_words(query),
                index.search_vectors(vector, 10),
                index.cosine(vector, KEYS),
            )
        return answers


def _check_history(versions: Any, present: Node | Edge | Hyperedge | None) -> None:
    """Newest first, nothing twice, counted up from 1 to the present state or a removal."""
    newest: Version = versions[0]
    revisions = [version.revision for version in versions]
    assert revisions == sorted(set(revisions), reverse=True)
    if present is None:
        assert newest.state is None
    else:
        assert newest.state is not None
        assert _content(newest.state) == _content(present)
    for later, earlier in itertools.pairwise(versions):
        assert later.state is not None or earlier.state is not None, "removed twice"
        if later.state is not None and earlier.state is not None:
            assert later.state.write_version == earlier.state.write_version + 1
    assert versions[-1].state is not None
    assert versions[-1].state.write_version == 1


def _content(state: Node | Edge | Hyperedge) -> object:
    match state:
        case Node():
            # Vectors that come later change the revision and the status of a node, not its version.
            return (
                *(state.key, state.node_type, state.description, state.data, state.search_text),
                *(state.assets, state.write_version, state.created_at, state.updated_at),
            )
        case _:
            return state


def play(backend: Backend, examples: int, steps: int) -> None:
    machine = type("Machine", (Sequences,), {"backend": backend})
    machine.TestCase.settings = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    machine.TestCase().runTest()


@pytest.mark.parametrize(
    "backend", [one for one in BACKENDS if one.name != "postgres"], ids=lambda one: one.name
)
def test_any_sequence_of_writes_keeps_all_whole(backend: Backend) -> None:
    play(backend, examples=25, steps=20)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("backend", BACKENDS, ids=lambda one: one.name)
def test_many_more_sequences_keep_all_whole(backend: Backend) -> None:
    play(backend, examples=300, steps=40)
