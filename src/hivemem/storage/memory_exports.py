"""The `ExportStore` and `SkillStore` ports in dictionaries, a part of `MemoryStore`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from datetime import datetime

from hivemem.domain.exports import Export, ExportStatus
from hivemem.domain.graph import GraphId
from hivemem.domain.skills import CustomSkill


class MemoryExports:
    """Exports, their documents, and skills: see `hivemem.ports.store` for the contracts."""

    def __init__(self, check_open: Callable[[], None], check_not_deleted: Callable[[GraphId], None]) -> None:
        self._check_exports_open = check_open
        self._check_export_graph = check_not_deleted
        self._exports: dict[tuple[GraphId, str], Export] = {}
        self._chunks: dict[tuple[GraphId, str, str, int], bytes] = {}
        self._skills: dict[tuple[GraphId, str], CustomSkill] = {}

    async def add_export(self, graph_id: GraphId, export: Export) -> Export:
        """See `ExportStore.add_export`."""
        self._check_exports_open()
        self._check_export_graph(graph_id)
        for (graph, _), other in self._exports.items():
            if graph == graph_id and other.request == export.request:
                return other
        self._exports[graph_id, export.export_id] = export
        return export

    async def export(self, graph_id: GraphId, export_id: str) -> Export | None:
        """See `ExportStore.export`."""
        self._check_exports_open()
        return self._exports.get((graph_id, export_id))

    async def advance_export(self, graph_id: GraphId, export: Export) -> bool:
        """See `ExportStore.advance_export`."""
        self._check_exports_open()
        before = self._exports.get((graph_id, export.export_id))
        if before is None or not before.status.unfinished:
            return False
        self._exports[graph_id, export.export_id] = export
        return True

    async def add_export_chunk(
        self, graph_id: GraphId, export_id: str, document: str, ordinal: int, content: bytes
    ) -> None:
        """See `ExportStore.add_export_chunk`."""
        self._check_exports_open()
        if (graph_id, export_id) in self._exports:
            self._chunks.setdefault((graph_id, export_id, document, ordinal), content)

    async def export_chunk(
        self, graph_id: GraphId, export_id: str, document: str, ordinal: int
    ) -> bytes | None:
        """See `ExportStore.export_chunk`."""
        self._check_exports_open()
        return self._chunks.get((graph_id, export_id, document, ordinal))

    async def drop_stale_exports(self, graph_id: GraphId, at: datetime, before: datetime) -> None:
        """See `ExportStore.drop_stale_exports`."""
        self._check_exports_open()
        for place, export in list(self._exports.items()):
            if place[0] != graph_id:
                continue
            if export.expires_at <= before:
                del self._exports[place]
            elif export.expires_at <= at:
                self._exports[place] = replace(export, status=ExportStatus.EXPIRED, document=None)
        for graph, export_id, document, ordinal in list(self._chunks):
            owner = self._exports.get((graph, export_id))
            needed = owner is not None and (owner.status.unfinished or owner.document == document)
            if graph == graph_id and not needed:
                del self._chunks[graph, export_id, document, ordinal]

    async def put_skill(self, graph_id: GraphId, skill: CustomSkill) -> CustomSkill:
        """See `SkillStore.put_skill`."""
        self._check_exports_open()
        self._check_export_graph(graph_id)
        before = self._skills.get((graph_id, skill.name))
        kept = skill if before is None else replace(skill, skill_id=before.skill_id)
        self._skills[graph_id, skill.name] = kept
        return kept

    async def skills(self, graph_id: GraphId) -> Sequence[CustomSkill]:
        """See `SkillStore.skills`."""
        self._check_exports_open()
        own = [skill for (graph, _), skill in self._skills.items() if graph == graph_id]
        return sorted(own, key=lambda skill: skill.name)

    async def remove_skill(self, graph_id: GraphId, name: str) -> bool:
        """See `SkillStore.remove_skill`."""
        self._check_exports_open()
        return self._skills.pop((graph_id, name), None) is not None

    def _forget_exports(self, user_id: str, graph_ids: Collection[GraphId]) -> None:
        """Remove the exports that a user ordered of these graphs."""
        for place, export in list(self._exports.items()):
            if export.user_id == user_id and place[0] in graph_ids:
                del self._exports[place]
        for chunk in [chunk for chunk in self._chunks if chunk[:2] not in self._exports]:
            del self._chunks[chunk]
