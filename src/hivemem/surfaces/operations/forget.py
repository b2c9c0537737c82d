"""hm_forget: take a node, an edge or a hyperedge out of the memory."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from hivemem.domain.access import Principal
from hivemem.domain.text import JsonObject
from hivemem.surfaces.answers import WriteAnswer
from hivemem.surfaces.inputs import Input
from hivemem.surfaces.operations.operation import Access, Operation, RestRoute
from hivemem.surfaces.operations.target import one_target
from hivemem.surfaces.services import Services


class ForgetInput(Input):
    """Arguments of hm_forget."""

    key: str | None = Field(None, description="Node to forget; either this or edge_id.")
    edge_id: str | None = Field(None, description="Edge or hyperedge to forget; its nodes stay.")
    edge_version: int | None = Field(
        None, ge=0, description="write_version that it must still have; with edge_id only."
    )


class ForgetAnswer(WriteAnswer):
    """Answer of hm_forget."""

    status: Literal["deleted"]
    deleted: bool
    key: str | None = None
    cascade: bool | None = Field(None, description="The node's relationships went with it.")
    edges_removed: int | None = None
    edge_id: str | None = None
    warnings: list[str] | None = None


async def _forget(services: Services, principal: Principal, sent: ForgetInput) -> JsonObject:
    if one_target(sent.key, sent.edge_id, sent.edge_version) == "edge_id":
        gone = await services.change.forget_relationship(
            principal, sent.edge_id or "", expected=sent.edge_version
        )
        return {"status": "deleted", "deleted": True, "edge_id": gone.id}
    gone = await services.change.forget_node(principal, sent.key or "")
    return {
        "status": "deleted",
        "deleted": True,
        "key": gone.id,
        "cascade": True,
        "edges_removed": gone.relationships_removed,
    }


FORGET = Operation(
    name="hm_forget",
    summary="Forget a node with all its relationships (key), or one edge or hyperedge (edge_id). Nothing "
    "finds it any more; its history is kept and can be restored by the operator.",
    input=ForgetInput,
    output=ForgetAnswer,
    access=Access.WRITE,
    destructive=True,
    routes=(RestRoute(method="POST", path="/forget"),),
    verb="forget",
    handler=_forget,
)
