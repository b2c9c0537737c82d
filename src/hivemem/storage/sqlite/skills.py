"""Published skills."""

from __future__ import annotations

import sqlite3

from hivemem.domain.graph import GraphId
from hivemem.domain.skills import CustomSkill
from hivemem.storage.skill_rows import skill_arguments, skill_from_row
from hivemem.storage.sqlite.statements import named_statements

_SQL = named_statements("skills.sql")


def put_skill(connection: sqlite3.Connection, graph_id: GraphId, skill: CustomSkill) -> CustomSkill:
    """Keep a skill in the place of one of its name, and return it as it is kept."""
    arguments = skill_arguments(graph_id, skill)
    connection.execute(_SQL["put_skill"], arguments)
    return skill_from_row(connection.execute(_SQL["skill"], arguments).fetchone())


def skills(connection: sqlite3.Connection, graph_id: GraphId) -> list[CustomSkill]:
    """All skills of a graph, by name."""
    return [skill_from_row(row) for row in connection.execute(_SQL["skills"], {"graph_id": graph_id})]


def remove_skill(connection: sqlite3.Connection, graph_id: GraphId, name: str) -> bool:
    """Take a skill away."""
    return connection.execute(_SQL["remove_skill"], {"graph_id": graph_id, "name": name}).rowcount == 1
