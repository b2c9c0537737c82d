"""Published skills."""

from __future__ import annotations

from hivemem.domain.graph import GraphId
from hivemem.domain.skills import CustomSkill
from hivemem.storage.postgres.statements import named_statements
from hivemem.storage.postgres.transaction import Query, Transaction
from hivemem.storage.skill_rows import skill_arguments, skill_from_row

_SQL = named_statements("skills.sql")


async def put_skill(transaction: Transaction, graph_id: GraphId, skill: CustomSkill) -> CustomSkill:
    """Keep a skill in the place of one of its name, and return it as it is kept."""
    await transaction.send(_SQL["put_skill"], skill_arguments(graph_id, skill))
    query = Query(
        sql=_SQL["skill"],
        arguments={"graph_id": graph_id, "name": skill.name},
        decode=lambda rows: skill_from_row(rows[0]),
    )
    return await transaction.ask(query)


def skills(graph_id: GraphId) -> Query[list[CustomSkill]]:
    """All skills of a graph, by name."""
    return Query(
        sql=_SQL["skills"],
        arguments={"graph_id": graph_id},
        decode=lambda rows: [skill_from_row(row) for row in rows],
    )


async def remove_skill(transaction: Transaction, graph_id: GraphId, name: str) -> bool:
    """Take a skill away."""
    arguments = {"graph_id": graph_id, "name": name}
    return await transaction.ask(Query(sql=_SQL["remove_skill"], arguments=arguments, decode=bool))
