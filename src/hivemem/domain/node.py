"""A node: one memory."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from datetime import datetime

from hivemem.domain.keys import normalise_key
from hivemem.domain.node_types import CANONICAL_TYPES
from hivemem.domain.text import JsonObject, empty_object, storable_json, storable_text
from hivemem.errors import InvalidInput


class EnrichmentStatus(enum.StrEnum):
    """What background work has done to a node, or still has to do."""

    PENDING = "pending"
    """Waiting: no vector of the present model, or enrichment not yet run."""
    PROCESSING = "processing"
    ENRICHED = "enriched"
    FAILED = "failed"
    SKIPPED = "skipped"
    """Searchable by word and meaning; enrichment is switched off."""
    PLACEHOLDER = "placeholder"
    """Named by a relationship, not yet described; never returned by recall."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One memory, addressed by `key` inside its graph.

    `write_version` counts the writes to this key from 1. `revision` is the graph's change counter at
    the last change, set by the store (0 before). Timestamps are aware UTC.

    Raises:
        InvalidInput: A field breaks its rule; a `Node` that exists is valid.
    """

    key: str
    node_type: str
    description: str
    data: JsonObject = field(default_factory=empty_object)
    search_text: str | None = None
    assets: tuple[str, ...] = ()
    enrichment_status: EnrichmentStatus = EnrichmentStatus.PENDING
    write_version: int = 1
    revision: int = 0
    created_at: datetime
    updated_at: datetime

    def __post_init__(self) -> None:
        if normalise_key(self.key) != self.key:
            raise InvalidInput(f"/key {self.key!r} is not in its stored form; normalise it first.")
        if self.node_type not in CANONICAL_TYPES:
            raise InvalidInput(f"/node_type {self.node_type!r} is not canonical; resolve it first.")
        storable_text(self.description, "/description")
        blank = not self.description.strip()
        if blank != (self.enrichment_status is EnrichmentStatus.PLACEHOLDER):
            raise InvalidInput(
                f"/description of {self.key!r} is {'blank' if blank else 'given'}, but its status is "
                f"{self.enrichment_status}; exactly placeholders have a blank description."
            )
        storable_json(self.data, "/data")
        if self.search_text is not None:
            storable_text(self.search_text, "/search_text")
        for position, asset in enumerate(self.assets):
            storable_text(asset, f"/assets/{position}")
        if self.write_version < 1 or self.revision < 0:
            raise InvalidInput(f"versions of {self.key!r} count from 1, revisions from 0.")
        require_utc(self.created_at, "/created_at")
        require_utc(self.updated_at, "/updated_at")

    @classmethod
    def stored(
        cls,
        key: str,
        node_type: str,
        description: str,
        data: JsonObject,
        search_text: str | None,
        assets: tuple[str, ...],
        enrichment_status: EnrichmentStatus,
        write_version: int,
        revision: int,
        created_at: datetime,
        updated_at: datetime,
    ) -> Node:
        """A node as a store holds it, which was a valid `Node` when it was written.

        For the reading of rows, where the checks of a new node take two thirds of the time. What a
        damaged row breaks first is still looked at: type, status, versions. Texts and JSON are not
        walked through again: a store's own decoding refuses bytes that are no text or no JSON.

        Raises:
            InvalidInput: The row was damaged.
        """
        placeholder = enrichment_status is EnrichmentStatus.PLACEHOLDER
        if (
            node_type not in CANONICAL_TYPES
            or write_version < 1
            or revision < 0
            or not key
            or placeholder != (not description or description.isspace())
        ):
            return cls(
                key=key,
                node_type=node_type,
                description=description,
                data=data,
                search_text=search_text,
                assets=assets,
                enrichment_status=enrichment_status,
                write_version=write_version,
                revision=revision,
                created_at=created_at,
                updated_at=updated_at,
            )
        node = object.__new__(cls)
        put = object.__setattr__
        put(node, "key", key)
        put(node, "node_type", node_type)
        put(node, "description", description)
        put(node, "data", data)
        put(node, "search_text", search_text)
        put(node, "assets", assets)
        put(node, "enrichment_status", enrichment_status)
        put(node, "write_version", write_version)
        put(node, "revision", revision)
        put(node, "created_at", created_at)
        put(node, "updated_at", updated_at)
        return node

    def at_revision(self, revision: int) -> Node:
        """This node as a store holds it that gave it `revision`."""
        return Node.stored(
            self.key,
            self.node_type,
            self.description,
            self.data,
            self.search_text,
            self.assets,
            self.enrichment_status,
            self.write_version,
            revision,
            self.created_at,
            self.updated_at,
        )

    @property
    def placeholder(self) -> bool:
        """Whether a relationship named this node before anybody described it."""
        return self.enrichment_status is EnrichmentStatus.PLACEHOLDER


def require_utc(moment: datetime, name: str) -> datetime:
    """Return `moment`, which must be aware and in UTC.

    Raises:
        InvalidInput: Naive, or in another zone: such times cannot be compared as stored.
    """
    offset = moment.utcoffset()
    if offset is None or offset.total_seconds() != 0:
        raise InvalidInput(f"{name} is {moment.isoformat()}; times are kept as aware UTC.")
    return moment
