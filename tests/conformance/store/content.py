"""A graph with something in every table, and all that the port tells of it."""

from __future__ import annotations

from typing import Any

from hivemem.domain.exports import Export
from hivemem.domain.files import StoredFile
from hivemem.domain.graph import GraphId
from hivemem.domain.skills import CustomSkill, SkillFile
from hivemem.domain.tokens import TokenReport
from hivemem.ports.store import Store
from tests.conformance.store.observe import everything
from tests.support.builders import (
    batch,
    create,
    delete,
    edge,
    entry,
    hyperedge,
    minutes,
    node,
    passage,
    update,
    vectors,
)


def token_report(user_id: str = "user_one", session_id: str = "s") -> TokenReport:
    return TokenReport(
        event_id="event_1",
        user_id=user_id,
        session_id=session_id,
        turn_sequence=1,
        report={"tokens": 7, "model": session_id},
        recorded_at=minutes(3),
    )


def file(mark: str) -> StoredFile:
    return StoredFile(
        file_id="file_1",
        filename=f"{mark}.txt",
        file_type="document",
        content_type="text/plain",
        size_bytes=3,
        sha256="0" * 64,
        node_key="n_00",
        summary=f"Summary {mark}.",
        created_at=minutes(3),
    )


def skill(mark: str) -> CustomSkill:
    return CustomSkill(
        skill_id="skill_1",
        name="tidy-up",
        version="0.1.0",
        content=f"Tidy {mark}.",
        files=(SkillFile(path="tool.py", content=f"print('{mark}')", content_type="text/x-python"),),
        published_at=minutes(3),
    )


def export(export_id: str = "export_1", user_id: str = "user_one") -> Export:
    return Export(
        export_id=export_id,
        user_id=user_id,
        request=f"request of {export_id}",
        secret="s" * 64,
        created_at=minutes(0),
        expires_at=minutes(60),
    )


async def fill_graph(store: Store, graph_id: GraphId, mark: str, nodes: int = 12) -> None:
    """Write something of every kind; every text that an agent could have said holds `mark`."""
    keys = [f"n_{number:02}" for number in range(nodes)]
    things: list[Any] = [
        create(
            node(key, f"About {mark} {key}.", data={"mark": mark}, search_text=f"Words {mark}"),
            vectors(passage(1.5, -0.5)),
        )
        for key in keys
    ]
    things += [edge(key, keys[0], description=f"Because {mark}.") for key in keys[1:]]
    things += [hyperedge(*keys[:4], description=f"Together {mark}."), node("gone_1", f"Gone {mark}.")]
    things += [entry(f"Line {mark} {number}.", node_key=keys[0]) for number in range(5)]
    await store.apply(graph_id, batch(*things))
    stored = await store.nodes(graph_id, ["gone_1", keys[1]])
    changes = (delete(stored["gone_1"]), update(stored[keys[1]], description=f"Changed {mark}."))
    await store.apply(graph_id, batch(*changes, at=minutes(1)))
    await store.touch(graph_id, "s", keys[:3], minutes(2))
    await store.record_tokens(graph_id, token_report())
    await store.add_file(graph_id, file(mark))
    await store.put_skill(graph_id, skill(mark))
    await store.add_export(graph_id, export())
    for ordinal in range(3):
        await store.add_export_chunk(graph_id, "export_1", "doc", ordinal, f"Chunk {mark}".encode() * 9)


async def all_of(store: Store, graph_id: GraphId) -> dict[str, object]:
    """Whatever the port tells of a graph that `fill_graph` wrote."""
    return {
        **await everything(store, graph_id),
        "files": await store.files(graph_id),
        "skills": await store.skills(graph_id),
        "export": await store.export(graph_id, "export_1"),
        "chunks": [await store.export_chunk(graph_id, "export_1", "doc", ordinal) for ordinal in range(4)],
        "report": await store.record_tokens(graph_id, token_report()),
    }
