"""Published skills as rows, alike in each database."""

from __future__ import annotations

import json
from typing import Any

from hivemem.domain.graph import GraphId
from hivemem.domain.skills import CustomSkill, SkillFile
from hivemem.storage.states import to_json
from hivemem.storage.times import from_microseconds, to_microseconds


def skill_arguments(graph_id: GraphId, skill: CustomSkill) -> dict[str, Any]:
    """The parameters of the statement that writes a skill."""
    files = [
        {"path": file.path, "content": file.content, "content_type": file.content_type}
        for file in skill.files
    ]
    return {
        "graph_id": graph_id,
        "name": skill.name,
        "skill_id": skill.skill_id,
        "version": skill.version,
        "content": skill.content,
        "files": to_json(files),
        "published_at": to_microseconds(skill.published_at),
    }


def skill_from_row(row: tuple[Any, ...]) -> CustomSkill:
    """The skill of a row with the columns that every reading statement names, in its order."""
    skill_id, name, version, content, files, published_at = row
    return CustomSkill(
        skill_id=skill_id,
        name=name,
        version=version,
        content=content,
        files=tuple(SkillFile(**file) for file in json.loads(files)),
        published_at=from_microseconds(published_at),
    )
