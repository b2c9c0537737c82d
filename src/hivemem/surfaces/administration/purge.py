"""Removing what is left of removed graphs, and proving that nothing is."""

from __future__ import annotations

from pydantic import Field

from hivemem.domain.access import Principal
from hivemem.domain.text import JsonObject
from hivemem.surfaces.administration.routes import administration
from hivemem.surfaces.answers import Answer
from hivemem.surfaces.inputs import Input
from hivemem.surfaces.services import Services


class PurgeInput(Input):
    """What to do."""

    check: bool = Field(False, description="Remove nothing; say what is left of removed graphs and users.")
    reclaim: bool = Field(False, description="Also overwrite and give back the room; takes long.")


class PurgeAnswer(Answer):
    """What was removed, and what is left."""

    clean: bool = Field(description="Whether nothing is left.")
    leftovers: dict[str, int] = Field(description="Rows that belong to nobody, by table.")
    graphs: int = Field(description="Graphs that were emptied now.")
    rows: int = Field(description="Rows that were removed now.")


async def _purge(services: Services, actor: Principal, sent: PurgeInput) -> JsonObject:
    actor.require_operator()
    graphs = rows = 0
    if not sent.check:
        result = await services.purging.run()
        graphs, rows = result.graphs, result.rows
    if sent.reclaim:
        await services.purging.reclaim(actor)
    leftovers: JsonObject = {**await services.purging.check(actor)}
    return {"clean": not leftovers, "leftovers": leftovers, "graphs": graphs, "rows": rows}


PURGE_OPERATIONS = (
    administration(
        "purge", "Remove what is left of removed graphs, and look whether anything is.", PurgeInput,
        PurgeAnswer, "POST /purge", _purge, destructive=True,
    ),
)  # fmt: skip
