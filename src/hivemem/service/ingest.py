"""hm_ingest: a text as memories, by rules: statements, what they name, and how they follow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hivemem.domain.access import Principal
from hivemem.domain.text import JsonObject, storable_text
from hivemem.domain.writing import INGEST_TOOL, IfExists
from hivemem.enrichment.mentions import Mention, digest, mentions, slug
from hivemem.enrichment.statements import Statement, statements
from hivemem.errors import HivememError, InvalidInput, LimitExceeded
from hivemem.ports.store import GraphStore
from hivemem.service.limits import Limits
from hivemem.service.remember import Remember, StoreRequest, StoreResult

_KEYS_PER_READ = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestResult:
    """What was made of a text. `created_keys` are new or newly described nodes, in reading order."""

    created_keys: tuple[str, ...]
    nodes_kept: int
    edges_created: int
    warnings: tuple[str, ...]


class Ingest:
    """Makes memories of running text. The same text again changes nothing."""

    def __init__(self, *, store: GraphStore, remember: Remember, limits: Limits) -> None:
        self._store = store
        self._remember = remember
        self._limits = limits

    async def ingest(self, principal: Principal, text: str, context: str | None = None) -> IngestResult:
        """Store each statement of a text as a fact, related to what it names and to the next one.

        Args:
            principal: The caller.
            text: Prose or Markdown.
            context: Where the text comes from, or what it is about; the facts are found by it as well.

        Raises:
            Forbidden: The credential is read-only.
            InvalidInput: A blank text.
            LimitExceeded: More characters than `Limits.max_ingest_characters`.
            Unavailable: The store is busy or down. What was stored by then stays, and the same call
                again completes it.
        """
        principal.require_write()
        storable_text(text, "/text")
        if context is not None:
            maximum = self._limits.max_search_text_characters
            context = storable_text(context, "/context", max_characters=maximum).strip()
        if len(text) > self._limits.max_ingest_characters:
            raise LimitExceeded(
                f"/text has {len(text)} characters; one call takes at most "
                f"{self._limits.max_ingest_characters}. Send it in parts.",
                limit=self._limits.max_ingest_characters,
            )
        # A line of dashes is no memory.
        found = [one for one in statements(text) if any(map(str.isalnum, one.text))]
        if not found:
            raise InvalidInput("/text is blank; send the text to remember.")
        named = mentions([one.text for one in found])
        known = await self._known(principal, [mention for one in named for mention in one])
        requests = _requests(found, named, known, context)
        outcomes = await self._remember.store_many(principal, requests, tool=INGEST_TOOL)
        return _result(requests, outcomes)

    async def _known(self, principal: Principal, wanted: list[Mention]) -> Mapping[str, str]:
        """The node that stands for each mention: an existing one under another type, or its own."""
        keys = list({key for mention in wanted for key in (mention.key, *mention.names)})
        present: set[str] = set()
        for start in range(0, len(keys), _KEYS_PER_READ):
            nodes = await self._store.nodes(principal.graph_id, keys[start : start + _KEYS_PER_READ])
            present.update(nodes)
        return {
            mention.key: next((key for key in (mention.key, *mention.names) if key in present), mention.key)
            for mention in wanted
        }


def _requests(
    found: list[Statement], named: list[list[Mention]], known: Mapping[str, str], context: str | None
) -> list[StoreRequest]:
    facts = {}
    keys = [_fact_key(one.text) for one in found]
    things: dict[str, StoreRequest] = {}
    for position, (statement, mentioned) in enumerate(zip(found, named, strict=True)):
        relationships = [
            {"to_key": known[mention.key], "relationship": mention.label} for mention in mentioned
        ]
        if position + 1 < len(found) and found[position + 1].follows and keys[position + 1] != keys[position]:
            relationships.append({"to_key": keys[position + 1], "relationship": "continues in the next one"})
        for mention in mentioned:
            key = known[mention.key]
            things.setdefault(
                key,
                StoreRequest(
                    key=key,
                    description=mention.description,
                    node_type=mention.node_type,
                    if_exists=IfExists.KEEP,
                ),
            )
        data: JsonObject = {}
        if context:
            data["context"] = context
        if statement.heading:
            data["heading"] = statement.heading
        facts.setdefault(
            keys[position],
            StoreRequest(
                key=keys[position],
                description=statement.text,
                node_type="fact",
                data=data or None,
                relationships=relationships,
                if_exists=IfExists.KEEP,
            ),
        )
    # Things first, so that no fact makes a placeholder of one.
    return [*things.values(), *facts.values()]


def _fact_key(text: str) -> str:
    """One key for one text: the same statement again is the same fact."""
    return "_".join(part for part in ("fact", slug(text), digest(text)) if part)


def _result(requests: list[StoreRequest], outcomes: list[StoreResult | HivememError]) -> IngestResult:
    created: list[str] = []
    kept = edges = 0
    warnings: list[str] = []
    for request, outcome in zip(requests, outcomes, strict=True):
        if isinstance(outcome, HivememError):
            warnings.append(f"{request.key!r} was not stored: {outcome.message}")
            continue
        edges += len(outcome.created)
        if outcome.status == "created":
            created.append(request.key)
        else:
            kept += 1
    if len(warnings) == len(requests):
        error = next(outcome for outcome in outcomes if isinstance(outcome, HivememError))
        raise error
    return IngestResult(
        created_keys=tuple(created), nodes_kept=kept, edges_created=edges, warnings=tuple(warnings[:20])
    )
