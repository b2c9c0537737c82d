"""Versions of a node, and how to get one back. No tools: they are for people."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from hivemem.domain.access import Principal
from hivemem.domain.graph import Version
from hivemem.domain.keys import normalise_key
from hivemem.domain.node import Node
from hivemem.domain.text import JsonObject
from hivemem.surfaces.answers import Answer, HistoryEntry, NodeRecord, WriteAnswer
from hivemem.surfaces.inputs import Input
from hivemem.surfaces.operations.operation import Access, Operation, RestRoute
from hivemem.surfaces.presentation import node_record, timestamp, with_warnings
from hivemem.surfaces.services import Services
from hivemem.surfaces.shortening import Item, fit_node_entry, shorten_text, take_fitting

DESCRIPTION_BYTES = 400
_ROOM_BESIDE_LIST = 500


class HistoryInput(Input):
    """Arguments of the history route."""

    key: str = Field(description="Node whose versions are listed.")


class HistoryAnswer(Answer):
    """All states of a node, newest first."""

    key: str
    versions: list[HistoryEntry]
    count: int
    warnings: list[str] | None = None


class RestoreInput(Input):
    """Arguments of the restore route."""

    key: str = Field(description="Node to restore; it may be forgotten.")
    version: int | None = Field(
        None, ge=1, description="write_version to take; left out: the state before the present one."
    )


class RestoreAnswer(WriteAnswer):
    """The node as it is again."""

    status: Literal["restored"]
    key: str
    restored_version: int
    relationships: int = Field(description="Relationships that came back with a forgotten node.")
    node: NodeRecord
    write_version: int
    warnings: list[str] | None = None


def history_entry(version: Version) -> Item:
    """One state of a node as a list entry."""
    entry: Item = {
        "revision": version.revision,
        "recorded_at": timestamp(version.recorded_at),
        "removed": version.state is None,
    }
    if isinstance(version.state, Node):
        entry.update(
            write_version=version.state.write_version,
            node_type=version.state.node_type,
            description=shorten_text(version.state.description, DESCRIPTION_BYTES, "an earlier version"),
            enrichment_status=version.state.enrichment_status.value,
        )
    return entry


async def _history(services: Services, principal: Principal, sent: HistoryInput) -> JsonObject:
    versions = await services.history.versions(principal, sent.key)
    entries = [history_entry(version) for version in versions]
    kept = take_fitting(entries, services.settings.max_answer_bytes - _ROOM_BESIDE_LIST)
    answer: JsonObject = {
        "key": normalise_key(sent.key),
        "versions": list(kept),
        "count": len(entries),
    }
    left_out = len(entries) - len(kept)
    return with_warnings(answer, [f"the oldest {left_out} versions were left out"] if left_out else [])


async def _restore(services: Services, principal: Principal, sent: RestoreInput) -> JsonObject:
    result = await services.history.restore(principal, sent.key, sent.version)
    room = services.settings.max_answer_bytes - _ROOM_BESIDE_LIST
    entry = fit_node_entry(
        {"node": node_record(result.node)}, room, "hm_get_nodes with this key alone has all"
    )
    answer: JsonObject = {
        "status": "restored",
        "key": result.node.key,
        "restored_version": result.restored_version,
        "relationships": result.relationships,
        "node": entry["node"],
        "write_version": result.node.write_version,
    }
    return with_warnings(answer, result.warnings)


HISTORY = Operation(
    name="node_history",
    summary="All versions of one node, newest first, also of a forgotten one.",
    input=HistoryInput,
    output=HistoryAnswer,
    access=Access.READ,
    idempotent=True,
    tool=False,
    routes=(RestRoute(method="GET", path="/history/{key}"),),
    verb="history",
    arguments=("key",),
    handler=_history,
)

RESTORE = Operation(
    name="restore_node",
    summary="Store an earlier version of a node again, or bring a forgotten node and its relationships back.",
    input=RestoreInput,
    output=RestoreAnswer,
    access=Access.WRITE,
    tool=False,
    routes=(RestRoute(method="POST", path="/restore"),),
    # `hivemem restore` takes a key or the file of a backup: see surfaces/cli/restore.py.
    verb=None,
    handler=_restore,
)
