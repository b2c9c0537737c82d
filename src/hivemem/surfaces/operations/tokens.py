"""hm_tokens: what an agent used in a turn."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict, Field

from hivemem.domain.access import Principal
from hivemem.domain.text import JsonObject
from hivemem.surfaces.answers import Answer
from hivemem.surfaces.inputs import Input
from hivemem.surfaces.operations.operation import Access, Operation, RestRoute
from hivemem.surfaces.services import Services

_NOT_REPORTED = frozenset(("session_id", "turn_sequence"))


class TokensInput(Input):
    """Arguments of hm_tokens."""

    model_config = ConfigDict(protected_namespaces=())

    ai_tool: str = Field(description="The agent, such as claude_code.")
    provider: str
    model: str
    session_id: str = Field(description="The conversation.")
    turn_sequence: int = Field(ge=1, description="Number of the turn; a second report of it changes nothing.")
    measurement_quality: Literal["client_exact", "self_estimated", "provider_actual"]
    segments: list[Any] = Field(
        description="What the turn was for: [{category, weight}], weights 1 to 100 that make 100. Category: "
        "reasoning, memory, doc_processing, automation, personal, chatting, research, design, calculations, "
        "coding, planning, productivity, writing, unmatched."
    )
    input_tokens: int | None = Field(None, ge=0)
    output_tokens: int | None = Field(None, ge=0)
    total_tokens: int | None = Field(None, ge=0)
    cache_tokens: int | None = Field(None, ge=0)
    reasoning_tokens: int | None = Field(None, ge=0)
    cache_accounting: str | None = None
    estimation_bias: Literal["low", "neutral", "high"] | None = None
    cost_usd: float | None = Field(None, ge=0)
    cost_quality: Literal["provider_actual", "price_calculated", "self_estimated", "unavailable"] | None = (
        None
    )
    ai_account_id: str | None = None
    timestamp: str | None = Field(None, description="ISO 8601.")
    uncertainty_percentage: float | None = None


class TokensAnswer(Answer):
    """Answer of hm_tokens."""

    status: Literal["recorded"]
    event_id: str
    duplicate: bool = Field(description="The turn had been reported; the first report stays.")
    warnings: list[str] | None = None


async def _tokens(services: Services, principal: Principal, sent: TokensInput) -> JsonObject:
    report = sent.model_dump(exclude_none=True, exclude=set(_NOT_REPORTED))
    kept, duplicate = await services.tokens.record(principal, sent.session_id, sent.turn_sequence, report)
    return {"status": "recorded", "event_id": kept.event_id, "duplicate": duplicate}


TOKENS = Operation(
    name="hm_tokens",
    summary="Report the tokens that you used in a turn, and what for. It changes no memory.",
    input=TokensInput,
    output=TokensAnswer,
    # A report is about the caller, not about the memory: every credential may send one.
    access=Access.READ,
    reports=True,
    idempotent=True,
    routes=(RestRoute(method="POST", path="/hm_tokens"),),
    verb="tokens",
    handler=_tokens,
)
