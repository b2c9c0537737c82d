"""Exports: orders, the pieces of their documents, and what becomes of both."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from hivemem.domain.exports import Export, ExportStatus
from hivemem.ports.store import Store
from tests.conformance.store.backends import Backend
from tests.support.builders import minutes

GRAPH, OTHER_GRAPH = "graph_one", "graph_two"


def order(export_id: str = "export_1", **changes: Any) -> Export:
    fields: dict[str, Any] = {
        "export_id": export_id,
        "user_id": "user_one",
        "request": f"request of {export_id}",
        "secret": "s" * 64,
        "created_at": minutes(0),
        "expires_at": minutes(60),
    }
    return Export(**{**fields, **changes})


def published(export: Export, document: str = "doc_a") -> Export:
    return replace(
        export,
        status=ExportStatus.PUBLISHED,
        document=document,
        size_bytes=2**40,
        sha256="a" * 64,
        node_count=7,
        expires_at=minutes(120),
    )


async def test_the_same_request_is_the_same_export(store: Store) -> None:
    assert await store.export(GRAPH, "export_1") is None
    first = await store.add_export(GRAPH, order())
    assert first == order()
    again = order("export_2", request=first.request)
    assert await store.add_export(GRAPH, again) == first
    assert await store.export(GRAPH, "export_2") is None
    assert await store.add_export(OTHER_GRAPH, again) == again
    assert await store.export(GRAPH, "export_1") == first


async def test_only_an_unfinished_export_advances(store: Store) -> None:
    await store.add_export(GRAPH, order())
    running = order(status=ExportStatus.RUNNING)
    assert await store.advance_export(GRAPH, running) is True
    assert await store.advance_export(OTHER_GRAPH, running) is False
    assert await store.advance_export(GRAPH, published(running)) is True
    assert await store.export(GRAPH, "export_1") == published(order())
    failed = order(status=ExportStatus.FAILED, error_code="corruption")
    assert await store.advance_export(GRAPH, failed) is False
    assert await store.export(GRAPH, "export_1") == published(order())
    assert await store.advance_export(GRAPH, order("export_9")) is False


async def test_pieces_are_kept_once_and_only_for_an_export_that_is_there(store: Store) -> None:
    await store.add_export(GRAPH, order())
    for ordinal, content in enumerate((b"\x00\xff", b"", b"b" * 300_000)):
        await store.add_export_chunk(GRAPH, "export_1", "doc_a", ordinal, content)
    await store.add_export_chunk(GRAPH, "export_1", "doc_a", 0, b"another")
    await store.add_export_chunk(GRAPH, "export_9", "doc_a", 0, b"nobody's")
    found = [await store.export_chunk(GRAPH, "export_1", "doc_a", ordinal) for ordinal in range(4)]
    assert found == [b"\x00\xff", b"", b"b" * 300_000, None]
    assert await store.export_chunk(GRAPH, "export_1", "doc_b", 0) is None
    assert await store.export_chunk(GRAPH, "export_9", "doc_a", 0) is None
    assert await store.export_chunk(OTHER_GRAPH, "export_1", "doc_a", 0) is None


async def test_what_nobody_needs_is_dropped(store: Store) -> None:
    for export_id in ("export_1", "export_2", "export_3"):
        await store.add_export(GRAPH, order(export_id))
        await store.add_export_chunk(GRAPH, export_id, "doc_a", 0, b"a")
        await store.add_export_chunk(GRAPH, export_id, "doc_b", 0, b"b")
    await store.add_export(OTHER_GRAPH, order())
    await store.add_export_chunk(OTHER_GRAPH, "export_1", "doc_a", 0, b"a")
    await store.advance_export(GRAPH, published(order()))
    failed = order("export_2", status=ExportStatus.FAILED, error_code="unavailable")
    await store.advance_export(GRAPH, failed)

    async def pieces(export_id: str) -> list[bytes | None]:
        return [await store.export_chunk(GRAPH, export_id, document, 0) for document in ("doc_a", "doc_b")]

    await store.drop_stale_exports(GRAPH, minutes(59), minutes(-60))
    assert await pieces("export_1") == [b"a", None]
    assert await pieces("export_2") == [None, None]
    assert await pieces("export_3") == [b"a", b"b"]
    await store.drop_stale_exports(GRAPH, minutes(60), minutes(-60))
    expired = await store.export(GRAPH, "export_3")
    assert expired == order("export_3", status=ExportStatus.EXPIRED)
    assert await pieces("export_3") == [None, None]
    assert await pieces("export_1") == [b"a", None]
    await store.drop_stale_exports(GRAPH, minutes(120), minutes(60))
    assert await store.export(GRAPH, "export_3") is None
    first = await store.export(GRAPH, "export_1")
    assert first is not None and (first.status, first.document) == (ExportStatus.EXPIRED, None)
    assert await pieces("export_1") == [None, None]
    assert await store.export(OTHER_GRAPH, "export_1") == order()
    assert await store.export_chunk(OTHER_GRAPH, "export_1", "doc_a", 0) == b"a"


async def test_another_server_serves_the_document(store: Store, backend: Backend, tmp_path: Path) -> None:
    if not backend.capabilities.shared:
        return
    await store.add_export(GRAPH, order())
    await store.add_export_chunk(GRAPH, "export_1", "doc_a", 0, b"a")
    other = await backend.open(tmp_path)
    try:
        assert await other.export(GRAPH, "export_1") == order()
        assert await other.export_chunk(GRAPH, "export_1", "doc_a", 0) == b"a"
        assert await other.advance_export(GRAPH, published(order())) is True
    finally:
        await other.close()
    assert await store.export(GRAPH, "export_1") == published(order())
